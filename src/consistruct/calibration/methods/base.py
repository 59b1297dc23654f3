"""What every method answers, and what it answers at one ε."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from consistruct.calibration.proofs import Certificate
from consistruct.calibration.proofs.base import down, log_down, log_up, up
from consistruct.calibration.structured.closed_forms import Quadratic
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["CurvePoint", "Method", "PairedMethod", "Progress", "Status", "at_each", "status_of"]

Progress = Callable[[int, int], None]  # done, total
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


class Method(ABC):
    """Computes points of one curve."""

    name: str
    log_scale: float = 0.0
    scale: Fraction | None = None  # exp(log_scale), where that is a rational
    cheap_pieces: bool = False  # whether `pieces` answers in well under a second
    most_values: int = 512  # evaluations that an envelope may take for each ε in question
    only_theorem_7: bool = False  # whether the lower ends are those of Theorem 7 anyway

    @property
    @abstractmethod
    def max_eps(self) -> float:
        """Largest feasible ε; H = +inf above it."""

    @abstractmethod
    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        """H at positive ε ≤ max_eps."""

    @abstractmethod
    def certificate(self, eps: float) -> Certificate:
        """Proof of the value at ε."""

    @property
    def consistency_level(self) -> float:
        """sup{ε : H(ε) = 0}; 0 where the scores express the loss."""
        return 0.0

    @property
    def level_interval(self) -> tuple[float, float]:
        """Floats around sup{ε : H(ε) = 0}."""
        return self.consistency_level, self.consistency_level

    @property
    def level_reason(self) -> str | None:
        """Why the two are apart, if they are."""
        return None

    @property
    def approximation_error(self) -> float:
        """What the labels that can be predicted cost against all labels; 0 where F expresses L."""
        return 0.0

    def floor(self) -> FloatArray | None:
        """(n, 5) rows as `Envelope` takes them, from all that was solved so far; None: no such.

        A value at ε must raise them to its lower end there: then supporting lines need few values.
        """
        return None

    def pieces(self) -> tuple[Quadratic, ...]:
        """H·exp(−log_scale) as quadratics."""
        raise ConsistructError(
            f"the method '{self.name}' does not resolve the whole curve; use interval(eps)"
        )


def at_each(
    eps: FloatArray, point: Callable[[float], CurvePoint], progress: Progress | None
) -> list[CurvePoint]:
    """One point after the other."""
    found = []
    for done, value in enumerate(eps.tolist()):
        found.append(point(value))
        if progress is not None:
            progress(done + 1, len(eps))
    return found


class PairedMethod(Method):
    """A method that can name a pair without solving anything."""

    @abstractmethod
    def pair_at(self, eps: float) -> tuple[Any, Any] | None:
        """A pair that is hard at ε."""
