"""Orders of n items: rankings (best item first) and perfect matchings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, integer_labels
from consistruct.labels.base import FiniteLabels, integer_array
from consistruct.protocols import LabelArray

__all__ = ["Permutations"]


@dataclass(frozen=True, eq=False, repr=False)
class Permutations(FiniteLabels):
    """All permutations of 0..n−1, ordered lexicographically.

    A ranking is written as an order: ``label[0]`` is the best item. A matching is written as an
    assignment: ``label[i]`` is the partner of i.

    Examples
    --------
    >>> from consistruct.labels import Permutations
    >>> Permutations(3).enumerate()[:3].tolist()
    [[0, 1, 2], [0, 2, 1], [1, 0, 2]]
    >>> Permutations(3).index([[2, 1, 0]])
    array([5])
    """

    n_items: int

    def __post_init__(self) -> None:
        self._set(n_items=check_count(self.n_items, "n_items"))

    @property
    def size(self) -> int:
        return math.factorial(self.n_items)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_items,)

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        array = integer_labels(labels, self.shape, name).astype(np.int64)
        wrong = (np.sort(array, axis=1) != np.arange(self.n_items)).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"{name} must hold permutations of 0..{self.n_items - 1}, "
                f"got {array[row].tolist()} at row {row}"
            )
        return array

    def index(self, labels: ArrayLike) -> LabelArray:
        array = self.check(labels)
        index = integer_array(np.zeros(len(array), dtype=np.int64), self.size)
        for place in range(self.n_items):
            # Lehmer digit: how many smaller items are still unused
            digit = (array[:, place + 1 :] < array[:, place, None]).sum(axis=1)
            index = index * (self.n_items - place) + integer_array(digit, self.size)
        return index

    def unindex(self, indices: ArrayLike) -> LabelArray:
        remaining = self._check_indices(indices)
        digits = np.empty((len(remaining), self.n_items), dtype=np.int64)
        for place in reversed(range(self.n_items)):
            base = self.n_items - place
            digits[:, place] = (remaining % base).astype(np.int64)
            remaining = remaining // base
        labels = digits
        for place in reversed(range(self.n_items - 1)):
            # undo the Lehmer code from the right: later items at or above this one move up
            later = labels[:, place + 1 :]
            later += later >= labels[:, place, None]
        return labels

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        return rng.permuted(np.tile(np.arange(self.n_items), (n, 1)), axis=1)
