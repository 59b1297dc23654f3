"""Per-example costs: every true label is a vector of costs, one per prediction."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_number
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.spec import at_most, count_field
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import Classes, Full
from consistruct.structures.decisions import CostVectorSet

__all__ = ["CostVectors"]


@dataclass(frozen=True, eq=False, repr=False)
class CostVectors(Loss):
    """Charge what each example itself states: its own cost of every prediction.

    Formula: L(ŷ, c) = c[ŷ]. Scores: one per class, rank k. Decoder: argmax, O(k).

    The target is the vector itself, u_c = c, so that learning it is regression of k costs. Choose
    it where the price of an error differs between rows: the amount of a loan, the value of a case.

    Parameters
    ----------
    k : int
        Number of predictions.
    max_cost : float
        Largest cost that occurs, for analysis; the true labels themselves are not clipped.

    Examples
    --------
    >>> from consistruct.losses import CostVectors
    >>> CostVectors(3)([2, 0], [[0.0, 1.0, 4.0], [0.5, 0.0, 0.0]])
    array([4. , 0.5])
    """

    labels_as: ClassVar[str] = "codes"
    takes_cost_vectors: ClassVar[bool] = True

    k: int
    max_cost: float = 1.0

    def __post_init__(self) -> None:
        max_cost = check_number(self.max_cost, "max_cost", low=0.0, open_low=True)
        self._set(k=check_count(self.k, "k"), max_cost=max_cost)

    @cached_property
    def score_space(self) -> Full:
        return Full(Classes(self.k))

    @cached_property
    def true_labels(self) -> CostVectorSet:
        return CostVectorSet(self.k)

    @property
    def max_value(self) -> float:
        return self.max_cost

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return np.asarray(true[np.arange(len(true)), pred], dtype=np.float64)

    def target(self, true: ArrayLike) -> Target:
        return self.true_labels.check(true, "true")

    def fit_sizes(self, true: LabelArray) -> Self:
        """Return the loss with the largest cost of the training set, if above what was stated."""
        costs = self.true_labels.check(true, "y")
        return dataclasses.replace(self, max_cost=max(self.max_cost, float(costs.max())))

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("cost-vectors", arguments, 1, "cost-vectors:5")
        return cls(count_field("cost-vectors", arguments, 0, sizes.n_classes, "number of classes"))
