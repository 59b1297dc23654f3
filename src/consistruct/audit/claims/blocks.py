"""Section 4 and Appendix E.2: exact calibration functions of the block loss."""

from __future__ import annotations

import math

import numpy as np

from consistruct.audit.claims.exact import compare
from consistruct.audit.model import Deviation, Effort, Evidence, claim
from consistruct.audit.numerics import Worst, block_matrix, pair_value, relative
from consistruct.audit.symbolic import residual, sympy
from consistruct.calibration import calibration_function
from consistruct.losses import Block, Hamming
from consistruct.protocols import FloatArray
from consistruct.scores import Full


@claim(
    "prop-block-full",
    "Appendix E.2, first proposition",
    "proposition",
    "Block 0-1 loss, free scores: H(ε) = ε²/4k · min_v 2s_v/(s_v + 1) ≤ ε²/2k for 0 ≤ ε ≤ 1.",
    "the formula against the library's curve and certified quadratic programs, for unequal blocks; "
    "a single block, which the statement does not exclude",
    expected="holds with correction",
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
    sp = sympy()
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
    expected="holds with correction",
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
