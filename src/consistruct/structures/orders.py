"""Orders of items, scored by a number per item: rankings (best item first), decoded by sorting.

`Permutations` is the label set of this family, of `pair_orders` and of `matchings`.
`PermutationSpace` is what structures on it share if renaming the items changes nothing.
`Positions` scores an order by Σ_i θ_i · discount(position of i): the scores of NDCG, of
Spearman's rho and of the share of misordered pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_count, check_theta, integer_labels
from consistruct.exceptions import FamilyError
from consistruct.protocols import FloatArray, Gram, IntArray, LabelArray
from consistruct.structures.base import FiniteLabels, Predictable, Structure, integer_array
from consistruct.structures.operators import ItemGram
from consistruct.structures.ragged import Ragged

__all__ = [
    "PermutationSpace",
    "Permutations",
    "Positions",
    "linear_discount",
    "positions_of",
]


@dataclass(frozen=True, eq=False, repr=False)
class Permutations(FiniteLabels):
    """List all permutations of 0..n−1, ordered lexicographically.

    A ranking is written as an order: ``label[0]`` is the best item. A matching is written as an
    assignment: ``label[i]`` is the partner of i. With ``n_items`` None it is the family of all
    lengths, whose batches are packed (`Ragged`).

    Parameters
    ----------
    n_items : int or None

    Examples
    --------
    >>> from consistruct.structures import Permutations
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
        """Return the member of the family with `size` items."""
        return type(self)(size)

    @property
    def size(self) -> int | None:
        """Count n! permutations; None for the family."""
        return None if self.n_items is None else math.factorial(self.n_items)

    @property
    def shape(self) -> tuple[int, ...]:
        if self.n_items is None:
            raise FamilyError(self, "give the shape of a label")
        return (self.n_items,)

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        """Return permutations, (n, n_items): every item occurs once."""
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
        """Return lexicographic positions by Lehmer digits, exact, (n,)."""
        size = self._finite_size("be indexed")
        array = self.check(labels)
        (n_items,) = self.shape
        index = integer_array(np.zeros(len(array), dtype=np.int64), size)
        for position in range(n_items):
            # Lehmer digit: how many smaller items are still unused
            digit = (array[:, position + 1 :] < array[:, position, None]).sum(axis=1)
            index = index * (n_items - position) + integer_array(digit, size)
        return index

    def unindex(self, indices: ArrayLike) -> LabelArray:
        """Return the permutations at lexicographic positions, (n, n_items)."""
        remaining = self._check_indices(indices)
        (n_items,) = self.shape
        digits = np.empty((len(remaining), n_items), dtype=np.int64)
        for position in reversed(range(n_items)):
            base = n_items - position
            digits[:, position] = (remaining % base).astype(np.int64)
            remaining = remaining // base
        labels = digits
        for position in reversed(range(n_items - 1)):
            # undo the Lehmer code from the right: later items at or above this one move up
            later = labels[:, position + 1 :]
            later += later >= labels[:, position, None]
        return labels

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        """Draw shuffles, (n, n_items)."""
        (n_items,) = self.shape
        return rng.permuted(np.tile(np.arange(n_items), (n, 1)), axis=1)


def positions_of(orders: IntArray) -> IntArray:
    """Return the position of every item, counted from 0, (n, m) orders -> (n, m).

    The inverse permutation: ``orders[r, p]`` is the item at p, ``positions[r, i]`` the place of i.
    """
    positions = np.empty_like(orders)
    np.put_along_axis(positions, orders, np.arange(orders.shape[1])[None, :], axis=1)
    return positions


class PermutationSpace(Structure):
    """Score permutations so that renaming the items changes nothing: every permutation is alike.

    Renaming the items maps any of them to any other and keeps the uniform measure, so every row
    of F has the same leverage, the rank. Distinct rows then lie on one sphere: each is a vertex of
    conv F and can be predicted.
    """

    n: int
    contains_constant = True

    def __post_init__(self) -> None:
        self._set(n=check_count(self.n, "n"))

    @cached_property
    def predictions(self) -> Permutations:
        return Permutations(self.n)

    def predictable(self) -> Predictable:
        """Return every permutation: all rows are vertices of one sphere."""
        return Predictable(math.factorial(self.n))


