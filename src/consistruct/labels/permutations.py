"""Orders of n items: rankings (best item first) and perfect matchings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, integer_labels
from consistruct.exceptions import FamilyError
from consistruct.labels.base import FiniteLabels, integer_array
from consistruct.protocols import LabelArray

__all__ = ["Permutations"]


@dataclass(frozen=True, eq=False, repr=False)
class Permutations(FiniteLabels):
    """All permutations of 0..n−1, ordered lexicographically.

    A ranking is written as an order: ``label[0]`` is the best item. A matching is written as an
    assignment: ``label[i]`` is the partner of i. With ``n_items`` None it is the family of all
    lengths, whose batches are packed (`Ragged`).

    Examples
    --------
    >>> from consistruct.labels import Permutations
    >>> Permutations(3).enumerate()[:3].tolist()
    [[0, 1, 2], [0, 2, 1], [1, 0, 2]]
    >>> Permutations(3).index([[2, 1, 0]])
    array([5])
    """

    n_items: int | None

    def __post_init__(self) -> None:
        n_items = None if self.n_items is None else check_count(self.n_items, "n_items")
        self._set(n_items=n_items)

    def at(self, size: int) -> Self:
        """The member of the family with `size` items."""
        return type(self)(size)

    @property
    def size(self) -> int | None:
        return None if self.n_items is None else math.factorial(self.n_items)

    @property
    def shape(self) -> tuple[int, ...]:
        if self.n_items is None:
            raise FamilyError(self, "give the shape of a label")
        return (self.n_items,)

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        if self.n_items is None:
            raise FamilyError(self, f"check {name} in a plain array (pack orders with Ragged)")
        array = integer_labels(labels, self.shape, name).astype(np.int64)
        wrong = (np.sort(array, axis=1) != np.arange(self.n_items)).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            shown = array[row].tolist()
            hint = (
                ("; every item must occur once, without ties")
                if len(set(shown)) < len(shown)
                else ""
            )
            raise ValueError(
                f"{name} must contain permutations of 0..{self.n_items - 1}, "
                f"got {shown} at row {row}{hint}"
            )
        return array

    def index(self, labels: ArrayLike) -> LabelArray:
        size = self._finite_size("be indexed")
        array = self.check(labels)
        (n_items,) = self.shape
        index = integer_array(np.zeros(len(array), dtype=np.int64), size)
        for place in range(n_items):
            # Lehmer digit: how many smaller items are still unused
            digit = (array[:, place + 1 :] < array[:, place, None]).sum(axis=1)
            index = index * (n_items - place) + integer_array(digit, size)
        return index

    def unindex(self, indices: ArrayLike) -> LabelArray:
        remaining = self._check_indices(indices)
        (n_items,) = self.shape
        digits = np.empty((len(remaining), n_items), dtype=np.int64)
        for place in reversed(range(n_items)):
            base = n_items - place
            digits[:, place] = (remaining % base).astype(np.int64)
            remaining = remaining // base
        labels = digits
        for place in reversed(range(n_items - 1)):
            # undo the Lehmer code from the right: later items at or above this one move up
            later = labels[:, place + 1 :]
            later += later >= labels[:, place, None]
        return labels

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        (n_items,) = self.shape
        return rng.permuted(np.tile(np.arange(n_items), (n, 1)), axis=1)
