"""What an analysis found, as plain data with a versioned schema."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consistruct.calibration import CalibrationFunction, CurvePoint

__all__ = ["SCHEMA_VERSION", "CalibrationReport", "calibration_report"]

SCHEMA_VERSION = "1.0"


@dataclass(frozen=True)
class CalibrationReport:
    """Consistency, hardness and the certified curve of one loss with one score family."""

    loss: str
    scores: str
    surrogate: str
    decoding: str
    measure: str
    method: str
    n_labels: int
    n_predictable: int
    rank: int
    effective_classes: float | None
    effective_classes_log: float | None
    effective_classes_exact: bool | None
    consistency_level: float
    approximation_error: float
    max_eps: float
    curve: tuple[CurvePoint, ...]
    prediction_names: tuple[str, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: big integers as decimal strings, infinities as null."""
        return {
            "schema_version": SCHEMA_VERSION,
            "loss": self.loss,
            "scores": self.scores,
            "surrogate": self.surrogate,
            "decoding": self.decoding,
            "measure": self.measure,
            "method": self.method,
            "n_labels": str(self.n_labels),
            "n_predictable": str(self.n_predictable),
            "rank": str(self.rank),
            "effective_classes": _finite(self.effective_classes),
            "effective_classes_log": _finite(self.effective_classes_log),
            "effective_classes_exact": self.effective_classes_exact,
            "consistency_level": _finite(self.consistency_level),
            "approximation_error": _finite(self.approximation_error),
            "max_eps": self.max_eps,
            "curve": [
                {
                    "eps": point.eps,
                    "lower": _finite(point.lower),
                    "upper": _finite(point.upper),
                    "log_lower": _finite(point.log_lower),
                    "log_upper": _finite(point.log_upper),
                    "method": point.method,
                    "status": point.status,
                    "pair": None if point.pair is None else [self.label(p) for p in point.pair],
                }
                for point in self.curve
            ],
        }

    def label(self, prediction: Any) -> Any:
        """A prediction as reports show it: its name if it has one, huge numbers as text."""
        if isinstance(prediction, tuple):
            return list(prediction)
        if self.prediction_names is not None:
            return self.prediction_names[prediction]
        return prediction if abs(prediction) < 2**53 else str(prediction)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def calibration_report(
    curve: CalibrationFunction,
    eps: ArrayLike | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> CalibrationReport:
    """Evaluate a calibration function on a grid (21 values up to max_eps unless given)."""
    grid = np.linspace(0.0, curve.max_eps, 21) if eps is None else np.atleast_1d(np.asarray(eps))
    points = curve.curve(grid, progress=progress)
    k_eff = curve.effective_classes
    return CalibrationReport(
        loss=repr(curve.loss),
        scores=repr(curve.scores),
        surrogate=curve.surrogate,
        decoding=curve.decoding,
        measure=curve.measure,
        method=curve.method,
        n_labels=curve.loss.n_labels or 0,
        n_predictable=curve.scores.predictable().size,
        rank=curve.scores.rank,
        effective_classes=None if k_eff is None else float(k_eff),
        effective_classes_log=None if k_eff is None else k_eff.log,
        effective_classes_exact=None if k_eff is None else k_eff.exact,
        consistency_level=curve.consistency_level,
        approximation_error=curve.approximation_error,
        max_eps=curve.max_eps,
        curve=tuple(points),
        prediction_names=getattr(curve.loss.predictions, "names", None),
    )
