"""Hamming loss with full scores: one scalar problem per number of differing parts.

Let i and j differ in d parts. Only the marginals of q count, and all other labels are as bad as
they can be at once if q sits on i and j alone: with δ = εT/d ≤ 1, q = (1+δ)/2 on i and (1−δ)/2 on
j. A label that agrees with j instead of i in m of the d parts, takes a third state in o of them,
and deviates in n of the others is worse than i by r = mε/d + o(1+δ)/(2T) + n/T. With f_j = t,
f_c = min(−ℓ_c, t) and x = −t − ℓ_i:

    k·H_d(ε) = ½ min_{0≤x≤ε} (ε−x)² + Σ C(d; m, o)(s−2)^o C(T−d, n)(s−1)^n (x − r)₊².

The sum stops mattering once its slope passes ε − x, which happens after a few levels of m+o+n even
for T = 1000, so no huge number is ever formed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.losses.hamming import Hamming
from consistruct.protocols import FloatArray, IntArray

__all__ = ["HammingFull", "snapped"]

ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class HammingPoint:
    """k·H_d at one ε for every feasible d."""

    d: IntArray  # (D,) numbers of differing parts
    x: FloatArray  # (D,)
    lower: FloatArray  # (D,) bounds on k·H_d
    upper: FloatArray  # (D,)


@dataclass(frozen=True)
class HammingFull:
    """The calibration function of Hamming(T, s) with full scores."""

    loss: Hamming

    def point(self, eps: float) -> HammingPoint:
        """All pair orbits at 0 < ε ≤ 1."""
        T, _ = self._sizes
        d = np.arange(math.ceil(snapped(eps, T) * T), T + 1)
        level = 4
        while True:
            x, lower, upper, safe = self._solve(d, eps, level)
            if safe.all():
                return HammingPoint(d, x, lower, upper)
            level *= 2

    @property
    def _sizes(self) -> tuple[int, int]:
        assert self.loss.T is not None
        return self.loss.T, self.loss.n_states

    def _solve(
        self, d: IntArray, eps: float, level: int
    ) -> tuple[FloatArray, FloatArray, FloatArray, np.ndarray]:
        T, s = self._sizes
        delta = np.minimum(eps * T / d, 1.0)
        triples = [
            (m, o, n)
            for m, o, n in product(range(level + 1), repeat=3)
            if m + o + n <= level and (o == 0 or s > 2)
        ]
        m, o, n = (np.array(part) for part in zip(*triples, strict=True))
        column = d[:, None]
        counts = (
            scipy.special.comb(column, m)
            * scipy.special.comb(column - m, o)
            * np.power(float(s - 2), o)
            * scipy.special.comb(T - column, n)
            * np.power(float(s - 1), n)
        )
        counts = np.where((m == column) & (o == 0) & (n == 0), 0.0, counts)  # that label is j
        r = m * eps / column + o * (1 + delta[:, None]) / (2 * T) + n / T
        order = np.argsort(r, axis=1, kind="stable")
        r = np.take_along_axis(r, order, axis=1)
        counts = np.take_along_axis(counts, order, axis=1)
        mass = np.cumsum(counts, axis=1)
        moment = np.cumsum(counts * r, axis=1)
        x_all = (eps + moment) / (1 + mass)  # stationary point if exactly these labels are active
        following = np.concatenate([r[:, 1:], np.full((len(d), 1), np.inf)], axis=1)
        active = np.argmax(x_all <= following, axis=1)
        rows = np.arange(len(d))
        x = np.minimum(x_all[rows, active], eps)
        excess = np.maximum(x[:, None] - r, 0.0)
        value = (eps - x) ** 2 + (counts * excess**2).sum(axis=1)
        slope = 2 * (counts * excess).sum(axis=1) - 2 * (eps - x)
        # φ is 2-strongly convex: φ* ≥ φ(x) − φ'(x)²/4
        lower = np.maximum(0.5 * (value - slope**2 / 4), 0.0) * (1 - ROUNDING)
        upper = 0.5 * value * (1 + ROUNDING)
        # labels beyond the listed levels are worse than i by at least (level + 1)ε/d
        safe = (x <= (level + 1) * eps / d) | (level >= T)
        return x, lower, upper, safe

    def refined(self, eps: Fraction, d: int, x: float) -> Fraction:
        """The exact stationary point if the labels below x are the active ones, else x itself."""
        T, s = self._sizes
        given = min(max(Fraction(x), Fraction(0)), eps)
        delta = eps * T / d
        mass, moment = Fraction(1), eps
        for m in range(d + 1):
            if m * eps >= given * d:
                break
            for o in range(d - m + 1 if s > 2 else 1):
                for n in range(T - d + 1):
                    r = m * eps / d + o * (1 + delta) / (2 * T) + Fraction(n, T)
                    if r >= given:
                        break
                    count = math.comb(d, m) * math.comb(d - m, o) * (s - 2) ** o
                    count *= math.comb(T - d, n) * (s - 1) ** n
                    mass += count
                    moment += count * r
        found = moment / mass
        near = abs(found - given) <= given / 10**6
        return found if near and 0 <= found <= eps else given


def snapped(eps: float, T: int) -> Fraction:
    """ε itself, or the multiple of 1/T that it is the rounded value of.

    H jumps at multiples of 1/T, and the float 0.8 is above 4/5: who writes it means 4/5.
    """
    nearest = Fraction(round(Fraction(eps) * T), T)
    return nearest if abs(nearest - Fraction(eps)) <= 2 * Fraction(math.ulp(eps)) else Fraction(eps)
