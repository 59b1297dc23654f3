"""What is promised, in words; and what rows with truths show of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.guarantees.risk.ladders import Ladder
from consistruct.learning.evaluation.intervals import Interval, mean_interval
from consistruct.protocols import FloatArray

__all__ = ["Promise", "RiskReport", "report"]


@dataclass(frozen=True)
class Promise:
    """What holds for new rows, under which condition.

    Attributes
    ----------
    level : float or dict
        The risk that is not exceeded; one per segment where there are some.
    confidence : float or None
        Probability, over the calibration rows, that the risk is at most the level; None promises
        the mean over them.
    risk : "marginal" or "selective"
    policy, counts : str
        What safer predictions are, and what they count.
    method : str
        What proved it.
    n : int
        Calibration rows.
    proved : bool
        False for cross-fitting: the model is fitted again on all rows afterwards.
    weighted : bool
        Whether new rows may come with other frequencies, as the weights say.
    """

    level: Any
    confidence: float | None
    risk: str
    policy: str
    counts: str
    method: str
    n: int
    proved: bool = True
    weighted: bool = False

    def __str__(self) -> str:
        what = "mean loss of the answers" if self.risk == "selective" else "mean loss"
        level = (
            ", ".join(f"{name}: {value:g}" for name, value in self.level.items())
            if isinstance(self.level, dict)
            else f"{self.level:g}"
        )
        sure = (
            "on average over calibration sets"
            if self.confidence is None
            else f"with probability {self.confidence:g} over the calibration set"
        )
        rows = (
            "rows with the frequencies that the weights describe"
            if self.weighted
            else "rows like the calibration rows"
        )
        text = f"{what} at most {level} for {rows}, {sure} ({self.method}, {self.n} rows)"
        if self.proved:
            return text
        return (
            f"{text}; cross-fitted, so not proved: it holds if the model fitted on all rows is no "
            "worse than those fitted on the folds"
        )


@dataclass(frozen=True)
class RiskReport:
    """Risk and coverage on rows with truths.

    Attributes
    ----------
    promise : str
    risk : Interval
        Mean of what predictions count (marginal).
    selective_risk : Interval or None
        Mean over the rows that were answered; None if none was.
    coverage : float
        Share of the rows that were answered.
    size : float
        Mean size of the answers (classes in a set, items in a list; 1 for single answers).
    size_of : str
        What the size counts.
    n : int
    """

    promise: str
    risk: Interval
    selective_risk: Interval | None
    coverage: float
    size: float
    size_of: str
    n: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found: dict[str, Any] = {
            "promise": self.promise,
            "n_examples": self.n,
            "risk": self.risk.estimate,
            "risk_interval": self.risk.as_list(),
            "coverage": self.coverage,
        }
        if self.selective_risk is not None:
            found["selective_risk"] = self.selective_risk.estimate
            found["selective_risk_interval"] = self.selective_risk.as_list()
        if self.size_of:
            found["mean_size"] = self.size
        return found

    def __str__(self) -> str:
        answers = "no answers" if self.selective_risk is None else str(self.selective_risk)
        lines = [
            f"promise         {self.promise}",
            f"risk            {self.risk}",
            f"selective risk  {answers}",
            f"coverage        {self.coverage:.4g}",
        ]
        if self.size_of:
            lines.append(f"mean size       {self.size:.4g} {self.size_of}")
        return "\n".join(lines)


def report(
    ladder: Ladder,
    safety: float | FloatArray,
    *,
    promise: str,
    bounds: tuple[float, float],
    size_of: str,
) -> RiskReport:
    """What the ladders of rows show at a safety."""
    losses = ladder.at(safety)
    answered = ladder.at(safety, ladder.answered)
    sizes = ladder.at(safety, ladder.sizes)
    low, high = min(bounds[0], float(losses.min())), max(bounds[1], float(losses.max()))
    some = bool(answered.any())
    return RiskReport(
        promise,
        mean_interval(losses, bounds=(low, high)),
        mean_interval(losses[answered], bounds=(low, high)) if some else None,
        float(answered.mean()),
        float(sizes[answered].mean()) if some else float(np.nan),
        size_of,
        len(losses),
    )
