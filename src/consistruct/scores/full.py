"""Full scores: one free score per label (F = I), and the diagonal Gram operator of such scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_rows
from consistruct.decoding import LabelArgmax
from consistruct.exceptions import CapabilityError, FamilyError, TooManyLabelsError
from consistruct.labels import Classes
from consistruct.labels.base import VECTOR_LIMIT
from consistruct.protocols import (
    Decoder,
    FloatArray,
    Gram,
    LabelSet,
    LinearMap,
    ScoreSpace,
    TaskLoss,
)
from consistruct.scores.base import BaseScoreSpace, Predictable
from consistruct.scores.gram import BaseGram, group_equal
from consistruct.scores.linear import FunctionMap, identity_map

__all__ = ["FULL_WIDTH_LIMIT", "DiagonalGram", "Full"]

FULL_WIDTH_LIMIT = VECTOR_LIMIT


@dataclass(frozen=True, eq=False, repr=False)
class Full(BaseScoreSpace):
    """One score per label: width = rank = k, Gram diag(μ).

    Above 2^16 labels the space exists for analysis only (through symmetry); whatever
    needs an array of k numbers raises `TooManyLabelsError`.

    Parameters
    ----------
    labels : TaskLoss, LabelSet or int
        Whose predictions to score; an int means that many classes.

    Examples
    --------
    >>> from consistruct.scores import Full
    >>> space = Full(4)
    >>> space.embed([2])
    array([[0., 0., 1., 0.]])
    >>> space.effective_classes()
    4.0
    """

    labels: LabelSet
    one_per_label: ClassVar[bool] = True

    def __init__(self, labels: TaskLoss | LabelSet | int) -> None:
        # The class is asked, not the object: isinstance with a protocol would evaluate properties
        # that a family or a loss over too many labels does not have.
        if hasattr(type(labels), "score_space"):
            found: LabelSet = labels.score_space.predictions  # type: ignore[union-attr]
        elif hasattr(type(labels), "unindex"):
            found = labels  # type: ignore[assignment]
        else:
            found = Classes(check_count(labels, "labels"))
        if found.size is None:
            raise FamilyError(found, "have full scores")
        self._set(labels=found)

    @property
    def predictions(self) -> LabelSet:
        return self.labels

    @cached_property
    def width(self) -> int:
        assert self.labels.size is not None
        return self.labels.size

    @property
    def rank(self) -> int:
        return self.width

    def require_arrays(self, what: str) -> None:
        """Raise TooManyLabelsError unless arrays of one number per label are allowed."""
        if self.width > FULL_WIDTH_LIMIT:
            raise TooManyLabelsError(
                self.width,
                FULL_WIDTH_LIMIT,
                f"{what} of full scores",
                "use the loss's own score space (LossSpan) for learning; "
                "calibration_function works through symmetry",
            )

    def embed(self, labels: ArrayLike) -> FloatArray:
        self.require_arrays("embed")
        index = self.labels.index(labels)
        rows = np.zeros((len(index), self.width))
        rows[np.arange(len(index)), index] = 1.0
        return rows

    def gram(self) -> Gram:
        self.require_arrays("gram")
        return DiagonalGram(self.labels.weights(limit=FULL_WIDTH_LIMIT))

    def decoder(self) -> Decoder:
        self.require_arrays("decoder")
        return LabelArgmax(self.labels)

    def mean_embedding(self) -> FloatArray:
        self.require_arrays("mean_embedding")
        return self.labels.weights(limit=FULL_WIDTH_LIMIT)

    @property
    def contains_constant(self) -> bool:
        return True

    def predictable(self) -> Predictable:
        return Predictable(self.width)

    def diameter_squared(self) -> Fraction | float:
        # (e_i−e_j)ᵀ diag(1/μ) (e_i−e_j) = 1/μ_i + 1/μ_j
        if self.width == 1:
            return Fraction(0)
        if self.measure == "uniform":
            return Fraction(2 * self.width)
        weights = np.sort(self.labels.weights(limit=FULL_WIDTH_LIMIT))
        return float(1 / weights[0] + 1 / weights[1])

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        self._check_same_predictions(other)
        if isinstance(other, Full):
            return identity_map()
        if not isinstance(other, BaseScoreSpace):
            raise CapabilityError(other, "matrix", "coordinates in full scores", "list F yourself")

        # Full scores express everything; only applying the map needs one number per label.
        def matrix() -> FloatArray:
            self.require_arrays("coordinates")
            return other.matrix(limit=FULL_WIDTH_LIMIT)

        return FunctionMap(lambda theta: theta @ matrix().T, lambda theta: theta @ matrix())


class DiagonalGram(BaseGram):
    """Ḡ = diag(weights): one-hot embeddings, each hit with the probability of its label."""

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights

    @property
    def width(self) -> int:
        return len(self.weights)

    def apply(self, theta: FloatArray) -> FloatArray:
        return check_rows(theta, self.width) * self.weights

    def solve(self, theta: FloatArray) -> FloatArray:
        return check_rows(theta, self.width) / self.weights

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        # exact numbers of any magnitude: 2^-250 differs from 2^-300
        return group_equal(self.weights, relative_to_largest=False)
