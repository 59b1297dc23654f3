"""One pair problem at one ε, in compiled code: primal active set with pricing over all truths.

For predictions i ≠ j and reference weights p (p = 1 for the uniform measure) write
z = ℓ_j − ℓ for the vector of regret differences, z = Σ_y q_y a_y with a_y = L_jy − L_·y. Scores and
slacks can be eliminated, which leaves a smooth convex function of z alone,

    g(z) = min_u ½ [p_j u² + Σ_c p_c (z_c − u)₊²],        w = ∇g(z),  w_c = p_c (z_c − u)₊,
    p_j u = Σ_c w_c,    2 g(z) = ⟨w, z⟩,    g(z) = ½ [(Σw)²/p_j + Σ_c w_c²/p_c] =: Q(w),

so that  k·H'_ij(ε) = min { g(Σ_y q_y a_y) : q ≥ 0, Σq = 1, d·q ≥ ε },  d_y = L_jy − L_iy.

For any w ≥ 0 and μ ≥ 0, with m = min_y (⟨w, a_y⟩ − μ d_y), √(4 k H'_ij(ε)) ≥ (με + m)/√Q(w) for
every ε. Given w the best μ is a linear program in one variable, solved by walking on the lower
hull of the points (d_y, ⟨w, a_y⟩); its primal vertex (one or two truths) is the Frank–Wolfe vertex.

A step: price all truths, move a little towards the vertex (which makes its weights positive), then
Newton steps on the face spanned by the current truths, dropping truths that reach zero. The slack
σ = d·q − ε ≥ 0 is one more non-negative variable, so that an inactive ε constraint and losses where
every truth of the support has d_y = ε (no Slater point) need no special case: the two equalities
are eliminated by choosing basic variables, never by factorising a KKT matrix.
"""

from __future__ import annotations

import numpy as np

from consistruct._compile import compiled
from consistruct.calibration.explicit._gauge import best_multiplier, gauge, price, regret
from consistruct.calibration.explicit._newton import newton_direction
from consistruct.protocols import FloatArray, IntArray

__all__ = ["CLOSED", "PRUNED", "STALLED", "solve_pair"]

CLOSED, PRUNED, STALLED = 0, 1, 2  # gap closed; lower bound above the target; neither

NEWTON_STEPS = 6  # per pricing
MAX_PRICINGS = 500

Workspace = tuple[
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
]


@compiled
def workspace(k: int, m: int) -> Workspace:
    """Buffers of one thread for problems with k predictions and m truths."""
    return (
        np.empty(k),
        np.empty(k),
        np.empty(k),
        np.empty(k),
        np.empty(k),
        np.empty(m),
        np.empty(m + 2),
        np.empty(m + 2),
        np.empty((k, m + 2)),
        np.empty((m + 6, m + 2)),
    )


