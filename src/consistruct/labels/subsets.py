"""Sets of labels as 0/1 vectors, with the measure "uniform over sizes, then over sets"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_counts, integer_labels
from consistruct.labels.base import ENUMERATION_LIMIT, INT64_LIMIT, FiniteLabels
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = ["Subsets"]


@dataclass(frozen=True, eq=False, repr=False)
class Subsets(FiniteLabels):
    """Subsets of 0..n_items−1 whose size is allowed, as 0/1 vectors in lexicographic order.

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
    >>> from consistruct.labels import Subsets
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
        """The allowed sizes, increasing."""
        return tuple(range(self.n_items + 1)) if self.sizes is None else self.sizes

    @cached_property
    def size(self) -> int:
        return sum(math.comb(self.n_items, s) for s in self.allowed_sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_items,)

    @property
    def measure(self) -> str:
        return "uniform over sizes, then over sets"

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
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
        """[r, c]: ways to fill the last r places when c members are chosen, exact."""
        n = self.n_items
        dtype = np.int64 if self.size < INT64_LIMIT else object
        table = np.zeros((n + 1, n + 2), dtype=dtype)
        table[0, list(self.allowed_sizes)] = 1
        for r in range(1, n + 1):  # leave the next place empty, or fill it
            table[r, :-1] = table[r - 1, :-1] + table[r - 1, 1:]
        return table

    def index(self, labels: ArrayLike) -> LabelArray:
        array = self.check(labels)
        table = self._completions
        index = np.zeros(len(array), dtype=table.dtype)
        chosen = np.zeros(len(array), dtype=np.int64)
        for place in range(self.n_items):
            # all vectors with a 0 here come before those with a 1
            index = index + table[self.n_items - place - 1, chosen] * array[:, place]
            chosen += array[:, place]
        return index

    def unindex(self, indices: ArrayLike) -> LabelArray:
        remaining = self._check_indices(indices)
        table = self._completions
        labels = np.zeros((len(remaining), self.n_items), dtype=np.int64)
        chosen = np.zeros(len(remaining), dtype=np.int64)
        for place in range(self.n_items):
            below = table[self.n_items - place - 1, chosen]
            bit = np.asarray(remaining >= below, dtype=np.int64)
            remaining = remaining - below * bit
            labels[:, place] = bit
            chosen += bit
        return labels

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        counts = rng.choice(np.array(self.allowed_sizes), size=n)
        places = rng.permuted(np.tile(np.arange(self.n_items), (n, 1)), axis=1)
        return (places < counts[:, None]).astype(np.int64)

    def weights(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        self._bounded_size(limit, "the measure of every label")
        counts: IntArray = self.enumerate(limit=limit).sum(axis=1)
        share = np.zeros(self.n_items + 1)
        for s in self.allowed_sizes:
            share[s] = 1.0 / (len(self.allowed_sizes) * math.comb(self.n_items, s))
        return share[counts]


def check_set_sizes(sizes: object, n_items: int) -> tuple[int, ...]:
    """Distinct set sizes in 0..n_items, increasing."""
    found = tuple(sorted(set(check_counts(sizes, "sizes", minimum=0))))
    if found[-1] > n_items:
        raise ValueError(f"sizes must be in 0..{n_items}, the number of items, got {found[-1]}")
    return found


def _listed(sizes: tuple[int, ...]) -> str:
    shown = ", ".join(str(s) for s in sizes[:8])
    return shown if len(sizes) <= 8 else f"{shown}, … {sizes[-1]}"
