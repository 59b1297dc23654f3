"""Section 4 and Appendix E.4: the mixed loss, with free scores and with block scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp

from consistruct.calibration import calibration_function
from consistruct.losses import Mixed
from consistruct.protocols import FloatArray
from consistruct.structures import Blocks, Full
from consistruct.structures.operators import predictable_rows
from paper.claims.exact import compare
from paper.model import Deviation, Effort, Evidence, claim
from paper.numerics import (
    Worst,
    certified,
    distributions,
    mixed_matrix,
    pair_value,
    projection,
    relative,
    residual,
)


def printed(eps: float, b: int, s: int, eta: float) -> float:
    """The proposition's formula; η/(1−η) is read as +∞ at η = 1."""
    k = b * s
    if eta >= 1 or eps <= eta / (1 - eta):
        return eps**2 / (4 * k)
    second = eta * (eps + 1) * (s - 1) / (4 * k * (s + 1)) * (2 * eps - eps * eta - eta)
    return eps**2 * s / (2 * k * (s + 1)) - second


@claim(
    "prop-mixed-full",
    "Appendix E.4, first proposition",
    "proposition",
    "Mixed loss, equal blocks of s ≥ 2, free scores: H(ε) = ε²/4k up to ε = η/(1−η), then "
    "ε²s/(2k(s+1)) − η(ε+1)(s−1)(2ε − εη − η)/(4k(s+1)) up to 1; the surrogate is consistent.",
    "the formula against the library's curve and certified quadratic programs; a single block, "
    "which the statement does not exclude",
    expected="imprecise",
    covers=("th:calibrationFunction:mixedLoss", "th:calibrationFunction:mixedLoss#1"),
)
def proposition(effort: Effort) -> Evidence:
    library = Worst("relative deviation of the library's curve", 1e-12)
    numeric = Worst("relative deviation of certified programs", 1e-8)
    positive = Worst("values of ε > 0 with H = 0", 0)
    for b, s in effort.pick([(2, 2), (2, 3)], [(2, 2), (2, 3), (3, 2), (2, 4)]):
        for eta in effort.pick((0.1, 0.4, 0.7), (0.05, 0.1, 0.3, 0.45, 0.49, 0.5, 0.6, 1.0)):
            loss = Mixed((s,) * b, eta)
            for eps in (0.08, 0.4, 0.8, 1.0):
                case = f"b = {b}, s = {s}, η = {eta}"
                compare(loss, Full(loss), eps, printed(eps, b, s, eta), library, numeric, case)
                positive.add(float(printed(eps, b, s, eta) <= 0), case)
    one = calibration_function(Mixed((3,), 0.4), "full")
    lone = relative(one(0.8), printed(0.8, 1, 3, 0.4))
    return Evidence(
        (library.deviation, numeric.deviation, positive.deviation),
        "2 or 3 blocks of 2 to 4 labels; η in (0, 1]; ε = 0.08 … 1",
        edge=(
            Deviation("relative deviation for one block", lone, 1e-6, "s = 3, η = 0.4, ε = 0.8"),
        ),
        corrected=(library.deviation, numeric.deviation),
        correction="It fails for one block alone, which nothing in the paper excludes, and there "
        f"for ε > η only: the loss is η times the 0-1 loss, so H(ε) = +∞ above {one.max_eps:g} at "
        "η = 0.4. The bound η/(1−η) is to be read as +∞ at η = 1.",
    )


@claim(
    "mixed-full-limits",
    "Appendix E.4",
    "remark",
    "At η = 0 it is the function of the block loss, from η = ½ on that of the 0-1 loss; the two "
    "pieces meet.",
    "symbolic substitution into the printed formula",
)
def limits(effort: Effort) -> Evidence:
    eps, eta, s, k = sp.symbols("epsilon eta s k", positive=True)
    second = eps**2 * s / (2 * k * (s + 1)) - eta * (eps + 1) * (s - 1) / (4 * k * (s + 1)) * (
        2 * eps - eps * eta - eta
    )
    failed = residual(
        second.subs(eta, 0) - eps**2 / (4 * k) * 2 * s / (s + 1),
        (second - eps**2 / (4 * k)).subs(eps, eta / (1 - eta)),
    )
    reach = Deviation(
        "η ≥ ½ with η/(1−η) < 1", float(min(e / (1 - e) for e in (0.5, 0.7, 0.9)) < 1), 0
    )
    return Evidence((Deviation("identities that fail symbolically", failed, 0), reach), "symbolic")


