"""Section 4 and Appendix D.2: the upper bound, both bounds together, and what they suggest."""

from __future__ import annotations

import math

import numpy as np

from consistruct.audit.model import Deviation, Effort, Evidence, claim
from consistruct.audit.numerics import (
    Worst,
    certified,
    hamming_matrix,
    least_squares_program,
    mixed_matrix,
    pair_value,
    printed_value,
    projection,
    relative,
)
from consistruct.calibration import calibration_function, upper_bound
from consistruct.losses import Block, CostMatrix, Hamming, Mixed, Ordinal, Tree, ZeroOne
from consistruct.protocols import FloatArray
from consistruct.scores import Full
from consistruct.scores.predictable import predictable_rows


@claim(
    "theorem-upper-bound",
    "Section 4, Theorem 8; Appendix D.2",
    "theorem",
    "If L is a pseudometric with Lmax > 0 and the scores are free, H(ε) ≤ ε²/2k for 0 ≤ ε ≤ Lmax.",
    "certified lower ends of H for pseudometric losses (also random ones) against the bound; "
    "a loss that is no pseudometric exceeds it, so the hypothesis is used",
    covers=(
        "th:upperBoundcalibrationFunction",
        "th:rep:upperBoundcalibrationFunction",
        "th:rep:upperBoundcalibrationFunction#1",
        "footnote:pseudometric",
    ),
)
def theorem_upper(effort: Effort) -> Evidence:
    rng = effort.rng
    worst = Worst("H/(ε²/2k)", 1 + 1e-8)
    curve = Worst("the library's H/(ε²/2k)", 1 + 1e-9)
    library = Worst("relative deviation of the library's bound", 1e-12)
    losses = [ZeroOne(4), Block((2, 3)), Hamming(3), Mixed((2, 2), 0.4), Ordinal(5)]
    losses += [Tree((-1, 0, 0))]
    for _ in range(effort.pick(4, 30)):
        k = int(rng.integers(3, 6))
        points = rng.normal(size=(k, 3))
        points[-1] = points[0]  # a pseudometric, not a metric
        distance = np.abs(points[:, None] - points[None]).sum(axis=2)
        losses.append(CostMatrix(distance))
    for loss in losses:
        L = loss.matrix()
        for share in (0.1, 0.5, 1.0):
            eps = share * float(L.max())
            low = certified(loss, Full(loss), eps)[0]
            worst.add(low / (eps**2 / (2 * len(L))), f"{loss!r}, ε = {eps:.3g}")
            curve.add(calibration_function(loss, "full")(eps) / (eps**2 / (2 * len(L))), repr(loss))
            library.add(relative(upper_bound(loss, eps=eps).value, eps**2 / (2 * len(L))))
    # the diagonal must be zero: here label 0 is always better by one
    plain = CostMatrix(np.array([[0.0, 0.0], [1.0, 1.0]]))
    ratio = certified(plain, Full(plain), 0.5)[0] / (0.25 / 4)
    needed = Deviation("L = [[0, 0], [1, 1]] within the bound all the same", float(ratio <= 1), 0)
    return Evidence(
        (worst.deviation, curve.deviation, library.deviation, needed),
        "the paper's losses, ordinal, tree, random pseudometrics; "
        f"[[0, 0], [1, 1]] reaches {ratio:.3g}",
    )


