"""Mean average precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct.exceptions import CapabilityError, FamilyError
from consistruct.losses.base import Sizes
from consistruct.losses.rankings.orders import RelevanceLoss
from consistruct.losses.spec import at_most, items_field
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import PairDiscount, Positions

__all__ = ["MeanAveragePrecision"]

EXACT_TRUE_LABELS = 12  # items for which all true labels are listed in `worst_true_label`


@dataclass(frozen=True, eq=False, repr=False)
class MeanAveragePrecision(RelevanceLoss):
    """1 − average precision: the precision at each relevant item, averaged.

    Formula: L(σ, y) = 1 − (1/|y|) Σ_{i≤j} y_i y_j / max(σ(i), σ(j)). A query without relevant items
    costs `empty`, 0 unless stated. Scores: one per pair of items, rank n(n+1)/2 − 1 (n ≥ 2).
    Decoder: a quadratic assignment problem, exact up to 14 items, a declared heuristic above
    (`decoding_is_exact`).

    Choose it where you are judged by it. `sortable_scores` decodes by sorting but is not
    consistent: the best order under uncertainty need not be sorted by a score of single items.

    Parameters
    ----------
    n : int or None
        Number of items; None is the family of all query lengths.
    empty : float
        Loss of a query without relevant items.

    Examples
    --------
    >>> from consistruct.losses import MeanAveragePrecision
    >>> MeanAveragePrecision(3)([[0, 1, 2]], [[0, 1, 1]]).round(3)  # precisions 1/2 and 2/3
    array([0.417])
    """

    n: int | None
    empty: float = field(default=0.0, kw_only=True)
    n_grades: ClassVar[int] = 2  # type: ignore[misc]

    def __post_init__(self) -> None:
        super().__post_init__()

    @cached_property
    def score_space(self) -> PairDiscount:
        return PairDiscount(self._items("have a score space"))

    @property
    def needs_pairs(self) -> bool:
        return True

    def with_grades(self, most: int) -> Self:
        raise ValueError(
            "average precision distinguishes only relevant (1) and irrelevant (0) items, got "
            f"grade {most}; pass y > 0 or another threshold, or use NDCG for grades"
        )

    def sortable_scores(self) -> Positions:
        """Σ_i θ_i / σ(i): decoded by sorting, inconsistent for three items and more."""
        n = self._items("have a score space")
        return Positions(1.0 / np.arange(1, n + 1))

    def _items(self, action: str) -> int:
        if self.n is None:
            raise FamilyError(self, action)
        return self.n

    @property
    def max_value(self) -> float:
        # one relevant item, ranked last
        return 1.0 if self.n is None else max(self.empty, 1.0 - 1.0 / self.n)

    def _without_order(self, true: LabelArray) -> np.ndarray:
        return np.asarray(~(true > 0).any(axis=1))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        relevant = np.take_along_axis(true, pred, axis=1)
        precision = relevant.cumsum(axis=1) / np.arange(1, true.shape[1] + 1)
        count = np.maximum(true.sum(axis=1), 1)
        average = (precision * relevant).sum(axis=1) / count
        return np.where(self._without_order(true), self.empty, 1.0 - average)

    def prefix_losses(self, pred: ArrayLike, true: ArrayLike) -> FloatArray:
        orders = self.predictions.check(pred, "pred")
        grades = self.true_labels.check(true, "true")
        relevant = np.take_along_axis(grades, orders, axis=1)
        precision = relevant.cumsum(axis=1) / np.arange(1, grades.shape[1] + 1)
        count = np.maximum(grades.sum(axis=1), 1)[:, None]
        shown = 1.0 - (precision * relevant).cumsum(axis=1) / count
        return np.where(self._without_order(grades)[:, None], self.empty, shown)

    def target(self, true: ArrayLike) -> Target:
        checked = self.true_labels.check(true, "true")
        first, second = np.triu_indices(checked.shape[1])
        count = np.maximum(checked.sum(axis=1), 1)
        return -(checked[:, first] * checked[:, second]) / count[:, None]

    def offset(self, true: ArrayLike) -> FloatArray:
        return np.where(self._without_order(self.true_labels.check(true, "true")), self.empty, 1.0)

    def worst_true_label(
        self, direction: FloatArray, offset_weight: float = 0.0
    ) -> tuple[FloatArray, LabelArray]:
        n = self._items("optimize over true labels")
        if n <= EXACT_TRUE_LABELS:
            return super().worst_true_label(direction, offset_weight)
        first, second = np.triu_indices(n)
        if (direction[:, first != second] < 0).any():
            raise CapabilityError(
                self,
                "worst_true_label",
                f"the worst of 2^{n} true labels",
                f"it is exact up to {EXACT_TRUE_LABELS} items, and above that only if no pair is "
                "preferred",
            )
        # pairs only cost: the mean over the relevant items is largest for one item alone
        alone = -direction[:, first == second]
        best = alone.argmax(axis=1)
        values = alone[np.arange(len(alone)), best] + offset_weight
        true_labels = np.zeros((len(direction), n), dtype=np.int64)
        true_labels[np.arange(len(direction)), best] = 1
        nothing = offset_weight * self.empty
        true_labels[values < nothing] = 0
        return np.maximum(values, nothing), true_labels

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("map", arguments, 1, "map:5")
        return cls(items_field("map", arguments, sizes.n_parts, most=SPECS.paired_items))
