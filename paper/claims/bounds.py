"""Section 4 and Appendix D: lower and upper bounds on the calibration function."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np

from consistruct.calibration import calibration_function, lower_bound, upper_bound
from consistruct.losses import Block, CostMatrix, Hamming, Loss, Mixed, Ordinal, Tree, ZeroOne
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Full, Structure
from consistruct.structures.operators import predictable_rows
from paper.model import Deviation, Effort, Evidence, claim
from paper.numerics import (
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


def widest(F: FloatArray, rows: IntArray | None = None) -> float:
    """max over i ≠ j of ‖P_F Δ_ij‖², over all labels or the rows given."""
    P = projection(F)
    kept = np.arange(len(F)) if rows is None else rows
    return max(float(np.sum((P[i] - P[j]) ** 2)) for i, j in permutations(kept, 2))


def consistent_cases(effort: Effort) -> list[tuple[Loss, Structure]]:
    """Losses with scores that express them."""
    found: list[tuple[Loss, Structure]] = []
    losses = [ZeroOne(3), Block((2, 2)), Hamming(2), Mixed((2, 2), 0.3), Ordinal(4)]
    losses += [Tree((-1, 0, 0, 1, 1, 2, 2))]
    for loss in losses:
        found += [(loss, loss.score_space), (loss, Full(loss))]
    rng = effort.rng
    for _ in range(effort.pick(3, 30)):
        loss = CostMatrix(rng.random((4, 2)) @ rng.random((2, 4)), rows="pred")
        found += [(loss, loss.score_space), (loss, Full(loss))]
    return found


@claim(
    "theorem-lower-bound",
    "Section 4, Theorem 7, eq. (14); Appendix D.1",
    "theorem",
    "If the scores contain the columns of L, H(ε) ≥ ε²/(2k max_{i≠j} ‖P_F Δ_ij‖²) ≥ ε²/4k.",
    "the bound from dense projections against certified upper ends of H; and against the library's",
    covers=(
        "th:lowerBoundcalibrationFunction",
        "eq:lowerBoundcalibrationFunction",
        "th:rep:lowerBoundcalibrationFunction",
        "th:rep:lowerBoundcalibrationFunction#1",
    ),
)
def theorem_lower(effort: Effort) -> Evidence:
    first = Worst("(first bound)/H", 1 + 1e-7)
    second = Worst("(ε²/4k)/(first bound)", 1 + 1e-12)
    library = Worst("(first bound)/(library's Theorem 7 over predictable labels)", 1 + 1e-9)
    for loss, space in consistent_cases(effort):
        F = space.matrix()
        k = len(F)
        top = calibration_function(loss, space).max_eps
        for share in (0.2, 0.6, 1.0):
            eps = share * top
            bound = eps**2 / (2 * k * widest(F))
            upper = certified(loss, space, eps)[1]
            first.add(bound / upper, f"{loss!r}, {space!r}, ε = {eps:.3g}")
            second.add(eps**2 / (4 * k) / bound, f"{loss!r}, {space!r}")
            library.add(bound / lower_bound(loss, space, eps=eps).value, f"{loss!r}, {space!r}")
    return Evidence(
        (first.deviation, second.deviation, library.deviation),
        "0-1, block, Hamming, mixed, ordinal, tree, random rank-2 losses; own and full scores",
    )


@claim(
    "lower-bound-consistency",
    "Section 4",
    "remark",
    "Scores that contain the columns of L make the quadratic surrogate consistent (in the sense of "
    "Definition 3, level 0) without approximation error.",
    "certified H > 0 at small ε and finite at some ε, approximation error by linear programs; "
    "losses whose columns are constant, which nothing excludes",
    expected="imprecise",
)
def lower_consistency(effort: Effort) -> Evidence:
    level = Worst("H(ε) ≤ 0 or no finite H", 0)
    error = Worst("approximation error", 1e-9)
    for loss, space in consistent_cases(effort):
        H = calibration_function(loss, space)
        found = certified(loss, space, 0.01 * H.max_eps)
        level.add(float(not 0 < found[0] <= found[1] < math.inf), f"{loss!r}, {space!r}")
        error.add(H.approximation_error, f"{loss!r}, {space!r}")
    constant = CostMatrix(np.array([[0.3, 0.7], [0.3, 0.7]]), rows="pred")
    H = calibration_function(constant, "full")
    values = [H(eps) for eps in (1e-6, 0.1, 1.0)]
    edge = Deviation(
        "1 if H is finite at no ε > 0", float(min(values) == math.inf), 0, repr(constant)
    )
    trivial = Deviation("largest excess task risk of that loss", H.max_eps, 0)
    return Evidence(
        (level.deviation, error.deviation),
        "as for Theorem 7; a loss whose two predictions cost the same",
        edge=(edge,),
        corrected=(level.deviation, trivial),
        correction="For losses under which predictions differ. If all predictions cost the "
        "same, H = +∞ for every ε > 0, and Definition 3, which requires a finite value, calls "
        "the surrogate inconsistent though no prediction can be wrong.",
    )


@claim(
    "lower-bound-proof",
    "Appendix D.1, proof of Theorem 7",
    "proof step",
    "The pair problem relaxed to Δᵀ_ij Lq = −ε and Δᵀ_ij Fθ ≤ 0 has the KKT system of the proof "
    "and the value ε²/(2k‖P_F Δ_ij‖²).",
    "the relaxed program solved numerically against the formula; the stationarity conditions, θ, "
    "the residual vector and μ at the optimum; equality against inequality of the ε constraint",
    covers=(
        "eq:calibrationfunc:breakingSymmetries",
        "eq:calibrationfunc:breakingSymmetries:stripped",
        "eq:calibrationfunc:breakingSymmetries:stripped:epsConstr",
        "eq:calibrationfunc:breakingSymmetries:fConstr",
        "eq:calibrationfunc:breakingSymmetries:stripped:epsConstr:equality",
        "eq:calibrationfunc:proof:KKT:dtheta",
        "eq:calibrationfunc:proof:KKT:dq",
        "eq:calibrationfunc:proof:theta",
        "eq:ProjFL",
        "eq:LowerBoundObjectiveVector",
        "eq:LowerBoundObjectiveVector#1",
        "eq:LowerBoundObjectiveVector#2",
    ),
)
def lower_proof(effort: Effort) -> Evidence:
    rng = effort.rng
    value = Worst("relative deviation of the relaxed minimum", 1e-6)
    kkt = Worst("residual of the KKT equations and of the residual vector", 1e-9)
    relaxed = Worst("relaxed minimum over H_ij", 1 + 1e-6)
    for case in range(effort.pick(12, 100)):
        k = int(rng.integers(2, 6))
        L = rng.random((k, k)) if case % 2 else rng.random((k, 2)) @ rng.random((2, k))
        F = np.eye(k) if case % 4 < 2 else np.linalg.svd(L)[0][:, : np.linalg.matrix_rank(L)]
        i, j = rng.choice(k, 2, replace=False)
        delta = np.eye(k)[i] - np.eye(k)[j]
        eps = 0.3
        P = projection(F)
        square = float(np.sum((P @ delta) ** 2))
        expected = eps**2 / (2 * k * square)
        A = np.hstack([F, L]) / math.sqrt(k)
        row = np.concatenate([np.zeros(F.shape[1]), delta @ L])[None]
        order = np.concatenate([delta @ F, np.zeros(k)])[None]
        equality = least_squares_program(
            A, np.zeros(k), G=order, h=np.zeros(1), E=row, d=np.array([-eps])
        )[0]
        inequality = least_squares_program(
            A, np.zeros(k), G=np.vstack([order, row]), h=np.array([0.0, -eps])
        )[0]
        case_text = f"{k} labels, rank {F.shape[1]}"
        value.add(relative(equality, expected), case_text)
        value.add(relative(inequality, expected), case_text)
        # the closed solution: any q with ΔᵀLq = −ε and θ from eq. (proof:theta), μ = ν
        mu = eps / (k * square)
        q = -eps * np.linalg.pinv((delta @ L)[None])[:, 0]
        theta = -np.linalg.pinv(F.T @ F) @ (k * mu * F.T @ delta + F.T @ L @ q)
        vector = F @ theta + L @ q
        kkt.add(float(np.abs(vector + k * mu * P @ delta).max()), case_text)
        kkt.add(float(np.abs(F.T @ vector / k + mu * F.T @ delta).max()), case_text)
        kkt.add(float(np.abs(L.T @ vector / k + mu * L.T @ delta).max()), case_text)
        kkt.add(abs(float(delta @ F @ theta)), case_text)
        full = pair_value(L, F, int(i), int(j), eps)[0]
        if math.isfinite(full):
            relaxed.add(equality / full, case_text)
    return Evidence(
        (value.deviation, kkt.deviation, relaxed.deviation),
        "2–5 labels, full and low rank, ε = 0.3",
    )


@claim(
    "lower-bound-predictable",
    "Appendix D.1, footnote to the proof of Theorem 7",
    "remark",
    "Keeping the constraint that i and j be predictable gives a potentially tighter lower bound.",
    "both maxima of ‖P_F Δ_ij‖² over random score spaces with merged labels and labels inside the "
    "convex hull of the others",
    expected="false",
)
def lower_predictable(effort: Effort) -> Evidence:
    rng = effort.rng
    n, gain, fewer_labels = effort.pick(60, 500), 0.0, 0
    for _ in range(n):
        k, r = int(rng.integers(3, 8)), int(rng.integers(1, 4))
        F = rng.normal(size=(k, r))
        F[0] = F[1]
        F[-1] = rng.dirichlet(np.ones(k - 1)) @ F[:-1]
        kept = predictable_rows(F)[0]
        fewer_labels += len(kept) < k
        gain = max(gain, widest(F) / widest(F, kept) - 1) if len(kept) > 1 else gain
    case = f"{n} spaces, {fewer_labels} with labels that cannot be predicted"
    return Evidence(
        (Deviation("1 if no space gains from the constraint", float(gain < 1e-9), 0, case),),
        case,
        corrected=(Deviation("largest relative gain from the constraint", gain, 1e-9, case),),
        correction="The two bounds are always equal: (i, j) ↦ ‖P_F Δ_ij‖² is convex in the rows "
        "of F, so its maximum is attained at vertices of their convex hull, and of the labels "
        f"with such a row the first is predictable. Largest gain over {case}: {gain:.1e}. What "
        "can tighten the bound is leaving out pairs that are infeasible at ε.",
    )


@claim(
    "lower-bound-values",
    "Section 4; Appendix D.3",
    "formula",
    "With the smallest score spaces the bound is ε²/4k for the 0-1 loss, ε²/4b for b equal blocks, "
    "ε²/8T for Hamming; ‖P_F Δ_ij‖² is 2/s between blocks and 0 within. All are tight.",
    "dense projections over all pairs against the formulas; certified H against the bound",
)
def lower_values(effort: Effort) -> Evidence:
    norms = Worst("|‖P_F Δ‖² − formula|", 1e-12)
    tight = Worst("relative deviation of H from the bound", 1e-7)
    for k in (2, 5):
        norms.add(abs(widest(np.eye(k)) - 2.0), f"0-1, {k}")
        tight.add(_gap(ZeroOne(k), 0.7, 0.49 / (4 * k)), f"0-1, {k}")
    for b, s in effort.pick([(2, 1), (2, 3)], [(2, 1), (2, 3), (3, 2), (4, 2)]):
        U = np.repeat(np.eye(b), s, axis=0)
        P = projection(U)
        block = np.repeat(np.arange(b), s)
        for i, j in permutations(range(b * s), 2):
            expected = 0.0 if block[i] == block[j] else 2 / s
            norms.add(abs(float(np.sum((P[i] - P[j]) ** 2)) - expected), f"{b} blocks of {s}")
        tight.add(_gap(Block((s,) * b), 0.7, 0.49 / (4 * b)), f"{b} blocks of {s}")
    for T in effort.pick((1, 2, 3), (1, 2, 3, 4)):
        bits = np.array([[(c >> t) & 1 for t in range(T)] for c in range(2**T)], dtype=float)
        F = np.hstack([np.full((2**T, 1), 0.5), bits])
        norms.add(abs(widest(F) - 4 * T / 2**T), f"Hamming, {T}")
        tight.add(_gap(Hamming(T), 0.7, 0.49 / (8 * T)), f"Hamming, {T}")
    return Evidence((norms.deviation, tight.deviation), "k ≤ 16; ε = 0.7")


def _gap(loss: Loss, eps: float, expected: float) -> float:
    return max(relative(end, expected) for end in certified(loss, loss.score_space, eps))


@claim(
    "lower-bound-not-tight",
    "Section 4; Appendix D.3",
    "remark",
    "With full scores the bound is not tight for the block and mixed losses; it cannot see levels "
    "of consistency and does not change with the loss while the scores stay.",
    "certified 4kH(ε)/ε² over η, s and ε: it must exceed 1 where the bound is not tight",
    expected="imprecise",
)
def lower_not_tight(effort: Effort) -> Evidence:
    stated = Worst("block losses of s ≥ 2 where the bound is tight", 0)
    loose = Worst("mixed losses, η < ½ and ε > η/(1−η), where the bound is tight", 0)
    edge = Worst("mixed losses where the bound is tight", 0)
    mended = Worst("|4kH/ε² − 1| for η ≥ ½ or ε ≤ η/(1−η)", 1e-7)
    for s in effort.pick((2,), (2, 3)):
        stated.add(
            float(certified(Block((s, s)), Full(Block((s, s))), 0.5)[0] * 8 * s < 0.25 * 1.01)
        )
        for eta in (0.2, 0.3, 0.5, 0.8):
            loss = Mixed((s, s), eta)
            for eps in (0.15, 0.4, 0.9):
                low, high = certified(loss, Full(loss), eps)
                ratio = (low * 4 * 2 * s / eps**2, high * 4 * 2 * s / eps**2)
                inside = eta >= 0.5 or eps <= eta / (1 - eta)
                case = f"s = {s}, η = {eta}, ε = {eps}"
                if inside:
                    edge.add(float(ratio[1] < 1 + 1e-6), case)
                    mended.add(max(abs(one - 1) for one in ratio), case)
                else:
                    loose.add(float(not ratio[0] > 1 + 1e-6), case)
    return Evidence(
        (stated.deviation, loose.deviation),
        "two blocks of 2 and 3; η = 0.2 … 0.8; ε = 0.15 … 0.9",
        edge=(edge.deviation,),
        corrected=(loose.deviation, mended.deviation),
        correction="For the mixed loss only if η < ½ and ε > η/(1−η), and for blocks of at "
        "least two labels: otherwise H = ε²/4k, the bound itself (the paper's own formula states "
        "so).",
    )


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
        losses.append(CostMatrix(distance, rows="pred"))
    for loss in losses:
        L = loss.matrix()
        for share in (0.1, 0.5, 1.0):
            eps = share * float(L.max())
            low = certified(loss, Full(loss), eps)[0]
            worst.add(low / (eps**2 / (2 * len(L))), f"{loss!r}, ε = {eps:.3g}")
            curve.add(calibration_function(loss, "full")(eps) / (eps**2 / (2 * len(L))), repr(loss))
            library.add(relative(upper_bound(loss, eps=eps).value, eps**2 / (2 * len(L))))
    # the diagonal must be zero: here label 0 is always better by one
    plain = CostMatrix(np.array([[0.0, 0.0], [1.0, 1.0]]), rows="pred")
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
    expected="imprecise",
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
    expected="imprecise",
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
    "worst-case-distribution",
    "Section 4",
    "remark",
    "For several losses the distribution q_i = ½ + ε/2, q_j = ½ − ε/2 attains the calibration "
    "function.",
    "least excess over scores for that distribution (a quadratic program) against certified H: "
    "0-1, block (free and own scores), Hamming (own), mixed (free); it does not for mixed with "
    "block scores",
)
def worst_distribution(effort: Effort) -> Evidence:
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
    """Least excess over scores with j on top, for the two-label distribution."""
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
