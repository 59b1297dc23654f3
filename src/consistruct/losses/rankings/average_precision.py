"""Judge rankings by mean average precision, whose terms are pairs of relevant items."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct.exceptions import CapabilityError
from consistruct.losses.base import Sizes, WorstCase
from consistruct.losses.rankings.orders import RelevanceLoss
from consistruct.losses.spec import at_most, items_field
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import PairDiscount, Positions

__all__ = ["MeanAveragePrecision"]

# items up to which `worst_true_label` lists all true labels: 2^12 rows of 78 pairs take some ms
EXACT_TRUE_LABELS = 12


@dataclass(frozen=True, eq=False, repr=False)
class MeanAveragePrecision(RelevanceLoss):
    """Charge 1 − average precision: the precision at each relevant item, averaged.

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

    References
    ----------
    Calauzènes, Usunier and Gallinari, *On the (non-)existence of convex, calibrated surrogate
    losses for ranking*, 2012; Ramaswamy, Agarwal and Tewari, 2013, for scores of pairs.
    """

    n: int | None
    empty: float = field(default=0.0, kw_only=True)
    n_grades: ClassVar[int] = 2  # type: ignore[misc]

    @cached_property
    def score_space(self) -> PairDiscount:
        return PairDiscount(self._items("have a score space"))

    @property
    def needs_pairs(self) -> bool:
        """Return True: sorting by scores of items is inconsistent for three items and more."""
        return True

    def with_grades(self, most: int) -> Self:
        """Refuse grades: precision counts relevant items, whatever their relevance."""
        raise ValueError(
            "average precision distinguishes only relevant (1) and irrelevant (0) items, got "
            f"grade {most}; pass y > 0 or another threshold, or use NDCG for grades"
        )

    def sortable_scores(self) -> Positions:
        """Return the structure Σ_i θ_i / σ(i): it sorts, inconsistently from three items on."""
        n = self._items("have a score space")
        return Positions(1.0 / np.arange(1, n + 1))

    @property
    def max_value(self) -> float:
        # one relevant item, ranked last
        return 1.0 if self.n is None else max(self.empty, 1.0 - 1.0 / self.n)

    def _without_order(self, true: LabelArray) -> np.ndarray:
        return np.asarray(~(true > 0).any(axis=1))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return self._prefix_losses(pred, true)[:, -1]  # the list that shows every item

    def prefix_losses(self, pred: ArrayLike, true: ArrayLike) -> FloatArray:
        """Return the loss of a list cut behind its first 1, 2, …, n items, (n_queries, n)."""
        orders = self.predictions.check(pred, "pred")
        return self._prefix_losses(orders, self.true_labels.check(true, "true"))

    def _prefix_losses(self, orders: LabelArray, grades: LabelArray) -> FloatArray:
        """Return the loss of the first 1, 2, …, n items of each order, (n_queries, n)."""
        relevant = np.take_along_axis(grades, orders, axis=1)
        # precision at position p counts where position p holds a relevant item, and |y| is what
        # they are averaged over: of all relevant items, those behind the cut have precision 0
        precision = relevant.cumsum(axis=1) / np.arange(1, grades.shape[1] + 1)
        count = np.maximum(grades.sum(axis=1), 1)[:, None]
        shown = 1.0 - (precision * relevant).cumsum(axis=1) / count
        return np.where(self._without_order(grades)[:, None], self.empty, shown)

    def target(self, true: ArrayLike) -> Target:
        checked = self.true_labels.check(true, "true")
        first, second = np.triu_indices(checked.shape[1])
        count = np.maximum(checked.sum(axis=1), 1)
        # u_y has −y_i y_j/|y| for i ≤ j; its row F_σ has 1/max(σ(i), σ(j)), the later position of
        # the two
        return -(checked[:, first] * checked[:, second]) / count[:, None]

    def offset(self, true: ArrayLike) -> FloatArray:
        return np.where(self._without_order(self.true_labels.check(true, "true")), self.empty, 1.0)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
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
