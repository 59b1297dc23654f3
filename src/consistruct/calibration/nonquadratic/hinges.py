"""Hinge and max-min margin: what the splitting of simplices needs of each.

* hinge (Crammer–Singer, structured SVM), Φ(f, y) = max_c [L(c, y) + f_c] − f_y:
  V_j(q) = max ⟨L, π⟩ over couplings π ≥ 0 with column sums q and row sums at most q_c for c ≠ j;
  V(q) the same with row sums q.
* max-min margin, Φ(v, y) = max_p [min_c (Lp)_c + ⟨v, p⟩] − v_y: V_j(q) = max min_c (Lp)_c over laws
  p with p_c ≤ q_c for c ≠ j; V(q) = min_c (Lq)_c.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from consistruct.calibration.nonquadratic.polyhedral import PolyhedralSolver, linear_program
from consistruct.protocols import FloatArray

__all__ = ["HingeSolver", "MaxMinSolver"]


class HingeSolver(PolyhedralSolver):
    """Crammer–Singer and the structured hinge with margin rescaling; argmax decoding."""

    name = "linear programs over simplices of distributions, hinge"

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Row and column sums of a coupling, (k, k²) each."""
        k = len(self.L)
        rows, columns = np.divmod(np.arange(k * k), k)
        every = np.arange(k)[:, None]
        return (rows == every).astype(np.float64), (columns == every).astype(np.float64)

    def solve_corner(self, j: int, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows, columns = self._sums
        others = np.delete(np.arange(len(q)), j)
        found = linear_program(-self.L.ravel(), rows[others], q[others], columns, q)
        scores = np.zeros(len(q))
        scores[others] = np.minimum(found.ineqlin.marginals, 0.0)
        return np.maximum(found.x, 0.0).reshape(self.L.shape), scores

    def value_below(self, j: int, q: FloatArray, point: FloatArray) -> float:
        pi = np.maximum(point, 0.0)
        beyond = np.maximum(pi.sum(axis=1) - q, 0.0)
        beyond[j] = 0.0
        missed = float(np.abs(pi.sum(axis=0) - q).sum() + beyond.sum())
        # moving what is missed changes ⟨L, π⟩ by no more than twice the largest loss
        return float((self.L * pi).sum()) - 2 * self.scale * missed

    def value_above(self, j: int, q: FloatArray, point: FloatArray) -> float:
        if (point > point[j]).any():
            return math.inf
        return float(q @ self.risks(np.append(point, np.zeros(len(q)))))

    def solve_optimum(self, q: FloatArray) -> FloatArray:
        rows, columns = self._sums
        none = np.zeros((0, rows.shape[1]))
        sums = np.vstack([rows[1:], columns])  # one sum follows from the others
        found = linear_program(-self.L.ravel(), none, np.zeros(0), sums, np.concatenate([q[1:], q]))
        return np.maximum(found.x, 0.0).reshape(self.L.shape)

    def optimum_below(self, q: FloatArray, point: FloatArray) -> float:
        pi = np.maximum(point, 0.0)
        missed = np.abs(pi.sum(axis=0) - q).sum() + np.abs(pi.sum(axis=1) - q).sum()
        return float((self.L * pi).sum()) - 2 * self.scale * float(missed)

    def potential_rows(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        k = len(self.L)
        # x = (g, φ), φ_y ≥ L(c, y) + g_c − g_y
        R = np.hstack([np.zeros((k, k)), np.eye(k)])
        c, y = np.divmod(np.arange(k * k), k)
        G = np.hstack([np.eye(k)[c] - np.eye(k)[y], -np.eye(k)[y]])
        return R, G, self.L.ravel(), np.zeros(2 * k)

    @property
    def _ranges(self) -> list[tuple[float | None, float | None]]:
        return [(0.0, 0.0)] + [(None, None)] * (2 * len(self.L) - 1)

    def risks(self, potential: FloatArray) -> FloatArray:
        g = potential[: len(self.L)]
        return np.asarray((self.L + g[:, None]).max(axis=0) - g)


class MaxMinSolver(PolyhedralSolver):
    """Max-min margin; argmax decoding."""

    name = "linear programs over simplices of distributions, max-min margin"

    def solve_corner(self, j: int, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        k = len(self.L)
        # variables (p, r): max r with r ≤ (Lp)_c and p_c ≤ q_c for c ≠ j
        ranges: list[tuple[float | None, float | None]] = [(0.0, float(bound)) for bound in q]
        ranges[j] = (0.0, None)
        found = linear_program(
            np.append(np.zeros(k), -1.0),
            np.column_stack([-self.L, np.ones(k)]),
            np.zeros(k),
            np.append(np.ones(k), 0.0)[None],
            np.ones(1),
            [*ranges, (None, None)],
        )
        mixed = np.maximum(-found.ineqlin.marginals, 0.0)
        return np.maximum(found.x[:-1], 0.0), mixed / mixed.sum()

    def value_below(self, j: int, q: FloatArray, point: FloatArray) -> float:
        p = np.maximum(point, 0.0)
        beyond = np.maximum(p - q, 0.0)
        beyond[j] = 0.0
        missed = abs(float(p.sum()) - 1.0) + float(beyond.sum())
        return float((self.L @ p).min()) - 2 * self.scale * missed

    def value_above(self, j: int, q: FloatArray, point: FloatArray) -> float:
        z = (np.maximum(point, 0.0) / np.maximum(point, 0.0).sum()) @ self.L
        return float(q @ np.maximum(z, z[j]))

    def solve_optimum(self, q: FloatArray) -> FloatArray:
        return np.zeros(0)

    def optimum_below(self, q: FloatArray, point: FloatArray) -> float:
        return float((self.L @ q).min())

    def potential_rows(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        k = len(self.L)
        return self.L.T, np.zeros((0, k)), np.zeros(0), np.ones(k)

    @property
    def _ranges(self) -> list[tuple[float | None, float | None]]:
        return [(0.0, None)] * len(self.L)

    def risks(self, potential: FloatArray) -> FloatArray:
        """min_c (Lq)_c ≤ κᵀLq for every law κ of predictions."""
        kappa = np.maximum(potential, 0.0)
        total = float(kappa.sum())
        kappa = kappa / total if total > 0 else np.full(len(kappa), 1 / len(kappa))
        return np.asarray(kappa @ self.L)