@claim(
    "upper-bound-proof",
    "Appendix D.2, proof of Theorem 8",
    "proof step",
    "q_i = ½ + ε/2L_ij, q_j = ½ − ε/2L_ij, f_j = f_i = −ℓ_i, other f_c = −ℓ_c is feasible and "
    "costs ε²/2k when L_ij = Lmax.",
    "feasibility of every constraint and the objective at that point, for random pseudometrics",
    covers=(
        "eq:upperBoundcalibrationFunction:breakingSymmetries",
        "eq:upperBoundcalibrationFunction:breakingSymmetries#1",
        "eq:upperBoundcalibrationFunction:breakingSymmetries#2",
        "eq:upperBoundcalibrationFunction:breakingSymmetries#3",
    ),
)
def upper_proof(effort: Effort) -> Evidence:
    rng = effort.rng
    broken = Worst("largest violation of a constraint", 1e-12)
    cost = Worst("relative deviation of the objective", 1e-10)
    for case in range(effort.pick(40, 400)):
        k = int(rng.integers(2, 7))
        points = rng.normal(size=(k, 2))
        L = np.linalg.norm(points[:, None] - points[None], axis=2)
        if case % 2:
            L = mixed_matrix((2, 2), 0.3)
        i, j = np.unravel_index(int(L.argmax()), L.shape)
        eps = float(rng.random()) * L[i, j]
        q = np.zeros(len(L))
        q[i], q[j] = 0.5 + eps / (2 * L[i, j]), 0.5 - eps / (2 * L[i, j])
        expected = L @ q
        f = -expected.copy()
        f[j] = -expected[i]
        broken.add(float(eps - (expected[j] - expected[i])))
        broken.add(float((expected[i] - expected).max()))
        broken.add(float((f - f[j]).max()))
        broken.add(float(-q.min()))
        value = float(np.sum((f + expected) ** 2)) / (2 * len(L))
        cost.add(relative(value, eps**2 / (2 * len(L))))
    return Evidence((broken.deviation, cost.deviation), "2–6 labels, random ε up to Lmax")


@claim(
    "both-bounds",
    "Section 4, eq. (15)",
    "formula",
    "For the 0-1, block and Hamming losses with free scores, ε²/4k ≤ H(ε) ≤ ε²/2k.",
    "certified intervals for six losses of up to 8 labels; ε above the largest loss and a single "
    "block, which the printed line does not exclude",
    expected="holds with correction",
    covers=("eq:lowerUpperBounds",),
)
def both_bounds(effort: Effort) -> Evidence:
    inside = Worst("violation of ε²/4k ≤ H ≤ ε²/2k, relative, 0 < ε ≤ 1", 1e-8)
    losses = [ZeroOne(2), ZeroOne(5), Block((1, 3)), Block((2, 2, 2)), Hamming(1), Hamming(3)]
    for loss in losses:
        k = loss.n_labels or 0
        for eps in np.linspace(0.1, 1.0, effort.pick(4, 13)):
            low, high = certified(loss, Full(loss), float(eps))
            inside.add(1 - high * 4 * k / eps**2, f"{loss!r}, ε = {eps:.2g}")
            inside.add(low * 2 * k / eps**2 - 1, f"{loss!r}, ε = {eps:.2g}")
    beyond = Worst("H/(ε²/2k) − 1 for ε > 1 or one block", 1e-8)
    beyond.add(certified(ZeroOne(3), Full(ZeroOne(3)), 1.2)[0], "0-1 (3), ε = 1.2")
    beyond.add(calibration_function(Block((3,)), "full")(0.5), "one block of 3, ε = 0.5")
    return Evidence(
        (inside.deviation,),
        "k up to 8, ε in (0, 1]",
        edge=(beyond.deviation,),
        corrected=(inside.deviation,),
        correction="The printed line has no range; Theorem 8, from which its right half follows, "
        "has 0 ≤ ε ≤ Lmax and Lmax > 0, that is ε ≤ 1 and, for the block loss, at least two "
        "blocks. Elsewhere H(ε) = +∞ for ε > 0, by definition: there the left half holds and the "
        "right half fails.",
    )


