"""Appendices D.3, E.3 and G: the Hamming loss, its basis and its calibration function."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np

from consistruct.audit.claims.exact import compare
from consistruct.audit.model import Deviation, Effort, Evidence, claim
from consistruct.audit.numerics import Worst, hamming_matrix, laws, projection
from consistruct.audit.symbolic import residual, sympy
from consistruct.losses import Hamming
from consistruct.protocols import FloatArray

__all__ = ["paper_basis"]


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
        alpha0, alpha = bits.mean(axis=1), (1 - 2 * bits) / T  # of the truth
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
        for q in laws(effort.rng, 2**T, effort.pick(10, 60)):
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
    sp = sympy()
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
    sp = sympy()
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
