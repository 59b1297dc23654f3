"""Rankings scored pair by pair: which item comes first, and the later position of two items."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_rows
from consistruct.decoding import LinearOrdering, PairDiscountOrder
from consistruct.labels import Permutations
from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.protocols import Decoder, FloatArray, Gram, IntArray
from consistruct.scores.base import BaseScoreSpace, Predictable
from consistruct.scores.gram import BaseGram, SpectralGram, dense_limit

__all__ = ["PairDiscount", "PairOrder", "PermutationSpace", "positions_of"]


def positions_of(orders: IntArray) -> IntArray:
    """Position of every item, from 0: (n, m) orders -> (n, m)."""
    positions = np.empty_like(orders)
    np.put_along_axis(positions, orders, np.arange(orders.shape[1])[None, :], axis=1)
    return positions


class PermutationSpace(BaseScoreSpace):
    """Scores of permutations that rename with the items: every permutation is alike.

    Renaming the items maps any of them to any other and keeps the uniform measure, so every row
    of F has the same leverage, the rank. Distinct rows then lie on one sphere: each is a vertex of
    conv F and can be predicted.
    """

    n: int

    def __post_init__(self) -> None:
        self._set(n=check_count(self.n, "n"))

    @cached_property
    def predictions(self) -> Permutations:
        return Permutations(self.n)

    @property
    def contains_constant(self) -> bool:
        return True

    def predictable(self) -> Predictable:
        return Predictable(math.factorial(self.n))


@dataclass(frozen=True, eq=False, repr=False)
class PairOrder(PermutationSpace):
    """F_σ = (1, [i before j] − ½ for i < j): width = rank = 1 + n(n−1)/2.

    Decoding is the linear ordering problem: exact up to 14 items, a declared heuristic above.

    Parameters
    ----------
    n : int
        Number of items.

    Examples
    --------
    >>> from consistruct.scores import PairOrder
    >>> PairOrder(3).embed([[2, 0, 1]])  # pairs (0,1), (0,2), (1,2)
    array([[ 1. ,  0.5, -0.5, -0.5]])
    >>> PairOrder(50).effective_classes()
    2450.0
    """

    n: int

    @property
    def width(self) -> int:
        return 1 + self.n * (self.n - 1) // 2

    @property
    def rank(self) -> int:
        return self.width

    def embed(self, labels: ArrayLike) -> FloatArray:
        positions = positions_of(self.predictions.check(labels))
        first, second = np.triu_indices(self.n, 1)
        before = positions[:, first] < positions[:, second]
        return np.concatenate([np.ones((len(positions), 1)), before - 0.5], axis=1)

    def gram(self) -> Gram:
        return PairOrderGram(self.n)

    def decoder(self) -> Decoder:
        return LinearOrdering(self.n)

    def mean_embedding(self) -> FloatArray:
        mean = np.zeros(self.width)
        mean[0] = 1.0
        return mean

    def constant_coordinates(self) -> FloatArray:
        return self.mean_embedding()

    def diameter_squared(self) -> Fraction:
        # centred leverage n(n−1)/2; the reverse order has the opposite signs throughout
        return Fraction(2 * self.n * (self.n - 1))


class PairOrderGram(BaseGram):
    """Ḡ = 1 on the constant and (I + DᵀD)/12 on pairs, D e_ij = e_i − e_j.

    A pair has E s² = ¼, two pairs that share an item ±1/12 (the shared item comes first, or last,
    of three in two thirds of the orders), disjoint pairs are uncorrelated. DDᵀ = nI − 11ᵀ, so that
    DᵀD/n is a projection of rank n − 1 and every function of Ḡ is in closed form.
    """

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self._first, self._second = np.triu_indices(n_items, 1)

    @property
    def width(self) -> int:
        return 1 + len(self._first)

    def _power(self, theta: FloatArray, exponent: float) -> FloatArray:
        theta = check_rows(theta, self.width)
        n, pairs = self.n_items, theta[:, 1:]
        antisymmetric = np.zeros((len(theta), n, n))
        antisymmetric[:, self._first, self._second] = pairs
        antisymmetric[:, self._second, self._first] = -pairs
        items = antisymmetric.sum(axis=2) / n  # Dθ/n
        induced = items[:, self._first] - items[:, self._second]  # the projection DᵀDθ/n
        low, high = (1 / 12) ** exponent, ((n + 1) / 12) ** exponent
        return np.concatenate([theta[:, :1], low * pairs + (high - low) * induced], axis=1)

    def apply(self, theta: FloatArray) -> FloatArray:
        return self._power(theta, 1.0)

    def solve(self, theta: FloatArray) -> FloatArray:
        return self._power(theta, -1.0)

    def expand(self, z: FloatArray) -> FloatArray:
        """Ḡ^(−1/2) z: the symmetric orthonormal basis."""
        return self._power(z, -0.5)

    contract = expand

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        n = self.n_items
        counts: dict[float, int] = {1.0: 1}
        for value, count in (((n + 1) / 12, n - 1), (1 / 12, (n - 1) * (n - 2) // 2)):
            if count:
                counts[value] = counts.get(value, 0) + count  # n = 11 has (n+1)/12 = 1
        values = sorted(counts, reverse=True)
        return np.array(values), tuple(counts[value] for value in values)


@dataclass(frozen=True, eq=False, repr=False)
class PairDiscount(PermutationSpace):
    """F_σ = (1/max(σ(i), σ(j)) for i ≤ j), positions counted from 1.

    Width n(n+1)/2, rank one less for n ≥ 2 (the diagonal and the whole both add up to a constant).
    Decoding is a quadratic assignment problem: exact up to 14 items, a declared heuristic above.

    Parameters
    ----------
    n : int
        Number of items.

    Examples
    --------
    >>> from consistruct.scores import PairDiscount
    >>> PairDiscount(2).embed([[1, 0]])  # pairs (0,0), (0,1), (1,1)
    array([[0.5, 0.5, 1. ]])
    """

    n: int

    @property
    def width(self) -> int:
        return self.n * (self.n + 1) // 2

    @property
    def rank(self) -> int:
        return self.width - int(self.n > 1)

    def embed(self, labels: ArrayLike) -> FloatArray:
        positions = positions_of(self.predictions.check(labels)) + 1
        first, second = np.triu_indices(self.n)
        return 1.0 / np.maximum(positions[:, first], positions[:, second])

    @cached_property
    def _gram(self) -> SpectralGram:
        dense_limit(self.width, 4096, "the Gram matrix of pair discounts")
        values, vectors = np.linalg.eigh(_pair_discount_moments(self.n))
        kept = slice(len(values) - self.rank, None)  # the rank is known
        return SpectralGram(values[kept], vectors[:, kept])

    def gram(self) -> Gram:
        return self._gram

    def decoder(self) -> Decoder:
        return PairDiscountOrder(self.n)

    def mean_embedding(self) -> FloatArray:
        n = self.n
        first, second = np.triu_indices(n)
        p = np.arange(1, n + 1)
        alone = float((1 / p).mean())
        # max of two distinct positions is p in p − 1 of n(n−1)/2 cases
        both = float(((p - 1) / p).sum() / (n * (n - 1) / 2)) if n > 1 else 0.0
        return np.where(first == second, alone, both)

    def constant_coordinates(self) -> FloatArray:
        first, second = np.triu_indices(self.n)
        total = float((1 / np.arange(1, self.n + 1)).sum())
        return np.where(first == second, 1.0 / total, 0.0)

    @property
    def diameter_is_exact(self) -> bool:
        return math.factorial(self.n) <= ENUMERATION_LIMIT

    def diameter_squared(self) -> Fraction | float:
        if self.diameter_is_exact:
            return super().diameter_squared()
        # kernel 1 + ⟨·,·⟩ of vectors of squared length rank − 1
        return Fraction(4 * (self.rank - 1))


def _pair_discount_moments(n: int) -> FloatArray:
    """E[e(σi, σj) e(σk, σl)] for e(p, q) = 1/max(p, q), i ≤ j and k ≤ l, uniform σ.

    Sums over distinct positions by inclusion and exclusion; a moment depends only on which of the
    four items coincide.
    """
    p = np.arange(1, n + 1)
    e = 1.0 / np.maximum(p[:, None], p[None, :])
    d = np.diag(e).copy()
    off = e - np.diag(d)
    row = off.sum(axis=1)
    total, square = row.sum(), (off**2).sum()

    def mean(value: float, n_distinct: int) -> float:
        return value / math.perm(n, n_distinct) if n >= n_distinct else 0.0

    item_item = mean(float(d @ d), 1), mean(float(d.sum() ** 2 - d @ d), 2)
    # item with a pair that holds it, or with a pair of others
    item_pair = mean(float(d @ row), 2), mean(float(d.sum() * total - 2 * d @ row), 3)
    shared = float(row @ row - square)  # e_ij e_ik over distinct i, j, k
    pair_pair = (
        mean(float(square), 2),
        mean(shared, 3),
        mean(float(total**2 - 4 * shared - 2 * square), 4),
    )
    first, second = np.triu_indices(n)
    alone = first == second
    common = (
        (first[:, None] == first).astype(np.int64)
        + (first[:, None] == second)
        + (second[:, None] == first)
        + (second[:, None] == second)
    )
    moments = np.array(pair_pair)[::-1][np.minimum(common, 2)]
    both = alone[:, None] & alone
    moments = np.where(both, np.where(common > 0, item_item[0], item_item[1]), moments)
    one = alone[:, None] != alone
    return np.where(one, np.where(common > 0, item_pair[0], item_pair[1]), moments)