@claim(
    "mixed-expected-loss",
    "Appendix E.4, proof",
    "formula",
    "(Lq)_i = η(1 − q_i) + (1 − η)(1 − Q_block(i)).",
    "matrix products for random distributions",
    covers=("eq:calibrationFunction:mixedLoss:expectedLoss",),
)
def expected_loss(effort: Effort) -> Evidence:
    worst = Worst("|Lq − formula|", 1e-12)
    for sizes, eta in (((2, 2), 0.3), ((3, 3, 3), 0.8)):
        block = np.repeat(np.arange(len(sizes)), sizes)
        for q in distributions(effort.rng, sum(sizes), effort.pick(20, 200)):
            mass = np.bincount(block, q)[block]
            formula = eta * (1 - q) + (1 - eta) * (1 - mass)
            worst.add(float(np.abs(mixed_matrix(sizes, eta) @ q - formula).max()), f"η = {eta}")
    return Evidence((worst.deviation,), "blocks of 2 and 3")


@claim(
    "mixed-full-pairs",
    "Appendix E.4, proof",
    "proof step",
    "Within a block H_ij = ε²/4k for ε ≤ η and +∞ above; across blocks it is the function of the "
    "proposition, never larger; the optimal scores are min(target, f_j).",
    "the printed pair program, constraints over all labels, for both kinds of pairs",
    covers=(
        "eq:calibrationFunction:mixedLoss:proofSquare:obj1",
        "eq:calibrationFunction:mixedLoss:proofSquare:obj1#1",
        "eq:calibrationFunction:mixedLoss:proofSquare:obj1#5",
    ),
)
def pairs(effort: Effort) -> Evidence:
    inner = Worst("relative deviation within a block", 1e-5)
    outer = Worst("relative deviation across blocks", 1e-5)
    larger = Worst("across − within, where both are finite", 1e-9)
    scores = Worst("|f − min(−ℓ, f_j)|, j left out", 1e-4)
    b, s = 2, effort.pick(2, 3)
    k = b * s
    for eta in effort.pick((0.4,), (0.2, 0.4, 0.7)):
        L = mixed_matrix((s,) * b, eta)
        for eps in (0.9 * eta, 0.99):
            within = pair_value(L, np.eye(k), 0, 1, eps, range(k))[0]
            across, q, f = pair_value(L, np.eye(k), 0, s, eps, range(k))
            case = f"s = {s}, η = {eta}, ε = {eps:.3g}"
            inner.add(relative(within, eps**2 / (4 * k) if eps <= eta else math.inf), case)
            outer.add(relative(across, printed(eps, b, s, eta)), case)
            larger.add(across - within, case)
            scores.add(float(np.abs(f - np.minimum(-L @ q, f[s]))[np.arange(k) != s].max()), case)
    return Evidence(
        (inner.deviation, outer.deviation, larger.deviation, scores.deviation), f"two blocks of {s}"
    )


