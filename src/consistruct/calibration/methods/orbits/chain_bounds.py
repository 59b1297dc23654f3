"""L_n(ν) of the chain: the least Lagrangian over all patterns with n agreeing parts, from below.

A state of the dynamic program is a convex function f of the flow z_t, kept by its potential
φ = −f′/2, a falling polyline on [0, c] with c = min(ν, 1), and by f at its right end:

    part in D:  z ← z + 1 − φ        part in U:  z ← z − 1 − φ        then  f ← f + z², φ ← φ − z,

clipped to [0, c] (an optimal potential stays there, and clipping only lowers f). z and φ are whole
multiples of 1/one and f of 1/one², `one` a power of two; only the ends of a clip fall between, and
they are moved left, which lowers φ and f. So every number is an integer and every f is a lower
bound: no rounding error is left to estimate. A state is dropped if another one is nowhere above it
by more than `delta`; that comparison is in floating point, with an error below `delta`, so each
part costs 2·delta.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from consistruct._compile import compiled
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray, IntArray

__all__ = ["LONGEST", "MULTIPLIERS", "chain_bounds", "pair_bound"]

MULTIPLIERS = 2**20  # ν is a multiple of 1/MULTIPLIERS
LONGEST = 1000
CORNERS = 96  # of a polyline
STATES = 32  # of each (t, n) to begin with; doubled where there are more
MOST_STATES = 1024
EVALUATION = 2.0**-52 * CORNERS * 8  # relative error of a difference of two functions below


def pair_bound(T: int, n: int, eps: Fraction) -> Fraction:
    """Theorem 7 for every pattern with n agreeing parts: 8T²·H_ij ≥ (εT)²/(T + min(n, T−1−n)).

    (F_i−F_j)ᵀḠ⁺(F_i−F_j) = 4(T − n + changes), and there are at most min(2n, T−1) changes between
    agreeing and differing neighbors.
    """
    return (eps * T) ** 2 / (T + min(n, T - 1 - n))


def chain_bounds(T: int, most: int, nu: float) -> list[Fraction]:
    """Lower bounds on L_n(ν) for n = 0 … `most`, 0 < ν ≤ 1 a multiple of 1/MULTIPLIERS."""
    if T > LONGEST:
        raise ConsistructError(f"chains are certified up to {LONGEST} parts, got {T}")
    if not 0 < nu <= 1 or (nu * MULTIPLIERS) % 1:
        raise ValueError(f"a multiplier must be a multiple of 2^-20 in (0, 1], got {nu!r}")
    size = 2 * nu * T  # f is at most 2ν for every part
    # f in units of 1/one², and sums of products of grid numbers below four, stay below 2^62
    one = 2 ** min(28, math.floor((60 - math.log2(size + 1)) / 2))
    delta = max(0.5e-9 * nu**2, EVALUATION * size)
    states = STATES
    while True:
        best, complete = _program(T, most, round(nu * one), one, delta, states)
        if complete:
            break
        states *= 2
        if states > MOST_STATES:
            raise ConsistructError(
                f"the chain program of T = {T} has more than {MOST_STATES} states a part; "
                f"Theorem 7 still holds"
            )
    lost = Fraction(2 * T * delta + EVALUATION * size)
    return [Fraction(value) - lost for value in best.tolist()]


@compiled
def _advance(
    z: IntArray, p: IntArray, n: int, value: int, differs: bool, cap: int,
    one: int, new_z: IntArray, new_p: IntArray,
) -> tuple[int, int]:  # fmt: skip
    """One part and one edge; fills the new polyline, returns its length and its right value."""
    # move, with a corner at z = 0 where a constant end of φ crosses its clip there
    m = 0
    first = z[0] + one - p[0] if differs else z[0] - one - p[0]
    tz = np.empty(n + 2, np.int64)
    tp = np.empty(n + 2, np.int64)
    if first > 0:
        tz[0], tp[0] = 0, cap
        m = 1
    for k in range(n):
        tz[m] = z[k] + one - p[k] if differs else z[k] - one - p[k]
        tp[m] = p[k]
        m += 1
    if tz[m - 1] < 0:
        tz[m], tp[m] = 0, 0
        m += 1
    v = value + tz[m - 1] * tz[m - 1]
    for k in range(m):
        tp[k] -= tz[k]
    # zero from the right: f falls until there
    k = m - 1
    while k > 0 and tp[k - 1] < 0:
        v += (tp[k] + tp[k - 1]) * (tz[k] - tz[k - 1])
        k -= 1
    end = tz[k]
    if tp[k] < 0 and k > 0:
        fall = tp[k - 1] - tp[k]
        back = -((tp[k] * (tz[k] - tz[k - 1])) // fall)  # rounded up: the end moves left
        end = tz[k] - back
        v += tp[k] * back
    # cap from the left
    start, kept = tz[0], 0
    while kept < m - 1 and tp[kept + 1] > cap:
        kept += 1
    if tp[kept] > cap and kept < m - 1:
        fall = tp[kept] - tp[kept + 1]
        start = tz[kept] + ((tp[kept] - cap) * (tz[kept + 1] - tz[kept])) // fall
        kept += 1
    size = 1
    new_z[0], new_p[0] = min(start, end), cap
    for j in range(kept, k + 1):
        if 0 < tp[j] < cap and tz[j] < end:
            if size >= len(new_z) - 1:
                return -1, v
            new_z[size], new_p[size] = tz[j], tp[j]
            size += 1
    new_z[size], new_p[size] = end, 0
    return size + 1, v


@compiled
def _at(z: IntArray, p: IntArray, n: int, value: int, unit: float, x: float) -> tuple[float, float]:
    """f and φ at x, both in units of one."""
    v = value * unit * unit
    if x >= z[n - 1] * unit:
        return v, 0.0
    for k in range(n - 1, 0, -1):
        right, left = z[k] * unit, z[k - 1] * unit
        high, low = p[k - 1] * unit, p[k] * unit
        if x >= left:
            here = low + (high - low) * (right - x) / (right - left) if right > left else high
            return v + (here + low) * (right - x), here
        v += (high + low) * (right - left)
    return v + 2 * p[0] * unit * (z[0] * unit - x), p[0] * unit


@compiled
def _least_difference(
    z1: IntArray, p1: IntArray, n1: int, v1: int, z2: IntArray, p2: IntArray, n2: int, v2: int,
    unit: float, goal: float,
) -> float:  # fmt: skip
    """min of f1 − f2 over all z, or something below `goal` as soon as that is found.

    Beyond the corners of both the difference is constant: both potentials are 0, or both are c.
    """
    # the ends are the most likely places, and fast
    if (v1 - v2) * unit * unit < goal:
        return (v1 - v2) * unit * unit
    points = np.empty(n1 + n2)
    a = b = m = 0
    while a < n1 or b < n2:
        if b >= n2 or (a < n1 and z1[a] <= z2[b]):
            points[m] = z1[a] * unit
            a += 1
        else:
            points[m] = z2[b] * unit
            b += 1
        m += 1
    best = np.inf
    before = 0.0
    for k in range(m):
        x = points[k]
        f1, q1 = _at(z1, p1, n1, v1, unit, x)
        f2, q2 = _at(z2, p2, n2, v2, unit, x)
        best = min(best, f1 - f2)
        slope = q2 - q1  # half the derivative of f1 − f2
        if k > 0 and before < 0 < slope:
            y = points[k - 1] + before / (before - slope) * (x - points[k - 1])
            best = min(best, _at(z1, p1, n1, v1, unit, y)[0] - _at(z2, p2, n2, v2, unit, y)[0])
        if best < goal:
            return best
        before = slope
    return best


@compiled
def _program(
    T: int, most: int, cap: int, one: int, delta: float, states: int
) -> tuple[FloatArray, bool]:
    """Bounds for n = 0 … most in units of one, and whether all states fitted."""
    z = np.zeros((2, most + 1, states, CORNERS), np.int64)
    p = np.zeros((2, most + 1, states, CORNERS), np.int64)
    length = np.zeros((2, most + 1, states), np.int64)
    value = np.zeros((2, most + 1, states), np.int64)
    count = np.zeros((2, most + 1), np.int64)
    new_z, new_p = np.empty(CORNERS, np.int64), np.empty(CORNERS, np.int64)
    best = np.full(most + 1, np.inf)
    unit = 1.0 / one
    p[0, 0, 0, 0] = cap  # z_0 = 0: φ falls from c to 0 there
    length[0, 0, 0], count[0, 0] = 2, 1
    for t in range(T - 1):
        a, b = t % 2, 1 - t % 2
        count[b] = 0
        for n in range(min(t, most) + 1):
            for i in range(count[a, n]):
                for agrees in range(2):
                    m = n + agrees
                    if m > most:
                        continue
                    size, v = _advance(
                        z[a, n, i], p[a, n, i], length[a, n, i], value[a, n, i], agrees == 0, cap,
                        one, new_z, new_p,
                    )  # fmt: skip
                    if size < 0:
                        return best, False
                    dominated = False
                    for j in range(count[b, m]):
                        least = _least_difference(
                            new_z, new_p, size, v,
                            z[b, m, j], p[b, m, j], length[b, m, j], value[b, m, j], unit, -delta,
                        )  # fmt: skip
                        if least >= -delta:
                            dominated = True
                            break
                    if dominated:
                        continue
                    kept = 0
                    for j in range(count[b, m]):
                        least = _least_difference(
                            z[b, m, j], p[b, m, j], length[b, m, j], value[b, m, j],
                            new_z, new_p, size, v, unit, 0.0,
                        )  # fmt: skip
                        if least >= 0:
                            continue
                        if kept != j:
                            z[b, m, kept], p[b, m, kept] = z[b, m, j], p[b, m, j]
                            length[b, m, kept], value[b, m, kept] = length[b, m, j], value[b, m, j]
                        kept += 1
                    if kept >= states:
                        return best, False
                    z[b, m, kept, :size] = new_z[:size]
                    p[b, m, kept, :size] = new_p[:size]
                    length[b, m, kept], value[b, m, kept] = size, v
                    count[b, m] = kept + 1
    a = (T - 1) % 2
    for n in range(min(T - 1, most) + 1):  # the last part: f at z_T = 0
        for i in range(count[a, n]):
            size = length[a, n, i]
            for agrees in range(2):
                if n + agrees > most:
                    continue
                shift = one if agrees == 0 else -one
                for k in range(size):
                    new_z[k] = z[a, n, i, k] + shift - p[a, n, i, k]
                    new_p[k] = p[a, n, i, k]
                found = _at(new_z, new_p, size, value[a, n, i], unit, 0.0)[0]
                best[n + agrees] = min(best[n + agrees], found)
    return best, True
