"""Slow references: H from the definition, by programs that use nothing of the fast methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import permutations
from typing import Any

import clarabel
import numpy as np
import scipy.sparse
import sympy

from consistruct.calibration.methods.explicit.pool import ExplicitPairs, PairPool
from consistruct.calibration.problem.listed import explicit_problem
from consistruct.losses import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Structure
from consistruct.structures.operators import predictable_rows
from paper.model import Deviation

__all__ = [
    "MARGIN_LOSSES",
    "Worst",
    "block_matrix",
    "certified",
    "distributions",
    "hamming_matrix",
    "least_squares_program",
    "mixed_matrix",
    "pair_value",
    "printed_value",
    "projection",
    "relative",
    "residual",
]


def _hinge(margin: FloatArray) -> FloatArray:
    return np.maximum(1.0 - margin, 0.0)


def _exponential(margin: FloatArray) -> FloatArray:
    return np.exp(-margin)


# surrogates of binary classification, functions of the margin
MARGIN_LOSSES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "hinge": _hinge,
    "squared": lambda margin: (1.0 - margin) ** 2,
    "truncated": lambda margin: _hinge(margin) ** 2,
    "exponential": _exponential,
    "logistic": lambda margin: np.logaddexp(0.0, -margin),
}


def relative(found: float, expected: float) -> float:
    """|found − expected| relative to the expected size, absolute where that is zero."""
    if math.isinf(expected) or math.isinf(found):
        return 0.0 if found == expected else math.inf
    return abs(found - expected) / (abs(expected) if expected != 0 else 1.0)


def residual(*expressions: Any) -> float:
    """Count the expressions that are not identically zero."""
    return float(sum(sympy.simplify(sympy.expand(one)) != 0 for one in expressions))


class Worst:
    """Keeps the largest deviation and the case that attains it."""

    def __init__(self, what: str, tolerance: float) -> None:
        self.what = what
        self.tolerance = tolerance
        self.value = -math.inf
        self.case = ""

    def add(self, value: float, case: str = "") -> None:
        """Take one case into account."""
        if math.isnan(value):
            value = math.inf
        if value > self.value:
            self.value = float(value)
            self.case = case if len(case) <= 100 else f"{case[:99]}…"  # matrices are long

    @property
    def deviation(self) -> Deviation:
        """The result; an empty grid is an error, not a success."""
        value = math.nan if self.value == -math.inf else max(self.value, 0.0)
        return Deviation(self.what, value, self.tolerance, self.case)


def least_squares_program(
    A: FloatArray,  # (m, n)
    b: FloatArray,  # (m,)
    *,
    G: FloatArray | None = None,  # (u, n)
    h: FloatArray | None = None,  # (u,)
    E: FloatArray | None = None,  # (e, n)
    d: FloatArray | None = None,  # (e,)
    accuracy: float = 1e-11,
) -> tuple[float, FloatArray]:
    """min ½‖Ax + b‖² s.t. Gx ≤ h, Ex = d: the value and x; +inf if infeasible."""
    n = A.shape[1]
    rows, rhs, cones = [], [], []
    if E is not None and d is not None:
        rows.append(E)
        rhs.append(d)
        cones.append(clarabel.ZeroConeT(len(d)))
    if G is not None and h is not None:
        rows.append(G)
        rhs.append(h)
        cones.append(clarabel.NonnegativeConeT(len(h)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, accuracy)
    solver = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.triu(A.T @ A)),
        A.T @ b,
        scipy.sparse.csc_matrix(np.vstack(rows)) if rows else scipy.sparse.csc_matrix((0, n)),
        np.concatenate(rhs) if rhs else np.zeros(0),
        cones,
        settings,
    )
    solution = solver.solve()
    if "Infeasible" in str(solution.status):
        return math.inf, np.full(n, np.nan)
    x = np.asarray(solution.x)
    residual = A @ x + b
    return 0.5 * float(residual @ residual), x


def projection(F: FloatArray) -> FloatArray:
    """P_F = F(FᵀF)⁺Fᵀ, (k, k)."""
    return F @ np.linalg.pinv(F)


def pair_value(
    L: FloatArray,  # (k, m)
    F: FloatArray,  # (k, r)
    i: int,
    j: int,
    eps: float,
    rows: Iterable[int] | None = None,
) -> tuple[float, FloatArray, FloatArray]:
    """H_ij(ε) of Lemma 2 for the quadratic surrogate as printed, with q and f at the optimum.

    `rows` are the labels over which the two families of constraints run: pred(F) by default.
    """
    k, m = L.shape
    r = F.shape[1]
    kept = np.asarray(predictable_rows(F)[0] if rows is None else list(rows))
    A = np.hstack([F, projection(F) @ L]) / math.sqrt(k)
    zeros = np.zeros((len(kept), r))
    G = np.vstack(
        [
            np.concatenate([np.zeros(r), L[i] - L[j]])[None],
            np.hstack([zeros, L[i] - L[kept]]),
            np.hstack([F[kept] - F[j], np.zeros((len(kept), m))]),
            np.hstack([np.zeros((m, r)), -np.eye(m)]),
        ]
    )
    h = np.concatenate([[-eps], np.zeros(2 * len(kept) + m)])
    E = np.concatenate([np.zeros(r), np.ones(m)])[None]
    value, x = least_squares_program(A, np.zeros(k), G=G, h=h, E=E, d=np.ones(1))
    return value, x[r:], F @ x[:r]


def printed_value(L: FloatArray, F: FloatArray, eps: float) -> float:
    """min over i ≠ j in pred(F) of H_ij(ε): Lemma 2 as printed."""
    kept = predictable_rows(F)[0]
    values = [pair_value(L, F, int(i), int(j), eps)[0] for i, j in permutations(kept, 2)]
    return min(values, default=math.inf)


def certified(
    loss: Loss, space: Structure, eps: float, *, symmetric: bool = False
) -> tuple[float, float]:
    """[lower, upper] of H(ε) by quadratic programs over listed labels: no closed form, no orbits.

    Both ends are proved by a dual and a primal point checked in plain NumPy; `symmetric` leaves out
    pairs that are alike.
    """
    problem = explicit_problem(loss, space)
    if eps > problem.max_eps * problem.unit * (1 + 1e-12):
        return math.inf, math.inf
    pool = PairPool(ExplicitPairs(problem, symmetric=symmetric), tolerance=1e-9)
    point = pool.point(eps / problem.unit)
    scale = math.exp(problem.log_scale)
    return point.lower * scale, point.upper * scale


def distributions(rng: np.random.Generator, k: int, n: int) -> FloatArray:
    """(n, k): dense and sparse random distributions."""
    q = rng.dirichlet(np.ones(k), n)
    sparse = rng.dirichlet(np.full(k, 0.2), n)
    return np.where(rng.random((n, 1)) < 0.5, q, sparse)


def block_matrix(sizes: Iterable[int]) -> FloatArray:
    """[i and j are not in the same block], (k, k)."""
    block = np.repeat(np.arange(len(list(sizes))), list(sizes))
    return (block[:, None] != block[None]).astype(np.float64)


def mixed_matrix(sizes: Iterable[int], eta: float) -> FloatArray:
    """η(0-1) + (1−η)(block), (k, k)."""
    block = block_matrix(sizes)
    return eta * (1.0 - np.eye(len(block))) + (1.0 - eta) * block


def hamming_matrix(T: int) -> FloatArray:
    """Share of differing bits over all tuples of T bits, (2^T, 2^T)."""
    bits = (np.arange(2**T)[:, None] >> np.arange(T)[::-1]) & 1
    return (bits[:, None, :] != bits[None]).mean(axis=2)
