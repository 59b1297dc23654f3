"""What losses on orders share: families of query lengths, packed batches, relevance grades."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_number
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray, LabelSet
from consistruct.structures import Permutations, Product, Ragged

__all__ = ["OrderLoss", "RelevanceLoss", "rows_at"]


class OrderLoss(Loss):
    """A loss whose predictions are orders of n items, best first; n None is the family.

    Packed batches (`Ragged`) hold one order per query, of its own items 0, 1, …; queries of equal
    length are evaluated together.
    """

    labels_as: ClassVar[str] = "codes"

    n: int | None

    def __post_init__(self) -> None:
        self._set(n=None if self.n is None else check_count(self.n, "n"))

    def at(self, size: int) -> Self:
        """The member of the family for queries of `size` items."""
        return dataclasses.replace(self, n=size)  # type: ignore[type-var]

    @cached_property
    def predictions(self) -> Permutations:
        return Permutations(self.n)

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        if not isinstance(pred, Ragged) and not isinstance(true, Ragged):
            return super().__call__(pred, true)
        if not isinstance(pred, Ragged) or not isinstance(true, Ragged):
            raise TypeError(
                "pred and true must both be packed (Ragged) or both plain arrays; "
                "pack lists of queries with Ragged.pack"
            )
        if not pred.same_lengths(true):
            raise ValueError("pred and true must contain queries of the same lengths")
        lengths = true.lengths
        if (lengths == 0).any():
            empty = int(np.argmax(lengths == 0))
            raise ValueError(f"query {empty} is empty; leave out queries without items")
        if self.n is not None and (lengths != self.n).any():
            other = int(np.argmax(lengths != self.n))
            raise ValueError(
                f"{self!r} takes queries of {self.n} items, query {other} has {lengths[other]}; "
                f"use the family with n=None"
            )
        values = np.empty(len(true))
        for length in np.unique(lengths).tolist():
            queries = np.flatnonzero(lengths == length)
            member = self.at(length) if self.n is None else self
            values[queries] = member(rows_at(pred, queries), rows_at(true, queries))
        return values


def rows_at(packed: Ragged, queries: np.ndarray) -> LabelArray:
    """Sequences of equal length as one array, (len(queries), length)."""
    starts = packed.offsets[queries]
    length = int(packed.lengths[queries[0]])
    return packed.values[starts[:, None] + np.arange(length)]


class RelevanceLoss(OrderLoss):
    """An order loss whose true labels are the relevance grades of the items, 0 meaning irrelevant.

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
        """Whether it needs a score per pair of items, so that item scores are not consistent."""
        return False

    def with_grades(self, most: int) -> Self:
        """The same loss for true labels with grades up to `most`."""
        if most > 62:
            raise ValueError(
                f"relevance grades must be at most 62, got {most}; number the grades from 0"
            )
        return dataclasses.replace(self, n_grades=most + 1)  # type: ignore[type-var]

    @abstractmethod
    def _without_order(self, true: LabelArray) -> np.ndarray:
        """[there is nothing to rank], (n,)."""
