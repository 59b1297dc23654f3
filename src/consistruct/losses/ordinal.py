"""Ordinal losses: how far off, on a scale of classes."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from consistruct._members import frozen_array
from consistruct._validation import check_count, check_number
from consistruct.losses.base import Sizes
from consistruct.losses.matrix import MatrixLoss, require_listable
from consistruct.losses.spec import at_most, check_order, count_field, number_field
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Classes

__all__ = ["Ordinal"]


@dataclass(frozen=True, eq=False, repr=False)
class Ordinal(MatrixLoss):
    """Charge the distance between ordered classes, to a power.

    Formula: L(i, j) = |i − j|^power. Scores: rank k for power 1, rank 3 (1, i, i²) for power 2.
    Decoder: argmax, O(k·rank).

    The best decision is the median grade for power 1 and the rounded mean for power 2: choose 2
    where far misses must be rare, 1 where they are bad luck.

    Parameters
    ----------
    k : int
        Number of ordered classes.
    power : float
        1 for absolute, 2 for squared differences; any positive number.
    names : tuple of str, optional
        The classes in order, where labels are text: it does not say that "low" is below "mid".

    Examples
    --------
    >>> from consistruct.losses import Ordinal, parse_loss
    >>> parse_loss("ordinal:low,mid,high")
    Ordinal(3, names=('low', 'mid', 'high'))
    >>> Ordinal(5)([0, 4], [3, 4])
    array([3., 0.])
    >>> Ordinal(5, power=2).score_space.rank
    3
    """

    ordered_classes: ClassVar[bool] = True

    k: int
    power: float = 1.0
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        power = check_number(self.power, "power", low=0.0, open_low=True)
        k = check_count(self.k, "k")
        # compared as logarithms: (k − 1)^power itself would overflow before it could be refused
        if k > 1 and power * math.log(k - 1) > math.log(sys.float_info.max):
            raise ValueError(
                f"the largest cost, {k - 1} to the power {power}, is not a finite number; "
                f"choose a smaller power or fewer classes"
            )
        names = None if self.names is None else check_order(self.names)
        if names is not None and len(names) != k:
            raise ValueError(f"names must be those of {k} classes, got {len(names)}")
        self._set(k=k, power=power, names=names)

    @cached_property
    def _columns(self) -> FloatArray:
        require_listable(self.k, "an ordinal loss")
        # Toeplitz: one row of powers, shifted; `_value` computes |i − j|^power pair by pair instead
        powers = np.arange(self.k, dtype=np.float64) ** self.power
        return frozen_array(powers[np.abs(np.subtract.outer(np.arange(self.k), np.arange(self.k)))])

    @cached_property
    def _prediction_set(self) -> Classes:
        return Classes(self.k, self.names)

    @property
    def true_labels(self) -> Classes:
        return self._prediction_set

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        # differences first: labels are integers and exact, while i² − 2ij + j² would round
        return np.abs((pred - true).astype(np.float64)) ** self.power

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("ordinal", arguments, 2, "ordinal:5, ordinal:5:2 or ordinal:low,mid,high")
        power = number_field("ordinal", arguments, 1, "power") if len(arguments) > 1 else 1.0
        # names in order, low,mid,high, or a number of levels: a comma tells them apart
        if arguments and "," in arguments[0]:
            names = check_order(arguments[0].split(","))
            return cls(len(names), power, names)
        k = count_field("ordinal", arguments, 0, sizes.n_classes, "number of classes")
        return cls(k, power)
