"""Dual points of pair problems, and the lower bounds that follow from them, in plain NumPy.

A dual point of the pair (i, j) is w ≥ 0 over predictions and ν ≥ 0. With a_y = L_jy − L_·y,
d_y = L_jy − L_iy, m = min_y (⟨w, a_y⟩ − ν d_y) and Q = ½ [(Σw)²/p_j + Σ_c w_c²/p_c],

    k·H'_ij(ε) ≥ (νε + m)₊² / (4Q)        for every ε ≥ 0.

w = e_i, ν = 1 is Theorem 7: k·H'_ij(ε) ≥ ε² / (2 (1/p_i + 1/p_j)); it needs no storage. A pair with
max_y d_y < ε is infeasible; rounding to nearest is monotone, so that comparing the computed d_y
with ε decides this rightly for the given floating-point losses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from consistruct.protocols import FloatArray, IntArray

__all__ = ["DualPoints", "lower_bounds", "pair_lower_bounds"]

UNIT = float(np.finfo(np.float64).eps)  # twice the unit roundoff


@dataclass(frozen=True)
class DualPoints:
    """Dual points of many pairs in compressed rows: point t has w on rows[indptr[t]:indptr[t+1]].

    Attributes
    ----------
    i, j : (n,) the pair of each point.
    nu : (n,) multiplier of the ε constraint.
    indptr : (n + 1,), rows : (nnz,), weights : (nnz,) the multipliers w, kept sparse.
    """

    i: IntArray
    j: IntArray
    nu: FloatArray
    indptr: IntArray
    rows: IntArray
    weights: FloatArray

    def __len__(self) -> int:
        return self.i.size

    def of_pair(self, i: int, j: int) -> IntArray:
        """Positions of the points of one pair."""
        return np.flatnonzero((self.i == i) & (self.j == j))

    def dense(self, chosen: IntArray, k: int) -> FloatArray:
        """The rows w of the chosen points, shape (len(chosen), k)."""
        starts = self.indptr[chosen]
        sizes = self.indptr[chosen + 1] - starts
        place = np.repeat(np.arange(chosen.size), sizes)
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entries = np.repeat(starts, sizes) + within
        w = np.zeros((chosen.size, k))
        w[place, self.rows[entries]] = self.weights[entries]
        return w


def pair_lower_bounds(
    L: FloatArray,  # (k, m)
    p: FloatArray,  # (k,)
    j: int,
    i: IntArray,  # (n,)
    w: FloatArray,  # (n, k)
    nu: FloatArray,  # (n,)
    eps: FloatArray,  # (e,)
) -> FloatArray:
    """Lower bounds (n, e) on k·H'_ij(ε) from dual points that share j, safe against rounding.

    A sum of n products has an error of at most n·UNIT times the sum of absolute values, in
    whichever order it is taken; every quantity below is moved to the safe side by such a bound.
    """
    k = L.shape[0]
    n_points = nu.size
    if (w < 0).any() or (nu < 0).any():
        raise ValueError("a dual point must be non-negative: w >= 0 and nu >= 0")
    a = L[j] - L  # (k, m)
    spread = np.abs(a).max(initial=0.0)
    w = w.copy()
    w[:, j] = 0.0  # a_jy = 0: this entry only costs
    total = w.sum(axis=1)
    least = (w @ a - nu[:, None] * a[i]).min(axis=1)
    least -= (k + 8) * UNIT * spread * (total + nu)
    Q = 0.5 * (total**2 / p[j] + (w**2 / p).sum(axis=1)) * (1 + (k + 8) * UNIT)
    numerator = nu[:, None] * eps + least[:, None]
    numerator -= 4 * UNIT * (nu[:, None] * eps + np.abs(least)[:, None])
    bounds = np.zeros((n_points, eps.size))
    useful = Q > 0
    positive = np.maximum(numerator[useful], 0.0)
    bounds[useful] = positive**2 / (4 * Q[useful, None]) * (1 - 8 * UNIT)
    return bounds


def lower_bounds(
    L: FloatArray,  # (k, m)
    p: FloatArray,  # (k,)
    eps: FloatArray,  # (e,)
    points: DualPoints,
) -> Iterator[tuple[int, FloatArray]]:
    """For every j: (j, bounds (k, e) on k·H'_ij(ε)), +inf where a pair is infeasible or i = j."""
    k = L.shape[0]
    order = np.argsort(points.j, kind="stable")
    starts = np.searchsorted(points.j[order], np.arange(k + 1))
    for j in range(k):
        theorem = 1 / (2 * (1 / p + 1 / p[j])) * (1 - 8 * UNIT)
        bounds = theorem[:, None] * eps**2
        chosen = order[starts[j] : starts[j + 1]]
        if chosen.size:
            i = points.i[chosen]
            found = pair_lower_bounds(L, p, j, i, points.dense(chosen, k), points.nu[chosen], eps)
            np.maximum.at(bounds, i, found)
        largest = (L[j] - L).max(axis=1)
        bounds[largest[:, None] < eps] = np.inf
        bounds[j] = np.inf
        yield j, bounds
