"""Orders scored by pairs of items: which comes first, and the later position of two items.

Decoding both structures is one problem. With c_p the weight of position p and order o, maximize

    Σ_p c_p (unary[o_p] + Σ_{q<p} pair[o_p, o_q]):

what an item adds depends on *which* items stand before it, not on their order. So the best
completion of a prefix depends on its set only (2^n sets). Deciding is NP-hard; above `EXACT_ITEMS`
items the result is a local optimum under moving one item anywhere, and `decoding_is_exact` states
it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct._compile import compiled
from consistruct._validation import check_rows, check_theta
from consistruct.protocols import FloatArray, Gram, IntArray, LabelArray
from consistruct.structures.base import ENUMERATION_LIMIT, SMALLEST_INDEX
from consistruct.structures.operators import BaseGram, SpectralGram, dense_limit
from consistruct.structures.orders import PermutationSpace, positions_of

__all__ = ["EXACT_ITEMS", "PairDiscount", "PairOrder"]


# Items up to which orders are exact: 2^14 sets of at most 14 items take some milliseconds per
# example. Each item more doubles that; the torch decoders read the same limit.
EXACT_ITEMS = 14


@compiled
def _exact_orders(
    unary: FloatArray,  # (n, m)
    pair: FloatArray,  # (n, m, m)
    weight: FloatArray,  # (m,)
    orders: IntArray,  # (n, m) out
) -> None:
    """Find best orders by dynamic programming over prefix sets, O(2^m m²) per row.

    V(S) = max over i not in S of c_|S| (unary[i] + Σ_{j∈S} pair[i, j]) + V(S ∪ {i}) is the most
    that positions after the prefix S can add. Sets are visited from the full one down, as numbers;
    items are tried in order, so that ties go to the lexicographically smallest order.
    """
    # one bit per item; the value of a set is read by its number
    n, m = unary.shape
    full = (1 << m) - 1
    value = np.zeros(full + 1)  # best score of the positions that a prefix set leaves
    choice = np.zeros(full + 1, dtype=np.int64)
    for row in range(n):
        value[full] = 0.0
        for prefix in range(full - 1, -1, -1):
            size = 0
            for j in range(m):
                size += (prefix >> j) & 1
            best = -np.inf
            for i in range(m):
                if (prefix >> i) & 1:
                    continue
                gain = unary[row, i]
                for j in range(m):
                    if (prefix >> j) & 1:
                        gain += pair[row, i, j]
                total = weight[size] * gain + value[prefix | (1 << i)]
                if total > best:
                    best = total
                    choice[prefix] = i
            value[prefix] = best
        # follow the choices from the empty prefix on
        prefix = 0
        for position in range(m):
            orders[row, position] = choice[prefix]
            prefix |= 1 << choice[prefix]


@compiled
def _improve_orders(
    unary: FloatArray,  # (n, m)
    pair: FloatArray,  # (n, m, m)
    weight: FloatArray,  # (m,)
    orders: IntArray,  # (n, m) start, improved in place
) -> None:
    """Improve orders by moving one item anywhere while that gains, in place.

    All m − 1 moves of an item are priced in O(m) by exchanging it with one neighbor after the
    other: an exchange at positions q, q + 1 changes only what these two items add.
    """
    n, m = unary.shape
    before = np.empty(m)  # unary of the item at a position plus its pairs with the items before it
    for row in range(n):
        order, W = orders[row], pair[row]
        scale = 0.0
        for i in range(m):
            scale += abs(unary[row, i])
            for j in range(m):
                scale += abs(W[i, j])
        least = 1e-12 * scale  # smaller gains are rounding, and might cycle
        moved = True
        while moved:
            moved = False
            for p in range(m):
                # recomputed for each item: the last move has changed what stands before whom
                for q in range(m):
                    total = unary[row, order[q]]
                    for r in range(q):
                        total += W[order[q], order[r]]
                    before[q] = total
                a = order[p]
                best, target = least, p
                # pass the items behind, one exchange of neighbors after the other
                gain, moving = 0.0, before[p]
                for q in range(p + 1, m):
                    b = order[q]
                    passed = before[q] - W[b, a]
                    gain += (weight[q - 1] - weight[q]) * (passed - moving)
                    gain += weight[q] * (W[a, b] - W[b, a])
                    moving += W[a, b]
                    if gain > best:
                        best, target = gain, q
                # pass the items in front likewise
                gain, moving = 0.0, before[p]
                for q in range(p - 1, -1, -1):
                    b = order[q]
                    moving -= W[a, b]
                    gain += (weight[q] - weight[q + 1]) * (moving - before[q])
                    gain += weight[q + 1] * (W[b, a] - W[a, b])
                    if gain > best:
                        best, target = gain, q
                if target > p:
                    for q in range(p, target):
                        order[q] = order[q + 1]
                elif target < p:
                    for q in range(p, target, -1):
                        order[q] = order[q - 1]
                if target != p:
                    order[target] = a
                    moved = True


class _PrefixOrders(PermutationSpace):
    """Decode by prefix sets: exact up to `EXACT_ITEMS` items, a declared heuristic above."""

    @property
    def decoding_is_exact(self) -> bool:
        return self.n <= EXACT_ITEMS

    @property
    def tie_rule(self) -> str:
        exact = self.decoding_is_exact
        return SMALLEST_INDEX if exact else "deterministic: local search from the Borda order"

    def _finite(self, theta: ArrayLike, width: int) -> FloatArray:
        """Return finite scores of `width` columns, (n, width), or raise."""
        scores = check_theta(theta, width)
        if np.isneginf(scores).any():
            raise ValueError(
                "theta must be finite, got −inf: these scores are shared by all orders and cannot "
                "forbid a single one"
            )
        return scores

    def _best_orders(
        self,
        unary: FloatArray,  # (n, m)
        pair: FloatArray,  # (n, m, m)
        weight: FloatArray,  # (m,)
        start: FloatArray,  # (n, m) the local search starts from items sorted by this
    ) -> LabelArray:
        """Maximize Σ_p c_p (unary[o_p] + Σ_{q<p} pair[o_p, o_q]), (n, m)."""
        orders = np.argsort(-start, axis=1, kind="stable").astype(np.int64)
        if self.decoding_is_exact:
            _exact_orders(unary, pair, weight, orders)
        else:
            _improve_orders(unary, pair, weight, orders)
        return orders


@dataclass(frozen=True, eq=False, repr=False)
class PairOrder(_PrefixOrders):
    """Score orders by their pairs: F_σ = (1, [i before j] − ½ for i < j), width = rank.

    The structure of Kendall's tau, of pairwise disagreement and of any loss that counts misordered
    pairs. Width 1 + n(n−1)/2, k_eff = n(n−1), Ḡ in closed form (`PairOrderGram`). Decoding is the
    linear ordering problem: exact up to 14 items, a declared heuristic above; sorting is exact if
    the pairs agree with one order. Choose `Positions` where that is known beforehand.

    Parameters
    ----------
    n : int
        Number of items.

    Examples
    --------
    >>> from consistruct.structures import PairOrder
    >>> PairOrder(3).embed([[2, 0, 1]])  # pairs (0,1), (0,2), (1,2)
    array([[ 1. ,  0.5, -0.5, -0.5]])
    >>> PairOrder(50).effective_classes()
    2450.0
    >>> PairOrder(3).decode([[0.0, -1.0, -1.0, 2.0]])  # 1 before 0, 2 before 0, 1 before 2
    array([[1, 2, 0]])

    References
    ----------
    Martí and Reinelt, *The linear ordering problem*, 2011.
    """

    n: int

    @property
    def width(self) -> int:
        return 1 + self.n * (self.n - 1) // 2

    @property
    def rank(self) -> int:
        return self.width

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return 1, then +½ where i stands before j and −½ where it does not, (n, width)."""
        positions = positions_of(self.predictions.check(labels))
        first, second = np.triu_indices(self.n, 1)
        before = positions[:, first] < positions[:, second]
        return np.concatenate([np.ones((len(positions), 1)), before - 0.5], axis=1)

    def gram(self) -> Gram:
        return PairOrderGram(self.n)

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the order that maximizes θ_0 + Σ_{i<j} θ_ij ([i before j] − ½), (n, m).

        The linear ordering problem. θ is a constant, then the pairs (0,1), (0,2), …, (m−2, m−1).
        Pairs without a cycle are sorted, O(m²). Others: exact in O(2^m m²) up to `EXACT_ITEMS`
        items, above that a local search from the Borda order. If θ_ij = s_i − s_j for some item
        scores s, sorting by s is optimal.
        """
        m = self.n
        first, second = np.triu_indices(m, 1)
        scores = self._finite(theta, 1 + len(first))[:, 1:]
        pair = np.zeros((len(scores), m, m))  # [i, j]: what j standing before i adds
        pair[:, second, first] = 0.5 * scores
        pair[:, first, second] = -0.5 * scores
        # Where all pairs agree with one order (wins 0, 1, …, m−1), it attains every term's maximum.
        beats = pair > pair.transpose(0, 2, 1)  # [i, j]: j should stand before i
        wins = beats.sum(axis=1)
        agree = (np.sort(wins, axis=1) == np.arange(m)).all(axis=1)
        orders = np.argsort(-wins, axis=1, kind="stable").astype(np.int64)
        hard = np.flatnonzero(~agree)
        if len(hard):
            start = pair[hard].sum(axis=1) - pair[hard].sum(axis=2)
            zeros = np.zeros((len(hard), m))
            orders[hard] = self._best_orders(zeros, pair[hard], np.ones(m), start)
        return orders

    def mean_embedding(self) -> FloatArray:
        """Return the first unit vector: every pair stands either way equally often."""
        mean = np.zeros(self.width)
        mean[0] = 1.0
        return mean

    def constant_coordinates(self) -> FloatArray:
        return self.mean_embedding()

    def diameter_squared(self) -> Fraction:
        """Return 2n(n−1), the distance of an order and its reverse."""
        # centered leverage n(n−1)/2; the reverse order has the opposite signs throughout
        return Fraction(2 * self.n * (self.n - 1))


class PairOrderGram(BaseGram):
    """Multiply by 1 on the constant and by (I + DᵀD)/12 on pairs, D e_ij = e_i − e_j.

    A pair has E s² = ¼, two pairs that share an item ±1/12 (the shared item comes first, or last,
    of three in two thirds of the orders), disjoint pairs are uncorrelated. DDᵀ = nI − 11ᵀ, so that
    DᵀD/n is a projection of rank n − 1 and every function of Ḡ is in closed form.

    Parameters
    ----------
    n_items : int
        n.
    """

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self._first, self._second = np.triu_indices(n_items, 1)

    @property
    def width(self) -> int:
        return 1 + len(self._first)

    def _power(self, theta: FloatArray, exponent: float) -> FloatArray:
        """Return Ḡ^exponent θ by the two eigenvalues of pairs, (n, width)."""
        theta = check_rows(theta, self.width)
        n, pairs = self.n_items, theta[:, 1:]
        # a function of Ḡ is `low` on all pairs, corrected on the n − 1 directions that scores of
        # single items induce, where the eigenvalue is (n + 1)/12
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
        """Return Ḡ^(−1/2) z: the symmetric orthonormal basis."""
        return self._power(z, -0.5)

    contract = expand

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        """Return 1 for the constant, (n+1)/12 for item scores, 1/12 for cycles of pairs."""
        n = self.n_items
        counts: dict[float, int] = {1.0: 1}
        for value, count in (((n + 1) / 12, n - 1), (1 / 12, (n - 1) * (n - 2) // 2)):
            if count:
                counts[value] = counts.get(value, 0) + count  # n = 11 has (n+1)/12 = 1
        values = sorted(counts, reverse=True)
        return np.array(values), tuple(counts[value] for value in values)


@dataclass(frozen=True, eq=False, repr=False)
class PairDiscount(_PrefixOrders):
    """Score orders by the later position of two items: F_σ = (1/max(σ(i), σ(j)) for i ≤ j).

    Positions σ are counted from 1. The structure of average precision: the precision at a relevant
    item i is a sum of 1/σ(i) over relevant items j that stand before it. Width n(n+1)/2, rank one
    less for n ≥ 2 (the diagonal and the whole both add up to a constant). Decoding is a quadratic
    assignment problem: exact up to 14 items, a declared heuristic above.

    Parameters
    ----------
    n : int
        Number of items.

    Examples
    --------
    >>> from consistruct.structures import PairDiscount
    >>> PairDiscount(2).embed([[1, 0]])  # pairs (0,0), (0,1), (1,1)
    array([[0.5, 0.5, 1. ]])
    >>> PairDiscount(2).decode([[0.0, 0.0, 1.0]])
    array([[1, 0]])

    References
    ----------
    Ramaswamy, Agarwal and Tewari, *Convex calibrated surrogates for low-rank loss matrices with
    applications to subset ranking losses*, 2013.
    """

    n: int

    @property
    def width(self) -> int:
        return self.n * (self.n + 1) // 2

    @property
    def rank(self) -> int:
        return self.width - int(self.n > 1)

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return one over the later position of each pair i ≤ j, (n, width)."""
        positions = positions_of(self.predictions.check(labels)) + 1
        first, second = np.triu_indices(self.n)
        return 1.0 / np.maximum(positions[:, first], positions[:, second])

    @cached_property
    def _gram(self) -> SpectralGram:
        """Compute exact moments, decomposed once: O(width³), width up to 4,096."""
        dense_limit(self.width, 4096, "the Gram matrix of pair discounts")
        values, vectors = np.linalg.eigh(_pair_discount_moments(self.n))
        kept = slice(len(values) - self.rank, None)  # the rank is known
        return SpectralGram(values[kept], vectors[:, kept])

    def gram(self) -> Gram:
        return self._gram

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the order that maximizes Σ_{i≤j} θ_ij / max(position of i, position of j), (n, m).

        A quadratic assignment problem: exact in O(2^m m²) up to `EXACT_ITEMS` items, a local search
        above.
        """
        m = self.n
        first, second = np.triu_indices(m)
        scores = self._finite(theta, len(first))
        pair = np.zeros((len(scores), m, m))
        pair[:, first, second] = scores
        pair[:, second, first] = scores
        unary = np.ascontiguousarray(np.diagonal(pair, axis1=1, axis2=2))
        pair[:, np.arange(m), np.arange(m)] = 0.0
        weight = 1.0 / np.arange(1, m + 1)
        return self._best_orders(unary, pair, weight, unary + 0.5 * pair.sum(axis=2))

    def mean_embedding(self) -> FloatArray:
        """Return E 1/σ(i) for single items and E 1/max(σ(i), σ(j)) for pairs."""
        n = self.n
        first, second = np.triu_indices(n)
        p = np.arange(1, n + 1)
        alone = float((1 / p).mean())
        # max of two distinct positions is p in p − 1 of n(n−1)/2 cases
        both = float(((p - 1) / p).sum() / (n * (n - 1) / 2)) if n > 1 else 0.0
        return np.where(first == second, alone, both)

    def constant_coordinates(self) -> FloatArray:
        """Return 1/Σ_p 1/p for single items, 0 for pairs: items use every position once."""
        first, second = np.triu_indices(self.n)
        total = float((1 / np.arange(1, self.n + 1)).sum())
        return np.where(first == second, 1.0 / total, 0.0)

    @property
    def diameter_is_exact(self) -> bool:
        return math.factorial(self.n) <= ENUMERATION_LIMIT

    def diameter_squared(self) -> Fraction | float:
        """Return the maximum over listed orders, above the limit the bound 4(rank − 1)."""
        if self.diameter_is_exact:
            return super().diameter_squared()
        # kernel 1 + ⟨·,·⟩ of vectors of squared length rank − 1
        return Fraction(4 * (self.rank - 1))


def _pair_discount_moments(n: int) -> FloatArray:
    """Return E[e(σi, σj) e(σk, σl)] for e(p, q) = 1/max(p, q), i ≤ j and k ≤ l, uniform σ.

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
    # every entry of the (width, width) matrix is one of seven numbers, by the coincidences of items
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
