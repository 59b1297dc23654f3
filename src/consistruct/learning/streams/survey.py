"""What must be known of the data before the pass: labels, columns, a sample of rows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct._frames import as_array, is_table
from consistruct._validation import is_sparse
from consistruct.decisions.classes import distinct_labels
from consistruct.learning.encoding.frames import Column, InputColumns, column_names
from consistruct.learning.streams.sample import RowSample, content_keys
from consistruct.learning.streams.source import Batch

__all__ = ["Labels", "Survey", "survey_batch"]

MOST_CLASSES = 65_536


@dataclass(frozen=True, eq=False)
class Labels:
    """Enough labels to tell the sizes of a loss: every class, every state, every set size.

    Attributes
    ----------
    rows : (m, …) array
        Labels as the user writes them.
    counts : (m,) array
        How often each class occurs; for label matrices of no meaning.
    """

    rows: NDArray[Any]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, y: Any) -> Labels:
        """Those of some rows."""
        labels = Batch(None, y).labels
        if labels.ndim == 1:
            distinct, counts = np.unique(labels, return_counts=True)
            return cls(distinct, counts)._checked()
        flat = labels.reshape(len(labels), -1)
        chosen = _telling(flat)
        return cls(labels[chosen], np.zeros(len(chosen), dtype=np.int64))

    def __add__(self, other: Labels) -> Labels:
        if self.rows.shape[1:] != other.rows.shape[1:]:
            raise ValueError(
                f"y has rows of shape {self.rows.shape[1:]} in one batch and "
                f"{other.rows.shape[1:]} in another"
            )
        rows = np.concatenate([self.rows, other.rows])
        if rows.ndim > 1:
            return Labels.of(rows)
        distinct = distinct_labels(rows)
        _, place = np.unique(rows, return_inverse=True)
        counts = np.bincount(place, weights=np.concatenate([self.counts, other.counts]))
        return Labels(distinct, counts.astype(np.int64))._checked()

    def _checked(self) -> Labels:
        if len(self.rows) > MOST_CLASSES:
            raise ValueError(
                f"y contains more than {MOST_CLASSES} different labels, too many for classes: is "
                "it a number to be predicted, or an identifier?"
            )
        return self


def _telling(flat: NDArray[Any]) -> NDArray[np.intp]:
    """Rows that show every entry and every row sum at least once; for costs the largest entry."""
    numeric = flat.dtype.kind in "biuf"
    if numeric and flat.dtype.kind == "f" and (flat != np.floor(flat)).any():
        return np.unique([0, int(np.abs(flat).max(axis=1).argmax())])
    chosen = [np.unique(flat, return_index=True)[1] // flat.shape[1]]
    if numeric:
        chosen.append(np.unique(flat.sum(axis=1), return_index=True)[1])
    return np.unique(np.concatenate(chosen))


@dataclass(frozen=True, eq=False)
class Survey:
    """What a first look over batches has found; surveys of parts add up.

    Attributes
    ----------
    n_rows : int
    labels : Labels
    sample : RowSample or None
        Rows and labels as given; None where features need no look at the rows.
    columns : tuple of str, or None
    n_features : int
    """

    n_rows: int
    labels: Labels
    sample: RowSample | None
    columns: tuple[str, ...] | None
    n_features: int

    def __add__(self, other: Survey) -> Survey:
        if self.columns is not None and set(self.columns) == set(other.columns or ()):
            other = other._with_columns(self.columns)
        if (self.n_features, self.columns) != (other.n_features, other.columns):
            raise ValueError(
                f"batches differ in their columns: {_columns(self)} in one, {_columns(other)} in "
                f"another"
            )
        sample = self.sample
        if sample is not None and other.sample is not None:
            sample = sample + other.sample
        labels = self.labels + other.labels
        return Survey(self.n_rows + other.n_rows, labels, sample, self.columns, self.n_features)

    def __radd__(self, other: object) -> Survey:
        return self if type(other) is int and other == 0 else NotImplemented

    def _with_columns(self, columns: tuple[str, ...]) -> Survey:
        """The same with its columns in another order: batches are read by name."""
        if columns == self.columns or self.columns is None or self.sample is None:
            return dataclasses.replace(self, columns=columns)
        order = [self.columns.index(name) for name in columns]
        sample = dataclasses.replace(self.sample, X=self.sample.X[:, order])
        return dataclasses.replace(self, columns=columns, sample=sample)


def _columns(survey: Survey) -> str:
    if survey.columns is None:
        return f"{survey.n_features}"
    return ", ".join(survey.columns[:8])


def survey_batch(given: Any, *, size: int, seed: int = 0) -> Survey:
    """Look at one batch; `size` rows are sampled, none if it is 0."""
    batch = Batch.of(given)
    X, y, columns = batch.X, batch.labels, None
    if is_table(X):
        columns = column_names(X)
    n, d = batch.n_rows, X.shape[1] if columns is None else len(columns)
    sample = None
    if size:
        if columns is not None:
            X = InputColumns(tuple(Column(name, "number") for name in columns)).read(X)
        rows = X.tocsr() if is_sparse(X) else np.asarray(X)
        weight = np.ones(n)
        if batch.sample_weight is not None:
            weight = np.asarray(as_array(batch.sample_weight, "sample_weight"), dtype=np.float64)
        keys = content_keys(rows, y, seed) if batch.keys is None else batch.keys
        sample = RowSample.of(rows, y, weight, keys, size)
    return Survey(n, Labels.of(y), sample, columns, d)
