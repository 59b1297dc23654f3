"""Section 4 and Appendices E.1 to E.3, G: exact functions of the 0-1, block and Hamming losses."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import sympy as sp

from consistruct.calibration import calibration_function
from consistruct.losses import Block, Hamming, Loss, ZeroOne
from consistruct.protocols import FloatArray
from consistruct.structures import Full, Structure
from paper.model import Deviation, Effort, Evidence, claim
from paper.numerics import (
    MARGIN_LOSSES,
    Worst,
    block_matrix,
    certified,
    distributions,
    hamming_matrix,
    pair_value,
    projection,
    relative,
    residual,
)


def compare(
    loss: Loss,
    space: Structure,
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
            distribution, scores = np.zeros(k), np.full(k, -1.0)
            distribution[:2], scores[:2] = (0.5 + e / 2, 0.5 - e / 2), -0.5
            cost = float(np.sum((scores + 1 - distribution) ** 2)) / (2 * k)
            point.add(abs(cost - e**2 / (4 * k)), f"k = {k}")
    return Evidence((symbolic, numeric.deviation, point.deviation), "symbolic; k up to 8 numeric")


@claim(
    "zero-one-remark",
    "Appendix E.1, remark",
    "remark",
    "q_i = ⅓ + ε/2, q_j = ⅓ − ε/2, q_c = 1/(3(k−2)), f_i = f_j = ⅓, f_c = −ℓ_c is feasible and "
    "also gives ε²/4k.",
    "feasibility and objective of that point, with the printed score and with the score that "
    "minimizes the objective over f_i = f_j",
    expected="misprint",
)
def zero_one_remark(effort: Effort) -> Evidence:
    stated = Worst("relative deviation of the cost at the printed point from ε²/4k", 1e-9)
    right = Worst("relative deviation with the minimizing score", 1e-9)
    score = Worst("|minimizing score + ⅔|", 1e-12)
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
        right_at="the value ε²/4k that the remark gives, which the printed point misses",
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
    "the calibration functions of (1 − m)² and (1 − m)₊² in the margin m, by minimization over m, "
    "against ε²/8; and the quadratic surrogate minimized over the mean of the two scores",
    expected="imprecise",
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
    a, m = sp.symbols("a m", real=True)
    # f = (a + m/2, a − m/2), true label is label 1
    value = ((a + m / 2) ** 2 + (a - m / 2 + 1) ** 2) / 4
    reduced = value.subs(a, sp.solve(sp.diff(value, a), a)[0])
    same = Deviation("min over the mean of Φ ≠ (1 − m)²/8", residual(reduced - (1 - m) ** 2 / 8), 0)
    return Evidence(
        (same,),
        "ε = 0.1, 0.5, 0.9",
        edge=(equal.deviation,),
        corrected=(shape.deviation, same),
        correction="Equal up to the factor 8: they have ε², the proposition gives ε²/8 at k = "
        "2, since the surrogate, minimized over the mean of the two scores, is (1 − m)²/8.",
    )


@claim(
    "prop-block-full",
    "Appendix E.2, first proposition",
    "proposition",
    "Block 0-1 loss, free scores: H(ε) = ε²/4k · min_v 2s_v/(s_v + 1) ≤ ε²/2k for 0 ≤ ε ≤ 1.",
    "the formula against the library's curve and certified quadratic programs, for unequal blocks; "
    "a single block, which the statement does not exclude",
    expected="imprecise",
    covers=("th:calibrationFunction:block01loss", "th:calibrationFunction:block01loss#1"),
)
def block_full(effort: Effort) -> Evidence:
    library = Worst("relative deviation of the library's curve", 1e-12)
    numeric = Worst("relative deviation of certified programs", 1e-8)
    for sizes in effort.pick(
        [(1, 2), (2, 2), (2, 3, 2)],
        [(1, 2), (2, 2), (2, 3, 2), (4, 3), (3,) * 3, (3, 5), (4, 2, 3), (1, 4)],
    ):
        k = sum(sizes)
        factor = min(2 * s / (s + 1) for s in sizes)
        for eps in (0.1, 0.6, 1.0):
            compare(
                Block(sizes),
                Full(Block(sizes)),
                eps,
                eps**2 / (4 * k) * factor,
                library,
                numeric,
                f"sizes {sizes}",
            )
    one = calibration_function(Block((3,)), "full")(0.5)
    return Evidence(
        (library.deviation, numeric.deviation),
        "two and three blocks of 1 to 5 labels",
        edge=(
            Deviation("relative deviation for one block", relative(one, 0.03125), 1e-9, "s = 3"),
        ),
        corrected=(library.deviation, numeric.deviation),
        correction="It fails for one block alone, which nothing in the paper excludes: L = 0, no "
        "prediction is worse than another, and H(ε) = +∞ for ε > 0 by definition.",
    )


@claim(
    "block-full-limits",
    "Appendix E.2",
    "remark",
    "It equals ε²/4k when some block has one label and tends to ε²/2k when all blocks grow.",
    "library's curve: exact equality at s = 1, the ratio to ε²/2k at growing sizes",
)
def block_limits(effort: Effort) -> Evidence:
    lower = relative(calibration_function(Block((1, 5)), "full")(0.5), 0.25 / 24)
    gaps = [
        1 - calibration_function(Block((s, s)), "full")(0.5) / (0.25 / (4 * s))
        for s in (10, 100, 1000, 10000)
    ]
    rate = Worst("|(1 − ratio)·(s + 1) − 1| at s up to 10⁴", 1e-6)
    for s, gap in zip((10, 100, 1000, 10000), gaps, strict=True):
        rate.add(abs(gap * (s + 1) - 1), f"s = {s}")
    return Evidence(
        (Deviation("relative deviation at s = 1", lower, 1e-10), rate.deviation), "s up to 10⁴"
    )


@claim(
    "block-full-proof",
    "Appendix E.2, proof",
    "proof step",
    "The pair problem; moving the mass of other blocks to i and j; f̃ = (ε/2)(s_i − 1)/(s_i + "
    "1) and H_ij = ε²/4k · 2s_i/(s_i + 1).",
    "symbolic: terms under the move, the stationary point and its value; numeric: the printed "
    "program for every kind of pair, and the optimal scores of eq. (scoreInSelBlocks)",
    covers=(
        "eq:calibrationfunc:block01loss:breakingSymmetries",
        "eq:calibrationfunc:block01loss:breakingSymmetries:epsConstr",
        "eq:calibrationfunc:block01loss:breakingSymmetries:epsConstr#1",
        "eq:calibrationfunc:block01loss:scoreInSelBlocks",
        "eq:block01loss:proofSquare:obj2",
        "eq:block01loss:proofSquare:obj2#1",
        "eq:block01loss:proofSquare:obj2#2",
    ),
)
def block_full_proof(effort: Effort) -> Evidence:
    symbolic = _block_symbols(own=False)
    sizes = effort.pick((1, 2, 3), (1, 2, 3, 4))
    L, k = block_matrix(sizes), sum(sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    value = Worst("relative deviation of H_ij", 1e-6)
    scores = Worst("|f − min(−ℓ, f_j)| off the top", 1e-4)
    for u, v in ((0, 1), (1, 0), (1, 2), (2, 1)):
        i, j = int(starts[u]), int(starts[v])
        found, q, f = pair_value(L, np.eye(k), i, j, 0.6, range(k))
        s = sizes[u]
        value.add(relative(found, 0.36 / (4 * k) * 2 * s / (s + 1)), f"sizes {s}, {sizes[v]}")
        rest = np.delete(np.arange(k), j)
        scores.add(float(np.abs(f - np.minimum(-L @ q, f[j]))[rest].max()))
    within = pair_value(L, np.eye(k), 1, 2, 0.6, range(k))[0]
    infeasible = Deviation("pair within a block feasible", float(math.isfinite(within)), 0)
    return Evidence(
        (symbolic, value.deviation, scores.deviation, infeasible), f"blocks {sizes}, ε = 0.6"
    )


def _block_symbols(*, own: bool) -> Deviation:
    f, eps, q, shift = sp.symbols("f epsilon q delta", real=True)
    s_i, s_j = sp.symbols("s_i s_j", positive=True)
    other = s_j if own else sp.Integer(1)
    objective = s_i * (f - eps / 2) ** 2 + other * (f + eps / 2) ** 2
    best = sp.solve(sp.diff(objective, f), f)[0]
    return Deviation(
        "identities that fail symbolically",
        residual(
            best - eps / 2 * (s_i - other) / (s_i + other),
            objective.subs(f, best) / 2 - eps**2 / 4 * 2 * s_i * other / (s_i + other),
            (f + shift / 2 + 1 - (q + shift / 2)) - (f + 1 - q),
        ),
        0,
    )


@claim(
    "prop-block-own",
    "Section 4, eq. (16); Appendix E.2, second proposition",
    "proposition",
    "Block 0-1 loss, scores constant on blocks: H(ε) = ε²/4k · min_{u≠v} 2s_u s_v/(s_u + s_v) for "
    "0 ≤ ε ≤ 1, which is ε²/4b for b equal blocks.",
    "the formula against the library's curve and certified quadratic programs; a single block",
    expected="imprecise",
    covers=(
        "eq:calibrationFunction:block01loss:hardConstr",
        "th:calibrationFunction:block01loss:hardConstr",
        "th:calibrationFunction:block01loss:hardConstr#1",
    ),
)
def block_own(effort: Effort) -> Evidence:
    library = Worst("relative deviation of the library's curve", 1e-12)
    numeric = Worst("relative deviation of certified programs", 1e-8)
    for sizes in effort.pick(
        [(1, 2), (3, 3), (1, 2, 4)],
        [(1, 2), (3, 3), (1, 2, 4), (2,) * 4, (5, 3), (2,) * 3, (4, 2, 3), (1, 5), (1, 1, 6)],
    ):
        k, b = sum(sizes), len(sizes)
        factor = min(
            2 * sizes[u] * sizes[v] / (sizes[u] + sizes[v]) for u in range(b) for v in range(u)
        )
        if len(set(sizes)) == 1:
            library.add(relative(factor / (4 * k), 1 / (4 * b)), "equal blocks")
        for eps in (0.1, 0.6, 1.0):
            compare(
                Block(sizes),
                Block(sizes).score_space,
                eps,
                eps**2 / (4 * k) * factor,
                library,
                numeric,
                f"sizes {sizes}",
            )
    one = calibration_function(Block((3,)))(0.5)
    return Evidence(
        (library.deviation, numeric.deviation),
        "two to four blocks of 1 to 6 labels",
        edge=(Deviation("relative deviation from ε²/4b for b = 1", relative(one, 0.0625), 1e-9),),
        corrected=(library.deviation, numeric.deviation),
        correction="It fails for b = 1 alone, which nothing in the paper excludes: L = 0, and H(ε) "
        "= +∞ for ε > 0 by definition, not ε²/4.",
    )


@claim(
    "block-own-proof",
    "Appendix E.2, proof of the second proposition",
    "proof step",
    "f̃ = (ε/2)(s_i − s_j)/(s_i + s_j) and H_ij = ε²/4k · 2s_i s_j/(s_i + s_j).",
    "symbolic: stationary point and value; numeric: the pair programs with block scores",
    covers=(
        "eq:block01loss:hardConstr:proofSquare:obj2",
        "eq:block01loss:hardConstr:proofSquare:obj2#1",
        "eq:block01loss:hardConstr:proofSquare:obj2#2",
    ),
)
def block_own_proof(effort: Effort) -> Evidence:
    sizes = (1, 2, 4)
    L, U = block_matrix(sizes), np.repeat(np.eye(3), sizes, axis=0)
    value = Worst("relative deviation of H_ij", 1e-6)
    starts: FloatArray = np.array([0, 1, 3])
    for u, v in ((0, 1), (1, 0), (1, 2), (2, 0)):
        found = pair_value(L, U, int(starts[u]), int(starts[v]), 0.6)[0]
        ratio = 2 * sizes[u] * sizes[v] / (sizes[u] + sizes[v])
        value.add(relative(found, 0.36 / 28 * ratio), f"sizes {sizes[u]}, {sizes[v]}")
    return Evidence((_block_symbols(own=True), value.deviation), "blocks of 1, 2, 4; ε = 0.6")


@claim(
    "exponentially-larger",
    "Section 4",
    "remark",
    "With their own scores the block and Hamming losses have a calibration function exponentially "
    "larger than the upper bound with free scores.",
    "ratio to ε²/2k: k/2b and k/4T, exactly, up to 2^40 labels",
)
def exponentially_larger(effort: Effort) -> Evidence:
    worst = Worst("relative deviation of the ratio", 1e-9)
    for power in (5, 20, 40):
        H = calibration_function(Block((2**power // 4,) * 4))(0.5)
        worst.add(relative(H / (0.125 / 2**power), 2**power / 8), f"4 blocks, 2^{power} labels")
        H = calibration_function(Hamming(power))(0.5)
        worst.add(relative(H / (0.125 / 2**power), 2**power / (4 * power)), f"T = {power}")
    return Evidence((worst.deviation,), "2^5, 2^20, 2^40 labels")


def paper_basis(T: int) -> FloatArray:
    """[½·1, h^(1), …, h^(T)], (2^T, T + 1)."""
    bits = (np.arange(2**T)[:, None] >> np.arange(T)[::-1]) & 1
    return np.hstack([np.full((2**T, 1), 0.5), bits.astype(np.float64)])


@claim(
    "hamming-decomposition",
    "Appendix D.3",
    "formula",
    "L(ŷ, y) = α_0(y) + Σ_t α_t(y)[ŷ_t = 1]; the column spaces of L and of [½·1, h^(1) … h^(T)] "
    "coincide, of rank T + 1.",
    "every line of the derivation over all pairs of labels; ranks and projections",
    covers=("eq:hammingLoss",),
)
def decomposition(effort: Effort) -> Evidence:
    lines = Worst("largest difference between lines", 1e-15)
    rank = Worst("|rank − (T + 1)|", 0)
    span = Worst("|P_F L − L| and |P_L F − F|", 1e-10)
    for T in effort.pick((1, 2, 3, 4), (1, 2, 3, 4, 5, 7)):
        F = paper_basis(T)
        bits = F[:, 1:]
        L = hamming_matrix(T)
        p, y = bits[:, None], bits[None]
        second = ((1 - p) * y + p * (1 - y)).mean(axis=2)
        alpha0, alpha = bits.mean(axis=1), (1 - 2 * bits) / T  # of the true label
        last = alpha0[None] + bits @ alpha.T
        lines.add(float(max(np.abs(L - second).max(), np.abs(L - last).max())), f"T = {T}")
        rank.add(abs(np.linalg.matrix_rank(L) - T - 1) + abs(np.linalg.matrix_rank(F) - T - 1))
        rank.add(abs(Hamming(T).score_space.rank - T - 1), f"T = {T}, library")
        span.add(float(np.abs(projection(F) @ L - L).max()), f"T = {T}")
        span.add(float(np.abs(projection(L) @ F - F).max()), f"T = {T}")
    return Evidence(
        (lines.deviation, rank.deviation, span.deviation), f"T up to {effort.pick(4, 7)}"
    )


@claim(
    "prop-hamming",
    "Section 4, eq. (17); Appendix E.3",
    "proposition",
    "Hamming loss over T bits, scores in its column space: H(ε) = ε²/8T for 0 ≤ ε ≤ 1.",
    "the formula against the library's curve and certified quadratic programs",
    covers=(
        "eq:calibrationFunction:hammingloss:hardConstr",
        "th:calibrationFunction:hammingLoss:hardConstr",
        "th:calibrationFunction:hammingLoss:hardConstr#1",
    ),
)
def proposition(effort: Effort) -> Evidence:
    library = Worst("relative deviation of the library's curve", 1e-12)
    numeric = Worst("relative deviation of certified programs", 1e-8)
    for T in effort.pick((1, 2, 3), (1, 2, 3, 4, 5)):
        for eps in (0.1, 0.55, 1.0):
            compare(
                Hamming(T),
                Hamming(T).score_space,
                eps,
                eps**2 / (8 * T),
                library,
                numeric,
                f"T = {T}",
            )
    return Evidence(
        (library.deviation, numeric.deviation), f"T up to {effort.pick(3, 5)}; ε = 0.1, 0.55, 1"
    )


@claim(
    "hamming-marginals",
    "Appendix E.3, proof",
    "proof step",
    "ℓ_ŷ(q) = 1 − (1/T) Σ_t P(y_t = ŷ_t): distributions with equal marginals are alike, so product "
    "distributions suffice.",
    "Lq of random distributions against the formula and against the product distribution with the "
    "same marginals",
    covers=("th:calibrationFunction:hammingLoss:hardConstr#2",),
)
def marginals(effort: Effort) -> Evidence:
    worst = Worst("|Lq − formula| and |Lq − L(product distribution)|", 1e-12)
    for T in (2, 3, effort.pick(3, 5)):
        bits, L = paper_basis(T)[:, 1:], hamming_matrix(T)
        for q in distributions(effort.rng, 2**T, effort.pick(10, 60)):
            ones = q @ bits  # P(y_t = 1)
            formula = 1 - (bits * ones + (1 - bits) * (1 - ones)).mean(axis=1)
            product = np.prod(bits * ones + (1 - bits) * (1 - ones), axis=1)
            worst.add(float(np.abs(L @ q - formula).max()), f"T = {T}")
            worst.add(float(np.abs(L @ q - L @ product).max()), f"T = {T}")
    return Evidence((worst.deviation,), "T up to 5, random distributions")


@claim(
    "hamming-proof",
    "Appendix E.3, proof",
    "proof step",
    "ỹ = 0…0, ŷ = 1…1, q_t = ½ − ε/2, f = −½ is feasible and costs ε²/8T, by three binomial sums.",
    "feasibility and objective over all labels; the constraints of the program in their simplified "
    "form; the binomial sums and the final value symbolically",
    covers=(
        "eq:calibrationfunc:hammingloss:breakingSymmetries",
        "eq:calibrationfunc:hammingloss:breakingSymmetries:epsConstr",
        "eq:calibrationfunc:hammingloss:breakingSymmetries:qConstr",
        "eq:calibrationfunc:hammingloss:breakingSymmetries:fConstr",
        "eq:calibrationfunc:hammingloss:breakingSymmetries:simplexConstr",
        "eq:calibrationfunc:breakingSymmetries:hammingloss:fSet",
        "eq:calibrationfunc:hammingloss:breakingSymmetries:epsConstr:2",
        "eq:calibrationfunc:hammingloss:breakingSymmetries:qConstr:2",
        "eq:calibrationfunc:hammingloss:breakingSymmetries:qConstr:2#1",
    ),
)
def hamming_proof(effort: Effort) -> Evidence:
    t, T, eps = sp.symbols("t T epsilon", positive=True)
    inner = sp.Rational(1, 4) * 2**T - T * 2 ** (T - 1) / T + T * (T + 1) * 2 ** (T - 2) / T**2
    identities = residual(eps**2 / (2 * 2**T) * inner - eps**2 / (8 * T))
    for n in range(1, effort.pick(9, 33)):  # the sums, at every T
        w = range(n + 1)
        sums = [sum(math.comb(n, v) * v**p for v in w) for p in (0, 1, 2)]
        # 4·sums, so that T(T+1)2^(T−2) stays an integer
        identities += [4 * v for v in sums] != [2**n * 4, n * 2**n * 2, n * (n + 1) * 2**n]
    symbolic = Deviation("identities that fail", identities, 0)
    del t
    point = Worst("|cost − ε²/8T|", 1e-12)
    broken = Worst("violated constraints", 1e-12)
    simple = Worst("simplified constraint that disagrees with the original", 0)
    for n in effort.pick((1, 3), (1, 2, 3, 5, 8)):
        bits, L = paper_basis(n)[:, 1:], hamming_matrix(n) if n < 8 else None
        for e in (0.2, 1.0):
            chance = np.full(n, 0.5 - e / 2)
            expected = 1 - (bits * chance + (1 - bits) * (1 - chance)).mean(axis=1)
            point.add(abs(float(np.sum((expected - 0.5) ** 2)) / 2 ** (n + 1) - e**2 / (8 * n)))
            broken.add(float(e - (expected[-1] - expected[0])))
            broken.add(float((expected[0] - expected).max()))
        if L is not None:
            for chance in effort.rng.random((20, n)):
                expected = 1 - (bits * chance + (1 - bits) * (1 - chance)).mean(axis=1)
                optimal = bool((expected[0] <= expected + 1e-12).all())
                gap = (expected[-1] - expected[0]) - np.mean(1 - 2 * chance)
                simple.add(float(optimal != bool((chance <= 0.5).all())) + float(abs(gap) > 1e-12))
    return Evidence(
        (symbolic, point.deviation, broken.deviation, simple.deviation),
        f"sums for T < {effort.pick(9, 33)}; the point for T up to {effort.pick(3, 8)}",
    )


@claim(
    "hamming-gram",
    "Appendix G",
    "formula",
    "FᵀF = 2^(T−2)·[[1, 1ᵀ], [1, 11ᵀ + I]] and its inverse is 2^(2−T)·[[1 + T, −1ᵀ], [−1, I]].",
    "enumeration of FᵀF; product of the two matrices symbolically",
    covers=("eq:hammingLoss:gramMatrix", "eq:hammingLoss:gramMatrixInv"),
)
def gram(effort: Effort) -> Evidence:
    worst = Worst("|FᵀF − formula|", 1e-12)
    wrong = 0.0
    for T in effort.pick((1, 2, 4), (1, 2, 4, 8)):
        printed = np.ones((T + 1, T + 1)) + np.diag([0.0] + [1.0] * T)
        F = paper_basis(T)
        worst.add(float(np.abs(F.T @ F - 2.0 ** (T - 2) * printed).max()), f"T = {T}")
        inverse = sp.eye(T + 1)
        inverse[0, 0] = T + 1
        for t in range(1, T + 1):
            inverse[0, t] = inverse[t, 0] = -1
        product = sp.Matrix(printed.astype(int).tolist()) * inverse
        wrong += product != sp.eye(T + 1)
    return Evidence(
        (worst.deviation, Deviation("products that are not the identity", wrong, 0)),
        f"T up to {effort.pick(4, 8)}",
    )


@claim(
    "hamming-projection-norm",
    "Appendices D.3 and G",
    "formula",
    "‖P_F Δ_ij‖² = 2^(2−T)·(number of differing bits), at most 4T/2^T.",
    "dense projections over all pairs of labels",
    covers=("eq:hammingLoss:gramMatrixInv#1",),
)
def projection_norm(effort: Effort) -> Evidence:
    worst = Worst("|‖P_F Δ‖² − formula|", 1e-12)
    for T in effort.pick((1, 2, 3), (1, 2, 3, 4, 6)):
        P, L = projection(paper_basis(T)), hamming_matrix(T)
        for i, j in permutations(range(2**T), 2):
            expected = 2.0 ** (2 - T) * round(T * L[i, j])
            worst.add(abs(float(np.sum((P[i] - P[j]) ** 2)) - expected), f"T = {T}")
        top = max(float(np.sum((P[0] - row) ** 2)) for row in P)
        worst.add(abs(top - 4 * T / 2**T), f"T = {T}, maximum")
    return Evidence((worst.deviation,), f"all pairs, T up to {effort.pick(3, 6)}")


@claim(
    "hamming-eigenvalues",
    "Appendix G",
    "formula",
    "Without the factor 2^(T−2): determinant 1, T − 1 eigenvalues equal to 1, λ_min λ_max = 1, "
    "λ_min + λ_max = T + 2, λ_min ∈ [1/(T+2), 1/T], λ_max ∈ [T+1, T+2]; hence σ_min ≥ "
    "√k/(2√(log₂k+2)), σ_max ≤ (√k/2)√(log₂k+2), κ ≤ log₂k + 2.",
    "eigenvalues and singular values; κ against its exact value (T + 2 + √(T² + 4T))/2",
)
def eigenvalues(effort: Effort) -> Evidence:
    value = Worst("deviation of determinant, trace, multiplicity, λ_min, λ_max", 1e-9)
    bound = Worst("violated inequalities", 1e-9)
    kappa = Worst("|κ − (T + 2 + √(T² + 4T))/2|", 1e-9)
    for T in effort.pick((1, 2, 5, 9), (1, 2, 3, 5, 9, 30, 200)):
        M = np.ones((T + 1, T + 1)) + np.diag([0.0] + [1.0] * T)
        values = np.linalg.eigvalsh(M)
        root = math.sqrt(T * T + 4 * T)
        low, high = (T + 2 - root) / 2, (T + 2 + root) / 2
        value.add(abs(float(np.linalg.det(M)) - 1), f"T = {T}")
        value.add(abs(float(np.trace(M)) - 2 * T - 1), f"T = {T}")
        value.add(float(np.abs(values[1:-1] - 1).max(initial=0.0)), f"T = {T}")
        value.add(max(abs(values[0] - low), abs(values[-1] - high)), f"T = {T}")
        bound.add(max(1 / (T + 2) - low, low - 1 / T, T + 1 - high, high - T - 2), f"T = {T}")
        if T <= 9:
            sigma = np.linalg.svd(paper_basis(T), compute_uv=False)
            half = math.sqrt(2**T) / 2
            bound.add(half / math.sqrt(T + 2) / sigma[-1] - 1, f"σ_min, T = {T}")
            bound.add(sigma[0] / (half * math.sqrt(T + 2)) - 1, f"σ_max, T = {T}")
            bound.add(sigma[0] / sigma[-1] - T - 2, f"κ, T = {T}")
            kappa.add(abs(sigma[0] / sigma[-1] - high), f"T = {T}")
    return Evidence(
        (value.deviation, bound.deviation, kappa.deviation), f"T up to {effort.pick(9, 200)}"
    )
