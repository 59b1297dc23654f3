"""Listed labels with full scores: active sets in compiled code, any cost matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consistruct.calibration.explicit import ExplicitCurve, explicit_curve
from consistruct.calibration.methods.base import Method, Progress
from consistruct.calibration.methods.explicit import PoolMethod
from consistruct.calibration.point import CurvePoint, Status
from consistruct.calibration.problem import explicit_problem
from consistruct.calibration.proofs import Certificate, CurveCertificate
from consistruct.calibration.structured.closed_forms import Quadratic
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.scores import Full

__all__ = ["ExplicitFullMethod"]


@dataclass(eq=False)
class ExplicitFullMethod(Method):
    """Any loss matrix, full scores, any measure."""

    loss: Loss
    space: Full
    jobs: int = 1

    def __post_init__(self) -> None:
        self.name = "explicit active sets"
        self.log_scale = -math.log(self.space.width)

    @cached_property
    def _matrix(self) -> FloatArray:
        return self.loss.matrix()

    @property
    def max_eps(self) -> float:
        return float((self._matrix.max(axis=0) - self._matrix.min(axis=0)).max())

    def _curve(self, eps: FloatArray, progress: Progress | None = None) -> ExplicitCurve:
        uniform = self.space.measure == "uniform"
        mu = None if uniform else self.space.predictions.weights()
        return explicit_curve(self._matrix, eps, mu=mu, jobs=self.jobs, progress=progress)

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        found = self._curve(eps, progress)
        labels = self.loss.predictions.unindex(np.maximum(found.pair, 0).ravel())
        names = [tuple(label) if labels.ndim > 1 else label for label in labels.tolist()]
        points = []
        for position, value in enumerate(eps.tolist()):
            solved = found.pair[position, 0] >= 0
            status: Status = "certified" if found.status[position] == "certified" else "loose"
            points.append(
                CurvePoint(
                    value,
                    float(found.scaled_lower[position]),
                    float(found.scaled_upper[position]),
                    self.log_scale,
                    self.name,
                    status,
                    (names[2 * position], names[2 * position + 1]) if solved else None,
                )
            )
        return points

    def certificate(self, eps: float) -> Certificate:
        return CurveCertificate(self._matrix, self._curve(np.array([eps])), self.log_scale)

    def pieces(self) -> tuple[Quadratic, ...]:
        pool = PoolMethod(self.loss, self.space, explicit_problem(self.loss, self.space))
        factor = math.exp(pool.log_scale - self.log_scale)
        return tuple(
            Quadratic(p.low, p.high, p.a * factor, p.b * factor, p.c * factor)
            for p in pool.pieces()
        )
