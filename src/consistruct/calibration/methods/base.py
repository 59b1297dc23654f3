"""What every method answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from consistruct.calibration.point import CurvePoint
from consistruct.calibration.proofs import Certificate
from consistruct.calibration.structured.closed_forms import Quadratic
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["Method", "PairedMethod", "Progress", "at_each"]

Progress = Callable[[int, int], None]  # done, total


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
