"""Columns as numbers of quantile bins, found once for all fits of boosted trees.

Histogram boosting bins columns by itself, but by weighted quantiles where rows have weights, which
takes longer than all trees of a small fit; columns of few values it takes as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct._validation import to_dense
from consistruct.protocols import FloatArray

__all__ = ["MOST_BINS", "ColumnBins"]

MOST_BINS = 63
QUANTILE_ROWS = 2**16  # rows that edges are found on


class ColumnBins:
    """Edges of the columns that are not constant.

    Attributes
    ----------
    columns : (k,) int array
    edges : list of k arrays
        A value is numbered by how many edges lie below it; NaN stays NaN.
    """

    def __init__(self, items: Any, rng: np.random.Generator) -> None:
        rows = items
        if items.shape[0] > QUANTILE_ROWS:
            rows = items[np.sort(rng.choice(items.shape[0], QUANTILE_ROWS, replace=False))]
        found = [_edges(column) for column in np.asarray(to_dense(rows)).T]
        missing = np.isnan(to_dense(items)).any(axis=0)  # tells something even of a constant
        telling = [j for j, edges in enumerate(found) if len(edges) or missing[j]]
        self.columns = np.array(telling or [0], dtype=np.int64)
        self.edges = [found[j] for j in self.columns]

    def __call__(self, items: Any) -> NDArray[np.float32]:
        """(n, d) array -> (n, k) numbers of bins, as float32."""
        rows = np.asarray(to_dense(items))
        numbers = np.empty((len(rows), len(self.columns)), dtype=np.float32, order="F")
        for place, (column_number, edges) in enumerate(zip(self.columns, self.edges, strict=True)):
            column = rows[:, column_number]
            numbers[:, place] = np.searchsorted(edges, column, side="left")
            numbers[np.isnan(column), place] = np.nan
        return numbers


def _edges(column: FloatArray) -> FloatArray:
    """Midpoints between values, or quantiles where there are many values."""
    values = np.sort(column[~np.isnan(column)]).astype(np.float64)
    distinct = np.unique(values)
    if len(distinct) <= MOST_BINS:
        return np.asarray((distinct[:-1] + distinct[1:]) / 2)
    places = np.linspace(0, len(values) - 1, MOST_BINS + 1)[1:-1].astype(np.int64)
    return np.unique(values[places])