@claim(
    "mixed-full-moves",
    "Appendix E.4, proof",
    "proof step",
    "Three moves of probability mass (from other blocks, within the block of i, from i to j) leave "
    "every term f_c + 1 − ηq_c − (1−η)Q unchanged and the constraints satisfied.",
    "symbolic: the change of each term, of ℓ_j − ℓ_i, and of f_j − f_c under each move",
    covers=(
        "eq:calibrationFunction:mixedLoss:proofSquare:obj1#2",
        "eq:calibrationFunction:mixedLoss:proofSquare:obj1#3",
        "eq:calibrationFunction:mixedLoss:proofSquare:obj1#4",
    ),
)
def moves(effort: Effort) -> Evidence:
    eta, move = sp.symbols("eta delta", positive=True)

    def term(score: Any, own: Any, block: Any) -> Any:
        """Change of f_c + 1 − ηq_c − (1−η)Q."""
        return score - eta * own - (1 - eta) * block

    half = move / 2
    terms = [
        # from other blocks: i and j gain δ/2 each
        term(half, half, half),
        term((1 - eta) * half, 0, half),
        # from a in the block of i: Q_i falls by δη/2, Q_j rises by it
        term(eta * half, move * (1 - eta / 2), -eta * half),
        term(eta * half, eta * half, eta * half),
        term(eta * half * (eta - 3), -move, -eta * half),
        term(-eta * half * (1 - eta), 0, -eta * half),
        term(eta * half * (1 - eta), 0, eta * half),
        # and ℓ_j − ℓ_i = η(q_i − q_j) + (1−η)(Q_i − Q_j) stays
        eta * (move * (1 - eta / 2) - eta * half) + (1 - eta) * (-2 * eta * half),
        # from i to j, δ′ − ε = δ
        term(-half, -half, -half),
        term(half, half, half),
        term(-(1 - eta) * half, 0, -half),
        term((1 - eta) * half, 0, half),
    ]
    symbolic = Deviation("identities that fail symbolically", residual(*terms), 0)
    rising = Worst("rise of another score above that of f_j", 0)
    for e in np.linspace(0, 1, 11):
        rising.add(max((1 - e) - 1, 0.0))  # first and third move: f_j by δ/2, others (1−η)δ/2
        rising.add(max(e * (1 - e) - e, e * (e - 3) - e, -e * (1 - e) - e))  # second move
    return Evidence((symbolic, rising.deviation), "symbolic in η and δ; signs for η in [0, 1]")


@claim(
    "mixed-full-stationary",
    "Appendix E.4, proof",
    "proof step",
    "With f_i′ = f the minimizer is f* = (1/(s+1))(−1 − (s−1)(1 − ½(1−η)(1−ε))).",
    "symbolic: the derivative of the printed objective set to zero",
    expected="misprint",
)
def stationary(effort: Effort) -> Evidence:
    found = _stationary()
    eps, eta, s = found["eps"], found["eta"], found["s"]
    wrong = (-1 - (s - 1) * (1 - (1 - eta) * (1 - eps) / 2)) / (s + 1)
    right = (-1 - (s - 1) * (1 - (1 - eta) * (1 + eps) / 2)) / (s + 1)
    at = {s: 3, eta: sp.Rational(1, 10), eps: sp.Rational(1, 2)}
    gap = float(abs((found["best"] - wrong).subs(at)))
    return Evidence(
        (Deviation("|f* − printed|", gap, 1e-12, "s = 3, η = 0.1, ε = 0.5"),),
        "symbolic in s, η, ε",
        corrected=(
            Deviation("f* differs from the formula with 1 + ε", residual(found["best"] - right), 0),
        ),
        correction="f* = (1/(s+1))(−1 − (s−1)(1 − ½(1−η)(1+ε))): the sign of the last ε is "
        f"wrong (off by {gap:.3g} at s = 3, η = 0.1, ε = 0.5). What follows in the proof uses "
        "the right one.",
        right_at="what follows: f* − f_j′ and the value of the second piece",
    )


def _stationary() -> dict[str, Any]:
    """The objective of case 2 and its minimizer with f_i′ = f."""
    f, f_i, f_j = sp.symbols("f f_i f_j", real=True)
    eps, eta, s = sp.symbols("epsilon eta s", positive=True)
    half = sp.Rational(1, 2)
    objective = (
        (f + half - eps / 2) ** 2
        + (s - 1) * (f_i + 1 - (1 - eta) * (half + eps / 2)) ** 2
        + (f + half + eps / 2) ** 2
        + (s - 1) * (f_j + 1 - (1 - eta) * (half - eps / 2)) ** 2
    )
    best = sp.solve(sp.diff(objective.subs(f_i, f), f), f)[0]
    return {
        "f": f,
        "f_i": f_i,
        "f_j": f_j,
        "eps": eps,
        "eta": eta,
        "s": s,
        "objective": objective,
        "best": best,
    }


