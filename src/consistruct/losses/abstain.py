"""Count errors, with the right not to answer at a price."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import frozen_array
from consistruct._validation import check_count, check_number
from consistruct.losses.base import Sizes
from consistruct.losses.matrix import MatrixLoss, require_listable
from consistruct.losses.spec import at_most, count_field, number_field
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Classes

__all__ = ["Abstain"]


@dataclass(frozen=True, eq=False, repr=False)
class Abstain(MatrixLoss):
    """Charge 1 for an error and `cost` for the extra prediction k, which means "no answer".

    Formula: L(ŷ, y) = [ŷ ≠ y] for ŷ < k and `cost` for ŷ = k. Scores: rank k + 1 (k if
    cost = (k−1)/k). Decoder: argmax, O(k).

    Parameters
    ----------
    k : int
        Number of classes; predictions are 0..k.
    cost : float
        Price of abstaining; below (k−1)/k it is worth while.

    Notes
    -----
    The best decision abstains where max_y P(y | x) < 1 − cost (Chow's rule). At cost ≥ (k−1)/k no
    distribution has so small a maximum, and abstaining is never better than a guess.

    Examples
    --------
    >>> from consistruct.losses import Abstain
    >>> Abstain(3, 0.3)([0, 3, 1], [0, 0, 2])
    array([0. , 0.3, 1. ])

    References
    ----------
    Chow, *On optimum recognition error and reject tradeoff*, 1970.
    """

    extra_prediction: ClassVar[str] = "abstain"

    k: int
    cost: float

    def __post_init__(self) -> None:
        self._set(k=check_count(self.k, "k"), cost=check_number(self.cost, "cost", low=0.0))

    @cached_property
    def _columns(self) -> FloatArray:
        require_listable(self.k, "a loss with abstention")
        # at cost = (k−1)/k the last row is the mean of the others: the rank of these columns and a
        # constant drops from k + 1 to k
        return frozen_array(np.vstack([1.0 - np.eye(self.k), np.full((1, self.k), self.cost)]))

    @cached_property
    def _prediction_set(self) -> Classes:
        return Classes(self.k + 1)

    @cached_property
    def true_labels(self) -> Classes:
        return Classes(self.k)

    @property
    def abstain_index(self) -> int:
        """Return k, the number behind those of the classes."""
        return self.k

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        # no true label is k, so that pred != true alone would charge 1 for abstaining
        return np.where(pred == self.k, self.cost, (pred != true).astype(np.float64))

    def true_label_as_prediction(self, true: ArrayLike) -> LabelArray:
        """Return the class itself: predictions are the classes and one more."""
        return self.true_labels.check(true, "true")

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("abstain", arguments, 2, "abstain:5:0.3")
        k = count_field("abstain", arguments, 0, sizes.n_classes, "number of classes")
        return cls(k, number_field("abstain", arguments, 1, "cost"))
