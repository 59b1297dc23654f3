"""Columns of numbers as a few ordered bins, so that a split is a comparison of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._members import ArrayField, frozen_array
from consistruct.learning.models.boosting._kernels import bytes_of
from consistruct.protocols import FloatArray

__all__ = ["MOST_BINS", "Bins"]

MOST_BINS = 255  # the first one is for missing values; numbers are bytes
BORDER_ROWS = 100_000  # quantiles of more rows are those of a sample


@dataclass(frozen=True, eq=False)
class Bins:
    """What byte every number becomes: 0 where it is missing, else 1, 2, … in its order.

    Attributes
    ----------
    borders : (d, m) array
        Increasing numbers of each column, filled up with infinity: a value is above as many as its
        byte states.
    categorical : (d,) bool array
        Columns of codes 0, 1, …, which are taken as they are; what is no code counts as missing.
    """

    borders: ArrayField
    categorical: ArrayField

    def __post_init__(self) -> None:
        object.__setattr__(self, "borders", frozen_array(self.borders))
        flags = np.array(self.categorical, dtype=np.bool_)
        flags.setflags(write=False)
        object.__setattr__(self, "categorical", flags)
        if self.borders.ndim != 2 or self.categorical.shape != self.borders.shape[:1]:
            raise ValueError("borders and categorical must be of the same columns")
        if self.borders.shape[1] >= MOST_BINS or np.isnan(self.borders).any():
            raise ValueError(f"borders must be at most {MOST_BINS - 1} numbers for each column")

    @classmethod
    def of(cls, X: FloatArray, most: int, categories: list[int], rng: np.random.Generator) -> Bins:
        """At most `most` bins of each column, equally full where it has more values."""
        n, d = X.shape
        if n > BORDER_ROWS:
            X = X[np.sort(rng.choice(n, BORDER_ROWS, replace=False))]
        found = [np.empty(0)] * d
        for column in sorted(set(range(d)) - set(categories)):
            found[column] = _borders(X[:, column], most - 1)
        borders = np.full((d, max((len(one) for one in found), default=0)), np.inf)
        for row, one in zip(borders, found, strict=True):
            row[: len(one)] = one
        categorical = np.zeros(d, dtype=np.bool_)
        categorical[categories] = True
        return cls(borders, categorical)

    @property
    def n_columns(self) -> int:
        return len(self.categorical)

    def codes(self, X: FloatArray) -> Any:
        """The bytes of a table, (d, n): column by column, as splits read them."""
        if X.shape[1] != self.n_columns:  # compiled loops do not look
            raise ValueError(f"bins of {self.n_columns} columns cannot read {X.shape[1]} columns")
        found = np.empty((self.n_columns, X.shape[0]), dtype=np.uint8)
        bytes_of(X, self.borders, self.categorical, MOST_BINS, found)
        return found


def _borders(values: FloatArray, most: int) -> FloatArray:
    """Between the values, or between equal shares of the rows, frequent values counted less.

    A value of more rows than a bin should have (zero, often) gets a bin of its own, and the other
    bins share what is left: the tail of a column that is mostly zero keeps its order.
    """
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    if len(distinct) > most + 1:
        # rows of a bin: Σ min(count, share) = share·bins, from above
        share, bins = counts.sum() / (most + 1), most + 1
        for _ in range(20):
            frequent = counts >= share
            open_bins = bins - np.count_nonzero(frequent)
            lower = counts[~frequent].sum() / max(open_bins, 1)
            if lower >= share or lower == 0.0:
                break
            share = lower
        place = np.cumsum(np.minimum(counts, share)) / share  # of each value, in bins
        last = np.flatnonzero(np.diff(np.floor(place - 1e-9)) > 0)
        return np.asarray(distinct[last] / 2 + distinct[last + 1] / 2)[:most]
    # halves first: the sum of two large numbers would overflow
    return np.asarray(distinct[1:] / 2 + distinct[:-1] / 2)