@claim(
    "mixed-full-case-two",
    "Appendix E.4, proof",
    "proof step",
    "Free minimizers f* = −½, f_i′ = ½(1+ε)(1−η) − 1, f_j′ = ½(1−ε)(1−η) − 1, their "
    "differences, and the value of the second piece.",
    "symbolic: minimizers, the three differences, the value at the constrained minimizer; signs on "
    "a grid",
    covers=(
        "eq:calibrationFunction:mixedLoss:proofSquare:case2:obj2",
        "eq:calibrationFunction:mixedLoss:proofSquare:case2:obj2#1",
        "eq:calibrationFunction:mixedLoss:proofSquare:case2:obj2#2",
        "eq:calibrationFunction:mixedLoss:proofSquare:case2:obj2#3",
        "eq:calibrationFunction:mixedLoss:proofSquare:case2:obj2#4",
    ),
)
def case_two(effort: Effort) -> Evidence:
    m = _stationary()
    eps, eta, s, objective = m["eps"], m["eta"], m["s"], m["objective"]
    free = sp.solve(
        [sp.diff(objective, m[v]) for v in ("f", "f_i", "f_j")], [m[v] for v in ("f", "f_i", "f_j")]
    )
    f_j = (1 - eps) * (1 - eta) / 2 - 1
    value = objective.subs(m["f_i"], m["f"]).subs({m["f"]: m["best"], m["f_j"]: f_j}) / 2
    second = eps**2 * s / (2 * (s + 1)) - eta * (eps + 1) * (s - 1) / (4 * (s + 1)) * (
        2 * eps - eps * eta - eta
    )
    failed = residual(
        free[m["f"]] + sp.Rational(1, 2),
        free[m["f_i"]] - ((1 + eps) * (1 - eta) / 2 - 1),
        free[m["f_j"]] - f_j,
        free[m["f"]] - f_j - (eta + eps - eta * eps) / 2,
        free[m["f"]] - free[m["f_i"]] - (eta - eps + eta * eps) / 2,
        m["best"] - f_j - (eta + eps * s - eta * eps * s) / (s + 1),
        objective.subs(free) / 2 - eps**2 / 4,
        value - second,
    )
    sign = Worst("negative differences on the grid", 1e-12)
    for e in np.linspace(0, 1, 21):
        for h in np.linspace(0, 1, 21):
            sign.add(-(h + e - h * e))
            sign.add(max(-(h + e * n - h * e * n) for n in (2, 5, 50)))
            if h < 1 and e <= h / (1 - h):
                sign.add(-(h - e + h * e))
    return Evidence(
        (Deviation("identities that fail symbolically", failed, 0), sign.deviation),
        "symbolic in s, η, ε; signs on a 21×21 grid",
    )


def printed_blocks(eps: float, b: int, s: int, eta: float) -> float:
    """The proposition's formula."""
    if eps <= eta / 2:
        return 0.0
    factor = (eta * b / (b * s) + 1 - eta) ** 2 / (1 - eta / 2) ** 2
    return (eps - eta / 2) ** 2 / (4 * b) * factor


def indicators(b: int, s: int) -> FloatArray:
    """F_{01,b}, (bs, b)."""
    return np.repeat(np.eye(b), s, axis=0)


@claim(
    "prop-mixed-blocks",
    "Section 4; Appendix E.4, second proposition",
    "proposition",
    "Mixed loss, equal blocks of s ≥ 2, scores constant on blocks: H(ε) = 0 up to η/2, then "
    "(ε−η/2)²/4b · (ηb/k + 1 − η)²/(1 − η/2)² up to 1; consistent up to level η/2 exactly.",
    "the formula against the library's curve and certified quadratic programs, η up to 1; the "
    "level by linear programs; a single block, which the statement does not exclude",
    expected="imprecise",
    covers=(
        "th:calibrationFunction:mixedLoss:hardConstr",
        "th:calibrationFunction:mixedLoss:hardConstr#1",
    ),
)
def blocks_proposition(effort: Effort) -> Evidence:
    library = Worst("deviation of the library's curve, relative where H > 0", 1e-12)
    numeric = Worst("deviation of certified programs, relative where H > 0", 1e-8)
    level = Worst("|level − η/2|", 1e-12)
    for b, s in effort.pick([(2, 2), (3, 2)], [(2, 2), (3, 2), (2, 4), (4, 3)]):
        for eta in effort.pick((0.2, 0.7, 1.0), (0.0, 0.1, 0.2, 0.4, 0.7, 0.95, 1.0)):
            loss, space = Mixed((s,) * b, eta), Blocks((s,) * b)
            case = f"b = {b}, s = {s}, η = {eta}"
            level.add(abs(calibration_function(loss, space).consistency_level - eta / 2), case)
            for eps in (0.04, 0.3, 0.61, 1.0):
                compare(loss, space, eps, printed_blocks(eps, b, s, eta), library, numeric, case)
    one = calibration_function(Mixed((3,), 0.4), Blocks((3,)))(0.1)
    return Evidence(
        (library.deviation, numeric.deviation, level.deviation),
        "2 to 4 blocks of 2 to 4 labels; η in [0, 1]; ε = 0.04 … 1",
        edge=(Deviation("H(0.1) for one block, printed 0", one, 1e-9, "s = 3, η = 0.4"),),
        corrected=(library.deviation, numeric.deviation, level.deviation),
        correction="It fails for one block alone, which nothing in the paper excludes: only one "
        "label can be predicted then, and H(ε) = +∞ for ε > 0 by definition.",
    )


