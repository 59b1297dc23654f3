"""Bounds on k·H_ij for an (a, b) surrogate with one score per label, in plain arithmetic.

Let t = f_j and τ = −b'(t)/a'(t). Best is f_c = min(f*(ℓ_c), t) for the others, so

    k·H_ij(ε) = min_τ min_q D(ℓ_j, τ) + Σ_{c≠j} D(min(ℓ_c, τ), τ),   D(ℓ, τ) = ℓu + β(u) + G(ℓ),

u = a(t), and one may take min_{c≠j} ℓ_c ≤ τ ≤ ℓ_j. For fixed τ this is convex in q. Slopes g ≥ 0
for j and w_c ≥ 0 for the others (the set A where w_c > 0) give for every u at once

    Σ ≥ νε + min_y [−g(Lmax − L_j) − Σ w_c L_c − ν(L_j − L_i)]_y
        + β⁻(u) − β⁻(u − g) + Σ_A [β(u) − β(u + w_c)],    β⁻(u) = β(u) + Lmax·u.

On an interval of u the convex part is above its tangent, the concave parts are above their chords:
the sum of the two is linear, so its least value over the interval is at an end. The error is of
second order in the width, so few intervals are enough. Where u is unbounded the terms of j (τ → 0)
or of i (τ → Lmax) alone exceed any value, and both are monotone in τ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consistruct.calibration.methods.nonquadratic.ab import ABFamily
from consistruct.calibration.methods.nonquadratic.pairs import PairProof
from consistruct.calibration.problem.pair_bounds import hull_slope
from consistruct.protocols import FloatArray, IntArray

__all__ = ["ABPair", "ABProof", "Slopes", "optimal_threshold"]

ROUNDING = 4e-15
FEASIBLE = 1e-11


@dataclass(frozen=True, eq=False)
class Slopes:
    """One dual point: tangents of the terms in ℓ, and the multiplier of the gap."""

    g: float
    w: FloatArray  # (|A|,) positive
    others: IntArray  # (|A|,) labels c of w
    nu: float


@dataclass(frozen=True, eq=False)
class ABPair:
    """The problem of predicting j while i is better by ε."""

    family: ABFamily
    L: FloatArray  # (k, m)
    i: int
    j: int
    eps: float

    @property
    def gap(self) -> FloatArray:
        return np.asarray(self.L[self.j] - self.L[self.i])

    @property
    def range(self) -> tuple[float, float]:
        """Where τ may be sought."""
        others = np.delete(self.L, self.j, axis=0)
        return float(others.min()), float(self.L[self.j].max())

    def value(self, q: FloatArray, tau: float) -> float:
        """The objective at a distribution and a threshold; +inf if that is not feasible."""
        scale = max(1.0, self.family.l_max)
        if (q < 0).any() or abs(q.sum() - 1) > 1e-12 or self.gap @ q < self.eps - FEASIBLE * scale:
            return math.inf
        return self.objective(self.L @ q, tau)

    def objective(self, ell: FloatArray, tau: float) -> float:
        lowered = np.minimum(ell, tau)
        lowered[self.j] = ell[self.j]
        t = self.family.best_score(np.full(len(ell), tau))
        counted = lowered != tau
        return float(self.family.excess(lowered, t)[counted].sum())

    def slopes(self, q: FloatArray, tau: float) -> Slopes:
        """Derivatives of the terms at (q, τ), and the best ν for them."""
        family, a = self.family, self.family.a
        scores = np.clip(family.best_score(self.L @ q), *family.tangent_range)
        u = float(a(family.best_score(np.array([tau])))[0])
        rise = np.maximum(a(scores) - u, 0.0)
        g = max(u - float(a(scores)[self.j]), 0.0)
        rise[self.j] = 0.0
        others = np.flatnonzero(rise)
        base = -g * (family.l_max - self.L[self.j]) - rise[others] @ self.L[others]
        return Slopes(g, rise[others], others, self._multiplier(base))

    def _multiplier(self, base: FloatArray) -> float:
        """ν ≥ 0 that maximizes min_y [base + ν(ε − gap)]_y."""
        if self.eps <= self.gap.min():
            return 0.0
        nu = hull_slope(self.gap, base, self.eps)
        # at the largest ε any larger ν will do, and hides rounding
        return nu * (1 + 1e-6) if self.eps >= self.gap.max() * (1 - 1e-12) else nu

    def constant(self, slopes: Slopes) -> float:
        """min_y [−g(Lmax − L_j) − Σ w_c L_c + ν(ε − gap)]_y, rounded down; zeros stay zeros."""
        missing = self.family.l_max - self.L[self.j]
        rows = np.vstack([missing, self.L[slopes.others], self.eps - self.gap])
        weights = np.concatenate([[-slopes.g], -slopes.w, [slopes.nu]])
        return float((weights @ rows - ROUNDING * (np.abs(weights) @ np.abs(rows))).min())

    def interval_bounds(self, slopes: Slopes, low: FloatArray, high: FloatArray) -> FloatArray:
        """Lower bounds on the objective over low ≤ τ ≤ high and all feasible q, (n,)."""
        family, n = self.family, len(slopes.w)
        u = family.a(family.best_score(np.stack([high, low])))  # (2, n): u falls in τ
        f_mid = family.best_score(0.5 * (low + high))
        u_mid, level = family.a(f_mid), family.level(f_mid)
        b_mid, reflected_mid = family.b(f_mid), family.beta_reflected(u_mid)
        if not family.has("reflected"):  # was rounded up, is wanted from below
            reflected_mid = b_mid + family.l_max * u_mid
        tangent = n * (b_mid - level * (u - u_mid))
        tangent += reflected_mid + (family.l_max - level) * (u - u_mid)
        chords = family.beta(u[..., None] + slopes.w).sum(axis=-1)
        chords += family.beta_reflected(u - slopes.g)
        size = n * np.abs(b_mid) + np.abs(reflected_mid) + np.abs(chords)
        size += (n + 1) * family.l_max * (np.abs(u - u_mid) + 0.1 * np.abs(u_mid))
        bounds = self.constant(slopes) + tangent - chords - ROUNDING * size
        if family.has("variance"):
            bounds = np.maximum(bounds, self._taylor_bounds(slopes, u, u_mid, size))
        return np.asarray(bounds.min(axis=0))

    def _taylor_bounds(
        self, slopes: Slopes, u: FloatArray, u_mid: FloatArray, size: FloatArray
    ) -> FloatArray:
        """Second-order expansion with a bound on the curvature Σ v(u) − v(u + δ), v = 1/G''.

        v rises up to Lmax/2 and falls after it, so over an interval it is least at an end and
        largest at an end or at Lmax/2. Tighter than tangent and chord where all δ are small.
        """
        family = self.family
        shifts = np.concatenate([[-slopes.g], slopes.w])  # (s,)

        def variance(ell: FloatArray) -> FloatArray:
            found = family.surrogate.variance(ell)
            assert found is not None
            return found

        level_mid = family.level_of(u_mid)
        moved = u_mid[:, None] + shifts
        value = self.constant(slopes) + len(slopes.w) * family.beta(u_mid)
        value = value - family.beta(moved[:, 1:]).sum(axis=-1)
        value = value + family.beta_reflected(u_mid) - family.beta_reflected(moved[:, 0])
        slope = (family.level_of(moved) - level_mid[:, None]).sum(axis=-1)
        least = variance(family.level_of(u)).min(axis=0)  # (n,)
        ends = family.level_of(u[..., None] + shifts)  # (2, n, s), falls along the first axis
        most = variance(ends).max(axis=0)
        peak = float(variance(np.array([family.l_max / 2]))[0])
        across = (ends[0] >= family.l_max / 2) & (ends[1] <= family.l_max / 2)
        most = np.where(across, peak, most)
        bend = np.maximum((most - least[:, None]).sum(axis=-1), 0.0) * (1 + 1e-9)
        step = u - u_mid
        return np.asarray(value + slope * step - 0.5 * bend * step**2 - ROUNDING * size)

    def plane_points(self, q: FloatArray) -> tuple[FloatArray, FloatArray, np.ndarray]:
        """Scores and expected losses at which a plane touches, and which terms it has, (k,)."""
        family = self.family
        scores = np.clip(family.best_score(self.L @ q), *family.tangent_range)
        ell = np.clip(family.level(scores), 0.0, family.l_max)
        active = ell < optimal_threshold(ell, self.j)
        active[self.j] = True
        return scores, ell, active

    def plane_slope(self, q: FloatArray) -> float:
        """The multiplier of the gap in the plane at q."""
        scores, ell, active = self.plane_points(q)
        t = self.family.best_score(np.array([optimal_threshold(ell, self.j)]))
        slope = (self.family.a(t) - self.family.a(scores))[active]
        return self._multiplier(slope @ (self.L[active] - ell[active, None]))

    def tangent_plane(self, q: FloatArray) -> float:
        """Lower bound by one plane below the sum, where D is jointly convex in (ℓ, τ).

        Σ_A D(ℓ_c, τ) ≥ Σ_A D⁰_c + D_ℓ(ℓ_c − ℓ⁰_c) + D_τ(τ − τ⁰) over the terms A that are active at
        q. D_τ = G''(τ⁰)(τ⁰ − ℓ⁰_c) sums to zero because τ⁰ is the mean. The plane is also below
        D(min(ℓ, τ), τ), which only lowers τ where D_τ ≥ 0.
        """
        family = self.family
        scores, ell, active = self.plane_points(q)
        tau = optimal_threshold(ell, self.j)
        t = family.best_score(np.array([tau]))
        slope = (family.a(t) - family.a(scores))[active]
        rows = self.L[active] - ell[active, None]
        base = slope @ rows
        nu = self._multiplier(base)
        planes = base + nu * (self.eps - self.gap)
        planes -= ROUNDING * (np.abs(slope) @ np.abs(rows) + nu * np.abs(self.eps - self.gap))
        start = float(family.excess(ell[active], np.repeat(t, active.sum())).sum())
        drift = abs(float((tau - ell[active]).sum())) * float(family.curvature(np.array([tau]))[0])
        size = float(np.abs(family.b(t))[0] + family.l_max * abs(slope).max(initial=0.0))
        lost = drift * 2 * family.l_max + ROUNDING * active.sum() * size
        return float(start + planes.min() - lost)

    def below(self, tau: float) -> float:
        """The objective for thresholds up to τ: the term of j, as ℓ_j is at least min L_i + ε."""
        least = self.eps + float(self.L[self.i].min())
        return self._single(least, tau) if tau <= least else 0.0

    def above(self, tau: float) -> float:
        """The objective for thresholds from τ on: the term of i, ℓ_i ≤ max L_j − ε."""
        most = float(self.L[self.j].max()) - self.eps
        return self._single(most, tau) if tau >= most else 0.0

    def _single(self, ell: float, tau: float) -> float:
        f = self.family.best_score(np.array([tau]))
        return float(self.family.excess(np.array([ell]), f)[0]) * (1 - 1e-12)


def optimal_threshold(ell: FloatArray, j: int) -> float:
    """τ that is best for given ℓ: the mean of ℓ_j and of all ℓ_c below τ, whatever G is."""
    others = np.sort(np.delete(ell, j))
    means = (ell[j] + np.concatenate([[0.0], np.cumsum(others)])) / np.arange(1, len(ell) + 1)
    following = np.append(others, np.inf)
    return float(means[np.argmax(means <= following)])


@dataclass(eq=False)
class ABProof(PairProof):
    """A distribution and a threshold from above; a partition of all thresholds from below.

    Without a partition (`cuts` empty) the lower bound is the tangent plane at `distribution`.
    """

    pair: ABPair
    distribution: FloatArray
    tau: float
    cuts: FloatArray  # (n + 1,) ends of the intervals
    chosen: IntArray  # (n,) dual point of each interval
    duals: list[Slopes]

    def __post_init__(self) -> None:
        self.lower, self.upper = self.recompute()

    def recompute(self) -> tuple[float, float]:
        upper = self.pair.value(self.distribution, self.tau) * (1 + 1e-13)
        if len(self.cuts) == 0:
            return max(self.pair.tangent_plane(self.distribution), 0.0), upper
        low, high = self.pair.range
        bounds = []
        if self.cuts[0] > low:
            bounds.append(self.pair.below(float(self.cuts[0])))
        if self.cuts[-1] < high:
            bounds.append(self.pair.above(float(self.cuts[-1])))
        for number in np.unique(self.chosen).tolist():
            at = np.flatnonzero(self.chosen == number)
            found = self.pair.interval_bounds(self.duals[number], self.cuts[at], self.cuts[at + 1])
            bounds.append(float(found.min()))
        return max(min(bounds, default=0.0), 0.0), upper
