"""What a missed and what a false label costs, for each label of a set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_weights
from consistruct.losses.base import Loss, Sizes, WorstCase
from consistruct.losses.spec import at_most, check_most, count_field, number_field
from consistruct.protocols import FloatArray, IntArray, LabelArray, Target
from consistruct.structures import Product, Separable

__all__ = ["LabelCosts"]


@dataclass(frozen=True, eq=False, repr=False)
class LabelCosts(Loss):
    """Charge each missed and each false label of a set its own cost, on average over labels.

    Formula: L(ŷ, y) = (1/T) Σ_t miss_t [y_t = 1, ŷ_t = 0] + alarm_t [y_t = 0, ŷ_t = 1]. With all
    costs 1 it is the Hamming loss. Scores: one per label and state. Decoder: per label, the state
    of least expected cost, which is label t where its probability is above
    alarm_t / (miss_t + alarm_t): a threshold for every label.

    Parameters
    ----------
    miss, alarm : (T,) arrays
        Non-negative.

    Examples
    --------
    >>> from consistruct.losses import LabelCosts
    >>> LabelCosts([4.0, 1.0], [1.0, 1.0])([[0, 1]], [[1, 0]])
    array([2.5])
    """

    labels_as: ClassVar[str] = "parts"

    miss: ArrayField
    alarm: ArrayField

    def __post_init__(self) -> None:
        n_labels = max(np.size(self.miss), 1)  # no label at all is refused as a wrong shape
        miss = check_weights(self.miss, n_labels, "miss", "label")
        alarm = check_weights(self.alarm, n_labels, "alarm", "label")
        self._set(miss=frozen_array(miss), alarm=frozen_array(alarm))

    @property
    def n_parts(self) -> int:
        """Return the number of labels."""
        return len(self.miss)

    @property
    def thresholds(self) -> FloatArray:
        """Return the probability from which on each label is predicted, (T,); ½ if it is free.

        Predicting it costs alarm·(1 − p), leaving it out miss·p: equal at alarm/(miss + alarm).
        """
        total = self.miss + self.alarm
        return np.where(total > 0, self.alarm / np.where(total > 0, total, 1.0), 0.5)

    @cached_property
    def score_space(self) -> Separable:
        return Separable(self.n_parts, 2)

    @cached_property
    def true_labels(self) -> Product:
        return Product(self.n_parts, 2)

    @property
    def max_value(self) -> float:
        return float(np.maximum(self.miss, self.alarm).mean())

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        costs = self.miss * (true > pred) + self.alarm * (pred > true)
        return np.asarray(costs.mean(axis=1))

    def target(self, true: ArrayLike) -> Target:
        states = self.true_labels.check(true, "true")
        # column (t, a) is what state a of label t costs when y_t is true: no offset is left over
        target = np.zeros((len(states), self.n_parts, 2))
        target[:, :, 0] = states * self.miss / self.n_parts
        target[:, :, 1] = (1 - states) * self.alarm / self.n_parts
        return target.reshape(len(states), 2 * self.n_parts)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        parts = direction.reshape(len(direction), self.n_parts, 2)
        # labels are independent: the worst y_t = 1 collects d_{t,0}·miss_t, the worst y_t = 0 the
        # other
        yes, no = parts[:, :, 0] * self.miss, parts[:, :, 1] * self.alarm
        return np.maximum(yes, no).sum(axis=1) / self.n_parts, np.asarray(yes > no, dtype=np.int64)

    def target_groups(self) -> tuple[IntArray, ...] | None:
        """Return the two columns of each label: whether it is in y decides them."""
        return tuple(np.arange(2 * self.n_parts).reshape(self.n_parts, 2))

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("label-costs", arguments, 2, "label-costs:10:2")
        n_parts = count_field("label-costs", arguments, 0, sizes.n_parts, "number of labels")
        check_most("label-costs", 2 * n_parts, "labels times states", SPECS.separable_width)
        factor = number_field("label-costs", arguments, 1, "cost of a missed label")
        return cls(np.full(n_parts, factor), np.ones(n_parts))
