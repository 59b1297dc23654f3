"""Appendix C: the family of surrogates (1/k) Σ_c L(c, y) a(f_c) + b(f_c)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp

from consistruct.calibration import calibration_function
from consistruct.losses import Block, Hamming, Loss, ZeroOne
from consistruct.structures import Full
from consistruct.surrogates import make_surrogate
from paper.conditions import check_conditions, paper_examples
from paper.model import Deviation, Effort, Evidence, claim
from paper.numerics import Worst, distributions, relative

NAMES = {"quadratic": "square", "exponential": "exponential", "logistic": "logistic"}


@claim(
    "ab-family",
    "Appendix C, eq. (abLoss)",
    "definition",
    "Φ_{a,b}(f, y) = (1/k) Σ_c (L(c, y) a(f_c) + b(f_c)); a stochastic gradient comes from "
    "drawing y from the data and a label c uniformly; a = f, b = f²/2 gives the quadratic "
    "surrogate.",
    "the library's three members against the formula; the average of the sampled gradients against "
    "the gradient; the quadratic one up to a term free of f",
    covers=("eq:abLoss",),
)
def family(effort: Effort) -> Evidence:
    rng = effort.rng
    value = Worst("|library − formula|", 1e-9)
    slope = Worst("|average of sampled gradients − gradient|", 1e-10)
    spread = Worst("spread over f of Φ_ab − Φ_quad", 1e-10)
    for loss in (ZeroOne(4), Hamming(2), Block((1, 2))):
        L = loss.matrix()
        k, labels = len(L), loss.predictions.enumerate()
        f = rng.normal(size=(effort.pick(10, 60), k))
        for name, (a, b, da, db) in _functions().items():
            surrogate = make_surrogate(NAMES[name], loss, Full(loss))
            for row in f:
                found, gradient = surrogate.value_and_gradient(np.repeat(row[None], k, 0), labels)
                printed = (L.T * a(row) + b(row)).mean(axis=1)
                constant = found[0] - printed[0] if name == "quadratic" else 0.0
                value.add(float(np.abs(found - printed - constant).max()), f"{name}, {loss!r}")
                sampled = np.array(
                    [[(L[c, y] * da(row) + db(row))[c] for c in range(k)] for y in range(k)]
                )
                # each sampled gradient has one entry; its mean over uniform c divides by k
                slope.add(float(np.abs(sampled / k - gradient).max()), f"{name}, {loss!r}")
        quadratic = np.sum((f[:, :, None] + L) ** 2, axis=1) / (2 * k)
        ours = (f[:, :, None] * L + f[:, :, None] ** 2 / 2).mean(axis=1)
        spread.add(float(np.ptp(quadratic - ours, axis=0).max()), repr(loss))
    return Evidence((value.deviation, slope.deviation, spread.deviation), "three losses, Lmax = 1")


def _functions() -> dict[str, tuple[Any, Any, Any, Any]]:
    """a, b and their derivatives at Lmax = 1."""
    return {
        "quadratic": (lambda f: f, lambda f: f**2 / 2, np.ones_like, lambda f: f),
        "exponential": (
            lambda f: np.exp(f) - np.exp(-f),
            lambda f: np.exp(-f),
            lambda f: np.exp(f) + np.exp(-f),
            lambda f: -np.exp(-f),
        ),
        "logistic": (
            lambda f: f,
            lambda f: np.log1p(np.exp(-f)),
            np.ones_like,
            lambda f: -1 / (1 + np.exp(f)),
        ),
    }


@claim(
    "theorem-ab",
    "Appendix C, theorem on sufficient conditions",
    "theorem",
    "Φ_{a,b} is consistent if a, b are convex and differentiable; c·a + b is bounded below with a "
    "unique minimizer, finite or infinite, for all c in [0, Lmax]; a and b′/a′ strictly increase.",
    "certified H of members that meet the conditions; a pair (a, b) that meets all of them, proved "
    "symbolically, with the minimizer −∞ for every c",
    expected="imprecise",
    covers=(
        "th:abConsist",
        "item:thCond:smooth",
        "item:thCond:bounded",
        "item:thCond:second",
        "item:thCond:second#1",
    ),
)
def theorem(effort: Effort) -> Evidence:
    stated = Worst("consistent members with H = 0 at some ε > 0", 0)
    losses: list[Loss] = [ZeroOne(3), Block((1, 2)), Hamming(2)]
    for loss in losses[: effort.pick(1, 3)]:
        for name in ("quadratic", "logistic", "exponential"):
            H = calibration_function(loss, "full", surrogate=name)
            for eps in (0.3, 0.8):
                stated.add(float(not H(eps) > 0), f"{name}, {loss!r}")
    missing = _minimizer_at_infinity()
    # scores −t, and −t + 1 for a wrong label: the excess vanishes while the label stays wrong
    L, q = 1 - np.eye(3), np.array([1.0, 0.0, 0.0])
    f = np.array([-300.0, -299.0, -300.0])
    excess = float(((L @ q) * np.exp(f) + np.exp(2 * f)).mean())  # the infimum is 0
    lost = float((L @ q)[f.argmax()] - (L @ q).min())
    edge = Deviation(
        "excess task risk at excess surrogate risk below 1e-100",
        lost if excess < 1e-100 else 0.0,
        1e-9,
        f"a = e^f, b = e^2f, 0-1 loss, f = (−300, −299, −300): excess {excess:.1e}",
    )
    refuted = check_conditions("exp(f)", "exp(2*f)").verdict
    proved = [check_conditions(a, b).verdict for a, b, _ in paper_examples().values()]
    corrected = (
        Deviation(
            "counterexample not refuted by the corrected conditions", refuted != "refuted", 0
        ),
        Deviation("examples not proved by them", sum(v != "proved" for v in proved), 0),
        stated.deviation,
    )
    return Evidence(
        (stated.deviation, missing),
        "quadratic, logistic, exponential; a = e^f, b = e^2f",
        edge=(edge,),
        corrected=corrected,
        correction="The minimizer must be finite for 0 < c < Lmax (−b′/a′ takes every value "
        "there). a = e^f and b = e^2f meet every printed condition, with the unique minimizer "
        f"−∞ for all c, and order nothing: an excess surrogate risk of {excess:.0e} goes with "
        f"an excess task risk of {lost:g}, so H = 0. Convexity is needed of c·a + b only.",
    )


def _minimizer_at_infinity() -> Deviation:
    """a = e^f, b = e^2f meet the printed conditions: each proved symbolically."""
    f, c = sp.Symbol("f", real=True), sp.Symbol("c", nonnegative=True)
    a, b = sp.exp(f), sp.exp(2 * f)
    positive = [
        sp.diff(a, f, 2),
        sp.diff(b, f, 2),
        sp.diff(a, f),
        sp.diff(sp.simplify(sp.diff(b, f) / sp.diff(a, f)), f),
        sp.diff(c * a + b, f),  # so it increases: the infimum is at −∞ alone
    ]
    broken = sum(one.is_positive is not True for one in positive)
    broken += sp.limit(a + b, f, -sp.oo) != 0
    return Deviation("printed conditions that the counterexample breaks", float(broken), 0)


@claim(
    "ab-examples-conditions",
    "Appendix C",
    "remark",
    "The three examples satisfy the conditions of the theorem.",
    "symbolic: convexity of a and of c·a + b, the other conditions by the library's prover",
    expected="false",
)
def examples_conditions(effort: Effort) -> Evidence:
    f = sp.Symbol("f", real=True)
    bent = Worst("−a″ at f = −1", 0)
    failed = Worst("examples without proof of the corrected conditions", 0)
    for top in (1.0, 2.5):
        for name, (a, b, _) in paper_examples(top).items():
            second = sp.diff(sp.sympify(a, locals={"f": f}), f, 2)
            bent.add(float(-second.subs(f, -1)), f"{name}, Lmax = {top:g}")
            failed.add(float(check_conditions(a, b, top).verdict != "proved"), f"{name}, {top:g}")
    return Evidence(
        (bent.deviation,),
        "three examples, Lmax = 1 and 2.5",
        corrected=(failed.deviation,),
        correction="a need not be convex, and is not in the second example (a″ = (e^f − "
        f"e^−f)/Lmax < 0 for f < 0, {-bent.value:.3g} at f = −1): it is c·a + b that must be "
        "convex for all c in [0, Lmax], which holds for all three.",
    )


@claim(
    "ab-minimizers",
    "Appendix C",
    "formula",
    "The minimizers f*(ℓ) of the three examples: −ℓ; ½log(1 − ℓ/Lmax) − ½log(ℓ/Lmax); "
    "log(1 − ℓ/Lmax) − log(ℓ/Lmax).",
    "symbolic: ℓa′ + b′ = 0 at the printed point, second derivative positive",
)
def minimizers(effort: Effort) -> Evidence:
    f = sp.Symbol("f", real=True)
    wrong = Worst("|ℓa′ + b′| at the printed minimizer", 1e-12)
    flat = Worst("second derivative not positive there", 0)
    for top in (1.0, 2.5):
        for name, (a, b, star) in paper_examples(top).items():
            A, B = (sp.sympify(text, locals={"f": f}) for text in (a, b))
            for share in (0.1, 0.5, 0.83):
                ell = share * top
                point = float(sp.sympify(star).subs({"ell": ell}))
                total = ell * A + B
                wrong.add(abs(float(sp.diff(total, f).subs(f, point))), f"{name}, ℓ = {ell:g}")
                flat.add(float(not sp.diff(total, f, 2).subs(f, point) > 0), name)
    return Evidence((wrong.deviation, flat.deviation), "Lmax = 1, 2.5; ℓ = 10, 50, 83 % of it")


@claim(
    "ab-order-preserving",
    "Appendix C",
    "remark",
    "The surrogates are order-preserving: optimal scores are ordered against expected losses.",
    "minimizers for random distributions, ties and zero losses included",
)
def order_preserving(effort: Effort) -> Evidence:
    rng = effort.rng
    wrong = Worst("pairs in the wrong order", 0)
    for name in paper_examples():
        for q in distributions(rng, 5, effort.pick(50, 500)):
            ell = Block((2, 3)).matrix() @ q  # equal expected losses within blocks
            star = _star_values(name, ell)
            for i in range(5):
                for j in range(5):
                    # f*_j ≥ f*_i iff ℓ_j ≤ ℓ_i, in the extended reals
                    wrong.add(float((star[j] >= star[i]) != (ell[j] <= ell[i])), name)
    return Evidence((wrong.deviation,), "blocks of 2 and 3, random distributions")


def _star_values(name: str, ell: Any) -> Any:
    if name == "quadratic":
        return -ell
    with np.errstate(divide="ignore"):
        logit = np.log1p(-np.clip(ell, 0, 1)) - np.log(np.clip(ell, 0, 1))
    return logit / 2 if name == "exponential" else logit


@claim(
    "ab-binary",
    "Appendix C",
    "remark",
    "For two classes the three surrogates reduce to the squared, exponential and logistic losses.",
    "symbolic: Φ at f = (m, −m) with the 0-1 loss; the certified calibration functions for k = 2 "
    "against the binary ones",
)
def binary(effort: Effort) -> Evidence:
    m = sp.Symbol("m", real=True)
    parts = {
        "quadratic": (
            m**2 / 2,
            -m + m**2 / 2,
            (m - sp.Rational(1, 2)) ** 2 / 2 - sp.Rational(1, 8),
        ),
        "exponential": (sp.exp(-m), sp.exp(-m) - sp.exp(m) + sp.exp(m), sp.exp(-m)),
        "logistic": (
            sp.log(1 + sp.exp(-m)),
            -m + sp.log(1 + sp.exp(m)),
            sp.log(1 + sp.exp(-m)),
        ),
    }
    failed = 0.0
    for right, other, binary_loss in parts.values():
        gap = sp.simplify(sp.expand_log((right + other) / 2 - binary_loss, force=True))
        # log(1 + e^m) − m = log(1 + e^−m) escapes the simplifier: 40 digits decide
        numbers = [abs(sp.N(gap.subs(m, v), 40)) for v in (sp.Rational(-7, 3), sp.Rational(11, 5))]
        failed += any(number > sp.Float(10) ** -35 for number in numbers)
    curve = Worst("relative deviation of certified H from the binary function", 1e-6)
    for eps in effort.pick((0.5,), (0.1, 0.5, 0.9)):
        entropy = (1 + eps) * math.log(1 + eps) + (1 - eps) * math.log(1 - eps)
        for name, expected in (
            ("quadratic", eps**2 / 8),
            ("logistic", entropy / 2),
            ("exponential", 1 - math.sqrt(1 - eps**2)),
        ):
            H = calibration_function(ZeroOne(2), "full", surrogate=name)
            curve.add(relative(H(eps), expected), f"{name}, ε = {eps}")
    return Evidence(
        (Deviation("reductions that fail", failed, 0), curve.deviation), "f = (m, −m), Lmax = 1"
    )
