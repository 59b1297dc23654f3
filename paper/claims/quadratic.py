"""Section 4 and Appendix B: the quadratic surrogate, its excess, and the reduction to pairs."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import sympy as sp

from consistruct._validation import to_dense
from consistruct.calibration import calibration_function
from consistruct.losses import Block, CostMatrix, Hamming
from consistruct.protocols import FloatArray
from consistruct.structures import Dense
from consistruct.structures.operators import predictable_rows
from consistruct.surrogates import QuadraticSurrogate
from paper.model import Deviation, Effort, Evidence, claim
from paper.numerics import (
    Worst,
    distributions,
    hamming_matrix,
    least_squares_program,
    pair_value,
    printed_value,
    projection,
    relative,
    residual,
)


@claim(
    "quadratic-surrogate",
    "Section 4, eq. (12)",
    "definition",
    "Φ(f, y) = (1/2k)‖f + L(:, y)‖² = (1/2k) Σ_c (f_c² + 2 f_c L(c, y) + L(c, y)²).",
    "symbolic expansion; the library's surrogate against the formula for L(c, y) − o_y, its "
    "convention for losses with an offset o_y",
    covers=("eq:quadrLoss",),
)
def quadratic_surrogate(effort: Effort) -> Evidence:
    f, column = sp.symbols("f1:4"), sp.symbols("l1:4")
    left = sum((a + b) ** 2 for a, b in zip(f, column, strict=True)) / 6
    right = sum(a**2 + 2 * a * b + b**2 for a, b in zip(f, column, strict=True)) / 6
    symbols = Deviation("identities that fail symbolically", residual(left - right), 0)
    rng = effort.rng
    worst = Worst("|library − printed|", 1e-10)
    for loss in (Block((1, 2)), Hamming(2)):
        L = loss.matrix()
        F = loss.score_space.matrix()
        labels = loss.predictions.enumerate()
        surrogate = QuadraticSurrogate(loss)
        theta = rng.normal(size=(20, F.shape[1]))
        found = np.array(
            [
                surrogate.value_and_gradient(np.repeat(row[None], len(L), 0), labels)[0]
                for row in theta
            ]
        )
        less = L - loss.offset(labels)
        printed = np.sum(((theta @ F.T)[:, :, None] + less) ** 2, axis=1) / (2 * len(L))
        worst.add(float(np.abs(found - printed).max()), repr(loss))
    return Evidence((symbols, worst.deviation), "k = 3 symbolic; block and Hamming numeric")


@claim(
    "lemma-excess",
    "Section 4, eq. (13); Appendix B, first lemma",
    "lemma",
    "If the scores contain the columns of L, the excess of the conditional quadratic surrogate is "
    "(1/2k)‖Fθ + Lq‖²; the minimizer is θ* = −(FᵀF)⁺FᵀLq.",
    "the excess from its definition (least squares over θ) against the formulas of the lemma "
    "and of its proof, for singular F too; the hypothesis is needed, shown by scores without it",
    covers=(
        "eq:quadSurrogateExcessSimple",
        "th:quadSurrogateExcess",
        "th:quadSurrogateExcess#1",
        "th:quadSurrogateExcess#2",
        "eq:quadSurrogateExcessSimple:noConstrainst",
        "eq:ProjFL",
    ),
)
def lemma_excess(effort: Effort) -> Evidence:
    rng = effort.rng
    lemma = Worst("|δφ − (1/2k)‖Fθ + Lq‖²|", 1e-10)
    proof = Worst("|δφ − the general expression of the proof|", 1e-10)
    identity = Worst("|P_F L − L|", 1e-10)
    needed = math.inf
    for case in range(effort.pick(60, 600)):
        k, m, r = (int(v) for v in rng.integers(2, 7, 3))
        F = rng.normal(size=(k, r))
        if case % 3 == 0:
            F = np.hstack([F, F[:, :1]])  # singular FᵀF
        inside = case % 2 == 0
        L = F @ rng.normal(size=(F.shape[1], m)) if inside else rng.random((k, m))
        q, theta = distributions(rng, m, 1)[0], rng.normal(size=F.shape[1])
        best = np.linalg.lstsq(F, -L @ q, rcond=None)[0]
        risks = [
            float(np.sum(((F @ one)[:, None] + L) ** 2, axis=0) @ q) / (2 * k)
            for one in (theta, best)
        ]
        excess = risks[0] - risks[1]
        gram = F.T @ F
        general = theta @ gram @ theta + 2 * theta @ F.T @ L @ q
        general += q @ L.T @ F @ np.linalg.pinv(gram) @ F.T @ L @ q
        proof.add(abs(excess - general / (2 * k)) / max(1.0, abs(excess)))
        formula = float(np.sum((F @ theta + L @ q) ** 2) / (2 * k))
        if inside:
            lemma.add(abs(excess - formula) / max(1.0, abs(excess)), f"{k}×{m}, rank {r}")
            identity.add(float(np.abs(projection(F) @ L - L).max()))
        elif np.linalg.matrix_rank(F) < k:
            needed = min(needed, formula - excess)
    outside = Deviation("cases outside the hypothesis where the lemma still holds", needed <= 0, 0)
    return Evidence(
        (lemma.deviation, proof.deviation, identity.deviation, outside),
        f"{effort.pick(60, 600)} random L and F, 2–6 labels",
    )


@claim(
    "joint-convexity",
    "Section 4; Appendix B",
    "remark",
    "The excess is jointly convex in θ and q.",
    "smallest eigenvalue of the Hessian [F L]ᵀ[F L]/k; midpoint test",
)
def joint_convexity(effort: Effort) -> Evidence:
    rng = effort.rng
    worst = Worst("−(smallest eigenvalue of the Hessian)", 1e-10)
    for _ in range(effort.pick(30, 300)):
        k, m, r = rng.integers(2, 7, 3)
        both = np.hstack([rng.normal(size=(k, r)), rng.random((k, m))])
        worst.add(float(-np.linalg.eigvalsh(both.T @ both / k).min()))
    return Evidence((worst.deviation,), "random L and F")


@claim(
    "closed-form-products",
    "Section 4, footnote 4; Appendix F",
    "remark",
    "FᵀF and FᵀL(:, y) have closed forms for the block and Hamming losses.",
    "the library's structured Gram operator and targets against sums over all labels",
)
def closed_form_products(effort: Effort) -> Evidence:
    worst = Worst("|structured − enumerated|", 1e-10)
    for loss in (Block((3, 1, 2)), Hamming(3), Hamming(effort.pick(4, 8)), Hamming(2, 3)):
        space = loss.score_space
        F, L = space.matrix(), loss.matrix()
        k = len(F)
        gram = space.gram()
        worst.add(float(np.abs(gram.dense() - F.T @ F / k).max()), f"{loss!r}, FᵀF")
        target = to_dense(loss.target(loss.true_labels.enumerate()))
        offset = np.asarray(loss.offset(loss.true_labels.enumerate()))
        # L(c, y) = o_y + ⟨F_c, u_y⟩, so FᵀL/k = Ḡ·u_y + o_y·(mean of F)
        structured = target @ gram.dense() + offset[:, None] * F.mean(axis=0)
        worst.add(float(np.abs(structured - L.T @ F / k).max()), f"{loss!r}, FᵀL")
    return Evidence((worst.deviation,), "blocks of 3, 1, 2; Hamming up to 256 labels, and 3 states")


@claim(
    "lemma-pairs",
    "Appendix B, second lemma",
    "lemma",
    "H(ε) is the minimum over pairs i ≠ j of predictable labels of H_ij(ε), in which i has the "
    "least expected loss, j the largest score, and ℓ_i ≤ ℓ_j − ε; for any set of scores.",
    "the programs of the lemma against the definition: by hand at ε = 0, by enumeration for a set "
    "of two score vectors, by the certified engine for subspaces",
    expected="imprecise",
    covers=(
        "th:breakingSymmetries",
        "eq:calibrationfunc:decomposition",
        "eq:calibrationfunc:generalBreakingSymmetries",
        "eq:calibrationfunc:generalBreakingSymmetries#1",
        "eq:calibrationfunc:proof",
    ),
)
def lemma_pairs(effort: Effort) -> Evidence:
    rng = effort.rng
    stated = Worst("relative deviation of min H_ij from H, subspaces and ε > 0", 1e-5)
    for _ in range(effort.pick(10, 80)):
        k = int(rng.integers(2, 5))
        loss = CostMatrix(rng.random((k, k)), rows="pred")
        space = Dense(rng.normal(size=(k, int(rng.integers(1, k + 1)))), over=loss.predictions)
        H = calibration_function(loss, space)
        eps = 0.5 * H.max_eps
        if eps > 0:
            low, high = H.interval(eps)
            found = printed_value(loss.matrix(), space.matrix(), eps)
            gap = relative(found, high) if high > 1e-10 else abs(found - low)
            stated.add(gap, f"{k} labels, rank {space.rank}")
    # ε = 0: the best label itself may have the largest score, which i ≠ j excludes
    L = np.array([[0.0, 0.0], [1.0, 1.0]])
    at_zero = printed_value(L, np.eye(2), 0.0)
    # a set of scores that is not convex: (−½, −½) ties and predicts label 0, (−1, 0) label 1
    scores, task = np.array([[-0.5, -0.5], [-1.0, 0.0]]), 1.0 - np.eye(2)
    by_definition, by_pairs = _two_scores(scores, task, 0.6)
    edge = (
        Deviation("min H_ij(0) − H(0) for L = [[0, 0], [1, 1]]", at_zero, 1e-9, "ε = 0"),
        Deviation(
            "H − min H_ij for a set of two score vectors",
            by_definition - by_pairs,
            1e-6,
            "scores (−½, −½) and (−1, 0), 0-1 loss, ε = 0.6",
        ),
    )
    convex = Worst("H(0) by definition", 0)
    convex.add(calibration_function(CostMatrix(L, rows="pred"))(0.0))
    closure = _closures(rng, effort.pick(40, 400))
    return Evidence(
        (stated.deviation,),
        f"{effort.pick(10, 80)} random losses with random score subspaces; two counterexamples",
        edge=edge,
        corrected=(convex.deviation, closure),
        correction="For ε > 0 and a convex set of scores. At ε = 0 the left side is 0, the right "
        f"side {at_zero:.6g} for L = [[0, 0], [1, 1]] (pairs i = j are needed). For the two score "
        f"vectors (−½, −½) and (−1, 0), H(0.6) = {by_definition:.4g} but the pairs give "
        f"{by_pairs:.4g}: the closure of {{f: pred(f) = j}} is {{f_j ≥ f_c}} for convex sets only.",
    )


def _two_scores(scores: FloatArray, L: FloatArray, eps: float) -> tuple[float, float]:
    """H(ε) over a finite set of scores: by definition, and with ties counted for every label."""
    k = len(L)
    definition = pairs = math.inf
    for first in np.linspace(0, 1, 2001):
        q = np.array([first, 1 - first])
        expected = L @ q
        values = np.sum((scores + expected) ** 2, axis=1) / (2 * k)
        excess = values - values.min()
        for number, f in enumerate(scores):
            for j in np.flatnonzero(f == f.max()).tolist():
                if expected[j] - expected.min() < eps - 1e-12:
                    continue
                pairs = min(pairs, float(excess[number]))
                if j == int(f.argmax()):
                    definition = min(definition, float(excess[number]))
    return definition, pairs


def _closures(rng: np.random.Generator, n: int) -> Deviation:
    """In a subspace every point of {f_j ≥ f_c} is a limit of points where j is predicted."""
    bad = 0
    for _ in range(n):
        k = int(rng.integers(2, 6))
        F = rng.integers(-2, 3, (k, int(rng.integers(1, 4)))).astype(np.float64)
        kept = predictable_rows(F)[0]
        interior: dict[int, FloatArray] = {}
        for theta in (*rng.normal(size=(200, F.shape[1])), np.zeros(F.shape[1])):
            interior.setdefault(int(np.argmax(F @ theta)), theta)
        for j in kept.tolist():
            if j not in interior:
                continue
            edge = rng.integers(-1, 2, F.shape[1]).astype(np.float64)  # ties are frequent
            f = F @ edge
            if f[j] < f[kept].max() - 1e-12:
                continue  # not in the set
            near = edge + 1e-6 * interior[j]
            bad += int(np.argmax(np.round(F @ near, 12))) != j
    return Deviation("points of {f_j ≥ f_c} that no score predicting j comes near", bad, 0)


@claim(
    "lemma-pairs-constraints",
    "Appendix B, proof of the second lemma",
    "proof step",
    "Constraints over predictable labels suffice: the largest score is always attained at one, and "
    "inf over scores of the task risk is the minimum over predictable labels.",
    "random scores over random F with merged labels: the maximum over pred(F) against that over "
    "all labels; the pair programs with both sets of order constraints",
)
def lemma_pairs_constraints(effort: Effort) -> Evidence:
    rng = effort.rng
    best = Worst("max over all labels − max over pred(F)", 1e-9)
    value = Worst("change of H_ij when order constraints run over all labels", 1e-6)
    for _ in range(effort.pick(12, 100)):
        k, r = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        F = rng.normal(size=(k, r))
        F[-1] = F[0]
        if k > 2:
            F[1] = (F[0] + F[2 % k]) / 2  # inside an edge: wins ties at most
        kept = predictable_rows(F)[0]
        f = rng.normal(size=(50, r)) @ F.T
        best.add(float((f.max(axis=1) - f[:, kept].max(axis=1)).max()))
        L = rng.random((k, k))
        for i, j in product(kept[:2].tolist(), kept[-2:].tolist()):
            if i != j:
                narrow = pair_value(L, F, i, j, 0.1)[0]
                both = _order_over_all(L, F, i, j, 0.1, kept.tolist())
                gap = 0.0 if math.isinf(narrow) and math.isinf(both) else abs(narrow - both)
                value.add(gap)
    return Evidence((best.deviation, value.deviation), "2–5 labels, merged and inner rows")


def _order_over_all(
    L: FloatArray, F: FloatArray, i: int, j: int, eps: float, kept: list[int]
) -> float:
    """H_ij with f_j ≥ f_c over all labels, but optimality of i over pred(F)."""
    k, m = L.shape
    r = F.shape[1]
    A = np.hstack([F, projection(F) @ L]) / math.sqrt(k)
    G = np.vstack(
        [
            np.concatenate([np.zeros(r), L[i] - L[j]])[None],
            np.hstack([np.zeros((len(kept), r)), L[i] - L[kept]]),
            np.hstack([F - F[j], np.zeros((k, m))]),
            np.hstack([np.zeros((m, r)), -np.eye(m)]),
        ]
    )
    h = np.concatenate([[-eps], np.zeros(len(kept) + k + m)])
    E = np.concatenate([np.zeros(r), np.ones(m)])[None]
    return least_squares_program(A, np.zeros(k), G=G, h=h, E=E, d=np.ones(1))[0]


@claim(
    "symmetric-pairs",
    "Appendix B",
    "remark",
    "For symmetric losses many pair problems are identical up to a permutation of labels.",
    "H_ij over all pairs, grouped by L(i, j): one kind for 0-1, T for Hamming, equal values within",
)
def symmetric_pairs(effort: Effort) -> Evidence:
    kinds = Worst("kinds of pairs − expected", 0)
    spread = Worst("spread of H_ij within a kind", 1e-8)
    for name, L, expected in (
        ("0-1, k = 4", 1 - np.eye(4), 1),
        ("Hamming, T = 2", hamming_matrix(2), 2),
        *effort.pick((), (("Hamming, T = 3", hamming_matrix(3), 3),)),
    ):
        k = len(L)
        values: dict[float, list[float]] = {}
        for i, j in permutations(range(k), 2):
            found = pair_value(L, np.eye(k), i, j, 0.2)[0]
            values.setdefault(round(float(L[i, j]), 9), []).append(found)
        kinds.add(abs(len(values) - expected), name)
        spread.add(max(max(group) - min(group) for group in values.values()), name)
    return Evidence(
        (kinds.deviation, spread.deviation), "all pairs of 0-1 (4) and Hamming (2, 3 bits), ε = 0.2"
    )
