"""Perfect matchings: one score for every pair of a place and its item, decoded by assignment.

A permutation is embedded as its matrix, so scores are ⟨P, θ⟩. Serves matchings (i and its partner)
and rankings whose loss is a sum over places (Spearman's footrule).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct._validation import check_rows, check_theta
from consistruct.protocols import FloatArray, Gram, LabelArray
from consistruct.structures.operators import BaseGram, helmert_contrasts
from consistruct.structures.orders import PermutationSpace

__all__ = ["Matchings"]


@dataclass(frozen=True, eq=False, repr=False)
class Matchings(PermutationSpace):
    """Score matchings by their pairs: F_p = the permutation matrix [p(i) = j], row after row.

    f(p) = Σ_i θ[i, p(i)]: width n², rank (n−1)² + 1, k_eff = n(n−1) for n! matchings. Decoded by
    linear assignment, O(n³). Serves matchings (i and its partner) and rankings by a loss that sums
    over places (place and item), such as Spearman's footrule.

    Parameters
    ----------
    n : int
        Number of items on each side.

    Examples
    --------
    >>> from consistruct.structures import Matchings
    >>> Matchings(2).embed([[1, 0]])
    array([[0., 1., 1., 0.]])
    >>> Matchings(30).rank, Matchings(30).effective_classes()
    (842, 870.0)
    >>> Matchings(2).decode([[0.0, 3.0, 2.0, 1.0]])
    array([[1, 0]])

    References
    ----------
    Kuhn, *The Hungarian method for the assignment problem*, 1955; Birkhoff, 1946: the convex hull
    of permutation matrices.
    """

    n: int
    tie_rule = "deterministic: order of the augmenting paths"

    @property
    def width(self) -> int:
        return self.n**2

    @property
    def rank(self) -> int:
        """Count (n−1)² + 1 dimensions: row and column sums of a permutation matrix are fixed."""
        return (self.n - 1) ** 2 + 1

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return permutation matrices, row after row, (n examples, n²)."""
        partners = self.predictions.check(labels)
        rows = np.zeros((len(partners), self.n, self.n))
        np.put_along_axis(rows, partners[:, :, None], 1.0, axis=2)
        return rows.reshape(len(partners), self.width)

    def gram(self) -> Gram:
        return MatchingGram(self.n)

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the permutation p that maximizes Σ_i θ[i, p(i)], (n, n_items²) -> (n, n_items).

        Shortest augmenting paths, O(n_items³) per example.
        """
        scores = check_theta(theta, self.width).reshape(-1, self.n, self.n)
        partners = np.empty((len(scores), self.n), dtype=np.int64)
        # SciPy solves one matrix at a time; an infeasible one is named by its example
        for example, matrix in enumerate(scores):
            try:
                partners[example] = scipy.optimize.linear_sum_assignment(matrix, maximize=True)[1]
            except ValueError:
                raise ValueError(
                    f"every matching is forbidden (score −inf) for example {example}; "
                    f"leave at least one matching possible"
                ) from None
        return partners

    def mean_embedding(self) -> FloatArray:
        """Return 1/n for every pair."""
        return np.full(self.width, 1.0 / self.n)

    def constant_coordinates(self) -> FloatArray:
        """Return 1/n for every pair: each permutation collects n of them."""
        return np.full(self.width, 1.0 / self.n)

    def diameter_squared(self) -> Fraction:
        """Return 2n(n−1), the distance of two matchings that agree nowhere."""
        # F_pᵀḠ⁺F_q = 1 + (n−1)(agreements − 1); some permutation agrees nowhere with a given one
        return Fraction(2 * self.n * (self.n - 1))


class MatchingGram(BaseGram):
    """Multiply by 1 on constant matrices, 1/(n−1) on doubly centered ones, 0 on the rest.

    Every row and column of P sums to one, so only these two parts of θ matter; by symmetry
    E‖P − 11ᵀ/n‖² = n − 1 spreads evenly over the (n−1)² dimensions.

    Parameters
    ----------
    n_items : int
        n.
    """

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items

    @property
    def width(self) -> int:
        return self.n_items**2

    def _scaled(self, theta: FloatArray, factor: float) -> FloatArray:
        """Keep the mean of each matrix, multiply its doubly centered part by `factor`."""
        n = self.n_items
        matrices = check_rows(theta, self.width).reshape(-1, n, n)
        # what row or column sums alone contribute is the same for every permutation: it is in the
        # kernel of Ḡ and drops out here
        mean = matrices.mean(axis=(1, 2), keepdims=True)
        rows, columns = matrices.mean(axis=2, keepdims=True), matrices.mean(axis=1, keepdims=True)
        centered = matrices - rows - columns + mean
        return (mean + factor * centered).reshape(len(matrices), self.width)

    def apply(self, theta: FloatArray) -> FloatArray:
        return self._scaled(theta, 1.0 / max(self.n_items - 1, 1))

    def solve(self, theta: FloatArray) -> FloatArray:
        return self._scaled(theta, float(self.n_items - 1))

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        # for two items both eigenvalues are 1, and equal values are listed once
        n = self.n_items
        if n <= 2:
            return np.ones(1), (1 + (n - 1) ** 2,)
        return np.array([1.0, 1.0 / (n - 1)]), (1, (n - 1) ** 2)

    def expand(self, z: FloatArray) -> FloatArray:
        """Map orthonormal coordinates (n, rank) to θ (n, width)."""
        # products of a contrast of rows and one of columns, scaled to variance one under μ
        n = self.n_items
        contrasts = helmert_contrasts(n)
        centered = z[:, 1:].reshape(len(z), n - 1, n - 1)
        matrices = math.sqrt(max(n - 1, 1)) * contrasts @ centered @ contrasts.T
        return (matrices + z[:, 0, None, None] / n).reshape(len(z), self.width)

    def contract(self, theta: FloatArray) -> FloatArray:
        """Apply the transpose of `expand`, (n, width) -> (n, rank)."""
        n = self.n_items
        contrasts = helmert_contrasts(n)
        matrices = check_rows(theta, self.width).reshape(-1, n, n)
        centered = math.sqrt(max(n - 1, 1)) * contrasts.T @ matrices @ contrasts
        constant = matrices.sum(axis=(1, 2))[:, None] / n
        return np.concatenate([constant, centered.reshape(len(matrices), (n - 1) ** 2)], axis=1)
