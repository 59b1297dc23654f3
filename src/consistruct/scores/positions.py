"""Rankings scored item by item: a number per item, discounted by its position."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, frozen_array
from consistruct.decoding import Sort
from consistruct.exceptions import FamilyError
from consistruct.labels import Permutations
from consistruct.protocols import FloatArray, Gram, LabelArray
from consistruct.scores.base import BaseScoreSpace, Predictable
from consistruct.scores.item_gram import ItemGram

__all__ = ["Positions", "linear_discount"]


def linear_discount(n_items: int) -> FloatArray:
    """n, n − 1, …, 1: the discount of Spearman's rho and of pairs of binary relevance."""
    return np.arange(n_items, 0, -1, dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Positions(BaseScoreSpace):
    """F_σ = (discount(position of item i))_i: width n, rank n; decoded by sorting, O(n log n).

    The constant is in the span, because the discounts of all items add up to the same sum in every
    order. If all positions count alike the rank is 1.

    Parameters
    ----------
    discount : (n,) array or None
        Weight of each position, non-increasing and non-negative with a positive sum. None stands
        for queries of any length and serves packed decoding only.

    Examples
    --------
    >>> from consistruct.scores import Positions
    >>> space = Positions([3, 2, 1])
    >>> space.embed([[2, 0, 1]])  # item 2 first, then 0, then 1
    array([[2., 1., 3.]])
    >>> space.rank, space.effective_classes()
    (3, 4.0)
    """

    discount: ArrayField | None

    def __post_init__(self) -> None:
        if self.discount is None:
            return
        discount = Sort(self.discount).discount
        assert discount is not None
        if discount[-1] < 0 or discount[0] <= 0:
            raise ValueError(
                "discount must be non-negative with a positive first entry, got "
                f"{discount[:5].tolist()}; add a constant to it, which does not change the order "
                "of the scores"
            )
        self._set(discount=frozen_array(discount))

    def _weights(self, action: str) -> FloatArray:
        if self.discount is None:
            raise FamilyError(self, action)
        return np.asarray(self.discount)

    @cached_property
    def predictions(self) -> Permutations:
        return Permutations(None if self.discount is None else len(self.discount))

    @property
    def width(self) -> int:
        return len(self._weights("have a width"))

    @cached_property
    def _flat(self) -> bool:
        discount = self._weights("have a rank")
        return bool(discount[0] == discount[-1])

    @property
    def rank(self) -> int:
        return 1 if self._flat else self.width

    def embed(self, labels: ArrayLike) -> FloatArray:
        discount = self._weights("embed")
        orders = self.predictions.check(labels)
        rows = np.empty(orders.shape)
        np.put_along_axis(rows, orders, np.broadcast_to(discount, orders.shape), axis=1)
        return rows

    @cached_property
    def _mean(self) -> float:
        """Mean discount; exactly the common one where all positions count alike."""
        discount = self._weights("have a mean")
        return float(discount[0] if self._flat else discount.mean())

    @cached_property
    def _variance(self) -> float:
        """Var d over a uniform position; exactly 0 where all positions count alike."""
        return 0.0 if self._flat else float(np.var(self._weights("have a Gram operator")))

    @cached_property
    def _gram(self) -> ItemGram:
        discount = self._weights("have a Gram operator")
        n = len(discount)
        # Cov(d_i, d_j) = −Var/(n−1): on contrasts of items Ḡ is Var·n/(n−1)
        contrast = np.array([[math.sqrt(self._variance * n / max(n - 1, 1))]])
        return ItemGram(n, contrast, np.array([[math.sqrt(n) * self._mean]]))

    def gram(self) -> Gram:
        return self._gram

    def decoder(self) -> Sort:
        return Sort(self.discount)

    def mean_embedding(self) -> FloatArray:
        return np.full(self.width, self._mean)

    @property
    def contains_constant(self) -> bool:
        return True

    def constant_coordinates(self) -> FloatArray:
        discount = self._weights("express the constant")
        return np.full(len(discount), 1.0 / discount.sum())

    def predictable(self) -> Predictable:
        discount = self._weights("list predictable orders")
        size = self.predictions.size
        assert size is not None
        if (np.diff(discount) < 0).all():
            # every order sorts its own positions, and strictly
            return Predictable(size)
        # items on positions that count alike are listed by number
        orders: LabelArray = self.predictions.enumerate()
        flat = np.diff(discount) == 0
        kept = ~((np.diff(orders, axis=1) < 0) & flat).any(axis=1)
        return Predictable(int(kept.sum()), np.flatnonzero(kept), order_matters=True)

    def diameter_squared(self) -> float:
        # kernel 1 + (n−1)/(n Var) Σ_i (d_σ(i)−m)(d_τ(i)−m): furthest apart are an order and its
        # reverse (rearrangement inequality)
        discount = self._weights("have a diameter")
        if self._flat:
            return 0.0
        n = len(discount)
        apart = float(((discount - discount[::-1]) ** 2).sum())
        return (n - 1) / (n * self._variance) * apart