@claim(
    "mixed-blocks-order",
    "Section 4",
    "remark",
    "For ε > η/2 the function is of the order (1/b)(ε − η/2)².",
    "4b·H/(ε − η/2)² of the library over η and s: it must stay between constants",
    expected="imprecise",
)
def order(effort: Effort) -> Evidence:
    def ratio(eta: float, s: int) -> float:
        H = calibration_function(Mixed((s, s), eta), Blocks((s, s)))(1.0)
        return float(4 * 2 * H / (1 - eta / 2) ** 2)

    stated = Worst("constant outside [¼, 1] for η ≤ ⅔", 0)
    for eta in (0.0, 0.1, 0.4, 0.66):
        for s in (2, 50, 10**6):
            stated.add(float(not 0.25 - 1e-9 <= ratio(eta, s) <= 1 + 1e-9), f"η = {eta}, s = {s}")
    edge = Worst("(smallest constant allowed, ¼)/(constant) for η near 1", 1.0)
    exact = Worst("relative deviation from (η/s + 1 − η)²/(1 − η/2)²", 1e-9)
    for eta in (0.99, 0.9999):
        for s in (50, 10**6):
            edge.add(0.25 / ratio(eta, s), f"η = {eta}, s = {s:g}: constant {ratio(eta, s):.3g}")
            exact.add(
                relative(ratio(eta, s), ((eta / s + 1 - eta) / (1 - eta / 2)) ** 2),
                f"η = {eta}, s = {s:g}",
            )
    return Evidence(
        (stated.deviation,),
        "two blocks of up to 10⁶ labels; η up to 0.9999",
        edge=(edge.deviation,),
        corrected=(stated.deviation, exact.deviation),
        correction="For η bounded away from 1 (the constant (η/s + 1 − η)²/(1 − η/2)² lies in "
        f"[¼, 1] for η ≤ ⅔). As η → 1 it falls to 4/s²: {edge.case}.",
    )


@claim(
    "mixed-blocks-approximation",
    "Section 4",
    "remark",
    "The approximation error of block scores can be as large as η.",
    "the library's approximation error (linear programs) and a distribution that attains it",
)
def approximation(effort: Effort) -> Evidence:
    worst = Worst("|approximation error − η|", 1e-12)
    for b, s in ((2, 2), (3, 2), (2, 3), (2, 4)):
        for eta in (0.0, 0.1, 0.4, 0.7, 0.95, 1.0):
            H = calibration_function(Mixed((s,) * b, eta), Blocks((s,) * b))
            worst.add(abs(H.approximation_error - eta), f"b = {b}, s = {s}, η = {eta}")
            # the true label is surely the second label
            expected = mixed_matrix((s,) * b, eta)[:, 1]
            best = predictable_rows(indicators(b, s))[0]
            off = abs(float(expected[best].min() - expected.min()) - eta)
            worst.add(off, f"distribution, η = {eta}")
    return Evidence((worst.deviation,), "2 or 3 blocks of 2 to 4 labels")


