"""Argmax over explicitly listed labels, plain classes and blocks of classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_counts, check_embedding, check_theta, refuse_all_forbidden
from consistruct.decoding.base import BaseDecoder
from consistruct.exceptions import FamilyError
from consistruct.labels.base import INT64_LIMIT
from consistruct.protocols import FloatArray, IntArray, LabelArray, LabelSet

__all__ = ["BlockArgmax", "DenseArgmax", "LabelArgmax"]

CHUNK_BYTES = 64 * 2**20  # scores of one chunk of examples


@dataclass(frozen=True, eq=False, repr=False)
class LabelArgmax(BaseDecoder):
    """One score per label: the first maximum of each row."""

    predictions: LabelSet

    def __post_init__(self) -> None:
        if self.predictions.size is None:
            raise FamilyError(self.predictions, "be decoded by one score per label")

    def __call__(self, theta: ArrayLike) -> LabelArray:
        scores = check_theta(theta, self.predictions.size or 0)
        best = scores.argmax(axis=1)
        refuse_all_forbidden(scores[np.arange(len(scores)), best])
        return self.predictions.unindex(best)


@dataclass(frozen=True, eq=False, repr=False)
class BlockArgmax(BaseDecoder):
    """One score per block of labels; the answer is the first label of the best block.

    Parameters
    ----------
    first_labels : tuple of int
        Smallest label of each block, exact Python ints.
    """

    first_labels: tuple[int, ...]

    def __post_init__(self) -> None:
        first_labels = check_counts(self.first_labels, "first_labels", minimum=0)
        if len(set(first_labels)) != len(first_labels):
            raise ValueError("first_labels must differ: each block has a smallest label of its own")
        self._set(first_labels=first_labels)

    @cached_property
    def _order(self) -> IntArray:
        # ties go to the smallest label, not to the smallest block number
        return np.asarray(
            sorted(range(len(self.first_labels)), key=self.first_labels.__getitem__), dtype=np.int64
        )

    def __call__(self, theta: ArrayLike) -> LabelArray:
        scores = check_theta(theta, len(self.first_labels))
        best = self._order[scores[:, self._order].argmax(axis=1)]
        refuse_all_forbidden(scores[np.arange(len(scores)), best])
        dtype = np.int64 if max(self.first_labels) < INT64_LIMIT else object
        return np.array(self.first_labels, dtype=dtype)[best]


@dataclass(frozen=True, eq=False, repr=False)
class DenseArgmax(BaseDecoder):
    """Scores Fθ over listed labels, computed in chunks of examples.

    Equal rows of F are scored once, so labels that F merges tie exactly and the first one wins.
    A score of −inf forbids every label whose row has a positive entry there; a negative entry
    would mean +inf and raises.
    """

    F: ArrayField  # (k, width)
    predictions: LabelSet

    def __post_init__(self) -> None:
        F = check_embedding(self.F)
        if self.predictions.size != len(F):
            raise ValueError(
                f"F must have one row per label of {self.predictions!r}, "
                f"{self.predictions.size}, got {len(F)} rows"
            )
        self._set(F=frozen_array(F))

    @cached_property
    def _distinct(self) -> tuple[FloatArray, IntArray]:
        """Distinct rows of F in order of first appearance, and the label of each."""
        _, first = np.unique(self.F, axis=0, return_index=True)
        first.sort()
        return self.F[first], first

    def __call__(self, theta: ArrayLike) -> LabelArray:
        scores = check_theta(theta, self.F.shape[1])
        rows, labels = self._distinct
        best = np.empty(len(scores), dtype=np.int64)
        chunk = max(1, CHUNK_BYTES // (8 * len(rows)))
        for start in range(0, len(scores), chunk):
            part = slice(start, start + chunk)
            best[part] = self._argmax(scores[part], rows)
        return self.predictions.unindex(labels[best])

    @staticmethod
    def _argmax(theta: FloatArray, rows: FloatArray) -> IntArray:
        forbidden = np.isneginf(theta)
        if not forbidden.any():
            return np.asarray((theta @ rows.T).argmax(axis=1))
        if (forbidden @ (rows < 0).T.astype(np.float64) > 0).any():
            raise ValueError(
                "theta contains −inf where an embedding is negative, a score of +inf; forbid "
                "labels only in coordinates that are non-negative"
            )
        values = np.where(forbidden, 0.0, theta) @ rows.T
        values[forbidden @ (rows > 0).T.astype(np.float64) > 0] = -np.inf
        best = values.argmax(axis=1)
        refuse_all_forbidden(values[np.arange(len(values)), best])
        return np.asarray(best)