@compiled
def solve_pair(
    L: FloatArray,  # (k, m), column minima removed
    LT: FloatArray,  # (m, k), its transpose
    d: FloatArray,  # (m,)
    p: FloatArray,  # (k,)
    j: int,
    eps: float,
    target: float,
    tolerance: float,
    columns: IntArray,  # (m + 2,) in and out: the support of q, `n` entries
    x: FloatArray,  # (m + 2,) in and out: q on it; d·q ≥ ε on entry
    n: int,
    best_rows: IntArray,  # (k,) out: support of the best dual point
    best_w: FloatArray,  # (k,) out
    work: Workspace,
    rows: IntArray,  # work (k,)
    other_rows: IntArray,  # work (k,)
    free: IntArray,  # work (m + 2,)
) -> tuple[int, float, float, float, int, int]:
    """Return (status, upper, lower, μ, size of q's support, size of w's support).

    Stops when the lower bound reaches `target` (PRUNED), when upper − lower ≤ tolerance · upper
    (CLOSED), or when it makes no more progress (STALLED). upper = g at the returned q.
    """
    z, trial_z, point, w, trial_w, cost, step, trial_x, B, M = work
    k = L.shape[0]
    flat = 0.0
    slack = -eps
    for y in range(d.shape[0]):
        flat = max(flat, abs(d[y]))
    flat *= 1e-13
    for a in range(n):
        slack += d[columns[a]] * x[a]
    has_slack = slack > flat
    regret(LT, j, columns, x, n, z)
    u, count, upper = gauge(z, p, j, 0.0, rows, w)
    lower = -1.0
    best_mu = 0.0
    best_count = 0
    idle = 0
    for _ in range(MAX_PRICINGS):
        price(L, j, rows, w, count, cost)
        value, mu, left, right, share = best_multiplier(cost, d, eps)
        bound = value * value / (4.0 * upper) if value > 0.0 else 0.0
        if bound > lower:
            lower = bound
            best_mu = mu
            best_count = count
            for s in range(count):
                best_rows[s] = rows[s]
                best_w[s] = w[s]
        if lower >= target:
            return PRUNED, upper, lower, best_mu, n, best_count
        if upper - lower <= tolerance * upper:
            return CLOSED, upper, lower, best_mu, n, best_count
        before = upper

        # Towards the vertex: trial_z = its regret − z; the slope of g there is value − 2g < 0.
        size = 1 if right < 0 else 2
        other_rows[0] = left
        other_rows[1] = right
        trial_x[0] = share
        trial_x[1] = 1.0 - share
        regret(LT, j, other_rows, trial_x, size, trial_z)
        weight = p[j]
        mean = 0.0
        curvature = 0.0
        for s in range(count):
            c = rows[s]
            change = trial_z[c] - z[c]
            weight += p[c]
            mean += p[c] * change
            curvature += p[c] * change * change
        curvature -= mean * mean / weight
        gap = 2.0 * upper - value
        gamma = 0.5
        if gap < 0.5 * curvature:
            gamma = gap / curvature
        for c in range(k):
            trial_z[c] -= z[c]
        for _halving in range(30):
            for c in range(k):
                point[c] = z[c] + gamma * trial_z[c]
            trial_u, trial_count, trial = gauge(point, p, j, u, other_rows, trial_w)
            if trial < upper:
                break
            gamma *= 0.5
        if trial < upper:
            for a in range(n):
                x[a] *= 1.0 - gamma
            slack *= 1.0 - gamma
            for side in range(size):
                y = left if side == 0 else right
                weight = gamma * (share if side == 0 else 1.0 - share)
                if weight > 0.0:
                    place = n
                    for a in range(n):
                        if columns[a] == y:
                            place = a
                    if place == n:
                        columns[n] = y
                        x[n] = 0.0
                        n += 1
                    x[place] += weight
            if right < 0 and d[left] - eps > flat:
                has_slack = True
                slack += gamma * (d[left] - eps)
            for c in range(k):
                z[c] = point[c]
            u, count, upper = trial_u, trial_count, trial
            for s in range(count):
                rows[s] = other_rows[s]
                w[s] = trial_w[s]

        for _newton in range(NEWTON_STEPS):
            drift, slope = newton_direction(
                L, d, p, j, eps, flat, rows, w, count, columns, x, n, has_slack, B, M, free, step
            )
            if slope >= -1e-17 * upper:
                break
            alpha = 1.0
            blocking = -1
            for a in range(n):
                if step[a] < 0.0 and -x[a] > alpha * step[a]:
                    alpha = -x[a] / step[a]
                    blocking = a
            if has_slack and drift < 0.0 and -slack > alpha * drift:
                alpha = -slack / drift
                blocking = n
            accepted = False
            trial_u, trial_count, trial = u, count, upper
            for _halving in range(30):
                total = 0.0
                for a in range(n):
                    trial_x[a] = max(x[a] + alpha * step[a], 0.0)
                    if a == blocking:
                        trial_x[a] = 0.0
                    total += trial_x[a]
                for a in range(n):
                    trial_x[a] /= total
                regret(LT, j, columns, trial_x, n, trial_z)
                trial_u, trial_count, trial = gauge(trial_z, p, j, u, other_rows, trial_w)
                if trial <= upper:
                    accepted = True
                    break
                alpha *= 0.5
                blocking = -2
            if not accepted:
                break
            same = trial_count == count
            if same:
                for s in range(count):
                    if rows[s] != other_rows[s]:
                        same = False
                        break
            for s in range(trial_count):
                rows[s] = other_rows[s]
                w[s] = trial_w[s]
            for c in range(k):
                z[c] = trial_z[c]
            u, count, upper = trial_u, trial_count, trial
            if has_slack:
                slack = max(slack + alpha * drift, 0.0)
                if blocking == n:
                    has_slack = False
                    slack = 0.0
            kept = 0
            for a in range(n):
                if trial_x[a] > 0.0:
                    columns[kept] = columns[a]
                    x[kept] = trial_x[a]
                    kept += 1
            n = kept
            if blocking == -1 and same:
                break
        idle = idle + 1 if upper >= before * (1.0 - 1e-15) else 0
        if idle >= 3:
            break
    return STALLED, upper, lower, best_mu, n, best_count
