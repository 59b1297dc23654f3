"""Scores by any listed matrix F: rank, Gram operator and decoder by dense linear algebra.

F is data, such as the left singular vectors of a cost matrix in any units, so its rank is a
question of its own: singular values decide it where they leave no doubt, integers elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import unreadable_table
from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_embedding, check_measure
from consistruct.certificates.exact import independent_columns, integer_columns, projection_kernel
from consistruct.exceptions import LossSpecError
from consistruct.protocols import FloatArray, LabelSet, TaskLoss
from consistruct.structures.base import ENUMERATION_LIMIT, Predictable, Structure
from consistruct.structures.classes import Classes
from consistruct.structures.operators import rank_tolerance

__all__ = ["Dense"]

# Relative singular values above this are not zero: rounding errors stay below 1e-11.
CLEAR = 1e-8
# Steps of an elimination in Python integers: about two seconds.
MOST_STEPS = 4_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Dense(Structure):
    """Score labels by any listed matrix, f = Fθ.

    Rank, Gram operator, decoder and predictable labels follow from F by dense linear algebra and
    linear programs. Labels with equal rows always tie, and rows inside the convex hull of others
    never win. Choose it for a few thousand labels with a known low-rank description, such as the
    left singular vectors of a cost matrix.

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
    >>> from consistruct.structures import Dense
    >>> space = Dense([[1, 0], [0, 1], [1, 1]])
    >>> space.rank, space.decode([[0.5, -1.0]])
    (2, array([0]))
    >>> Dense([[1, 0], [1, 0], [0, 1]]).predictable()  # the second label always ties with the first
    Predictable(size=2, indices=array([0, 2]), order_matters=True)
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
        # a measure given here is that of the labels: they become classes that carry it
        if self.reference is None:
            return Classes(len(self.F)) if self.over is None else self.over
        names = self.over.names if isinstance(self.over, Classes) else None
        return Classes(len(self.F), names, self.reference)

    @property
    def width(self) -> int:
        return self.F.shape[1]

    @cached_property
    def _exact_columns(self) -> list[int] | None:
        """Return columns that are a basis of the span, decided over the integers; None if too many.

        Not computed where floats leave no doubt that all columns are one.
        """
        k, width = self.F.shape
        if k * width * min(k, width) > MOST_STEPS:
            return None
        return independent_columns(integer_columns(self.F.tolist()))

    @cached_property
    def rank(self) -> int:
        """Return the rank of F as given, without a tolerance as far as `rank_is_exact`."""
        if self._is_clear or self._exact_columns is None:
            return self._rank_in_floats
        return len(self._exact_columns)

    @property
    def _is_clear(self) -> bool:
        """Tell whether rounding errors cannot make columns, or rows, dependent."""
        largest = float(self._singular[0])
        return largest > 0 and float(self._singular[-1]) > CLEAR * largest

    @property
    def rank_is_exact(self) -> bool:
        """Say whether the rank was decided, not estimated from singular values."""
        return self._is_clear or self._exact_columns is not None

    @property
    def lost_directions(self) -> int:
        """Count the directions of F, at least, that floats cannot tell from rounding errors."""
        return self.rank - self._rank_in_floats

    @property
    def rank_tolerance(self) -> float | None:
        """Return the size up to which singular values count as zero; None for an exact rank."""
        if self.rank_is_exact:
            return None
        return rank_tolerance(self.F.shape, self._singular)

    @cached_property
    def _kernel(self) -> list[list[Fraction]]:
        """Return F Ḡ⁺ Fᵀ exactly, for the few F whose rank floats get wrong."""
        rows = integer_columns(self.F[:, self._exact_columns].tolist())
        weights = self.predictions.weights(limit=len(self.F)).tolist()
        uniform = self.measure == "uniform"
        k = len(self.F)
        return projection_kernel(
            rows, [Fraction(1, k) if uniform else Fraction(w) for w in weights]
        )

    def orthonormal(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """List F in a basis with Ḡ = I, (k, rank), by exact arithmetic where floats lose rank."""
        if self.lost_directions <= 0:
            return super().orthonormal(limit=limit)
        # M½ K M½ is a projection, whose eigenvectors are as well conditioned as can be
        root = np.sqrt(self.predictions.weights(limit=len(self.F)))[:, None]
        projection = root * np.array([[float(x) for x in row] for row in self._kernel]) * root.T
        _, vectors = np.linalg.eigh(projection)
        return np.asarray(vectors[:, -self.rank :] / root)

    def diameter_squared(self) -> Fraction | float:
        """Return the squared diameter, exact where floats lose a direction of F."""
        if self.lost_directions <= 0:
            return super().diameter_squared()
        K, indices = self._kernel, self.predictable().indices
        kept = range(len(K)) if indices is None else indices.tolist()
        return max(K[a][a] + K[b][b] - 2 * K[a][b] for a in kept for b in kept)

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return the rows of F at the labels' indices, (n, width)."""
        return self.F[self.predictions.index(labels)]

    def matrix(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        # it is listed already, whatever the limit
        return self.F

    @cached_property
    def _predictable(self) -> Predictable:
        # independent rows: every vector of scores can be reached, so every label can win
        if self.rank == len(self.F):
            return Predictable(len(self.F))
        return super().predictable()

    def predictable(self) -> Predictable:
        return self._predictable

    @classmethod
    def from_spec(cls, argument: str, loss: TaskLoss) -> Self | None:
        """Read ``matrix:FILE.csv``: one row of F per prediction."""
        return cls(_read_matrix(argument), over=loss.score_space.predictions) if argument else None


def _read_matrix(path: str) -> np.ndarray:
    """Read F from a CSV file of numbers, one row per prediction."""
    fault = unreadable_table(path)
    if fault is not None:
        raise LossSpecError(f"{path} could not be read as a matrix of numbers: {fault}")
    try:
        # opened here: by its name, NumPy would inflate f.csv.xz to a thousand times its size
        with Path(path).open(encoding="utf-8-sig") as file:
            return np.loadtxt(file, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise LossSpecError(f"{path} could not be read as a matrix of numbers: {error}") from None