@claim(
    "mixed-blocks-larger",
    "Sections 1 and 4",
    "remark",
    "Though inconsistent, block scores can have an exponentially larger calibration function than "
    "free scores for large ε: a non-consistent surrogate may be the better choice.",
    "ratio of the two library curves for two blocks of up to 2^40 labels; the crossing point",
)
def larger(effort: Effort) -> Evidence:
    slow = Worst("(k/32)/(H_block/H_free) at ε = 1, η = 0.4", 1.0)
    small = Worst("H_block at ε = η/2, where free scores have H > 0", 0)
    for power in (3, 10, 40):
        s = 2**power
        loss = Mixed((s, s), 0.4)
        blocks, free = (calibration_function(loss, scores) for scores in (Blocks((s, s)), "full"))
        slow.add(2 * s / 32 / (blocks(1.0) / free(1.0)), f"s = 2^{power}")
        small.add(blocks(0.2) + float(free(0.2) <= 0), f"s = 2^{power}")
    return Evidence((slow.deviation, small.deviation), "s = 2^3, 2^10, 2^40; η = 0.4")


@claim(
    "mixed-blocks-span",
    "Appendix E.4",
    "remark",
    "The second proposition is about scores in the column span of the loss matrix.",
    "rank of the mixed loss matrix against the number of blocks",
    expected="misprint",
)
def span(effort: Effort) -> Evidence:
    stated = Worst("rank of the mixed loss − dimension of the block scores", 0)
    mended = Worst("rank of the block loss − dimension of the block scores", 0)
    for b, s in ((2, 2), (3, 2), (2, 4)):
        for eta in (0.1, 0.5, 1.0):
            rank = int(np.linalg.matrix_rank(mixed_matrix((s,) * b, eta)))
            stated.add(abs(rank - b), f"b = {b}, s = {s}, η = {eta}: rank {rank}")
        mended.add(abs(int(np.linalg.matrix_rank(mixed_matrix((s,) * b, 0.0))) - b))
        F, L = indicators(b, s), mixed_matrix((s,) * b, 0.0)
        mended.add(float(np.abs(projection(F) @ L - L).max() > 1e-10))
    return Evidence(
        (stated.deviation,),
        "2 or 3 blocks of 2 to 4 labels; η = 0.1, 0.5, 1",
        corrected=(mended.deviation,),
        correction="In the column span of the block loss matrix: that of the mixed loss is all "
        "of R^k for η > 0, as the proof itself states.",
        right_at="the proof, which has the column space of L as R^k",
    )


@claim(
    "mixed-rank",
    "Appendix E.4, proof of the second proposition",
    "proof step",
    "L = 11ᵀ − ηI − (1−η)FFᵀ; for b < k its column space is R^k, not inside the block scores.",
    "the identity and the rank over η, η = 0 included; eigenvalues in closed form",
    expected="imprecise",
    covers=("th:calibrationFunction:mixedLoss:hardConstr#2",),
)
def rank(effort: Effort) -> Evidence:
    identity = Worst("|L − formula|", 1e-14)
    full = Worst("k − rank, η > 0", 0)
    values = Worst("eigenvalues − {−η, −η − (1−η)s, k − η − (1−η)s}", 1e-9)
    for b, s in ((2, 2), (3, 2), (2, 4)):
        F = indicators(b, s)
        k = b * s
        for eta in (0.05, 0.5, 1.0):
            L = mixed_matrix((s,) * b, eta)
            identity.add(float(np.abs(L - (1 - eta * np.eye(k) - (1 - eta) * F @ F.T)).max()))
            full.add(k - int(np.linalg.matrix_rank(L)), f"b = {b}, s = {s}, η = {eta}")
            theirs = [-eta] * (k - b) + [-eta - (1 - eta) * s] * (b - 1)
            theirs += [k - eta - (1 - eta) * s]
            values.add(float(np.abs(np.sort(theirs) - np.linalg.eigvalsh(L)).max()))
    zero = 4 - int(np.linalg.matrix_rank(mixed_matrix((2, 2), 0.0)))
    return Evidence(
        (identity.deviation, full.deviation),
        "2 or 3 blocks of 2 to 4 labels; η in [0, 1]",
        edge=(Deviation("k − rank at η = 0", zero, 0, "two blocks of 2"),),
        corrected=(full.deviation, values.deviation),
        correction="For η > 0: its eigenvalues are −η, −η − (1−η)s and k − η − (1−η)s. At η = 0 "
        "the rank is b.",
    )


