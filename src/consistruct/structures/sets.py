"""Label sets scored by their members and their size: the F-measure.

A set ŷ of T labels is a 0/1 vector. What F_β of ŷ against a true label y depends on besides |ŷ ∩ y|
are the two sizes: F_β = (1+β²)|ŷ ∩ y| / (β²|y| + |ŷ|). So scores are linear in the members of ŷ,
with weights that depend on |ŷ| and on the size of the true label (`SetSizes`), and decoding visits
sizes, not sets. `Subsets` measures sets by "uniform over sizes, then over sets".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._compile import compiled
from consistruct._threads import share_rows
from consistruct._validation import (
    check_count,
    check_counts,
    check_number,
    check_theta,
    integer_labels,
    refuse_all_forbidden,
)
from consistruct.protocols import FloatArray, Gram, IntArray, LabelArray
from consistruct.structures.base import (
    ENUMERATION_LIMIT,
    INT64_LIMIT,
    FiniteLabels,
    Predictable,
    Structure,
)
from consistruct.structures.operators import ItemGram

__all__ = ["SetSizes", "Subsets", "full_set_weights", "member_weights"]


@dataclass(frozen=True, eq=False, repr=False)
class Subsets(FiniteLabels):
    """List the subsets of 0..n_items−1 of allowed sizes, as 0/1 vectors in lexicographic order.

    The reference measure draws one of the allowed sizes uniformly, then a set of that size
    uniformly. Under it every size is seen equally often; uniform over sets, almost all sets have
    about n_items/2 members and the empty set is never seen.

    Parameters
    ----------
    n_items : int
    sizes : sequence of int, optional
        Allowed set sizes; all of 0..n_items if not given.

    Examples
    --------
    >>> from consistruct.structures import Subsets
    >>> Subsets(3, sizes=(2,)).enumerate().tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> Subsets(300).size == 2**300
    True
    """

    labels_as: ClassVar[str] = "sets"

    n_items: int
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        n_items = check_count(self.n_items, "n_items")
        sizes = None if self.sizes is None else check_set_sizes(self.sizes, n_items)
        self._set(n_items=n_items, sizes=sizes)

    @property
    def allowed_sizes(self) -> tuple[int, ...]:
        """Return the allowed sizes, increasing."""
        return tuple(range(self.n_items + 1)) if self.sizes is None else self.sizes

    @cached_property
    def size(self) -> int:
        """Count the sets: Σ_s C(n_items, s), exact."""
        return sum(math.comb(self.n_items, s) for s in self.allowed_sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_items,)

    @property
    def measure(self) -> str:
        return "uniform over sizes, then over sets"

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        """Return 0/1 vectors of an allowed size, (n, n_items)."""
        array = integer_labels(labels, self.shape, name)
        outside = (array != 0) & (array != 1)
        if outside.any():
            where = tuple(int(position) for position in np.argwhere(outside)[0])
            raise ValueError(
                f"{name} must contain sets as 0/1 vectors, got {array[where]} at position {where}"
            )
        array = array.astype(np.int64)
        if self.sizes is not None:
            counts = array.sum(axis=1)
            wrong = ~np.isin(counts, self.sizes)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    f"{name} must contain sets of size {_listed(self.sizes)}, got a set of size "
                    f"{counts[row]} at row {row}; add that size to sizes"
                )
        return array

    @cached_property
    def _completions(self) -> LabelArray:
        """Count the ways to fill the last r places when c members are chosen, [r, c], exact.

        W[0, c] = 1 if c is an allowed size; W[r, c] = W[r−1, c] + W[r−1, c+1]: leave the next place
        empty, or fill it. Index and label follow from it place by place.
        """
        n = self.n_items
        dtype = np.int64 if self.size < INT64_LIMIT else object
        table = np.zeros((n + 1, n + 2), dtype=dtype)
        table[0, list(self.allowed_sizes)] = 1
        for r in range(1, n + 1):
            table[r, :-1] = table[r - 1, :-1] + table[r - 1, 1:]
        return table

    def index(self, labels: ArrayLike) -> LabelArray:
        """Count the sets that come before, item by item, exact, (n,)."""
        array = self.check(labels)
        table = self._completions
        index = np.zeros(len(array), dtype=table.dtype)
        chosen = np.zeros(len(array), dtype=np.int64)
        for item in range(self.n_items):
            # all vectors with a 0 here come before those with a 1
            index = index + table[self.n_items - item - 1, chosen] * array[:, item]
            chosen += array[:, item]
        return index

    def unindex(self, indices: ArrayLike) -> LabelArray:
        """Choose item by item whether the index lies beyond all sets without it."""
        remaining = self._check_indices(indices)
        table = self._completions
        labels = np.zeros((len(remaining), self.n_items), dtype=np.int64)
        chosen = np.zeros(len(remaining), dtype=np.int64)
        # at each item `below` sets have a 0 there: a larger index means a 1, and skips them
        for item in range(self.n_items):
            below = table[self.n_items - item - 1, chosen]
            bit = np.asarray(remaining >= below, dtype=np.int64)
            remaining = remaining - below * bit
            labels[:, item] = bit
            chosen += bit
        return labels

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        """Draw a size, then a set of that size, (n, n_items)."""
        # a size first, then the items on its first places of a random order
        counts = rng.choice(np.array(self.allowed_sizes), size=n)
        ranks = rng.permuted(np.tile(np.arange(self.n_items), (n, 1)), axis=1)
        return (ranks < counts[:, None]).astype(np.int64)

    def weights(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """Return 1/(number of sizes · C(n_items, |y|)) for every set."""
        self._bounded_size(limit, "the measure of every label")
        counts: IntArray = self.enumerate(limit=limit).sum(axis=1)
        share = np.zeros(self.n_items + 1)
        for s in self.allowed_sizes:
            share[s] = 1.0 / (len(self.allowed_sizes) * math.comb(self.n_items, s))
        return share[counts]


def check_set_sizes(sizes: object, n_items: int) -> tuple[int, ...]:
    """Return distinct set sizes in 0..n_items, increasing."""
    distinct = tuple(sorted(set(check_counts(sizes, "sizes", minimum=0))))
    if distinct[-1] > n_items:
        raise ValueError(f"sizes must be in 0..{n_items}, the number of items, got {distinct[-1]}")
    return distinct


def _listed(sizes: tuple[int, ...]) -> str:
    """Write sizes for a message, at most eight of them and the last."""
    shown = ", ".join(str(s) for s in sizes[:8])
    return shown if len(sizes) <= 8 else f"{shown}, … {sizes[-1]}"


# Items up to which scoring every set size at once is faster than bounding sizes first.
BATCH_ITEMS = 32
# Examples that one thread decodes at a time: enough that starting a thread does not show.
ROWS_PER_THREAD = 64
# Bytes of scores per (example, predicted size, item) that a batch of few items holds.
CHUNK_BYTES = 16 * 2**20


def member_weights(n_items: int, beta: float, sizes: tuple[int, ...]) -> FloatArray:
    """Return (1 + β²)/(β²s + m), set sizes m = 1..n_items in rows, true sizes s in columns."""
    m = np.arange(1, n_items + 1)[:, None]
    return np.asarray((1 + beta**2) / (beta**2 * np.array(sizes, dtype=np.float64)[None, :] + m))


def full_set_weights(n_items: int, beta: float) -> FloatArray:
    """Return m(1 + β²)/(β²T + m), m = 1..T: F_β of any set of m items and the full set."""
    m = np.arange(1, n_items + 1)
    return np.asarray(m * (1 + beta**2) / (beta**2 * n_items + m))


@compiled
def _decode_by_bounds(
    theta: FloatArray,  # (n, width)
    weights: FloatArray,  # (T, n_sizes)
    full: FloatArray,  # (T,) weight of θ_T, zeros if there is none
    has_full: bool,
    has_empty: bool,
    labels: IntArray,  # (n, T) zeros, filled
    best: FloatArray,  # (n,) out
) -> None:
    """Decode one example after the other, visiting set sizes in the order of an upper bound.

    Of the m best items by Σ_s w_ms θ_s· only the sum is needed to compare sizes, and a bound on it
    needs sorted scores of each true size alone. A size is scored only while its bound can still
    win, so that most of the T sizes cost one comparison.
    """
    n = len(theta)
    T, n_sizes = weights.shape
    common, bounds, items = np.zeros(T), np.empty(T), np.empty(T)
    for row in range(n):
        members = theta[row, : n_sizes * T].reshape(n_sizes, T)
        if has_full:
            for m in range(T):
                common[m] = theta[row, n_sizes * T] * full[m]
        # The m best items of each true size, chosen apart, bound the m best items of their sum.
        # −inf times a positive weight stays −inf; there is no +inf, hence no NaN.
        bounds[:] = common
        for s in range(n_sizes):
            ordered = np.sort(members[s])
            total = 0.0
            for m in range(T):
                total += ordered[T - 1 - m]
                bounds[m] += weights[m, s] * total
        # Bounds and scores add in different orders: without slack, rounding could rule out the best
        # size, or a smaller one that ties with it.
        slack = 0.0
        for m in range(T):
            if bounds[m] > -np.inf:
                slack = max(slack, 1e-12 * abs(bounds[m]))
        order = np.argsort(-bounds, kind="mergesort")
        value = theta[row, -2] if has_empty else 0.0
        size = 0
        for m in order:
            if bounds[m] + slack < value:
                break  # bounds fall along `order`: no later size can win either
            items[:] = 0.0
            for s in range(n_sizes):
                for t in range(T):
                    items[t] += weights[m, s] * members[s, t]
            # only the sum of the m + 1 best items: selection is O(T), sorting is for the winner
            total = np.partition(items, T - 1 - m)[T - 1 - m :].sum() + common[m]
            if total > value or (total == value and m + 1 < size):
                value, size = total, m + 1
        best[row] = value + theta[row, -1]
        if size > 0:
            items[:] = 0.0
            for s in range(n_sizes):
                for t in range(T):
                    items[t] += weights[size - 1, s] * members[s, t]
            # stable, and ascending: of equal items the latest stand last
            for t in np.argsort(items, kind="mergesort")[T - size :]:
                labels[row, t] = 1


@dataclass(frozen=True, eq=False, repr=False)
class SetSizes(Structure):
    """Score label sets for F_β: F_ŷ = (ŷ_t (1+β²)/(β²s + |ŷ|) for sizes s, labels t; …; 1).

    The expected F_β of ŷ depends on P(y_t = 1, |y| = s) only: one column per true size s and label
    t. A column [ŷ=∅] is added if ∅ can be the true label, since F_β(∅, ∅) = 1, and the constant.

    The one true label of size T has one column, the sum over its labels; so with S sizes in 1..T−1
    the width is S·T + 1, and one more for each of 0 and T among the sizes. With S' = S, or S + 1 if
    T is among the sizes, the rank is (T−1)·S + 1 + S' without [ŷ=∅] and (T−1)·S + 1 + min(S'+1, T)
    with it: T² − T + 2 with all sizes, where scores are free in every (predicted size, label).

    Parameters
    ----------
    T : int
        Number of labels.
    beta : float
        Weight of recall over precision: β > 1 punishes missed labels more.
    sizes : sequence of int, optional
        True label sizes; all of 0..T if not given. Fewer sizes make a smaller space: choose those
        that occur in the training data.

    Notes
    -----
    θ holds, in this order: the items of each size 0 < s < T in turn, θ_T if T is among the sizes,
    θ_∅ if 0 is, and the constant θ_1. The score of ŷ is

        Σ_{s,t} θ_st ŷ_t (1+β²)/(β²s + |ŷ|) + θ_T |ŷ| (1+β²)/(β²T + |ŷ|) + θ_∅ [ŷ=∅] + θ_1.

    The reference measure is uniform over sizes, then over sets. The columns of many neighboring
    sizes are nearly dependent (a Cauchy matrix): with more than about ten sizes the Gram operator
    treats directions below rounding as zero, though `rank` is exact.

    Examples
    --------
    >>> from consistruct.structures import SetSizes
    >>> SetSizes(3).rank, SetSizes(8).effective_classes()
    (8, 126.0)
    >>> SetSizes(983, sizes=range(1, 26)).width
    24576

    References
    ----------
    Dembczyński, Waegeman, Cheng and Hüllermeier, *An exact algorithm for F-measure maximization*,
    2011: the statistics P(y_t = 1, |y| = s), and decoding by sizes.
    """

    T: int
    beta: float = 1.0
    sizes: tuple[int, ...] | None = None
    tie_rule = "fewest labels, then the latest ones"
    contains_constant = True

    def __post_init__(self) -> None:
        T = check_count(self.T, "T")
        beta = check_number(self.beta, "beta", low=0.0, open_low=True)
        # None stays None: "all sizes" is another value than their list, and prints shorter
        sizes = None if self.sizes is None else check_set_sizes(self.sizes, T)
        if sizes is not None and sizes[-1] == 0:
            raise ValueError("sizes must contain a positive set size, got only 0")
        self._set(T=T, beta=beta, sizes=sizes)

    @cached_property
    def _true_sizes(self) -> tuple[int, ...]:
        """Return true label sizes, increasing."""
        return tuple(range(self.T + 1)) if self.sizes is None else self.sizes

    @cached_property
    def block_sizes(self) -> tuple[int, ...]:
        """Return true label sizes in 1..T−1: one column per label each."""
        return tuple(s for s in self._true_sizes if 0 < s < self.T)

    @property
    def has_full(self) -> bool:
        """Tell whether the full set has a column, the first after the blocks."""
        return self._true_sizes[-1] == self.T

    @property
    def has_empty(self) -> bool:
        """Tell whether [ŷ=∅] is a column, the last but one."""
        return self._true_sizes[0] == 0

    @cached_property
    def predictions(self) -> Subsets:
        return Subsets(self.T)

    @property
    def width(self) -> int:
        """Count one column per label and size, then those of full set, empty set and constant."""
        return len(self.block_sizes) * self.T + self.has_full + self.has_empty + 1

    @cached_property
    def _ranks(self) -> tuple[int, int]:
        """Return the exact ranks of the part of one contrast of labels and of what they share."""
        # As functions of the predicted size m, the columns are Cauchy: independent as long as there
        # are no more of them than sizes m that tell them apart.
        # contrasts: Σ_s a_s/(β²s+m) on m = 1..T−1; common: 1, [m=0] and m/(β²s+m) on m = 0..T
        n_blocks = len(self.block_sizes)
        n_sizes = n_blocks + self.has_full
        common = 1 + (min(n_sizes + 1, self.T) if self.has_empty else n_sizes)
        return n_blocks, common

    @property
    def rank(self) -> int:
        """Count T − 1 contrasts of labels for each size, and the rank of what they share."""
        contrast, common = self._ranks
        return (self.T - 1) * contrast + common

    @cached_property
    def _weights(self) -> FloatArray:
        """Return (1+β²)/(β²s+m), m = 0..T in rows (row 0 is never used: 0), sizes in columns."""
        weights = member_weights(self.T, self.beta, self.block_sizes)
        return np.vstack([np.zeros((1, weights.shape[1])), weights])

    @cached_property
    def _extra(self) -> FloatArray:
        """Return the columns behind the blocks, which depend on m = 0..T only, (T + 1, extra)."""
        columns = []
        if self.has_full:
            columns.append(np.append(0.0, full_set_weights(self.T, self.beta)))
        if self.has_empty:
            columns.append((np.arange(self.T + 1) == 0).astype(np.float64))
        return np.column_stack([*columns, np.ones(self.T + 1)])

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return discounted members, then the columns that depend on the size only."""
        sets = self.predictions.check(labels)
        n, (_, n_sizes) = len(sets), self._weights.shape
        counts = sets.sum(axis=1)
        rows = np.zeros((n, self.width))
        members = self._weights[counts][:, :, None] * sets[:, None, :]
        # size after size, T labels each
        rows[:, : n_sizes * self.T] = members.reshape(n, n_sizes * self.T)
        rows[:, n_sizes * self.T :] = self._extra[counts]
        return rows

    @cached_property
    def _common(self) -> FloatArray:
        """Return the common coordinates of a set of each size, (T + 1, n_sizes + extra)."""
        m = np.arange(self.T + 1)[:, None]
        # the item mean of ŷ is m/T, times √T
        return np.hstack([m * self._weights / math.sqrt(self.T), self._extra])

    @cached_property
    def _gram(self) -> ItemGram:
        """Return Ḡ from the moments of members given the size of the set, averaged over sizes."""
        T = self.T
        m = np.arange(T + 1)
        # given |ŷ| = m: Var ŷ_t + 1/(T−1)·Var ŷ_t on contrasts, m(T−m)/(T(T−1))
        spread = m * (T - m) / (T * max(T - 1, 1))
        contrast = np.sqrt(spread / (T + 1))[:, None] * self._weights
        return ItemGram(T, contrast, self._common / math.sqrt(T + 1))

    def gram(self) -> Gram:
        return self._gram

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the set of largest score for each row of θ, as 0/1 vectors (n, T).

        Among sets of one size m the score is a sum over members, so the m best items win: one
        selection per m, O(T²(|sizes| + 1)) per example at most. Sizes are visited in the order of
        an upper bound that takes O(T·|sizes|·log T) for all of them, and most are never visited.
        Beyond `BATCH_ITEMS` items one example is decoded at a time and in each thread, with O(T)
        memory beside the scores.
        """
        scores = check_theta(theta, self.width)
        labels = np.zeros((len(scores), self.T), dtype=np.int64)
        best = np.empty(len(scores))
        weights = self._weights[1:]
        if self.T <= BATCH_ITEMS:
            chunk = max(1, CHUNK_BYTES // (8 * self.T**2))
            for start in range(0, len(scores), chunk):
                part = slice(start, start + chunk)
                best[part] = self._decode_batch(scores[part], weights, labels[part])
        else:
            full = full_set_weights(self.T, self.beta)
            rows = np.ascontiguousarray(scores)
            share_rows(
                lambda part: _decode_by_bounds(
                    rows[part],
                    weights,
                    full,
                    self.has_full,
                    self.has_empty,
                    labels[part],
                    best[part],
                ),
                len(rows),
                ROWS_PER_THREAD,
            )
        refuse_all_forbidden(best)
        return labels

    def _decode_batch(self, theta: FloatArray, weights: FloatArray, labels: IntArray) -> FloatArray:
        """Score every size of few items: no bounds, but many examples at once; fill `labels`."""
        (n, _), T, n_sizes = theta.shape, self.T, len(self.block_sizes)
        items = weights @ theta[:, : n_sizes * T].reshape(n, n_sizes, T)  # (n, m, T)
        # stable and reversed: of equal items the latest comes first, as `tie_rule` states
        order = np.argsort(items, axis=2, kind="stable")[:, :, ::-1]
        values = np.take_along_axis(items, order, axis=2).cumsum(axis=2)
        # [m, j]: the j best items weighted for sets of m; a set of m takes m of them
        values = np.diagonal(values, axis1=1, axis2=2)  # the m best items, (n, m)
        if self.has_full:
            values = values + theta[:, n_sizes * T, None] * full_set_weights(T, self.beta)
        nothing = theta[:, -2] if self.has_empty else np.zeros(n)
        values = np.concatenate([nothing[:, None], values], axis=1)
        size = values.argmax(axis=1)  # of equal scores the smallest set
        best_order = order[np.arange(n), np.maximum(size - 1, 0)]
        np.put_along_axis(
            labels, best_order, (np.arange(T) < size[:, None]).astype(np.int64), axis=1
        )
        return np.asarray(values[np.arange(n), size] + theta[:, -1])

    def mean_embedding(self) -> FloatArray:
        """Return E_c F_c, with P(ŷ_t = 1 | |ŷ| = m) = m/T averaged over the sizes."""
        T = self.T
        member = (np.arange(T + 1)[:, None] / T * self._weights).mean(axis=0)  # P(ŷ_t | m) = m/T
        return np.concatenate([np.repeat(member, T), self._extra.mean(axis=0)])

    def constant_coordinates(self) -> FloatArray:
        """Return the unit vector of the last column, the constant."""
        coordinates = np.zeros(self.width)
        coordinates[-1] = 1.0
        return coordinates

    def predictable(self) -> Predictable:
        """Return every set, unless no column tells labels apart."""
        # without a block every set of one size ties, and a few listed ones win
        if not self.block_sizes:
            return super().predictable()
        # +1 on the members of ŷ and very negative elsewhere: more members are better, and ŷ wins
        return Predictable(2**self.T)

    @cached_property
    def _diameter(self) -> tuple[Fraction | float, bool]:
        """Return the squared diameter, and whether it is attained."""
        if not self.block_sizes:
            return super().diameter_squared(), True
        # three cases: all scores free (closed form), a numerically singular Ḡ (bounded by that
        # form), and otherwise the farthest pair over sizes and overlaps
        if self._ranks == (self.T - 1, self.T + 1):
            return _free_diameter(self.T), True
        if self._gram.ranks != self._ranks:
            # some directions are below rounding; a larger space has the larger diameter
            return _free_diameter(self.T), False
        T = self.T
        m = np.arange(T + 1)
        members, common = self._gram.kernel_parts(self._weights, self._common)
        # K(ŷ, ŷ') = (|ŷ∩ŷ'| − mm'/T)·members + common, linear in the overlap: its ends are enough
        leverage = (m - m**2 / T) * np.diag(members) + np.diag(common)
        low = np.maximum(m[:, None] + m - T, 0)
        high = np.minimum(m[:, None], m)
        np.fill_diagonal(high, np.maximum(m - 1, np.diag(low)))  # two different sets
        largest = 0.0
        for overlap in (low, high):
            kernel = (overlap - m[:, None] * m / T) * members + common
            squared = leverage[:, None] + leverage - 2 * kernel
            largest = max(largest, float(squared.max()))
        return largest, True

    @property
    def diameter_is_exact(self) -> bool:
        return self._diameter[1]

    def diameter_squared(self) -> Fraction | float:
        return self._diameter[0]


def _free_diameter(T: int) -> Fraction:
    """Return diam² where scores are free in every (size, label): sizes are independent layers.

    A layer of measure 1/(T+1) and dimension T (1 for ∅ and the full set) has leverage (T+1)·dim.
    Sets of different sizes add their leverages; two sets of size m with the least overlap are
    2(T²−1)T/(T−m) apart for m ≤ T/2.
    """
    dimensions = sorted(T if 0 < m < T else 1 for m in range(T + 1))[-2:]
    apart = Fraction((T + 1) * sum(dimensions))
    if T < 2:
        return apart
    return max(apart, Fraction(2 * (T**2 - 1) * T, T - T // 2))
