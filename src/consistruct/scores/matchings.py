"""Permutation matrices: one score for every pair of a place and its item."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_rows
from consistruct.decoding import Assignment
from consistruct.protocols import Decoder, FloatArray, Gram
from consistruct.scores.anova import helmert_contrasts
from consistruct.scores.gram import BaseGram
from consistruct.scores.pairs import PermutationSpace

__all__ = ["Matchings"]


@dataclass(frozen=True, eq=False, repr=False)
class Matchings(PermutationSpace):
    """F_p = the permutation matrix [p(i) = j], row after row: width n², rank (n−1)² + 1.

    Decoded by linear assignment, O(n³). Serves matchings (i and its partner) and rankings (position
    and item).

    Parameters
    ----------
    n : int
        Number of items on each side.

    Examples
    --------
    >>> from consistruct.scores import Matchings
    >>> Matchings(2).embed([[1, 0]])
    array([[0., 1., 1., 0.]])
    >>> Matchings(30).rank, Matchings(30).effective_classes()
    (842, 870.0)
    """

    n: int

    @property
    def width(self) -> int:
        return self.n**2

    @property
    def rank(self) -> int:
        return (self.n - 1) ** 2 + 1

    def embed(self, labels: ArrayLike) -> FloatArray:
        partners = self.predictions.check(labels)
        rows = np.zeros((len(partners), self.n, self.n))
        np.put_along_axis(rows, partners[:, :, None], 1.0, axis=2)
        return rows.reshape(len(partners), self.width)

    def gram(self) -> Gram:
        return MatchingGram(self.n)

    def decoder(self) -> Decoder:
        return Assignment(self.n)

    def mean_embedding(self) -> FloatArray:
        return np.full(self.width, 1.0 / self.n)

    def constant_coordinates(self) -> FloatArray:
        return np.full(self.width, 1.0 / self.n)

    def diameter_squared(self) -> Fraction:
        # kernel 1 + (n−1)(agreements − 1); some permutation agrees nowhere
        return Fraction(2 * self.n * (self.n - 1))


class MatchingGram(BaseGram):
    """Ḡ = 1 on constant matrices, 1/(n−1) on doubly centred ones, 0 on the rest.

    Every row and column of P sums to one, so only these two parts of θ matter; by symmetry
    E‖P − 11ᵀ/n‖² = n − 1 spreads evenly over the (n−1)² dimensions.
    """

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items

    @property
    def width(self) -> int:
        return self.n_items**2

    def _scaled(self, theta: FloatArray, factor: float) -> FloatArray:
        n = self.n_items
        matrices = check_rows(theta, self.width).reshape(-1, n, n)
        mean = matrices.mean(axis=(1, 2), keepdims=True)
        rows, columns = matrices.mean(axis=2, keepdims=True), matrices.mean(axis=1, keepdims=True)
        centred = matrices - rows - columns + mean
        return (mean + factor * centred).reshape(len(matrices), self.width)

    def apply(self, theta: FloatArray) -> FloatArray:
        return self._scaled(theta, 1.0 / max(self.n_items - 1, 1))

    def solve(self, theta: FloatArray) -> FloatArray:
        return self._scaled(theta, float(self.n_items - 1))

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        n = self.n_items
        if n <= 2:
            return np.ones(1), (1 + (n - 1) ** 2,)
        return np.array([1.0, 1.0 / (n - 1)]), (1, (n - 1) ** 2)

    def expand(self, z: FloatArray) -> FloatArray:
        """Orthonormal coordinates (n, rank) -> θ (n, width)."""
        n = self.n_items
        contrasts = helmert_contrasts(n)
        centred = z[:, 1:].reshape(len(z), n - 1, n - 1)
        matrices = math.sqrt(max(n - 1, 1)) * contrasts @ centred @ contrasts.T
        return (matrices + z[:, 0, None, None] / n).reshape(len(z), self.width)

    def contract(self, theta: FloatArray) -> FloatArray:
        """Transpose of `expand`: (n, width) -> (n, rank)."""
        n = self.n_items
        contrasts = helmert_contrasts(n)
        matrices = check_rows(theta, self.width).reshape(-1, n, n)
        centred = math.sqrt(max(n - 1, 1)) * contrasts.T @ matrices @ contrasts
        constant = matrices.sum(axis=(1, 2))[:, None] / n
        return np.concatenate([constant, centred.reshape(len(matrices), (n - 1) ** 2)], axis=1)