@claim(
    "dimension-is-difficulty",
    "Section 4",
    "remark",
    "The dimension of the column space of L indicates how difficult the loss is; block and Hamming "
    "losses are easy, the 0-1 loss is hard.",
    "H with the loss's own scores against the rank: equal blocks, Hamming, and blocks of sizes "
    "1 and k−1, whose rank stays 2",
    expected="holds with correction",
)
def dimension(effort: Effort) -> Evidence:
    easy = Worst("ε²/(4·H·rank) for equal blocks and ε²/(8·H·(rank−1)) for Hamming, − 1", 1e-9)
    for n in effort.pick((2, 8), (2, 8, 32, 256)):
        block = Block((5,) * n)
        easy.add(abs(0.25 / (4 * calibration_function(block)(0.5) * n) - 1), repr(n))
        hamming = calibration_function(Hamming(n))(0.5)
        easy.add(abs(0.25 / (8 * hamming * n) - 1), f"T = {n}")
    unequal = Worst("effective classes over 2·rank, rank 2", 1.0)
    formula = Worst("relative deviation of H from ε²/4k · 2(k−1)/k", 1e-9)
    for k in effort.pick((8, 64), (8, 64, 4096)):
        loss = Block((1, k - 1))
        H = calibration_function(loss)(0.5)
        unequal.add(0.25 / (4 * H) / 4, f"blocks of 1 and {k - 1}, k = {k}")
        formula.add(relative(H, 0.25 / (4 * k) * 2 * (k - 1) / k), f"k = {k}")
        if k <= 8:
            formula.add(
                relative(certified(loss, loss.score_space, 0.5)[0], H), f"k = {k}, certified"
            )
    return Evidence(
        (easy.deviation,),
        "equal blocks and Hamming up to 256 parts; two blocks of 1 and k−1 labels",
        edge=(unequal.deviation,),
        corrected=(formula.deviation,),
        correction="For balanced blocks. Two blocks of 1 and k−1 labels have rank 2, yet H = "
        "ε²/4k · 2(k−1)/k: as hard as the 0-1 loss within a factor 2. What counts is the largest "
        f"leverage max_c k·‖P_F e_c‖², here {unequal.value * 4:.4g} effective classes at rank 2.",
    )


@claim(
    "worst-case-law",
    "Section 4",
    "remark",
    "For several losses the distribution q_i = ½ + ε/2, q_j = ½ − ε/2 attains the calibration "
    "function.",
    "least excess over scores for that distribution (a quadratic program) against certified H: "
    "0-1, block (free and own scores), Hamming (own), mixed (free); it does not for mixed with "
    "block scores",
)
def worst_law(effort: Effort) -> Evidence:
    worst = Worst("relative deviation of the cost at this distribution from H", 1e-6)
    cases = [
        ("0-1", 1 - np.eye(4), np.eye(4), (0, 1)),
        ("block, free", mixed_matrix((2, 2), 0.0), np.eye(4), (0, 2)),
        ("block, own", mixed_matrix((2, 2), 0.0), np.repeat(np.eye(2), 2, axis=0), (0, 2)),
        ("mixed, free", mixed_matrix((2, 2), 0.3), np.eye(4), (0, 2)),
        ("Hamming, own", hamming_matrix(2), np.linalg.svd(hamming_matrix(2))[0][:, :3], (0, 3)),
    ]
    mixed = mixed_matrix((2, 2), 0.4)
    blocks = np.repeat(np.eye(2), 2, axis=0)
    for eps in effort.pick((0.3, 0.8), (0.1, 0.3, 0.5, 0.8, 1.0)):
        for name, L, F, (i, j) in cases:
            cost = _cost_at(L, F, i, j, eps)
            worst.add(relative(cost, printed_value(L, F, eps)), f"{name}, ε = {eps}")
    gap = _cost_at(mixed, blocks, 0, 2, 0.5) / pair_value(mixed, blocks, 0, 2, 0.5)[0]
    apart = Deviation(
        "1 if mixed with block scores attains H too", float(gap < 1.001), 0, "ε = 0.5"
    )
    return Evidence((worst.deviation, apart), "4 labels; ε up to 1")


def _cost_at(L: FloatArray, F: FloatArray, i: int, j: int, eps: float) -> float:
    """Least excess over scores with j on top, for the two-label law."""
    k = len(L)
    q = np.zeros(k)
    q[i], q[j] = 0.5 + eps / 2, 0.5 - eps / 2
    kept = predictable_rows(F)[0]
    return least_squares_program(
        F / math.sqrt(k),
        projection(F) @ L @ q / math.sqrt(k),
        G=F[kept] - F[j],
        h=np.zeros(len(kept)),
    )[0]
