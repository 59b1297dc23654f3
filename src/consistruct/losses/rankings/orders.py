"""Share what losses on orders have in common: query lengths, packed batches, relevance grades."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_number
from consistruct.exceptions import FamilyError
from consistruct.losses.base import Loss, check_packed
from consistruct.protocols import FloatArray, LabelArray, LabelSet
from consistruct.structures import Permutations, Product, Ragged

__all__ = ["OrderLoss", "RelevanceLoss", "rows_at"]


class OrderLoss(Loss):
    """Judge orders of n items, best first; n None is the family of all lengths.

    **Must be written** beside what every `Loss` needs: ``n``, a field. A prediction σ lists items,
    ``pred[p]`` being the item at position p; formulas write σ(i) for the position of item i.

    Packed batches (`Ragged`) hold one order per query, of its own items 0, 1, …; queries of equal
    length are evaluated together.
    """

    labels_as: ClassVar[str] = "codes"

    n: int | None

    def __post_init__(self) -> None:
        self._set(n=None if self.n is None else check_count(self.n, "n"))

    def at(self, size: int) -> Self:
        """Return the member of the family for queries of `size` items."""
        return dataclasses.replace(self, n=size)  # type: ignore[type-var]

    def _items(self, action: str) -> int:
        """Return n; a family, whose members have different n, cannot do what is asked of it."""
        if self.n is None:
            raise FamilyError(self, action)
        return self.n

    @cached_property
    def predictions(self) -> Permutations:
        return Permutations(self.n)

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        packed = check_packed(self, pred, true, self.n, ("query", "queries", "items"))
        if packed is None:
            return super().__call__(pred, true)
        orders, labels = packed
        values = np.empty(len(labels))
        # all queries of one length in one call: discounts, pairs and normalizers go by the length
        for length in np.unique(labels.lengths).tolist():
            queries = np.flatnonzero(labels.lengths == length)
            member = self.at(length) if self.n is None else self
            values[queries] = member(rows_at(orders, queries), rows_at(labels, queries))
        return values


def rows_at(packed: Ragged, queries: np.ndarray) -> LabelArray:
    """Return sequences of equal length as one array, (len(queries), length)."""
    starts = packed.offsets[queries]
    length = int(packed.lengths[queries[0]])
    return packed.values[starts[:, None] + np.arange(length)]


class RelevanceLoss(OrderLoss):
    """Judge orders against the relevance grades of the items, 0 meaning irrelevant.

    `empty` is the loss of a true label in which there is nothing to rank, whatever is predicted.
    """

    labels_as: ClassVar[str] = "relevance"

    n_grades: int
    empty: float

    def __post_init__(self) -> None:
        super().__post_init__()
        n_grades = check_count(self.n_grades, "n_grades", minimum=2)
        empty = check_number(self.empty, "empty", low=0.0, high=1.0)
        self._set(n_grades=n_grades, empty=empty)

    @cached_property
    def true_labels(self) -> LabelSet:
        return Product(self.n, self.n_grades)

    @property
    def needs_pairs(self) -> bool:
        """Tell whether it needs a score per pair of items: item scores are not consistent."""
        return False

    def with_grades(self, most: int) -> Self:
        """Return the same loss for true labels with grades up to `most`."""
        if most > 62:
            raise ValueError(
                f"relevance grades must be at most 62, got {most}; number the grades from 0"
            )
        return dataclasses.replace(self, n_grades=most + 1)  # type: ignore[type-var]

    @abstractmethod
    def _without_order(self, true: LabelArray) -> np.ndarray:
        """Return [there is nothing to rank], (n,): the loss is `empty` whatever is predicted."""
