"""Any score space given by its matrix F."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_embedding, check_measure
from consistruct.decoding import DenseArgmax
from consistruct.labels import Classes
from consistruct.protocols import Decoder, FloatArray, Gram, LabelSet
from consistruct.scores.base import BaseScoreSpace, Predictable, rank_tolerance
from consistruct.scores.gram import DenseGram

__all__ = ["Dense"]


@dataclass(frozen=True, eq=False, repr=False)
class Dense(BaseScoreSpace):
    """Scores Fθ for an explicit F.

    Parameters
    ----------
    F : (k, width) array
        One row per prediction.
    reference : (k,) array, optional
        Reference measure μ on the predictions, positive. Uniform if not given.
    over : LabelSet, optional
        The predictions that the rows stand for, in index order; plain classes if not given.

    Examples
    --------
    >>> from consistruct.scores import Dense
    >>> space = Dense([[1, 0], [0, 1], [1, 1]])
    >>> space.rank, space.decoder()([[0.5, -1.0]])
    (2, array([0]))
    """

    F: ArrayField
    reference: ArrayField | None = None
    over: LabelSet | None = None

    def __post_init__(self) -> None:
        F = check_embedding(self.F)
        if self.over is not None and self.over.size != len(F):
            raise ValueError(
                f"F must have one row per label of {self.over!r}, "
                f"{self.over.size}, got {len(F)} rows"
            )
        reference = self.reference
        if reference is not None:
            if self.over is not None and not isinstance(self.over, Classes):
                raise ValueError(
                    "a reference measure can be given only for plain classes, not for "
                    f"{self.over!r}; omit `over`, and the rows stand for classes"
                )
            if self.over is not None and self.over.measure != "uniform":
                raise ValueError("set the reference measure once: here or in the label set")
            reference = frozen_array(check_measure(reference, len(F)))
        self._set(F=frozen_array(F), reference=reference)

    @cached_property
    def predictions(self) -> LabelSet:
        if self.reference is None:
            return Classes(len(self.F)) if self.over is None else self.over
        names = self.over.names if isinstance(self.over, Classes) else None
        return Classes(len(self.F), names, self.reference)

    @property
    def width(self) -> int:
        return self.F.shape[1]

    @cached_property
    def _rank_and_tolerance(self) -> tuple[int, float]:
        singular = np.linalg.svd(self.F, compute_uv=False)
        tolerance = rank_tolerance(self.F.shape, singular)
        return int((singular > tolerance).sum()), tolerance

    @property
    def rank(self) -> int:
        return self._rank_and_tolerance[0]

    @property
    def rank_tolerance(self) -> float:
        """Singular values of F at or below this count as zero."""
        return self._rank_and_tolerance[1]

    def embed(self, labels: ArrayLike) -> FloatArray:
        return self.F[self.predictions.index(labels)]

    def matrix(self, *, limit: int = 4096) -> FloatArray:
        return self.F  # it is dense already

    @cached_property
    def _gram(self) -> DenseGram:
        weights = self.predictions.weights(limit=len(self.F))
        return DenseGram(np.sqrt(weights)[:, None] * self.F)

    def gram(self) -> Gram:
        return self._gram

    def mean_embedding(self) -> FloatArray:
        return np.asarray(self.predictions.weights(limit=len(self.F)) @ self.F)

    def decoder(self) -> Decoder:
        return DenseArgmax(self.F, self.predictions)

    @cached_property
    def _predictable(self) -> Predictable:
        if self.rank == len(self.F):  # independent rows: any order of scores can be reached
            return Predictable(len(self.F))
        return super().predictable()

    def predictable(self) -> Predictable:
        return self._predictable
