"""Appendix E.1: the exact calibration function of the 0-1 loss."""

from __future__ import annotations

import math

import numpy as np

from consistruct.audit.model import Deviation, Effort, Evidence, claim
from consistruct.audit.numerics import MARGIN_LOSSES, Worst, certified, pair_value, relative
from consistruct.audit.symbolic import residual, sympy
from consistruct.calibration import calibration_function
from consistruct.losses import ZeroOne
from consistruct.losses.base import Loss
from consistruct.scores import Full
from consistruct.scores.base import BaseScoreSpace

__all__ = ["compare"]


def compare(
    loss: Loss,
    space: BaseScoreSpace,
    eps: float,
    expected: float,
    library: Worst,
    numeric: Worst,
    case: str,
) -> None:
    """The formula's value against the library's curve and against certified programs."""
    for end in calibration_function(loss, space).interval(eps):
        library.add(_off(end, expected), f"{case}, ε = {eps:.3g}")
    for end in certified(loss, space, eps):
        numeric.add(_off(end, expected), f"{case}, ε = {eps:.3g}")


def _off(found: float, expected: float) -> float:
    return abs(found) if expected == 0 else relative(found, expected)


@claim(
    "prop-zero-one",
    "Appendix E.1, first proposition",
    "proposition",
    "0-1 loss, free scores: H(ε) = ε²/4k for 0 ≤ ε ≤ 1.",
    "the formula against the library's curve and certified quadratic programs",
    covers=(
        "th:calibrationFunction:01loss",
        "eq:calibrationFunction:01loss",
        "eq:tfproofs:truncatingToEps#1",
    ),
)
def zero_one(effort: Effort) -> Evidence:
    library = Worst("relative deviation of the library's curve", 1e-12)
    numeric = Worst("relative deviation of certified programs", 1e-8)
    for k in effort.pick((2, 3, 5), (2, 3, 4, 5, 7, 8, 13)):
        for eps in (0.05, 0.5, 0.77, 1.0):
            compare(
                ZeroOne(k), Full(ZeroOne(k)), eps, eps**2 / (4 * k), library, numeric, f"k = {k}"
            )
        library.add(float(math.isfinite(calibration_function(ZeroOne(k), "full")(1.01))))
    return Evidence((library.deviation, numeric.deviation), "k ≥ 2 up to 13; ε = 0.05 … 1")


@claim(
    "zero-one-proof",
    "Appendix E.1, proof",
    "proof step",
    "The pair problem of the 0-1 loss; moving mass δ from a third label, and δ′ − ε from i to j, "
    "together with the scores keeps every term of the objective; f* = −½.",
    "symbolic: each term f_c + 1 − q_c before and after; the minimum over f; numeric: the printed "
    "program against ε²/4k and its optimal point",
    covers=(
        "eq:calibrationfunc:01loss:breakingSymmetries",
        "eq:calibrationfunc:01loss:breakingSymmetries#1",
        "eq:tfproofs:truncatingToEps",
        "eq:tfproofs:truncatingToEps#1",
    ),
)
def zero_one_proof(effort: Effort) -> Evidence:
    sp = sympy()
    f, q, shift, eps = sp.symbols("f q delta epsilon", real=True)
    moves = [
        # the term f + 1 − q after each move, less before it
        (f - shift + 1 - (q - shift)) - (f + 1 - q),
        (f + shift / 2 + 1 - (q + shift / 2)) - (f + 1 - q),
        (f - (shift - eps) / 2 + 1 - (q - (shift - eps) / 2)) - (f + 1 - q),
    ]
    objective = (f + sp.Rational(1, 2) - eps / 2) ** 2 + (f + sp.Rational(1, 2) + eps / 2) ** 2
    best = sp.solve(sp.diff(objective, f), f)
    moves += [best[0] + sp.Rational(1, 2), objective.subs(f, best[0]) - eps**2 / 2]
    symbolic = Deviation("identities that fail symbolically", residual(*moves), 0)
    numeric = Worst("relative deviation of the printed program from ε²/4k", 1e-6)
    point = Worst("cost of the printed optimal point − ε²/4k", 1e-12)
    for k in effort.pick((3, 5), (2, 3, 5, 8)):
        for e in (0.2, 0.7):
            value = pair_value(1 - np.eye(k), np.eye(k), 0, 1, e, range(k))[0]
            numeric.add(relative(value, e**2 / (4 * k)), f"k = {k}, ε = {e}")
            law, scores = np.zeros(k), np.full(k, -1.0)
            law[:2], scores[:2] = (0.5 + e / 2, 0.5 - e / 2), -0.5
            cost = float(np.sum((scores + 1 - law) ** 2)) / (2 * k)
            point.add(abs(cost - e**2 / (4 * k)), f"k = {k}")
    return Evidence((symbolic, numeric.deviation, point.deviation), "symbolic; k up to 8 numeric")


