"""What is guaranteed, in words; and what rows with true labels show of it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from consistruct.guarantees.risk.ladders import Ladder
from consistruct.learning.evaluation.intervals import Interval, mean_interval
from consistruct.protocols import FloatArray

__all__ = ["Guarantee", "RiskReport", "in_full", "report"]


@dataclass(frozen=True)
class Guarantee:
    """What holds for new rows, under which condition.

    Attributes
    ----------
    level : float or dict
        The risk that is not exceeded; one per segment where there are some.
    confidence : float or None
        One minus the probability, over the calibration rows, that a rule is issued whose risk
        exceeds the level; None bounds the mean risk over them, no rule counting as no loss.
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
    always : bool
        Whether so many rows give a rule whatever they contain. What holds of calibration sets then
        holds of the rules that are issued; else only a few sets may give one, and all of those few
        exceed the level.
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
    always: bool = False

    def __str__(self) -> str:
        what = "mean loss of the answers" if self.risk == "selective" else "mean loss"
        level = (
            ", ".join(f"{name}: {in_full(value)}" for name, value in self.level.items())
            if isinstance(self.level, dict)
            else in_full(self.level)
        )
        rows = (
            "rows with the frequencies that the weights describe"
            if self.weighted
            else "rows like the calibration rows"
        )
        text = f"{what} at most {level} for {rows}, {self._sure} ({self.method}, {self.n} rows)"
        if self.proved:
            return text
        return (
            f"{text}; cross-fitted, so not proved: it holds if the model fitted on all rows is no "
            "worse than those fitted on the folds"
        )

    @property
    def _sure(self) -> str:
        """What is random, and what is known of it."""
        if self.confidence is None:
            none = "" if self.always else ", those that give no rule counting as no loss"
            return f"on average over calibration sets{none}"
        if self.always:
            return (
                f"with probability {in_full(self.confidence)} over the calibration set; every set "
                f"gives a rule, so that this holds of {in_full(self.confidence, 100)} of 100 "
                "issued rules"
            )
        return (
            f"in this sense: with probability {in_full(self.confidence)} over the calibration set "
            "no rule is issued that exceeds it; of the rules that are issued a larger share may "
            "exceed it"
        )


def in_full(value: float, times: int = 1) -> str:
    """Return `times` the number in decimals, none left out: 0.9999999 is not 1.

    >>> in_full(0.9), in_full(0.9, 100), in_full(0.9999999, 100)
    ('0.9', '90', '99.99999')
    """
    return f"{(times * Decimal(repr(float(value)))).normalize():f}"


@dataclass(frozen=True)
class RiskReport:
    """Risk and coverage on rows with true labels.

    Attributes
    ----------
    guarantee : str
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

    guarantee: str
    risk: Interval
    selective_risk: Interval | None
    coverage: float
    size: float
    size_of: str
    n: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found: dict[str, Any] = {
            "guarantee": self.guarantee,
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
            f"guarantee       {self.guarantee}",
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
    guarantee: str,
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
        guarantee,
        mean_interval(losses, bounds=(low, high)),
        mean_interval(losses[answered], bounds=(low, high)) if some else None,
        float(answered.mean()),
        float(sizes[answered].mean()) if some else float(np.nan),
        size_of,
        len(losses),
    )
