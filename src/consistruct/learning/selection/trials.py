"""One model on the way from candidate to member of a stack, and the rows it is judged on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from consistruct.learning.encoding.kinds import Examples
from consistruct.learning.models.base import LeftOut, TargetModel
from consistruct.learning.recalibration import Recalibration, Unchanged
from consistruct.learning.statistics import Statistic
from consistruct.protocols import IntArray

__all__ = ["Sample", "Trial"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows on which models are compared."""

    rows: IntArray  # numbers among all training rows
    examples: Examples
    whole: bool  # whether these are all rows
    exact: bool  # whether exact leave-one-out may stand for folds


@dataclass(eq=False)
class Trial:
    """One model on the way from candidate to member."""

    name: str
    model: TargetModel | None
    reason: str = ""
    left: LeftOut | None = None
    statistic: Statistic = None  # type: ignore[assignment]
    fitted: TargetModel | None = None  # on all rows of the sample
    recalibration: Recalibration = Unchanged()  # noqa: RUF009 - an immutable value
    weight: float = 0.0
    criterion: float | None = None
    task_loss: float | None = None
    seconds: float = 0.0

    def entry(self) -> dict[str, Any]:
        """What `portfolio_` and reports show."""
        happened = self.reason or ("used" if self.weight > 0 else "not used")
        return {
            "name": self.name,
            "status": happened,
            "weight": self.weight,
            "criterion": self.criterion,
            "task_loss": self.task_loss,
            "seconds": self.seconds,
        }