@claim(
    "mixed-blocks-excess",
    "Appendix E.4, proof of the second proposition",
    "formula",
    "The excess with block scores is (s/2k) Σ_{v=1..s} (θ_v + 1 − (1−η)Q_v − (η/s)Q_v)².",
    "the excess from its definition (least squares over θ) against the sum over v = 1 … s and over "
    "the blocks v = 1 … b",
    expected="misprint",
    covers=("th:calibrationFunction:mixedLoss:hardConstr#3",),
)
def excess(effort: Effort) -> Evidence:
    rng = effort.rng
    stated = Worst("relative deviation of the printed sum", 1e-9)
    mended = Worst("relative deviation of the sum over blocks", 1e-9)
    steps = Worst("deviation of the steps before it", 1e-10)
    for b, s, eta in ((3, 2, 0.4), (4, 2, 0.8)):  # s < b, so that the printed sum is defined
        F, L, k = indicators(b, s), mixed_matrix((s,) * b, eta), b * s
        for _ in range(effort.pick(20, 200)):
            q, theta = distributions(rng, k, 1)[0], rng.normal(size=b)
            best = np.linalg.lstsq(F, -L @ q, rcond=None)[0]
            value = [
                np.sum((F @ t)[:, None] ** 2 + 2 * (F @ t)[:, None] * L, axis=0) @ q
                for t in (theta, best)
            ]
            found = float(value[0] - value[1]) / (2 * k)
            mass = F.T @ q
            terms = (theta + 1 - (1 - eta) * mass - eta / s * mass) ** 2
            stated.add(relative(s / (2 * k) * float(terms[:s].sum()), found), f"b = {b}, s = {s}")
            mended.add(relative(s / (2 * k) * float(terms.sum()), found), f"b = {b}, s = {s}")
            steps.add(float(np.abs(best + F.T @ L @ q / s).max()))
            middle = s / (2 * k) * float(np.sum((theta + F.T @ L @ q / s) ** 2))
            steps.add(abs(middle - found))
    return Evidence(
        (stated.deviation, steps.deviation),
        "3 and 4 blocks of 2 labels, random θ and q",
        corrected=(mended.deviation, steps.deviation),
        correction="The sum runs over the b blocks, v = 1 … b, not to the block size s; the "
        "program that follows has it right.",
        right_at="the program that follows, whose sum runs to b",
    )


@claim(
    "mixed-blocks-pairs",
    "Appendix E.4, proof of the second proposition",
    "proof step",
    "Only one label of each block can be predicted; the pair problem in θ, with optimality of i "
    "over all labels, has the value of the proposition.",
    "predictable labels by linear programs; the printed program with constraints over all labels "
    "and, as the lemma has it, over predictable ones",
    covers=("eq:calibrationFunction:mixedLoss:hardConstr:proofSquare:obj1",),
)
def block_pairs(effort: Effort) -> Evidence:
    one = Worst("predictable labels − one for each block", 0)
    value = Worst("deviation of both programs from the formula", 1e-7)
    for b, s in effort.pick([(2, 2)], [(2, 2), (3, 2), (2, 3)]):
        F = indicators(b, s)
        kept = predictable_rows(F)[0]
        one.add(float(np.any(kept != np.arange(b) * s)), f"b = {b}, s = {s}")
        for eta in (0.3, 0.8):
            L = mixed_matrix((s,) * b, eta)
            for eps in (0.1, 0.5, 0.9):
                for rows in (range(b * s), kept.tolist()):
                    found = pair_value(L, F, 0, s, eps, rows)[0]
                    value.add(abs(found - printed_blocks(eps, b, s, eta)), f"η = {eta}, ε = {eps}")
    return Evidence((one.deviation, value.deviation), "2 or 3 blocks of 2 to 4 labels")


