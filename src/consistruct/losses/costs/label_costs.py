"""What a missed and what a false label costs, for each label of a set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct._members import ArrayField, frozen_array
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.spec import at_most, check_most, count_field, number_field
from consistruct.protocols import FloatArray, IntArray, LabelArray, Target
from consistruct.structures import Product, Separable

__all__ = ["LabelCosts"]


@dataclass(frozen=True, eq=False, repr=False)
class LabelCosts(Loss):
    """Mean cost over the labels of a set: a missed label costs this, a false one that.

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
        miss, alarm = frozen_array(self.miss), frozen_array(self.alarm)
        if miss.ndim != 1 or miss.shape != alarm.shape or len(miss) == 0:
            raise ValueError(
                f"miss and alarm must be arrays of one number per label, got shapes {miss.shape} "
                f"and {alarm.shape}"
            )
        if (
            not (np.isfinite(miss).all() and np.isfinite(alarm).all())
            or min(miss.min(), alarm.min()) < 0
        ):
            raise ValueError("miss and alarm must contain finite, non-negative costs")
        self._set(miss=miss, alarm=alarm)

    @property
    def n_parts(self) -> int:
        """Number of labels."""
        return len(self.miss)

    @property
    def thresholds(self) -> FloatArray:
        """Probability from which on each label is predicted, (T,); ½ where nothing costs."""
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
        target = np.zeros((len(states), self.n_parts, 2))
        target[:, :, 0] = states * self.miss / self.n_parts
        target[:, :, 1] = (1 - states) * self.alarm / self.n_parts
        return target.reshape(len(states), 2 * self.n_parts)

    def worst_true_label(
        self, direction: FloatArray, offset_weight: float = 0.0
    ) -> tuple[FloatArray, LabelArray]:
        parts = direction.reshape(len(direction), self.n_parts, 2)
        yes, no = parts[:, :, 0] * self.miss, parts[:, :, 1] * self.alarm
        return np.maximum(yes, no).sum(axis=1) / self.n_parts, np.asarray(yes > no, dtype=np.int64)

    def target_groups(self) -> tuple[IntArray, ...] | None:
        return tuple(np.arange(2 * self.n_parts).reshape(self.n_parts, 2))

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("label-costs", arguments, 2, "label-costs:10:2")
        n_parts = count_field("label-costs", arguments, 0, sizes.n_parts, "number of labels")
        check_most("label-costs", 2 * n_parts, "labels times states", SPECS.separable_width)
        factor = number_field("label-costs", arguments, 1, "cost of a missed label")
        return cls(np.full(n_parts, factor), np.ones(n_parts))
