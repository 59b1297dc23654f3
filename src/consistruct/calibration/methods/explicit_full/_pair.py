"""One pair problem at one ε, in compiled code: primal active set with pricing over all true labels.

For predictions i ≠ j and reference weights p (p = 1 for the uniform measure) write
z = ℓ_j − ℓ for the vector of regret differences, z = Σ_y q_y a_y with a_y = L_jy − L_·y. Scores and
slacks can be eliminated, which leaves a smooth convex function of z alone,

    g(z) = min_u ½ [p_j u² + Σ_c p_c (z_c − u)₊²],        w = ∇g(z),  w_c = p_c (z_c − u)₊,
    p_j u = Σ_c w_c,    2 g(z) = ⟨w, z⟩,    g(z) = ½ [(Σw)²/p_j + Σ_c w_c²/p_c] =: Q(w),

so that  k·H'_ij(ε) = min { g(Σ_y q_y a_y) : q ≥ 0, Σq = 1, d·q ≥ ε },  d_y = L_jy − L_iy.

For any w ≥ 0 and μ ≥ 0, with m = min_y (⟨w, a_y⟩ − μ d_y), √(4 k H'_ij(ε)) ≥ (με + m)/√Q(w) for
every ε. Given w the best μ is a linear program in one variable, solved by walking on the lower
hull of the points (d_y, ⟨w, a_y⟩); its primal vertex (one or two true labels) is the Frank–Wolfe
vertex.

A step: price all true labels, move a little toward the vertex (which makes its weights positive),
then Newton steps on the face spanned by the current true labels, dropping true labels that reach
zero. The slack σ = d·q − ε ≥ 0 is one more non-negative variable, so that an inactive ε constraint
and losses where every true label of the support has d_y = ε (no Slater point) need no special case:
the two equalities are eliminated by choosing basic variables, never by factorizing a KKT matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consistruct._compile import compiled
from consistruct.calibration.methods.explicit_full._gauge import (
    add_weight,
    best_multiplier,
    gauge,
    price,
    regret,
)
from consistruct.calibration.methods.explicit_full._newton import newton_direction
from consistruct.protocols import FloatArray, IntArray

__all__ = ["CLOSED", "PRUNED", "STALLED", "Workspace", "solve_pair", "workspace"]

CLOSED, PRUNED, STALLED = 0, 1, 2  # gap closed; lower bound above the target; neither

NEWTON_STEPS = 1  # per pricing; the result does not depend on it, more take longer
MAX_PRICINGS = 500  # a guard: a few dozen suffice at k = 256
HALVINGS = 30
FLAT = 1e-13  # d_y − ε below this times max |d| counts as zero


class Workspace(NamedTuple):
    """Buffers of one thread: the current point, a trial point, and what Newton steps need."""

    columns: IntArray  # (m + 2,) support of q, the first n entries
    x: FloatArray  # (m + 2,) q on it
    z: FloatArray  # (k,) ℓ_j − ℓ
    rows: IntArray  # (k,) support of w, the first `count` entries
    w: FloatArray  # (k,) w on it
    trial_x: FloatArray  # (m + 2,)
    trial_z: FloatArray  # (k,)
    trial_rows: IntArray  # (k,)
    trial_w: FloatArray  # (k,)
    best_rows: IntArray  # (k,) the dual point with the highest bound so far
    best_w: FloatArray  # (k,)
    cost: FloatArray  # (m,) ⟨w, a_y⟩
    vertex: IntArray  # (2,)
    vertex_z: FloatArray  # (k,)
    step: FloatArray  # (m + 2,) Newton step in x
    free: IntArray  # (2m + 4,)
    B: FloatArray  # (k, m + 2)
    M: FloatArray  # (m + 7, m + 2)


@compiled
def workspace(k: int, m: int) -> Workspace:
    """Buffers for problems with k predictions and m true labels."""
    return Workspace(
        np.empty(m + 2, dtype=np.int64),
        np.empty(m + 2),
        np.empty(k),
        np.empty(k, dtype=np.int64),
        np.empty(k),
        np.empty(m + 2),
        np.empty(k),
        np.empty(k, dtype=np.int64),
        np.empty(k),
        np.empty(k, dtype=np.int64),
        np.empty(k),
        np.empty(m),
        np.empty(2, dtype=np.int64),
        np.empty(k),
        np.empty(m + 2),
        np.empty(2 * m + 4, dtype=np.int64),
        np.empty((k, m + 2)),
        np.empty((m + 7, m + 2)),
    )


@compiled
def accept(work: Workspace, count: int) -> bool:
    """Make the trial z and w current; tell whether the active rows stayed the same."""
    same = True
    for s in range(count):
        same = same and work.rows[s] == work.trial_rows[s]
        work.rows[s] = work.trial_rows[s]
        work.w[s] = work.trial_w[s]
    work.z[:] = work.trial_z
    return same


@compiled
def vertex_step(
    LT: FloatArray,  # (m, k)
    d: FloatArray,  # (m,)
    p: FloatArray,  # (k,)
    j: int,
    eps: float,
    flat: float,
    left: int,
    right: int,
    share: float,
    gap: float,
    work: Workspace,
    n: int,
    slack: float,
    u: float,
    count: int,
    upper: float,
) -> tuple[int, float, float, int, float]:
    """Move toward share·left + (1−share)·right, where g has slope −gap < 0.

    Its true labels enter the support with positive weight, so that no Newton step is blocked at
    once. (Several vertices at once save pricings but cost as many Newton steps that drop them
    again.) Returns the new (n, slack, u, count, upper); unchanged where rounding leaves no descent.
    """
    size = 1 if right < 0 else 2
    work.vertex[0] = left
    work.vertex[1] = right
    work.trial_x[0] = share
    work.trial_x[1] = 1.0 - share
    regret(LT, j, work.vertex, work.trial_x, size, work.vertex_z)
    weight = p[j]
    mean = 0.0
    curvature = 0.0
    for s in range(count):
        c = work.rows[s]
        change = work.vertex_z[c] - work.z[c]
        weight += p[c]
        mean += p[c] * change
        curvature += p[c] * change * change
    curvature -= mean * mean / weight
    gamma = gap / curvature if gap < 0.5 * curvature else 0.5
    for _ in range(HALVINGS):
        for c in range(work.z.shape[0]):
            work.trial_z[c] = work.z[c] + gamma * (work.vertex_z[c] - work.z[c])
        trial_u, trial_count, trial = gauge(work.trial_z, p, j, u, work.trial_rows, work.trial_w)
        if trial < upper:
            accept(work, trial_count)
            slack *= 1.0 - gamma
            for a in range(n):
                work.x[a] *= 1.0 - gamma
            for side in range(size):
                y = work.vertex[side]
                added = gamma * (share if side == 0 else 1.0 - share)
                if added > 0.0:
                    n = add_weight(work.columns, work.x, n, y, added)
            if right < 0 and d[left] - eps > flat:
                slack += gamma * (d[left] - eps)
            return n, slack, trial_u, trial_count, trial
        gamma *= 0.5
    return n, slack, u, count, upper


@compiled
def newton_steps(
    L: FloatArray,  # (k, m)
    LT: FloatArray,  # (m, k)
    d: FloatArray,  # (m,)
    p: FloatArray,  # (k,)
    j: int,
    eps: float,
    flat: float,
    work: Workspace,
    n: int,
    slack: float,
    u: float,
    count: int,
    upper: float,
) -> tuple[int, float, float, int, float]:
    """Newton steps on the face of the support, each cut where a weight or the slack reaches zero.

    Returns the new (n, slack, u, count, upper); slack = 0 means that the ε constraint is active.
    """
    x = work.x
    step = work.step
    for _ in range(NEWTON_STEPS):
        drift, slope = newton_direction(
            L,
            d,
            p,
            j,
            eps,
            flat,
            work.rows,
            work.w,
            count,
            work.columns,
            x,
            n,
            slack > 0.0,
            work.B,
            work.M,
            work.free,
            step,
        )
        if slope >= -1e-17 * upper:
            break
        length = 1.0
        blocking = -1  # place of the weight that reaches zero first; n stands for the slack
        for a in range(n):
            if step[a] < 0.0 and -x[a] > length * step[a]:
                length = -x[a] / step[a]
                blocking = a
        if drift < 0.0 and -slack > length * drift:
            length = -slack / drift
            blocking = n
        full = blocking < 0
        accepted = False
        trial_u, trial_count, trial = u, count, upper
        for _halving in range(HALVINGS):
            total = 0.0
            for a in range(n):
                moved = x[a] + length * step[a]
                work.trial_x[a] = moved if a != blocking and moved > 0.0 else 0.0
                total += work.trial_x[a]
            for a in range(n):
                work.trial_x[a] /= total
            regret(LT, j, work.columns, work.trial_x, n, work.trial_z)
            trial_u, trial_count, trial = gauge(
                work.trial_z, p, j, u, work.trial_rows, work.trial_w
            )
            if trial <= upper:
                accepted = True
                break
            length *= 0.5
            blocking = -1
            full = False
        if not accepted:
            break
        if slack > 0.0:
            slack = 0.0 if blocking == n else max(slack + length * drift, 0.0)
        same = accept(work, trial_count) and trial_count == count
        u, count, upper = trial_u, trial_count, trial
        kept = 0
        for a in range(n):
            if work.trial_x[a] > 0.0:
                work.columns[kept] = work.columns[a]
                x[kept] = work.trial_x[a]
                kept += 1
        n = kept
        if full and same:  # the minimum over this face is reached: price again
            break
    return n, slack, u, count, upper


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
    n: int,
    work: Workspace,
) -> tuple[int, float, float, float, int, int]:
    """Return (status, upper, lower, μ, size of q's support, size of w's support).

    On entry work.columns, work.x hold n true labels and a distribution with d·q ≥ ε; on return the
    distribution whose g is `upper`, and work.best_rows, work.best_w the w that with μ proves
    `lower`. Stops when the lower bound reaches `target` (PRUNED), when upper − lower ≤ tolerance ·
    upper (CLOSED), or when rounding allows no more progress (STALLED).
    """
    flat = FLAT * np.abs(d).max()
    slack = -eps
    for a in range(n):
        slack += d[work.columns[a]] * work.x[a]
    if slack <= flat:
        slack = 0.0
    regret(LT, j, work.columns, work.x, n, work.z)
    u, count, upper = gauge(work.z, p, j, 0.0, work.rows, work.w)
    lower = -1.0
    best_mu = 0.0
    best_count = 0
    stalled = 0
    for _ in range(MAX_PRICINGS):
        price(L, j, work.rows, work.w, count, work.cost)
        value, mu, left, right, share = best_multiplier(work.cost, d, eps)
        bound = value * value / (4.0 * upper) if value > 0.0 else 0.0  # Q(w) = g(z)
        if bound > lower:
            lower = bound
            best_mu = mu
            best_count = count
            work.best_rows[:count] = work.rows[:count]
            work.best_w[:count] = work.w[:count]
        if lower >= target:
            return PRUNED, upper, lower, best_mu, n, best_count
        if upper - lower <= tolerance * upper:
            return CLOSED, upper, lower, best_mu, n, best_count
        before = upper
        gap = 2.0 * upper - value  # ⟨w, z⟩ − min ⟨w, Aq⟩
        n, slack, u, count, upper = vertex_step(
            LT, d, p, j, eps, flat, left, right, share, gap, work, n, slack, u, count, upper
        )
        n, slack, u, count, upper = newton_steps(
            L, LT, d, p, j, eps, flat, work, n, slack, u, count, upper
        )
        stalled = stalled + 1 if upper >= before * (1.0 - 1e-15) else 0
        if stalled >= 3:
            break
    return STALLED, upper, lower, best_mu, n, best_count
