"""What a method answers at one ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["CurvePoint", "Status", "status_of"]

Status = Literal["exact", "certified", "rounding", "loose", "bounds", "infeasible"]

TOLERANCE = 1e-6


@dataclass(frozen=True)
class CurvePoint:
    """H(ε) within [lower, upper] · exp(log_scale).

    Attributes
    ----------
    status : str
        "exact": a closed form; "certified": relative width at most 1e-6; "rounding": zero up to
        rounding errors; "loose": solved, but wider; "bounds": only bounds are known;
        "infeasible": no excess risk of ε exists, H = +inf.
    method : str
        Which method answered.
    pair : tuple or None
        The labels (i, j): j is predicted though i is better.
    """

    eps: float
    scaled_lower: float
    scaled_upper: float
    log_scale: float
    method: str
    status: Status
    pair: tuple[Any, Any] | None = None

    @property
    def log_lower(self) -> float:
        return _log(self.scaled_lower, self.log_scale)

    @property
    def log_upper(self) -> float:
        return _log(self.scaled_upper, self.log_scale)

    @property
    def lower(self) -> float:
        return _value(self.scaled_lower, self.log_scale)

    @property
    def upper(self) -> float:
        return _value(self.scaled_upper, self.log_scale)


def _log(scaled: float, log_scale: float) -> float:
    if scaled == 0:
        return -math.inf
    return math.log(scaled) + log_scale if math.isfinite(scaled) else math.inf


def _value(scaled: float, log_scale: float) -> float:
    if scaled == 0 or math.isinf(scaled):
        return scaled
    return scaled * math.exp(log_scale) if log_scale > -700 else math.exp(_log(scaled, log_scale))


def status_of(lower: float, upper: float, scale: float) -> Status:
    """Judge an interval; `scale` is a typical value of H at the largest ε."""
    if math.isinf(lower):
        return "infeasible"
    if math.isinf(upper):
        return "bounds"
    if upper - lower <= TOLERANCE * upper:
        return "certified"
    return "rounding" if upper <= 1e-13 * scale else "loose"
