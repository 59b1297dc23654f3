"""Label sets scored by their members and their size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct._compile import compiled
from consistruct._threads import share_rows
from consistruct._validation import check_count, check_number, check_theta, refuse_all_forbidden
from consistruct.decoding.base import BaseDecoder
from consistruct.labels.subsets import check_set_sizes
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = ["SetBySize", "full_set_weights", "member_weights"]

BATCH_ITEMS = 32  # up to here scoring every size at once is faster than bounding them
ROWS_PER_THREAD = 64
CHUNK_BYTES = 16 * 2**20  # one score per example, predicted size and item of such a batch


def member_weights(n_items: int, beta: float, sizes: tuple[int, ...]) -> FloatArray:
    """(1 + β²)/(β²s + m) for set sizes m = 1..n_items (rows) and truth sizes s (columns)."""
    m = np.arange(1, n_items + 1)[:, None]
    return np.asarray((1 + beta**2) / (beta**2 * np.array(sizes, dtype=np.float64)[None, :] + m))


def full_set_weights(n_items: int, beta: float) -> FloatArray:
    """m(1 + β²)/(β²T + m), m = 1..T: F_β of any set of m items and the full set."""
    m = np.arange(1, n_items + 1)
    return np.asarray(m * (1 + beta**2) / (beta**2 * n_items + m))


@dataclass(frozen=True, eq=False, repr=False)
class SetBySize(BaseDecoder):
    """The set ŷ that maximises Σ_{s,t} θ_st ŷ_t (1+β²)/(β²s + |ŷ|) + θ_∅ [ŷ=∅] + θ_1.

    There is one truth of size s = T, the full set: it has one score θ_T for all items.

    Among sets of one size m the score is a sum over members, so the m best items win: one
    selection per m, O(T²(|sizes| + 1)) per example at most. Sizes are visited in the order of an
    upper bound that takes O(T·|sizes|·log T) for all of them, and most are never visited. Beyond
    32 items one example is decoded at a time and in each thread, with O(T) memory beside the
    scores.

    Parameters
    ----------
    n_items : int
        T, number of labels.
    beta : float
    sizes : sequence of int
        Truth sizes s that have scores; 0 stands for θ_∅, T for the full set.

    Notes
    -----
    θ holds, in this order: the items of each size 0 < s < T in turn, θ_T if T is among the sizes,
    θ_∅ if 0 is, and the constant θ_1.

    Examples
    --------
    >>> from consistruct.decoding import SetBySize
    >>> SetBySize(3, 1.0, (1, 2))([[0.5, 0.1, 0.0, 0.2, 0.4, -0.3, 0.0]])
    array([[1, 1, 0]])
    """

    n_items: int
    beta: float
    sizes: tuple[int, ...]
    tie_rule = "fewest labels, then the latest ones"

    def __post_init__(self) -> None:
        n_items = check_count(self.n_items, "n_items")
        beta = check_number(self.beta, "beta", low=0.0, open_low=True)
        sizes = check_set_sizes(self.sizes, n_items)
        if sizes[-1] == 0:
            raise ValueError("sizes must contain a positive set size, got only 0")
        self._set(n_items=n_items, beta=beta, sizes=sizes)

    @cached_property
    def block_sizes(self) -> tuple[int, ...]:
        """Truth sizes with one score per item."""
        return tuple(s for s in self.sizes if 0 < s < self.n_items)

    @property
    def has_full(self) -> bool:
        """Whether the full set is among the truths."""
        return self.sizes[-1] == self.n_items

    @property
    def has_empty(self) -> bool:
        """Whether the empty set is among the truths."""
        return self.sizes[0] == 0

    @property
    def width(self) -> int:
        return len(self.block_sizes) * self.n_items + self.has_full + self.has_empty + 1

    def __call__(self, theta: ArrayLike) -> LabelArray:
        scores = check_theta(theta, self.width)
        labels = np.zeros((len(scores), self.n_items), dtype=np.int64)
        best = np.empty(len(scores))
        weights = member_weights(self.n_items, self.beta, self.block_sizes)
        if self.n_items <= BATCH_ITEMS:
            chunk = max(1, CHUNK_BYTES // (8 * self.n_items**2))
            for start in range(0, len(scores), chunk):
                part = slice(start, start + chunk)
                best[part] = self._decode_batch(scores[part], weights, labels[part])
        else:
            full = full_set_weights(self.n_items, self.beta)
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
        """Score every size of few items: no bounds, but many examples at once."""
        (n, _), T, n_sizes = theta.shape, self.n_items, len(self.block_sizes)
        items = weights @ theta[:, : n_sizes * T].reshape(n, n_sizes, T)  # (n, m, T)
        order = np.argsort(items, axis=2, kind="stable")[:, :, ::-1]  # of equal items the latest
        values = np.take_along_axis(items, order, axis=2).cumsum(axis=2)
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
    n = len(theta)
    T, n_sizes = weights.shape
    common, bounds, items = np.zeros(T), np.empty(T), np.empty(T)
    for row in range(n):
        members = theta[row, : n_sizes * T].reshape(n_sizes, T)
        if has_full:
            for m in range(T):
                common[m] = theta[row, n_sizes * T] * full[m]
        # The m best items of each truth size, chosen apart, bound the m best items of their sum.
        # −inf times a positive weight stays −inf; there is no +inf, hence no NaN.
        bounds[:] = common
        for s in range(n_sizes):
            ordered = np.sort(members[s])
            total = 0.0
            for m in range(T):
                total += ordered[T - 1 - m]
                bounds[m] += weights[m, s] * total
        slack = 0.0
        for m in range(T):
            if bounds[m] > -np.inf:
                slack = max(slack, 1e-12 * abs(bounds[m]))
        order = np.argsort(-bounds, kind="mergesort")
        value = theta[row, -2] if has_empty else 0.0
        size = 0
        for m in order:
            if bounds[m] + slack < value:
                break  # and so are all sizes that follow
            items[:] = 0.0
            for s in range(n_sizes):
                for t in range(T):
                    items[t] += weights[m, s] * members[s, t]
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