def linear_discount(n_items: int) -> FloatArray:
    """Return n, n − 1, …, 1: the discount of Spearman's rho and of pairs of binary relevance."""
    return np.arange(n_items, 0, -1, dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Positions(Structure):
    """Score orders item by item: F_σ = (discount(position of item i))_i, width n, rank n.

    f(σ) = Σ_i θ_i · discount(σ(i)) is largest if items are sorted by θ, O(n log n). The structure
    of NDCG, precision at q, Spearman's rho and of binary relevance in pairs: choose it wherever the
    loss allows, since learning needs one number per item only.

    The constant is in the span, because the discounts of all items add up to the same sum in every
    order. If all positions count alike the rank is 1.

    Parameters
    ----------
    discount : (n,) array or None
        Weight of each position, non-increasing and non-negative with a positive sum. None stands
        for queries of any length and serves packed decoding only.

    Examples
    --------
    >>> from consistruct.structures import Positions
    >>> space = Positions([3, 2, 1])
    >>> space.embed([[2, 0, 1]])  # item 2 first, then 0, then 1
    array([[2., 1., 3.]])
    >>> space.rank, space.effective_classes()
    (3, 4.0)
    >>> Positions([1, 1, 0]).decode([[0.5, 0.1, 0.9]])  # the first two places count alike
    array([[0, 2, 1]])

    References
    ----------
    Cossock and Zhang, *Statistical analysis of Bayes optimal subset ranking*, 2008.
    """

    discount: ArrayField | None
    forbids: ClassVar[bool] = False  # −inf puts an item last instead
    contains_constant = True

    def __post_init__(self) -> None:
        if self.discount is None:
            return
        discount = frozen_array(self.discount)
        if discount.ndim != 1 or len(discount) == 0 or not np.isfinite(discount).all():
            raise ValueError(
                f"discount must be one finite weight per position, got shape {discount.shape}"
            )
        if (np.diff(discount) > 0).any():
            raise ValueError(
                "discount must not increase with the position; sorting would not be exact"
            )
        if discount[-1] < 0 or discount[0] <= 0:
            raise ValueError(
                "discount must be non-negative with a positive first entry, got "
                f"{discount[:5].tolist()}; add a constant to it, which does not change the order "
                "of the scores"
            )
        self._set(discount=discount)

    def _weights(self, action: str) -> FloatArray:
        """Return the discount, or raise `FamilyError` naming what cannot be done without."""
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
        """Say whether all positions count alike, so that no order is better than another."""
        discount = self._weights("have a rank")
        return bool(discount[0] == discount[-1])

    @property
    def rank(self) -> int:
        return 1 if self._flat else self.width

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return the discount that each item gets, (n, items)."""
        discount = self._weights("embed")
        orders = self.predictions.check(labels)
        rows = np.empty(orders.shape)
        np.put_along_axis(rows, orders, np.broadcast_to(discount, orders.shape), axis=1)
        return rows

    @cached_property
    def _mean(self) -> float:
        """Return the mean discount; exactly the common one where all positions count alike."""
        discount = self._weights("have a mean")
        return float(discount[0] if self._flat else discount.mean())

    @cached_property
    def _variance(self) -> float:
        """Return Var d over a uniform position; exactly 0 where all positions count alike."""
        return 0.0 if self._flat else float(np.var(self._weights("have a Gram operator")))

    @cached_property
    def _gram(self) -> ItemGram:
        """Return Ḡ: items vary with Var d and covary by −Var d/(n−1): by symmetry."""
        discount = self._weights("have a Gram operator")
        n = len(discount)
        # Cov(d_i, d_j) = −Var/(n−1): on contrasts of items Ḡ is Var·n/(n−1)
        contrast = np.array([[math.sqrt(self._variance * n / max(n - 1, 1))]])
        return ItemGram(n, contrast, np.array([[math.sqrt(n) * self._mean]]))

    def gram(self) -> Gram:
        return self._gram

    @cached_property
    def plateaus(self) -> list[slice]:
        """List runs of at least two positions with equal discount, where ties are possible."""
        edges = np.flatnonzero(np.diff(self._weights("have plateaus"))) + 1
        bounds = [0, *edges.tolist(), self.width]
        runs = [slice(start, stop) for start, stop in pairwise(bounds)]
        return [run for run in runs if run.stop - run.start > 1]

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the order that maximizes Σ_i θ_i · discount(position of i), (n, items).

        By the rearrangement inequality items are sorted by θ where the discount never increases.
        Positions of equal discount are interchangeable: items there are listed by number, which
        makes the result the lexicographically smallest maximizer. θ = −inf puts an item last.
        """
        discount = self._weights("decode a plain array (decode_packed takes Ragged scores)")
        scores = check_theta(theta, len(discount))
        order = np.argsort(-scores, axis=1, kind="stable").astype(np.int64)
        for run in self.plateaus:
            order[:, run] = np.sort(order[:, run], axis=1)
        return order

    def decode_packed(self, theta: Ragged) -> Ragged:
        """Sort packed item scores (N,) into packed orders: the best item of each query first."""
        values = np.asarray(theta.values)
        if values.ndim != 1:
            raise ValueError(f"packed theta must contain one score per item, got {values.shape}")
        scores = check_theta(values[:, None], 1)[:, 0]
        order = np.lexsort((-scores, theta.rows))  # stable: equal items by number
        return theta.with_values(order - theta.offsets[theta.rows])

    def mean_embedding(self) -> FloatArray:
        """Return the mean discount for every item."""
        return np.full(self.width, self._mean)

    def constant_coordinates(self) -> FloatArray:
        """Return 1/Σ d for every item: each order hands out all discounts once."""
        discount = self._weights("express the constant")
        return np.full(len(discount), 1.0 / discount.sum())

    def predictable(self) -> Predictable:
        """Return every order, or those that list tied positions by item number."""
        discount = self._weights("list predictable orders")
        size = self.predictions.size
        assert size is not None
        if (np.diff(discount) < 0).all():
            # every order sorts its own positions, and strictly
            return Predictable(size)
        # where positions count alike only the order by item number wins; the others are merged
        # with it, and counting what is left takes a list
        orders: LabelArray = self.predictions.enumerate()
        flat = np.diff(discount) == 0
        kept = ~((np.diff(orders, axis=1) < 0) & flat).any(axis=1)
        return Predictable(int(kept.sum()), np.flatnonzero(kept), order_matters=True)

    def diameter_squared(self) -> float:
        """Return the distance of an order and its reverse."""
        # kernel 1 + (n−1)/(n Var) Σ_i (d_σ(i)−m)(d_τ(i)−m): furthest apart are an order and its
        # reverse (rearrangement inequality)
        discount = self._weights("have a diameter")
        if self._flat:
            return 0.0
        n = len(discount)
        apart = float(((discount - discount[::-1]) ** 2).sum())
        return (n - 1) / (n * self._variance) * apart
