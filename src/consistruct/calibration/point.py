"""What a method answers at one ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from consistruct.calibration.proofs.rounding import down, log_down, log_up, up

__all__ = ["CurvePoint", "Status", "status_of"]

Status = Literal["exact", "certified", "numerical", "rounding", "loose", "bounds", "infeasible"]

TOLERANCE = 1e-6


@dataclass(frozen=True)
class CurvePoint:
    """H(ε) within [scaled_lower, scaled_upper] · scale.

    Attributes
    ----------
    status : str
        "exact": a closed form; "certified": proved, relative width at most 1e-6; "numerical": as
        narrow, but the bounds are evaluated in floats; "rounding": zero up to rounding errors;
        "loose": solved, but wider; "bounds": only bounds are known; "infeasible": no excess risk
        of ε exists, H = +inf.
    method : str
        Which method answered.
    pair : tuple or None
        The labels (i, j): j is predicted though i is better.
    scale : Fraction or None
        exp(log_scale) where that is a rational, as 1/k is: then all ends are rounded outward.
    """

    eps: float
    scaled_lower: float
    scaled_upper: float
    log_scale: float
    method: str
    status: Status
    pair: tuple[Any, Any] | None = None
    scale: Fraction | None = None

    @property
    def log_lower(self) -> float:
        if self.scale is not None and math.isfinite(self.scaled_lower):
            return log_down(Fraction(self.scaled_lower) * self.scale)
        return _log(self.scaled_lower, self.log_scale)

    @property
    def log_upper(self) -> float:
        if self.scale is not None and math.isfinite(self.scaled_upper):
            return log_up(Fraction(self.scaled_upper) * self.scale)
        return _log(self.scaled_upper, self.log_scale)

    @property
    def lower(self) -> float:
        if self.scale is not None and math.isfinite(self.scaled_lower):
            return down(Fraction(self.scaled_lower) * self.scale)
        return _value(self.scaled_lower, self.log_scale)

    @property
    def upper(self) -> float:
        if self.scale is not None and math.isfinite(self.scaled_upper):
            return up(Fraction(self.scaled_upper) * self.scale)
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
