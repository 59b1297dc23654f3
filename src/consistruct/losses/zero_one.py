"""The 0-1 loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count
from consistruct.losses.base import Loss, Sizes, minus_one_hot
from consistruct.losses.spec import at_most, count_field
from consistruct.protocols import FloatArray, LabelArray, LabelSet, Target
from consistruct.structures import Classes, Full
from consistruct.structures.classes import Partition

__all__ = ["ZeroOne"]


@dataclass(frozen=True, eq=False, repr=False)
class ZeroOne(Loss):
    """1 if the prediction is wrong, 0 if it is right.

    Formula: L(ŷ, y) = 1 − [ŷ = y]. Scores: one per class, rank k. Decoder: argmax, O(k).

    Parameters
    ----------
    k : int
        Number of classes.

    Examples
    --------
    >>> from consistruct.losses import ZeroOne
    >>> ZeroOne(3)([0, 1, 2], [0, 2, 2])
    array([0., 1., 0.])
    """

    is_zero_one: ClassVar[bool] = True

    k: int

    def __post_init__(self) -> None:
        self._set(k=check_count(self.k, "k"))

    @cached_property
    def score_space(self) -> Full:
        return Full(Classes(self.k))

    @property
    def true_labels(self) -> LabelSet:
        return self.score_space.predictions

    @property
    def max_value(self) -> float:
        return float(self.k > 1)

    @property
    def block_mixture(self) -> tuple[Partition, float]:
        return Partition(sizes=(self.k,)), 1.0

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return (pred != true).astype(np.float64)

    def target(self, true: ArrayLike) -> Target:
        self.score_space.require_arrays("target")
        return minus_one_hot(self.true_labels.check(true, "true"), self.k)

    def offset(self, true: ArrayLike) -> FloatArray:
        return np.ones(len(self.true_labels.check(true, "true")))

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("zero-one", arguments, 1, "zero-one:10")
        return cls(count_field("zero-one", arguments, 0, sizes.n_classes, "number of classes"))
