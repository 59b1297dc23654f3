"""Orders scored by pairs of items: dynamic programming over subsets, local search above.

Both problems here are of one form. With c_p the weight of position p and order o, maximise

    Σ_p c_p (unary[o_p] + Σ_{q<p} pair[o_p, o_q]):

what an item adds depends on *which* items stand before it, not on their order. So the best
completion of a prefix depends on its set only (2^n sets). Deciding is NP-hard; above `EXACT_ITEMS`
items the answer is a local optimum under moving one item anywhere, and ``exact`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from consistruct._compile import compiled
from consistruct._validation import check_count, check_theta
from consistruct.decoding.base import SMALLEST_INDEX, BaseDecoder
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = ["EXACT_ITEMS", "LinearOrdering", "PairDiscountOrder"]

EXACT_ITEMS = 14  # 2^14 sets of at most 14 items: some milliseconds per example


class _PrefixOrder(BaseDecoder):
    """Shared behaviour: exact up to `EXACT_ITEMS` items, a declared heuristic above."""

    n_items: int

    def __post_init__(self) -> None:
        self._set(n_items=check_count(self.n_items, "n_items"))

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.n_items <= EXACT_ITEMS

    @property
    def tie_rule(self) -> str:  # type: ignore[override]
        return SMALLEST_INDEX if self.exact else "deterministic: local search from the Borda order"

    def _finite(self, theta: ArrayLike, width: int) -> FloatArray:
        scores = check_theta(theta, width)
        if np.isneginf(scores).any():
            raise ValueError(
                "theta must be finite, got −inf: these scores are shared by all orders and cannot "
                "forbid a single one"
            )
        return scores

    def _orders(
        self,
        unary: FloatArray,  # (n, m)
        pair: FloatArray,  # (n, m, m)
        weight: FloatArray,  # (m,)
        start: FloatArray,  # (n, m) the local search starts from items sorted by this
    ) -> LabelArray:
        orders = np.argsort(-start, axis=1, kind="stable").astype(np.int64)
        if self.exact:
            _exact_orders(unary, pair, weight, orders)
        else:
            _improve_orders(unary, pair, weight, orders)
        return orders


@dataclass(frozen=True, eq=False, repr=False)
class LinearOrdering(_PrefixOrder):
    """The order that maximises θ_0 + Σ_{i<j} θ_ij ([i before j] − ½): the linear ordering problem.

    θ is (n, 1 + m(m−1)/2): a constant, then the pairs (0,1), (0,2), …, (m−2, m−1). Pairs without a
    cycle are sorted, O(m²). Others: exact in O(2^m m²) up to 14 items; above that (``exact`` False)
    a local search from the Borda order. If θ_ij = s_i − s_j for some item scores s, sorting by s is
    optimal.

    Examples
    --------
    >>> from consistruct.decoding import LinearOrdering
    >>> LinearOrdering(3)([[0.0, -1.0, -1.0, 2.0]])  # 1 before 0, 2 before 0, 1 before 2
    array([[1, 2, 0]])
    """

    n_items: int

    def __call__(self, theta: ArrayLike) -> LabelArray:
        m = self.n_items
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
            orders[hard] = self._orders(zeros, pair[hard], np.ones(m), start)
        return orders


@dataclass(frozen=True, eq=False, repr=False)
class PairDiscountOrder(_PrefixOrder):
    """The order that maximises Σ_{i≤j} θ_ij / max(position of i, position of j), counted from 1.

    θ is (n, m(m+1)/2): the pairs (0,0), (0,1), …, (m−1, m−1). A quadratic assignment problem: exact
    in O(2^m m²) up to 14 items, a local search above (``exact`` False).

    Examples
    --------
    >>> from consistruct.decoding import PairDiscountOrder
    >>> PairDiscountOrder(2)([[0.0, 0.0, 1.0]])
    array([[1, 0]])
    """

    n_items: int

    def __call__(self, theta: ArrayLike) -> LabelArray:
        m = self.n_items
        first, second = np.triu_indices(m)
        scores = self._finite(theta, len(first))
        pair = np.zeros((len(scores), m, m))
        pair[:, first, second] = scores
        pair[:, second, first] = scores
        unary = np.ascontiguousarray(np.diagonal(pair, axis1=1, axis2=2))
        pair[:, np.arange(m), np.arange(m)] = 0.0
        weight = 1.0 / np.arange(1, m + 1)
        return self._orders(unary, pair, weight, unary + 0.5 * pair.sum(axis=2))


@compiled
def _exact_orders(
    unary: FloatArray,  # (n, m)
    pair: FloatArray,  # (n, m, m)
    weight: FloatArray,  # (m,)
    orders: IntArray,  # (n, m) out
) -> None:
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
        prefix = 0
        for place in range(m):
            orders[row, place] = choice[prefix]
            prefix |= 1 << choice[prefix]


@compiled
def _improve_orders(
    unary: FloatArray,  # (n, m)
    pair: FloatArray,  # (n, m, m)
    weight: FloatArray,  # (m,)
    orders: IntArray,  # (n, m) start, improved in place
) -> None:
    n, m = unary.shape
    before = np.empty(m)  # unary of the item at a place plus its pairs with the items before it
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
                for q in range(m):
                    total = unary[row, order[q]]
                    for r in range(q):
                        total += W[order[q], order[r]]
                    before[q] = total
                a = order[p]
                best, place = least, p
                # pass the items behind, one exchange of neighbours after the other
                gain, own = 0.0, before[p]
                for q in range(p + 1, m):
                    b = order[q]
                    other = before[q] - W[b, a]
                    gain += (weight[q - 1] - weight[q]) * (other - own)
                    gain += weight[q] * (W[a, b] - W[b, a])
                    own += W[a, b]
                    if gain > best:
                        best, place = gain, q
                gain, own = 0.0, before[p]
                for q in range(p - 1, -1, -1):
                    b = order[q]
                    own -= W[a, b]
                    gain += (weight[q] - weight[q + 1]) * (own - before[q])
                    gain += weight[q + 1] * (W[b, a] - W[a, b])
                    if gain > best:
                        best, place = gain, q
                if place > p:
                    for q in range(p, place):
                        order[q] = order[q + 1]
                elif place < p:
                    for q in range(p, place, -1):
                        order[q] = order[q - 1]
                if place != p:
                    order[place] = a
                    moved = True
