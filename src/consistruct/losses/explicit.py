"""Losses given by a matrix: its span as a score space, its columns as targets."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct.labels import Classes
from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray, LabelSet, Target
from consistruct.scores import Dense, Full
from consistruct.scores.base import BaseScoreSpace
from consistruct.scores.gram import dense_limit, rank_tolerance

__all__ = ["MatrixLoss", "lookup", "require_listable", "span_of"]


class MatrixLoss(Loss):
    """A loss over listed predictions and truths. Required: `_columns`, `_prediction_set`, `truths`.

    `_columns` is L built independently of `_value` wherever there is a formula.
    """

    @property
    @abstractmethod
    def _columns(self) -> FloatArray:
        """L, (n predictions, n truths), read-only."""

    @property
    @abstractmethod
    def _prediction_set(self) -> Classes: ...

    @property
    @abstractmethod
    def truths(self) -> LabelSet: ...

    @cached_property
    def _span(self) -> tuple[BaseScoreSpace, FloatArray, float]:
        return span_of(self._columns, self._prediction_set)

    @property
    def score_space(self) -> BaseScoreSpace:
        return self._span[0]

    @property
    def predictions(self) -> LabelSet:
        return self._prediction_set  # known without the span, however many there are

    @property
    def rank_tolerance(self) -> float:
        """Singular values of the centred, μ-weighted matrix at or below this count as zero."""
        return self._span[2]

    @property
    def max_value(self) -> float:
        return float(self._columns.max())

    def target(self, true: ArrayLike) -> Target:
        return self._span[1][self.truths.check(true, "true")]


def span_of(matrix: FloatArray, predictions: LabelSet) -> tuple[BaseScoreSpace, FloatArray, float]:
    """Smallest space with the constant and all columns of L; targets (m, width); tolerance.

    A rank-revealing singular value decomposition of the centred matrix over the *distinct* rows
    gives F = [1, √-weighted left vectors] with Ḡ = I. Equal rows of L get exactly equal rows of F.
    Where that is all of R^k, full scores say the same with simpler arithmetic.
    """
    rows, inverse = np.unique(matrix, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    weights = np.bincount(inverse, weights=predictions.weights(limit=len(matrix)))
    root = np.sqrt(weights)[:, None]
    mean = weights @ rows  # (m,)
    left, singular, right = np.linalg.svd(root * (rows - mean), full_matrices=False)
    # relative to L itself: a constant matrix leaves only rounding noise after centring
    scale = np.array([max(float(np.abs(root * rows).max()), float(singular[0]))])
    tolerance = rank_tolerance(matrix.shape, scale)
    kept = singular > tolerance
    if 1 + int(kept.sum()) == len(matrix):
        return Full(predictions), np.ascontiguousarray(matrix.T), tolerance
    contrasts = left[:, kept] / root
    F = np.column_stack([np.ones(len(rows)), contrasts])[inverse]
    targets = np.column_stack([mean, (singular[kept, None] * right[kept]).T])
    space = Dense(F, over=predictions)
    return space, targets, tolerance


def require_listable(n_labels: int, what: str) -> None:
    """Raise TooManyLabelsError unless a matrix over the labels may be built."""
    dense_limit(
        n_labels,
        ENUMERATION_LIMIT,
        f"the matrix of {what}",
        "merge labels, or use a loss with structure such as Block or Hamming",
    )


def lookup(matrix: FloatArray, pred: LabelArray, true: LabelArray) -> FloatArray:
    """L at pairs of labels."""
    return np.asarray(matrix[pred, true], dtype=np.float64)
