"""What every policy states: which losses it serves, what a safer prediction costs, what is proved.

A policy turns what an estimator states about rows into a `Family`: for each row a ladder of safer
and safer predictions with the safety from which the row stands on each. Whether losses never
increase along a ladder is a statement of the policy about the loss, proved in its comments; it is
not looked up in data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consistruct.guarantees.risk.ladders import Ladder
from consistruct.guarantees.risk.views import View
from consistruct.learning.estimator import TargetEstimator
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Family", "Options", "Policy", "two_valued"]

MATRIX_LIMIT = 256  # labels up to which the values of a loss are listed


@dataclass(frozen=True, eq=False)
class Options:
    """What a user may say beside the name of a policy.

    Attributes
    ----------
    loss : Loss
        What is counted; the estimator's own unless another was requested.
    defer_cost : float
        What it costs to hand a row over.
    defer_to : fitted estimator or None
        Who answers the rows that are handed over; None is a person, who is never wrong.
    """

    loss: Loss
    defer_cost: float = 0.0
    defer_to: TargetEstimator | None = None


class Family(ABC):
    """Ladders of some rows. Required: `losses`, `present`; the attributes are set by `__init__`."""

    thresholds: FloatArray  # (n, J), non-decreasing along a row
    answered: np.ndarray  # (n, J + 1) bool
    sizes: FloatArray  # (n, J + 1)

    @abstractmethod
    def losses(self, y: Any) -> FloatArray:
        """What every rung counts, (n, J + 1)."""

    @abstractmethod
    def present(self, rungs: IntArray) -> Any:
        """Predictions of the rungs on which the rows stand, as users expect them."""

    def ladder(self, y: Any) -> Ladder:
        """The ladders with the losses against true labels."""
        return Ladder(self.thresholds, self.losses(y), self.answered, self.sizes)

    def without_losses(self) -> Ladder:
        """The ladders without losses, to find the rungs of new rows."""
        return Ladder(self.thresholds, np.zeros(self.answered.shape), self.answered, self.sizes)


class Policy(ABC):
    """Required: `refusal`, `monotone`, `family`."""

    name: ClassVar[str]
    counts: ClassVar[str]  # what it counts in the risk
    silent: ClassVar[bool] = False  # whether some rungs are no answers
    size: ClassVar[str] = ""  # what `sizes` of the ladder are, for reports

    @abstractmethod
    def refusal(self, estimator: TargetEstimator, options: Options) -> str | None:
        """Why the policy does not serve a fitted estimator; None if it does."""

    @abstractmethod
    def monotone(self, options: Options) -> bool:
        """Whether it is proved that losses never increase along a ladder."""

    @abstractmethod
    def family(self, view: View, options: Options) -> Family:
        """The ladders of the rows of a view."""

    # --- with a default ---

    def bounds(self, options: Options) -> tuple[float, float]:
        """Least and largest loss that a rung can have."""
        return options.loss.value_range

    def two_values(self, options: Options) -> bool:
        """Whether every rung costs one of the two bounds, whatever the true label."""
        return False

    def safest(self, options: Options) -> float:
        """The most that the last rung can cost where that is known, else the least of all."""
        return self.bounds(options)[0]


def two_valued(loss: Loss) -> bool:
    """Whether a loss over few classes is 0 or its largest value, read off its matrix."""
    sizes = (loss.predictions.size, loss.true_labels.size)
    if any(size is None or size > MATRIX_LIMIT for size in sizes):
        return False
    return set(np.unique(loss.matrix())) <= {0.0, loss.max_value}
