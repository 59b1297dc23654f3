"""The definition of H solved by an independent modeling layer, nothing of the engine in it."""

from __future__ import annotations

import math
import warnings

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog

__all__ = [
    "definition_value",
    "excess_of",
    "predictable_by_definition",
    "projected_loss",
    "random_problem",
]


def predictable_by_definition(F):
    """Labels c with some θ: ⟨F_c−F_d, θ⟩ ≥ 1 for d < c (strict, as θ scales) and ≥ 0 for d > c."""
    found = []
    for c in range(len(F)):
        others = [d for d in range(len(F)) if d != c]
        if not others:
            return [0]
        answer = linprog(
            np.zeros(F.shape[1]),
            A_ub=F[others] - F[c],
            b_ub=[-1.0 if d < c else 0.0 for d in others],
            bounds=(None, None),
        )
        if answer.status == 0:
            found.append(c)
    return found


def projected_loss(L, F, mu):
    """√μ P_F L with P_F the μ-orthogonal projection, (k, m)."""
    S = np.sqrt(mu)[:, None] * F
    return S @ np.linalg.lstsq(S, np.sqrt(mu)[:, None] * L, rcond=None)[0]


def excess_of(L, F, mu, theta, q):
    """½‖Fθ + P_F Lq‖²_μ."""
    return 0.5 * float(np.sum((np.sqrt(mu) * (F @ theta) + projected_loss(L, F, mu) @ q) ** 2))


def definition_value(L, F, mu, eps):
    """min over i ≠ j in pred(F) of the quadratic program in which i is optimal and j wins."""
    predictable = predictable_by_definition(F)
    rows, P = L[predictable], projected_loss(L, F, mu)
    S = np.sqrt(mu)[:, None] * F
    best = math.inf
    for i in predictable:
        for j in predictable:
            if i == j or (L[j] - L[i]).max() < eps:
                continue
            theta, q = cp.Variable(F.shape[1]), cp.Variable(L.shape[1])
            constraints = [
                q >= 0,
                cp.sum(q) == 1,
                (F[predictable] - F[j]) @ theta <= 0,
                (L[i] - rows) @ q <= 0,
                (L[j] - L[i]) @ q >= eps,
            ]
            problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(S @ theta + P @ q)), constraints)
            _solve(problem)
            if problem.value is not None and math.isfinite(problem.value):
                best = min(best, float(problem.value))
    return best


def _solve(problem):
    """To eleven digits; to eight where the solver gives up before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate" shows up in the comparison
        for digits in (1e-11, 1e-8):
            try:
                problem.solve(
                    solver="CLARABEL", tol_gap_abs=digits, tol_gap_rel=digits, tol_feas=digits
                )
            except cp.error.SolverError:
                continue
            return
    raise AssertionError("the reference was not solved, so nothing was compared")


def random_problem(seed):
    """L (k, m), F (k, r), μ (k,) or None: small, with every awkward feature now and then."""
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(2, 7)), int(rng.integers(1, 7))
    r = int(rng.integers(1, k + 2))
    L = rng.random((k, m)) if rng.random() < 0.75 else rng.integers(0, 4, (k, m)).astype(float)
    if rng.random() < 0.2:
        L[:, rng.integers(m)] = 0.0
    if rng.random() < 0.2:
        L[rng.integers(k)] = L[rng.integers(k)]
    integer_scores = rng.integers(-2, 3, (k, r)).astype(float)
    F = rng.standard_normal((k, r)) if rng.random() < 0.5 else integer_scores
    if rng.random() < 0.3:
        F[rng.integers(k)] = F[rng.integers(k)]
    if rng.random() < 0.4:
        F = np.column_stack([np.ones(k), F])
    if not F.any():
        F[0, 0] = 1.0
    if rng.random() < 0.6:
        return L, F, None
    mu = rng.random(k) + 0.1
    return L, F, mu / mu.sum()
