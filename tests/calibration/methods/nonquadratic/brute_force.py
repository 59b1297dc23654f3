"""Slow, independent evaluations from the definition of H: search over distributions and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp, softmax

from consistruct.protocols import FloatArray


def excess_ab(name, L, q, f):
    """(1/k) Σ ℓ a(f) + b(f), less its minimum over all f, from the formulas of a and b."""
    top = L.max()
    p = (L @ q) / top
    with np.errstate(divide="ignore", invalid="ignore"):
        if name == "logistic":
            value = p * f + np.logaddexp(0, -f)
            best = -np.nan_to_num(p * np.log(p)) - np.nan_to_num((1 - p) * np.log(1 - p))
        else:
            value = p * (np.exp(f) - np.exp(-f)) + np.exp(-f)
            best = 2 * np.sqrt(np.clip(p * (1 - p), 0, None))
    return float((value - best).mean())


def excess_log(L, q, theta):
    entropy = -float((q[q > 0] * np.log(q[q > 0])).sum())
    return float(logsumexp(theta) - q @ theta) - entropy


def excess_linear_regret(L, q, f, kappa):
    """⟨f, ℓ⟩ + (κ/2)dist²(f, simplex), less its minimum; the projection by bisection on τ."""
    ell = L @ q
    low, high = f.min() - 1.0, f.max()
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(f - middle, 0).sum() > 1 else (low, middle)
    outside = f - np.maximum(f - high, 0)
    best = ell.min() - ell @ ell / (2 * kappa)
    return float(f @ ell + 0.5 * kappa * outside @ outside - best)


def excess_hinge(L, q, f):
    k = len(L)
    surrogate = float(q @ ((L + f[:, None]).max(axis=0) - f))
    return surrogate - optimal_hinge(L, q, k)


def optimal_hinge(L, q, k):
    """min over f by a linear program in (f, t): t_y ≥ L_cy + f_c."""
    cost = np.concatenate([-q, q])
    rows, right = [], []
    for y in range(k):
        for c in range(k):
            row = np.zeros(2 * k)
            row[c], row[k + y] = 1.0, -1.0
            rows.append(row)
            right.append(-L[c, y])
    found = linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=[(None, None)] * (2 * k))
    return float(found.fun)


def excess_max_min(L, q, v):
    """max_p [min_c (Lp)_c + v·p] − v·q − min_c (Lq)_c, the first by a linear program."""
    k = len(L)
    found = linprog(
        np.append(-v, -1.0),
        A_ub=np.column_stack([-L, np.ones(k)]),
        b_ub=np.zeros(k),
        A_eq=np.append(np.ones(k), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * k + [(None, None)],
    )
    return float(-found.fun - v @ q - (L @ q).min())


def multistart(excess, L, eps, decoded, rng, starts=2, n_scores=None):
    """Least excess found by penalty-free local search: q by softmax, scores with j raised to win.

    `decoded(scores)` are numbers whose largest entry is the prediction. Every accepted point is
    feasible, so the value is an upper bound on H.
    """
    k, m = L.shape
    n = n_scores or k
    best = np.inf

    def objective(x: FloatArray) -> float:
        return excess(L, softmax(x[:m]), x[m:])

    for j in range(k):
        for i in range(k):
            gap = L[j] - L[i]
            if i == j or gap.max() < eps:
                continue
            for _ in range(starts):
                constraints: list[Any] = [
                    {"type": "ineq", "fun": lambda x, g=gap: g @ softmax(x[:m]) - eps},
                    {
                        "type": "ineq",
                        "fun": lambda x, j=j: decoded(x[m:])[j] - np.delete(decoded(x[m:]), j),
                    },
                ]
                start = np.concatenate([3 * gap / np.ptp(gap), np.zeros(n)])
                start = start + rng.normal(scale=0.7, size=m + n)
                found = minimize(
                    objective,
                    start,
                    method="SLSQP",
                    constraints=constraints,
                    options={"maxiter": 300, "ftol": 1e-13},
                )
                q, scores = softmax(found.x[:m]), found.x[m:]
                values = decoded(scores)
                if gap @ q >= eps - 1e-9 and values[j] >= values.max() - 1e-9:
                    best = min(best, excess(L, q, scores))
    return best


def random_search(excess, L, eps, rng, n=3000):
    """Least excess of random distributions and scores whose prediction is worse by ε, with ties."""
    k, m = L.shape
    best = np.inf
    for _ in range(n):
        q = rng.dirichlet(np.full(m, rng.choice([0.2, 1.0])))
        f = -rng.integers(0, 5, k) * rng.choice([0.25, 0.5, 1.0]) * L.max()
        winners = np.flatnonzero(f == f.max())
        ell = L @ q
        if (ell[winners] - ell.min()).max() >= eps:
            best = min(best, excess(L, q, f))
    return best
