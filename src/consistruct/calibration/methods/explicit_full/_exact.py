"""Feasibility and values of primal points with full scores, over the integers.

A float is an integer over a power of two. The losses are converted once; a point then costs as many
integer products as its distribution has true labels, for every label.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from consistruct.calibration.proofs.base import down
from consistruct.protocols import FloatArray

__all__ = ["IntegerLosses"]


class IntegerLosses:
    """L = columns/unit and p = weights/total exactly."""

    def __init__(self, L: FloatArray, p: FloatArray) -> None:  # (k, m), (k,)
        rows, self.unit = _integers(L.ravel().tolist())
        k, m = L.shape
        self.columns = [rows[y::m] for y in range(m)]  # (m, k)
        self.weights, self.total = _integers(p.tolist())
        self.n_labels = k

    @cached_property
    def widest(self) -> tuple[int, int, int]:
        """(i, j, y) of the largest L_jy − L_iy."""
        spreads = [max(column) - min(column) for column in self.columns]
        y = max(range(len(spreads)), key=lambda y: spreads[y])
        column = self.columns[y]
        return column.index(min(column)), column.index(max(column)), y

    @property
    def max_eps(self) -> float:
        """The largest float that is at most the largest L_jy − L_iy."""
        i, j, y = self.widest
        return down(Fraction(self.columns[y][j] - self.columns[y][i], self.unit))

    def feasible(self, distribution: FloatArray, i: int, j: int, eps: float) -> FloatArray | None:
        """The distribution with d·q ≥ ε Σq exactly, d = L_j − L_i: more on the label of largest d.

        None where even that one has d < ε.
        """
        at = Fraction(eps) * self.unit
        gap = [column[j] - column[i] for column in self.columns]
        top = max(range(len(gap)), key=lambda y: gap[y])
        if gap[top] < at:
            return None
        distribution = np.maximum(distribution, 0.0)
        if gap[top] == at:  # no other true label may have any weight
            distribution = np.where([g == gap[top] for g in gap], distribution, 0.0)
            if not distribution.any():
                distribution[top] = 1.0
            return distribution
        support = np.flatnonzero(distribution).tolist()
        missing = sum(
            (Fraction(float(distribution[y])) * (at - gap[y]) for y in support), Fraction(0)
        )  # Σ q_y (ε − d_y)
        if missing > 0:
            more = Fraction(float(distribution[top])) + missing / (gap[top] - at)
            distribution[top] = math.nextafter(float(more), math.inf)
        return distribution

    def value(self, distribution: FloatArray, j: int, level: float) -> Fraction:
        """½ Σ_c p_c (f_c + ℓ_c)² at f_j = level, f_c = min(−ℓ_c, level), ℓ = Lq/Σq."""
        support = np.flatnonzero(distribution).tolist()
        q, _ = _integers([float(distribution[y]) for y in support])
        expected = [0] * self.n_labels
        for y, weight in zip(support, q, strict=True):
            expected = [
                x + weight * loss for x, loss in zip(expected, self.columns[y], strict=True)
            ]
        unit = self.unit * sum(q)
        top, bottom = level.as_integer_ratio()
        shift = top * unit
        value = 0
        for c, x in enumerate(expected):
            lacking = x * bottom + shift
            if c == j or lacking < 0:
                value += self.weights[c] * lacking * lacking
        return Fraction(value, 2 * self.total * (unit * bottom) ** 2)


def _integers(values: list[float]) -> tuple[list[int], int]:
    """Floats as integers over one power of two."""
    ratios = [value.as_integer_ratio() for value in values]
    common = max((bottom for _, bottom in ratios), default=1)
    return [top * (common // bottom) for top, bottom in ratios], common
