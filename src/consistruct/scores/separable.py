"""Separable scores: one score per part and state."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count
from consistruct.decoding import PerPart
from consistruct.exceptions import FamilyError
from consistruct.labels import Product
from consistruct.protocols import Decoder, FloatArray, LabelSet
from consistruct.scores.anova import ProductGram
from consistruct.scores.base import BaseScoreSpace, Predictable

__all__ = ["PartScores", "Separable"]


@dataclass(frozen=True, eq=False, repr=False)
class PartScores(BaseScoreSpace):
    """Scores of labels with T parts of n_states states each; T = None is the family of all T."""

    T: int | None
    n_states: int

    def __post_init__(self) -> None:
        T = None if self.T is None else check_count(self.T, "T")
        self._set(T=T, n_states=check_count(self.n_states, "n_states", minimum=2))

    def at(self, size: int) -> Self:
        """The member of the family for labels of `size` parts."""
        return type(self)(size, self.n_states)

    def _parts(self, action: str) -> int:
        if self.T is None:
            raise FamilyError(self, action)
        return self.T

    @cached_property
    def predictions(self) -> LabelSet:
        return Product(self.T, self.n_states)


@dataclass(frozen=True, eq=False, repr=False)
class Separable(PartScores):
    """One-hot parts: width T·s, rank 1 + T(s−1); decoded part by part.

    Parameters
    ----------
    T : int or None
        Number of parts; None is the family of all lengths, `at` gives a member.
    n_states : int
        States per part.

    Examples
    --------
    >>> from consistruct.scores import Separable
    >>> space = Separable(1000)
    >>> space.width, space.rank, space.effective_classes()
    (2000, 1001, 2000.0)
    """

    n_states: int = 2

    @property
    def separate_states(self) -> int:
        return self.n_states

    @property
    def width(self) -> int:
        return self._parts("have a width") * self.n_states

    @property
    def rank(self) -> int:
        return 1 + self._parts("have a rank") * (self.n_states - 1)

    def embed(self, labels: ArrayLike) -> FloatArray:
        T = self._parts("embed")
        states = self.predictions.check(labels)
        rows = np.zeros((len(states), T, self.n_states))
        np.put_along_axis(rows, states[:, :, None], 1.0, axis=2)
        return rows.reshape(len(states), T * self.n_states)

    def gram(self) -> ProductGram:
        return ProductGram(self._parts("have a Gram operator"), self.n_states, edges=False)

    def decoder(self) -> Decoder:
        return PerPart(self.T, self.n_states)

    def mean_embedding(self) -> FloatArray:
        return np.full(self.width, 1.0 / self.n_states)

    @property
    def contains_constant(self) -> bool:
        return True

    def predictable(self) -> Predictable:
        return Predictable(self.n_states ** self._parts("list predictable labels"))

    def diameter_squared(self) -> Fraction:
        # kernel of a part: s·[equal] − 1, so every differing part adds 2s
        return Fraction(2 * self.n_states * self._parts("have a diameter"))
