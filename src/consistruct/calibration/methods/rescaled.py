"""Extreme costs: the problem is solved in other units, H(s·L, s·ε) = s² H(L, ε)."""

from __future__ import annotations

import math
from dataclasses import replace

from consistruct.calibration.methods.base import Method, Progress
from consistruct.calibration.point import CurvePoint
from consistruct.calibration.proofs import Certificate
from consistruct.calibration.structured.closed_forms import Quadratic
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["LARGEST", "SMALLEST", "Rescaled", "cost_unit"]

SMALLEST, LARGEST = 2.0**-200, 2.0**200  # costs whose fourth powers the solvers can hold


def cost_unit(largest: float) -> float:
    """A power of two to divide extreme costs by; 1 for ordinary ones.

    >>> cost_unit(20.0), cost_unit(2.0**300) == 2.0**300
    (1.0, True)
    """
    if largest == 0.0 or SMALLEST <= largest <= LARGEST:
        return 1.0
    return float(2.0 ** math.floor(math.log2(largest)))


class Rescaled(Method):
    """The method of the loss in units of `unit`, told in those of the loss itself."""

    def __init__(self, inner: Method, unit: float) -> None:
        self._inner, self._unit = inner, unit
        self.name = inner.name
        self.log_scale = inner.log_scale + 2.0 * math.log(unit)
        self.only_theorem_7 = inner.only_theorem_7

    @property
    def max_eps(self) -> float:
        return self._inner.max_eps * self._unit

    @property
    def consistency_level(self) -> float:
        return self._inner.consistency_level * self._unit

    @property
    def approximation_error(self) -> float:
        return self._inner.approximation_error * self._unit

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        # a power of two: dividing and multiplying give the same ε back
        found = self._inner.points(eps / self._unit, progress)
        shift = 2.0 * math.log(self._unit)
        return [
            replace(point, eps=point.eps * self._unit, log_scale=point.log_scale + shift)
            for point in found
        ]

    def certificate(self, eps: float) -> Certificate:
        raise ConsistructError(
            f"certificates are written for costs between {SMALLEST:.0e} and {LARGEST:.0e}; divide "
            f"all costs and eps by {self._unit:.3g} (s): H of the costs is s² times that of the "
            f"quotients"
        )

    def pieces(self) -> tuple[Quadratic, ...]:
        s = self._unit
        return tuple(
            Quadratic(piece.low * s, piece.high * s, piece.a / s / s, piece.b / s, piece.c)
            for piece in self._inner.pieces()
        )
