"""Newton's method on the optimality conditions of a log-loss pair, from an approximate solution.

Interior-point solvers give laws to about six digits, which bounds the value to twelve from above
but only to six from below. With the truths S where p > 0 and the active order constraints W held
fixed, the conditions

    wᵀA_y − r_y + λ = 0 (y in S),   A_W p = 0,   Σp = 1,   p·r = 1,   p·(r (gap − ε)) = 0,

with r_y = exp(ν(gap_y − ε) − x) and unknowns (p_S, w_W, ν, x, λ), are smooth; a wrong guess of S or
W does no harm, because the bounds are recomputed from the points.
"""

from __future__ import annotations

import numpy as np

from consistruct.protocols import FloatArray, IntArray

__all__ = ["newton_dual"]

STEPS = 12


def newton_dual(
    order: FloatArray,  # (c, m)
    gap: FloatArray,  # (m,)
    eps: float,
    p: FloatArray,  # (m,)
    w: FloatArray,  # (c,)
    nu: float,
    x: float,
    supports: tuple[IntArray, IntArray],  # S and W
    nu_free: bool,
) -> tuple[FloatArray, FloatArray, float, float] | None:
    """(p, w, ν, x) at the stationary point, or None where the iteration runs away."""
    S, W = supports
    A = order[np.ix_(W, S)]
    d = gap[S] - eps
    n_p, n_w = len(S), len(W)
    p_S, w_W = p[S].copy(), w[W].copy()
    lam = float(np.mean(np.exp(nu * d - x) - w_W @ A))
    for _ in range(STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            r = np.exp(nu * d - x)
        if not np.isfinite(r).all():
            return None
        residual = np.concatenate(
            [w_W @ A - r + lam, A @ p_S, [p_S.sum() - 1, p_S @ r - 1, p_S @ (r * d)]]
        )
        J = np.zeros((n_p + n_w + 3, n_p + n_w + 3))
        J[:n_p, n_p : n_p + n_w] = A.T
        J[:n_p, -3], J[:n_p, -2], J[:n_p, -1] = -r * d, r, 1.0  # ν, x, λ
        J[n_p : n_p + n_w, :n_p] = A
        J[-3, :n_p], J[-2, :n_p], J[-1, :n_p] = 1.0, r, r * d
        J[-2, -3], J[-2, -2] = p_S @ (r * d), -(p_S @ r)
        J[-1, -3], J[-1, -2] = p_S @ (r * d * d), -(p_S @ (r * d))
        if not nu_free:
            J[-1], J[:, -3], residual[-1] = 0.0, 0.0, 0.0
        step = np.linalg.lstsq(J, -residual, rcond=1e-13)[0]
        if not np.isfinite(step).all():
            return None
        p_S = p_S + step[:n_p]
        w_W = w_W + step[n_p : n_p + n_w]
        nu, x, lam = nu + float(step[-3]), x + float(step[-2]), lam + float(step[-1])
        if np.abs(step).max() <= 1e-15 * (1 + np.abs(nu)):
            break
    new_p, new_w = np.zeros(len(gap)), np.zeros(len(order))
    new_p[S], new_w[W] = p_S, w_W
    return new_p, new_w, nu, x
