"""Rankings compared pair by pair: pairwise disagreement with relevance grades, Kendall's tau."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct._validation import check_choice
from consistruct.exceptions import CapabilityError
from consistruct.losses.base import Sizes, WorstCase
from consistruct.losses.rankings.orders import OrderLoss, RelevanceLoss
from consistruct.losses.spec import at_most, grades_field, items_field
from consistruct.protocols import FloatArray, IntArray, LabelArray, LabelSet, Target
from consistruct.structures import PairOrder, Permutations, Positions, Product
from consistruct.structures.orders import linear_discount, positions_of

__all__ = ["Kendall", "PairwiseDisagreement"]


def wrong_pairs(pred: IntArray, value: IntArray) -> FloatArray:
    """Count pairs with value_i > value_j in which j is ranked before i, (n,).

    O(n²) comparisons in n steps of one array each: a matrix of all pairs would need the memory.
    """
    ranked = np.take_along_axis(value, pred, axis=1)
    wrong = np.zeros(len(pred))
    for position in range(1, pred.shape[1]):  # everything before `place` that is worth less
        wrong += (ranked[:, :position] < ranked[:, position, None]).sum(axis=1)
    return wrong


def pair_signs(value: IntArray) -> FloatArray:
    """Return sign(value_i − value_j) for i < j, (n, pairs)."""
    first, second = np.triu_indices(value.shape[1], 1)
    return np.sign(value[:, first] - value[:, second]).astype(np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseDisagreement(RelevanceLoss):
    """Charge the share of pairs of differently relevant items that are ranked the wrong way.

    Formula: L(σ, y) = |{(i, j) : y_i > y_j, σ(i) > σ(j)}| / |{(i, j) : y_i > y_j}|; with two grades
    1 − the area under the ROC curve. A query whose items are all equally relevant costs `empty`, 0
    unless stated. Scores: with two grades one per item (linear in the position), rank n, decoded by
    sorting; with more grades one per pair, rank 1 + n(n−1)/2, decoded exactly up to 14 items and by
    a declared heuristic above (`decoding_is_exact`), which is exact under one true label.

    Choose it where any inversion counts alike, wherever in the list it is.

    Parameters
    ----------
    n : int or None
        Number of items; None is the family of all query lengths.
    n_grades : int
        Grades 0..n_grades−1 of the true label.
    empty : float
        Loss of a query in which no two items differ.

    Examples
    --------
    >>> from consistruct.losses import PairwiseDisagreement
    >>> PairwiseDisagreement(3, 3)([[0, 1, 2]], [[1, 2, 0]]).round(3)  # (1, 0) is inverted
    array([0.333])
    """

    n: int | None
    n_grades: int = 2
    empty: float = field(default=0.0, kw_only=True)

    @cached_property
    def score_space(self) -> Positions | PairOrder:
        if self.n_grades == 2:
            return Positions(None if self.n is None else linear_discount(self.n))
        return PairOrder(self._items("have a score space"))

    @property
    def needs_pairs(self) -> bool:
        """Tell whether there are more than two grades: then item scores are not consistent."""
        return self.n_grades > 2

    @property
    def max_value(self) -> float:
        return self.empty if self.n == 1 else 1.0

    def _without_order(self, true: LabelArray) -> np.ndarray:
        return np.asarray((true == true[:, :1]).all(axis=1))

    def _n_pairs(self, true: LabelArray) -> FloatArray:
        """Return the number of pairs that differ, 1 where there are none."""
        # n²/2 less the pairs of equal grade, (Σ_g n_g²)/2: the diagonal cancels, no list of pairs
        n = true.shape[1]
        equal = np.zeros(len(true))
        for grade in range(self.n_grades):
            equal += (true == grade).sum(axis=1) ** 2
        return np.maximum((n**2 - equal) / 2, 1.0)

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        wrong = wrong_pairs(pred, true) / self._n_pairs(true)
        return np.where(self._without_order(true), self.empty, wrong)

    def target(self, true: ArrayLike) -> Target:
        checked = self.true_labels.check(true, "true")
        scale = np.where(self._without_order(checked), 0.0, 1.0 / self._n_pairs(checked))[:, None]
        # with two grades Σ_{i<j} (y_i − y_j)[i before j] = Σ_i y_i·(n + 1 − σ(i)) + a constant:
        # positions of single items carry it, and sorting decodes
        if self.n_grades == 2:
            return -checked * scale
        constant = np.zeros((len(checked), 1))
        return np.concatenate([constant, -pair_signs(checked) * scale], axis=1)

    def offset(self, true: ArrayLike) -> FloatArray:
        checked = self.true_labels.check(true, "true")
        half = np.full(len(checked), 0.5)
        if self.n_grades == 2:
            # Σ_{i<j} (y_i−y_j)([i before j]−½) = Σ_i y_i (discount_i − (n+1)/2)
            middle = (checked.shape[1] + 1) / 2
            half += checked.sum(axis=1) * middle / self._n_pairs(checked)
        return np.where(self._without_order(checked), self.empty, half)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        n = self._items("optimize over true labels")
        if self.n_grades > 2:
            return super().worst_true_label(direction, offset_weight)
        k = np.arange(1, n)
        # with k of n relevant every pair weighs 1/(k(n − k)): the worst k have the smallest
        # directions
        order = np.argsort(direction, axis=1, kind="stable")
        sums = np.take_along_axis(direction, order, axis=1).cumsum(axis=1)[:, :-1]
        values = -sums / (k * (n - k)) + offset_weight * (0.5 + (n + 1) / 2 / (n - k))
        nothing = offset_weight * self.empty
        values = np.concatenate([np.full((len(direction), 1), nothing), values], axis=1)
        best = values.argmax(axis=1)
        true_labels = np.zeros(direction.shape, dtype=np.int64)
        members = np.arange(n) < best[:, None]
        np.put_along_axis(true_labels, order, members.astype(np.int64), axis=1)
        return values[np.arange(len(values)), best], true_labels

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("pairwise", arguments, 2, "pairwise:10 or pairwise:10:3")
        n = items_field("pairwise", arguments, sizes.n_parts, most=SPECS.paired_items)
        return cls(n, grades_field("pairwise", arguments, 1, sizes.n_states))


@dataclass(frozen=True, eq=False, repr=False)
class Kendall(OrderLoss):
    """Charge the share of pairs that two orders rank differently: Kendall's distance, (1 − τ)/2.

    Formula: L(σ, π) = |{pairs on which σ and π disagree}| / (n(n−1)/2), 0 for one item. Scores: one
    per pair, rank 1 + n(n−1)/2. Decoder: the linear ordering problem, exact up to 14 items, above
    that a declared heuristic (`decoding_is_exact`), which is exact under one true label.

    Choose it for label ranking, where the true label is an order and every inversion counts alike.

    Parameters
    ----------
    n : int or None
        Number of items; None is the family of all lengths.
    ties : "refuse", "average" or "exclude"
        "refuse": the true label is an order, best item first. Otherwise it is the rank of every
        item, 0 best, equal ranks being ties (a partial order): a tied pair costs ½ whatever is
        predicted, or does not count in the average (no pair left: 0).

    Examples
    --------
    >>> from consistruct.losses import Kendall
    >>> Kendall(3)([[0, 1, 2]], [[1, 0, 2]]).round(3)
    array([0.333])
    >>> Kendall(3, ties="exclude")([[0, 1, 2]], [[1, 0, 0]])  # 1 and 2 tie before 0
    array([1.])

    References
    ----------
    Kendall, *A new measure of rank correlation*, 1938; Fagin et al., *Comparing partial rankings*,
    2006, for ties.
    """

    labels_as: ClassVar[str] = "orders"

    n: int | None
    ties: Literal["refuse", "average", "exclude"] = field(default="refuse", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.ties, "ties", ("refuse", "average", "exclude"))

    @cached_property
    def score_space(self) -> PairOrder:
        return PairOrder(self._items("have a score space"))

    @cached_property
    def true_labels(self) -> LabelSet:
        if self.ties == "refuse":
            return Permutations(self.n)
        n = self._items("list ranks of unknown length")
        return Product(n, max(n, 2))

    @property
    def max_value(self) -> float:
        return 0.0 if self.n == 1 else 1.0

    def _worth(self, true: LabelArray) -> IntArray:
        """Return a value of each item, larger for better ones, (n, items)."""
        return -(positions_of(true) if self.ties == "refuse" else true)

    def _n_pairs(self, worth: IntArray) -> FloatArray:
        """Return how many pairs the loss averages over, (n,): all, or those that are not tied."""
        n = worth.shape[1]
        if self.ties != "exclude":
            return np.full(len(worth), max(n * (n - 1) / 2, 1.0))
        return np.maximum(np.abs(pair_signs(worth)).sum(axis=1), 1.0)

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        worth = self._worth(true)
        wrong = wrong_pairs(pred, worth)
        if self.ties == "average":
            first, second = np.triu_indices(worth.shape[1], 1)
            wrong = wrong + 0.5 * (worth[:, first] == worth[:, second]).sum(axis=1)
        return wrong / self._n_pairs(worth)

    def target(self, true: ArrayLike) -> Target:
        worth = self._worth(self.true_labels.check(true, "true"))
        signs = -pair_signs(worth) / self._n_pairs(worth)[:, None]
        return np.concatenate([np.zeros((len(worth), 1)), signs], axis=1)

    def offset(self, true: ArrayLike) -> FloatArray:
        worth = self._worth(self.true_labels.check(true, "true"))
        n = worth.shape[1]
        # ½ per pair is what a pair costs before its sign is known; nothing is offset where no pair
        # counts
        counted = n > 1 if self.ties != "exclude" else (worth != worth[:, :1]).any(axis=1)
        return np.where(counted, np.full(len(worth), 0.5), 0.0)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        n = self._items("optimize over true labels")
        if self.ties != "refuse" or n == 1:
            return super().worst_true_label(direction, offset_weight)
        # signs of a true label are twice its embedding: the true labels are decoded like
        # predictions
        theta = -2.0 * direction / (n * (n - 1) / 2)
        theta[:, 0] = 0.0
        space = PairOrder(n)
        true_labels = space.decode(theta)
        # recomputed from the labels: above 14 items the decoder is a heuristic, and a value that
        # every pair agrees with is the only proof at hand that it found the maximum
        values = (space.embed(true_labels) * theta).sum(axis=1)
        bound = 0.5 * np.abs(theta).sum(axis=1)  # every pair as wished
        if not space.decoding_is_exact and (values < bound * (1 - 1e-12)).any():
            raise CapabilityError(
                self,
                "worst_true_label",
                f"the worst of {n}! orders",
                "it is exact up to 14 items, and above that only if no preferences conflict",
            )
        return values + 0.5 * offset_weight, true_labels

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("kendall", arguments, 1, "kendall:6")
        return cls(items_field("kendall", arguments, sizes.n_parts, most=SPECS.paired_items))