@claim(
    "zero-one-remark",
    "Appendix E.1, remark",
    "remark",
    "q_i = ⅓ + ε/2, q_j = ⅓ − ε/2, q_c = 1/(3(k−2)), f_i = f_j = ⅓, f_c = −ℓ_c is feasible and "
    "also gives ε²/4k.",
    "feasibility and objective of that point, with the printed score and with the score that "
    "minimises the objective over f_i = f_j",
    expected="false as stated",
)
def zero_one_remark(effort: Effort) -> Evidence:
    stated = Worst("relative deviation of the cost at the printed point from ε²/4k", 1e-9)
    right = Worst("relative deviation with the minimising score", 1e-9)
    score = Worst("|minimising score + ⅔|", 1e-12)
    broken = Worst("violated constraints, k ≥ 3 and ε ≤ ⅔", 1e-12)
    example = 0.0
    for k in (3, 4, 7, 30):
        for eps in (0.05, 0.2, 2 / 3):
            q = np.full(k, 1 / (3 * (k - 2)))
            q[:2] = 1 / 3 + eps / 2, 1 / 3 - eps / 2
            f = q - 1  # −ℓ_c
            best = float(np.mean(q[:2] - 1))  # of (f + 1 − q_i)² + (f + 1 − q_j)²
            score.add(abs(best + 2 / 3))
            for value, seen in ((1 / 3, stated), (best, right)):
                f[:2] = value
                cost = float(np.sum((f + 1 - q) ** 2)) / (2 * k)
                seen.add(relative(cost, eps**2 / (4 * k)), f"k = {k}, ε = {eps:.3g}: {cost:.6g}")
                example = cost if (k, eps, value) == (4, 0.2, 1 / 3) else example
            broken.add(float(max(q.max() - q[0], (f - f[1]).max(), -q.min(), abs(q.sum() - 1))))
    return Evidence(
        (stated.deviation,),
        "k = 3, 4, 7, 30; ε = 0.05, 0.2, ⅔",
        corrected=(right.deviation, score.deviation, broken.deviation),
        correction="f_i = f_j = −⅔, with k ≥ 3 and ε ≤ ⅔ (q_j ≥ 0). The printed ⅓ costs "
        f"(1 + ε²/4)/k: {example:.4f} instead of 0.0025 at k = 4, ε = 0.2.",
    )


@claim(
    "zero-one-gradient-remark",
    "Appendix E.1, remark",
    "remark",
    "For that two-label distribution, an algorithm that starts at f_c = −1 never moves the other "
    "scores.",
    "the gradient (f_c + L(c, y))/k at f_c = −1 for y in {i, j}",
)
def gradient_remark(effort: Effort) -> Evidence:
    moved = Worst("gradient of the other scores", 0)
    for k in (3, 6):
        gradient = (np.full(k, -1.0)[:, None] + (1 - np.eye(k))[:, :2]) / k
        moved.add(float(np.abs(gradient[2:]).max()), f"k = {k}")
    return Evidence((moved.deviation,), "k = 3, 6")


@claim(
    "binary-least-squares",
    "Appendix E.1",
    "remark",
    "For two classes the function equals the calibration function of the (truncated) least squares "
    "surrogates.",
    "the calibration functions of (1 − m)² and (1 − m)₊² in the margin m, by minimisation over m, "
    "against ε²/8; and the quadratic surrogate minimised over the mean of the two scores",
    expected="holds with correction",
)
def binary_least_squares(effort: Effort) -> Evidence:
    margins = np.linspace(-3, 3, effort.pick(6001, 60001))
    shape = Worst("relative deviation of the least-squares functions from 8·(ε²/8)", 1e-6)
    equal = Worst("relative deviation of the least-squares functions from ε²/8", 1e-6)
    for eps in (0.1, 0.5, 0.9):
        p = (1 + eps) / 2
        for name in ("squared", "truncated"):
            loss = MARGIN_LOSSES[name]
            risk = p * loss(margins) + (1 - p) * loss(-margins)
            found = float(risk[margins <= 1e-12].min() - risk.min())
            shape.add(relative(found, eps**2), f"{name}, ε = {eps}")
            equal.add(relative(found, eps**2 / 8), f"{name}, ε = {eps}: {found:.4g}")
    sp = sympy()
    a, m = sp.symbols("a m", real=True)
    # f = (a + m/2, a − m/2), truth is label 1
    value = ((a + m / 2) ** 2 + (a - m / 2 + 1) ** 2) / 4
    reduced = value.subs(a, sp.solve(sp.diff(value, a), a)[0])
    same = Deviation("min over the mean of Φ ≠ (1 − m)²/8", residual(reduced - (1 - m) ** 2 / 8), 0)
    return Evidence(
        (same,),
        "ε = 0.1, 0.5, 0.9",
        edge=(equal.deviation,),
        corrected=(shape.deviation, same),
        correction="Equal up to the factor 8: they have ε², the proposition gives ε²/8 at k = "
        "2, since the surrogate, minimised over the mean of the two scores, is (1 − m)²/8.",
    )