@claim(
    "mixed-blocks-zero",
    "Appendix E.4, proof of the second proposition",
    "proof step",
    "q_i = ½, q_c = 1/(2(s−1)) on the rest of j's block is feasible for ε ≤ η/2 and costs nothing.",
    "feasibility of every constraint over all labels and the objective",
)
def zero(effort: Effort) -> Evidence:
    broken = Worst("violated constraints", 1e-12)
    cost = Worst("objective", 1e-15)
    for b, s in ((2, 2), (3, 3), (2, 5)):
        for eta in (0.1, 0.6, 1.0):
            L, F = mixed_matrix((s,) * b, eta), indicators(b, s)
            q = np.zeros(b * s)
            q[0] = 0.5
            q[s + 1 : 2 * s] = 0.5 / (s - 1)
            theta = np.full(b, -1.0)
            theta[:2] = (1 - eta) / 2 + eta / s / 2 - 1
            expected = L @ q
            cost.add(s / (2 * b * s) * float(np.sum((theta + F.T @ expected / s) ** 2)))
            broken.add(eta / 2 - float(expected[s] - expected[0]))
            broken.add(float((expected[0] - expected).max()))
            broken.add(float((theta - theta[1]).max()))
    return Evidence((broken.deviation, cost.deviation), "2 or 3 blocks of 2 to 5 labels")


@claim(
    "mixed-blocks-optimum",
    "Appendix E.4, proof of the second proposition",
    "proof step",
    "The moves of mass, q_i ≥ ½, q_i* = (1+ε−η)/(2−η), θ* = −(s − η + ηs)/2s and the value "
    "s(ε−η/2)²(η/s + 1 − η)²/(4k(1−η/2)²) (from a symbolic toolbox).",
    "symbolic: all identities, redone with SymPy; the implication q_i ≥ ½ on a grid",
    covers=(
        "eq:calibrationFunction:mixedLoss:hardConstr:proofSquare:obj1#1",
        "eq:mixedLoss:firstConstraint",
        "eq:mixedLossQcProperty",
        "eq:mixedLoss:secondConstraint",
        "eq:mixedLoss:secondConstraint#1",
        "eq:mixedLoss:secondConstraint#2",
        "eq:mixedLoss:secondConstraint#3",
    ),
)
def optimum(effort: Effort) -> Evidence:
    q, theta = sp.symbols("q theta", real=True)
    eps, eta, s, k, move = sp.symbols("epsilon eta s k delta", positive=True)
    mass = sp.solve(sp.Eq(q, eps + (1 - eta) * (1 - q)), q)[0]
    slope = 1 - eta + eta / s
    objective = (
        s / (2 * k) * ((theta + 1 - slope * mass) ** 2 + (theta + 1 - slope * (1 - mass)) ** 2)
    )
    best = sp.solve(sp.diff(objective, theta), theta)[0]
    value = s * (eps - eta / 2) ** 2 * (eta / s + 1 - eta) ** 2 / (4 * k * (1 - eta / 2) ** 2)
    failed = residual(
        mass - (1 + eps - eta) / (2 - eta),
        1 - mass - (1 - eps) / (2 - eta),
        best + (s - eta + eta * s) / (2 * s),
        objective.subs(theta, best) - value,
        # θ_v + 1 − (1−η)Q_v − (η/s)Q_v stays when Q_v grows by δ/2 and θ_v as printed
        (theta + move / 2 * (1 - eta + eta / s) + 1 - slope * (q + move / 2))
        - (theta + 1 - slope * q),
    )
    half = Worst("q_i < ½, or a violated second constraint, where the first holds", 0)
    rng = effort.rng
    for _ in range(effort.pick(500, 5000)):
        h = float(rng.random())
        e = h / 2 + float(rng.random()) * (1 - h / 2)
        q_i, q_j = float(rng.random()), float(rng.random()) * 0.5
        if q_j > 1 - q_i or q_i < e + h * q_j + (1 - h) * (1 - q_i):
            continue
        q_c = float(rng.random()) * (1 - q_i)
        half.add(float(q_i < 0.5 - 1e-12 or q_i < h * q_c + (1 - h) * (1 - q_i) - 1e-12))
    attained = Worst("relative deviation of certified H from the value", 1e-6)
    for eta_value in (0.3, 0.8):
        high = certified(Mixed((2, 2), eta_value), Blocks((2, 2)), 0.9)[1]
        attained.add(relative(high, printed_blocks(0.9, 2, 2, eta_value)), f"η = {eta_value}")
    return Evidence(
        (
            Deviation("identities that fail symbolically", failed, 0),
            half.deviation,
            attained.deviation,
        ),
        "symbolic in s, k, η, ε; random q, η, ε",
    )
