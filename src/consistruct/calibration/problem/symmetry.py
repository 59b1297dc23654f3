"""Symmetry: equitable partitions shrink a pair problem, equal quotients identify pairs.

A partition of predictions and true labels is equitable for L, P and K = F̃F̃ᵀ if every row of a
cell meets every cell with the same values. Averaging v and q over the cells then keeps them
feasible and does not raise ½‖v‖², so one number per cell is enough. Color refinement finds the
coarsest such partition with i and j held apart. Two pairs with the same quotient have the same
H_ij.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consistruct.calibration.problem.listed import ExplicitProblem, PairProblem
from consistruct.protocols import IntArray

__all__ = ["Symmetry"]

SIGNIFICANT = 11  # decimals, after scaling to one, that must agree for two numbers to be equal


@dataclass(frozen=True, eq=False)
class Coloring:
    """Colors of rows and columns, canonical: they depend on values, not on the order of labels."""

    rows: IntArray
    columns: IntArray


class Symmetry:
    """Color refinement on one explicit problem."""

    def __init__(self, problem: ExplicitProblem) -> None:
        self.problem = problem
        kernel = problem.embedding @ problem.embedding.T
        self._kernel = _codes(kernel)
        # L and P are refined together: one code per pair of values
        pair = _codes(problem.loss) * (_codes(problem.projected).max() + 1) + _codes(
            problem.projected
        )
        self._values = np.unique(pair, return_inverse=True)[1].reshape(pair.shape)
        start = np.zeros(problem.n_rows, dtype=np.int64)
        base = self._refine(start, np.zeros(problem.loss.shape[1], dtype=np.int64))
        self.trivial = len(np.unique(base.rows)) == problem.n_rows
        self._base = base

    def reduce(self, i: int, j: int) -> tuple[PairProblem, bytes]:
        """The pair problem over cells, and a signature that equal quotients share."""
        rows = self._base.rows.copy() + 2
        rows[i], rows[j] = 1, 0
        coloring = self._refine(rows, self._base.columns)
        row_cells = [np.flatnonzero(coloring.rows == c) for c in range(coloring.rows.max() + 1)]
        column_cells = [
            np.flatnonzero(coloring.columns == c) for c in range(coloring.columns.max() + 1)
        ]
        problem = self.problem
        first = np.array([cell[0] for cell in row_cells])
        at_j = next(c for c, cell in enumerate(row_cells) if cell[0] == j and len(cell) == 1)
        at_i = next(c for c, cell in enumerate(row_cells) if cell[0] == i and len(cell) == 1)
        loss = np.stack([problem.loss[:, cell].mean(axis=1) for cell in column_cells], axis=1)
        projected = np.stack(
            [problem.projected[:, cell].mean(axis=1) for cell in column_cells], axis=1
        )
        embedding = np.stack([problem.embedding[cell].mean(axis=0) for cell in row_cells])
        others = [c for c in range(len(row_cells)) if c != at_j]
        order = embedding[others] - embedding[at_j]
        pair = PairProblem(
            order=_compress(order),
            order_rhs=projected[first[others]] - projected[j],
            gap=loss[j] - loss[i],
            row_cells=tuple(row_cells[c] for c in others),
            column_cells=tuple(column_cells),
        )
        quotient = [
            np.array([len(cell) for cell in row_cells], dtype=np.float64),
            np.array([len(cell) for cell in column_cells], dtype=np.float64),
            loss[first].ravel(),
            projected[first].ravel(),
            (embedding @ embedding.T).ravel(),
            np.array([at_i, at_j], dtype=np.float64),
        ]
        return pair, b"|".join(_rounded(part, SIGNIFICANT - 1).tobytes() for part in quotient)

    def _refine(self, rows: IntArray, columns: IntArray) -> Coloring:
        rows = np.unique(rows, return_inverse=True)[1]
        n_values, n_kernel = int(self._values.max()) + 1, int(self._kernel.max()) + 1
        while True:
            seen_columns = np.sort(columns[None, :] * n_values + self._values, axis=1)
            seen_rows = np.sort(rows[None, :] * n_kernel + self._kernel, axis=1)
            own = np.column_stack([rows, np.diag(self._kernel), seen_columns, seen_rows])
            new_rows = np.unique(own, axis=0, return_inverse=True)[1].reshape(-1)
            seen = np.sort(new_rows[:, None] * n_values + self._values, axis=0).T
            new_columns = np.unique(np.column_stack([columns, seen]), axis=0, return_inverse=True)[
                1
            ].reshape(-1)
            stable = new_rows.max() == rows.max() and new_columns.max() == columns.max()
            rows, columns = new_rows, new_columns
            if stable:
                return Coloring(rows, columns)


def _codes(values: np.ndarray) -> IntArray:
    """Small integers for equal numbers, in the order of the numbers."""
    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    rounded = _rounded(values / scale, SIGNIFICANT)
    return np.unique(rounded, return_inverse=True)[1].reshape(values.shape).astype(np.int64)


def _rounded(values: np.ndarray, decimals: int) -> np.ndarray:
    return np.asarray(np.round(values, decimals) + 0.0)  # no negative zeros


def _compress(order: np.ndarray) -> np.ndarray:
    """The same inner products in as few coordinates as the constraints span."""
    if order.shape[1] <= len(order):
        return order
    # order = L Qᵀ: coordinates L have the same Gram matrix
    return np.asarray(np.linalg.qr(order.T, mode="r"), dtype=np.float64).T
