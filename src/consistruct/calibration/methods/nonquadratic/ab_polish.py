"""Newton's method on the optimality conditions of a pair, for surrogates bounded by one plane.

The term D(min(ℓ_c, τ), τ) has a continuous slope and a jump of the curvature where ℓ_c passes τ, on
which quadratic programs stall. With the true labels S where q > 0 and the labels A below τ held
fixed,

    Σ_A g_c L_c − ν gap = λ on S,   gap·q = ε,   Σq = 1,   g_c = a(τ) − a(ℓ_c),   τ = mean_A ℓ,

a being the score function at the best score. What is active is revised by the signs that come out.
"""

from __future__ import annotations

import numpy as np

from consistruct.calibration.methods.nonquadratic.ab_bounds import ABPair, optimal_threshold
from consistruct.protocols import FloatArray

__all__ = ["stationary_distributions"]

STEPS = 12
REVISIONS = 8
POSITIVE = (1e-6, 1e-9, 1e-4)  # what counts as a true label that q has


def stationary_distributions(pair: ABPair, start: FloatArray) -> list[FloatArray]:
    """Distributions at which the conditions hold, one for every guess that came to an end."""
    found = []
    tried: set[tuple[int, ...]] = set()
    for threshold in POSITIVE:
        support, reached, q = start > threshold, True, start
        for _ in range(REVISIONS):
            guess = (*np.flatnonzero(support).tolist(), -1 - int(reached))
            if not support.any() or guess in tried:
                break
            tried.add(guess)
            solved = _newton(pair, q, support, reached)
            if solved is None:
                break
            q, nu, reduced = solved
            found.append(np.maximum(q, 0.0))
            slack = float(pair.gap @ q) - pair.eps
            reached = nu > 0 if reached else slack < 0
            support = (support & (q > 0)) | (~support & (reduced < 0))
    return found


def _newton(
    pair: ABPair, start: FloatArray, support: np.ndarray, reached: bool
) -> tuple[FloatArray, float, FloatArray] | None:
    """q, ν and the reduced cost of every true label; None where the iteration runs away."""
    family, at = pair.family, np.flatnonzero(support)
    n = len(at)
    unit = family.l_max
    L, gap = pair.L[:, at] / unit, pair.gap[at] / unit
    q = np.zeros(pair.L.shape[1])
    q[at] = np.maximum(start[at], 1e-12)
    q /= q.sum()
    nu, lam = 0.0, 0.0
    constant = np.ptp(pair.L, axis=1) == 0  # such rows may be 0 or the largest
    for step in range(STEPS):
        ell = pair.L @ q
        if not (np.isfinite(q).all() and (((ell > 0) & (ell < unit)) | constant).all()):
            return None
        slope, bend, top, active = _slopes(pair, ell)
        base = slope @ L
        if step == 0:
            known = np.linalg.lstsq(np.column_stack([gap, np.ones(n)]), base, rcond=None)[0]
            nu, lam = (float(known[0]), float(known[1])) if reached else (0.0, float(base.mean()))
        hessian = np.diag(bend) - top / active.sum() * np.outer(active, active)
        J = np.zeros((n + 2, n + 2))
        J[:n, :n] = L.T @ hessian @ L
        J[:n, n], J[:n, n + 1] = -gap, -1.0
        J[n, :n], J[n + 1, :n] = gap, 1.0
        left = np.concatenate(
            [base - nu * gap - lam, [gap @ q[at] - pair.eps / unit, q[at].sum() - 1.0]]
        )
        if not reached:
            J[n], J[:, n], left[n] = 0.0, 0.0, 0.0
            J[n, n] = 1.0
        move = np.linalg.lstsq(J, -left, rcond=1e-14)[0]
        if not np.isfinite(move).all():
            return None
        change = np.zeros_like(q)
        change[at] = move[:n]
        length = _room(ell, pair.L @ change, unit)
        q = q + length * change
        nu, lam = nu + length * float(move[n]), lam + length * float(move[n + 1])
        if np.abs(move[:n]).max() <= 1e-16:
            break
    slope = _slopes(pair, np.clip(pair.L @ q, 0.0, unit))[0]
    reduced = slope @ (pair.L / unit) - nu * pair.gap / unit - lam
    return q, nu, reduced


def _slopes(pair: ABPair, ell: FloatArray) -> tuple[FloatArray, FloatArray, float, np.ndarray]:
    """g, its derivatives at the labels and at τ in units of the largest loss, and who is in A."""
    family, unit = pair.family, pair.family.l_max
    tau = optimal_threshold(ell, pair.j)
    active = ell < tau
    active[pair.j] = True
    ell = np.clip(ell, 1e-16 * unit, (1 - 1e-16) * unit)
    a = family.a(family.best_score(ell))
    u = float(family.a(family.best_score(np.array([tau])))[0])
    slope = np.where(active, u - a, 0.0) * unit
    bend = np.where(active, family.curvature(ell), 0.0) * unit**2
    return slope, bend, float(family.curvature(np.array([tau]))[0]) * unit**2, active


def _room(ell: FloatArray, change: FloatArray, unit: float) -> float:
    """The part of a step that keeps expected losses off 0 and the largest loss."""
    room = np.where(change < 0, ell, unit - ell)
    moving = (np.abs(change) > 0) & (room > 0)
    return min(1.0, 0.9 * float((room[moving] / np.abs(change[moving])).min(initial=2.0)))
