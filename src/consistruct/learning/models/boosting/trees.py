"""Fitted symmetric trees: which comparisons lead to which leaf, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consistruct._members import ArrayField
from consistruct._threads import crew
from consistruct.learning.models.boosting._kernels import add_trees
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Trees"]

CHUNK_ROWS = 8192


@dataclass(frozen=True, eq=False)
class Trees:
    """Sum of trees with vectors in their leaves.

    Attributes
    ----------
    start : (c,) array
        Scores before the first tree.
    columns, cuts : (trees, depth) int arrays
        Of each level: the column that is compared, −1 from where a tree ends, and the byte.
    values : (trees, 2^depth, c) array
    """

    start: ArrayField
    columns: ArrayField
    cuts: ArrayField
    values: ArrayField

    def __post_init__(self) -> None:
        for name, kind in (("start", "f8"), ("columns", "i4"), ("cuts", "u1"), ("values", "f8")):
            given = np.asarray(getattr(self, name))
            array = np.ascontiguousarray(given, dtype=kind)
            if not np.array_equal(array, given):
                raise ValueError(f"{name} of trees must be finite numbers of type {kind}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        trees, depth = self.columns.shape if self.columns.ndim == 2 else (-1, -1)
        if (
            self.start.ndim != 1
            or not 0 <= depth <= 16
            or self.cuts.shape != (trees, depth)
            or self.values.shape != (trees, 2**depth, len(self.start))
            or self.columns.min(initial=0) < -1
            or not (np.isfinite(self.values).all() and np.isfinite(self.start).all())
        ):
            raise ValueError("columns, cuts and values of trees do not fit together")

    def scores(self, codes: IntArray, categorical: IntArray, n_jobs: int) -> FloatArray:
        """Of every row of the bytes (d, n), (n, c)."""
        if self.columns.max(initial=-1) >= len(categorical) or len(codes) != len(categorical):
            raise ValueError(f"the trees compare more columns than there are: {len(codes)}")
        n = codes.shape[1]
        found = np.tile(self.start, (n, 1))

        def add(start: int) -> None:
            end = min(start + CHUNK_ROWS, n)
            add_trees(codes, categorical, self.columns, self.cuts, self.values, found, start, end)

        starts = range(0, n, CHUNK_ROWS)
        with crew(min(n_jobs, len(starts))) as run:
            list(run(add, starts))
        return found

    def part(self, first: int, last: int) -> Trees:
        """Some of the trees; the start goes with the first one."""
        some, start = slice(first, last), self.start if first == 0 else np.zeros_like(self.start)
        return Trees(start, self.columns[some], self.cuts[some], self.values[some])
