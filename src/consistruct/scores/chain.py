"""Chain scores: parts and transitions between neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from consistruct.decoding import Viterbi
from consistruct.protocols import Decoder, FloatArray, LinearMap, ScoreSpace
from consistruct.scores.anova import ProductGram
from consistruct.scores.base import Predictable
from consistruct.scores.linear import FunctionMap
from consistruct.scores.separable import PartScores, Separable

__all__ = ["Chain"]


@dataclass(frozen=True, eq=False, repr=False)
class Chain(PartScores):
    """One-hot parts and one-hot neighbouring pairs; decoded by Viterbi.

    Width T·s + (T−1)·s², true rank 1 + T(s−1) + (T−1)(s−1)².

    Parameters
    ----------
    T : int or None
        Length; None is the family of all lengths, `at` gives a member.
    n_states : int

    Examples
    --------
    >>> from consistruct.scores import Chain
    >>> space = Chain(200, 10)
    >>> space.width, space.rank
    (21900, 17920)
    """

    @property
    def linked_states(self) -> int:
        return self.n_states

    @property
    def width(self) -> int:
        T, s = self._parts("have a width"), self.n_states
        return T * s + (T - 1) * s * s

    @property
    def rank(self) -> int:
        T, s = self._parts("have a rank"), self.n_states
        return 1 + T * (s - 1) + (T - 1) * (s - 1) ** 2

    def embed(self, labels: ArrayLike) -> FloatArray:
        T, s = self._parts("embed"), self.n_states
        states = self.predictions.check(labels)
        n = len(states)
        rows = np.zeros((n, self.width))
        part = np.arange(T) * s
        edge = T * s + np.arange(T - 1) * s * s
        example = np.arange(n)[:, None]
        rows[example, part + states] = 1.0
        rows[example, edge + states[:, :-1] * s + states[:, 1:]] = 1.0
        return rows

    def gram(self) -> ProductGram:
        return ProductGram(self._parts("have a Gram operator"), self.n_states, edges=True)

    def decoder(self) -> Decoder:
        return Viterbi(self.T, self.n_states)

    def mean_embedding(self) -> FloatArray:
        T, s = self._parts("have a mean embedding"), self.n_states
        return np.concatenate([np.full(T * s, 1 / s), np.full((T - 1) * s * s, 1 / s**2)])

    @property
    def contains_constant(self) -> bool:
        return True

    def predictable(self) -> Predictable:
        return Predictable(self.n_states ** self._parts("list predictable labels"))

    def diameter_squared(self) -> Fraction:
        # F_iᵀḠ⁺F_j = 1 + Σ_t x_t + Σ_t x_t x_{t+1} with x_t = s·[i_t = j_t] − 1; at i = j it is the
        # rank. The farthest pair minimises it over x_t ∈ {s−1, −1}: two states, T steps.
        T, s = self._parts("have a diameter"), self.n_states
        levels = (s - 1, -1)
        best = {x: x for x in levels}
        for _ in range(T - 1):
            best = {x: min(best[before] + before * x for before in levels) + x for x in levels}
        return Fraction(2 * (self.rank - 1 - min(best.values())))

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        self._check_same_predictions(other)
        if isinstance(other, Separable) and other.n_states == self.n_states:
            n_unary, n_edge = other.width, self.width - other.width
            return FunctionMap(
                lambda theta: np.pad(theta, ((0, 0), (0, n_edge))),
                lambda theta: theta[:, :n_unary],
            )
        return super().coordinates(other)
