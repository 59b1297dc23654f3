"""Selective prediction: how the risk falls if only the surest rows are answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.learning.evaluation.intervals import Interval
from consistruct.protocols import FloatArray

__all__ = ["SelectiveCurve", "selective_curve"]

RESAMPLES = 400


@dataclass(frozen=True, eq=False)
class SelectiveCurve:
    """Risk of the answers against the share of rows that are answered, surest first.

    Attributes
    ----------
    coverage : (m,) array
        Shares of rows, ascending to 1.
    risk, low, high : (m,) arrays
        Mean loss of the answered rows, with pointwise intervals.
    area : Interval
        Mean of the risk over all coverages: small if the model knows what it does not know.
    best_area, random_area : float
        Of an oracle that knows the losses, and of answering rows at random.
    """

    coverage: FloatArray
    risk: FloatArray
    low: FloatArray
    high: FloatArray
    area: Interval
    best_area: float
    random_area: float

    def at(self, coverage: float) -> float:
        """Risk at a coverage."""
        return float(np.interp(coverage, self.coverage, self.risk))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and data frames."""
        return {
            "coverage": self.coverage.tolist(),
            "risk": self.risk.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "area": self.area.estimate,
            "area_interval": self.area.as_list(),
            "best_area": self.best_area,
            "random_area": self.random_area,
        }


def selective_curve(
    losses: Any,
    expected_losses: Any,
    *,
    confidence: float = 0.95,
    n_points: int = 100,
    random_state: Any = 0,
) -> SelectiveCurve:
    """Risk against coverage, from losses and what was expected of them.

    Parameters
    ----------
    losses : (n,) array
        Task loss of each row, as `task_losses` gives it.
    expected_losses : (n,) array
        How much each was expected to be (`predict_expected_loss`); the smallest are answered first,
        rows of equal doubt together.
    confidence : float
        Of the intervals, by drawing rows again.
    n_points : int
        Coverages 1/n_points, 2/n_points, …, 1.
    random_state : int or Generator

    Returns
    -------
    curve : SelectiveCurve

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.metrics import selective_curve
    >>> doubt = np.linspace(0, 1, 500)
    >>> wrong = np.random.default_rng(0).random(500) < doubt
    >>> curve = selective_curve(wrong, doubt)
    >>> bool(curve.at(0.5) < curve.at(1.0)), bool(curve.area.estimate < curve.random_area)
    (True, True)
    """
    values = np.asarray(losses, dtype=np.float64)
    doubt = np.asarray(expected_losses, dtype=np.float64)
    if values.ndim != 1 or values.shape != doubt.shape or len(values) == 0:
        raise ValueError(
            f"losses and expected_losses must both have shape (n,), got {values.shape} and "
            f"{doubt.shape}"
        )
    points = np.arange(1, n_points + 1) / n_points
    risk = _risks(values, doubt, points)
    rng = np.random.default_rng(random_state)
    n = len(values)
    drawn = np.empty((RESAMPLES, n_points))
    for number in range(RESAMPLES):
        rows = rng.integers(n, size=n)
        drawn[number] = _risks(values[rows], doubt[rows], points)
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(drawn, [tail, 100.0 - tail], axis=0)
    area_low, area_high = np.percentile(drawn.mean(axis=1), [tail, 100.0 - tail])
    area = Interval(float(risk.mean()), float(area_low), float(area_high), confidence)
    best = float(_risks(values, values, points).mean())
    return SelectiveCurve(points, risk, low, high, area, best, float(values.mean()))


def _risks(losses: FloatArray, doubt: FloatArray, points: FloatArray) -> FloatArray:
    """Mean loss of the share of rows of least doubt; rows of equal doubt count their mean."""
    order = np.argsort(doubt, kind="stable")
    ordered = doubt[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    counts = np.diff(np.append(starts, len(ordered)))
    means = np.add.reduceat(losses[order], starts) / counts
    total = np.concatenate([[0.0], np.repeat(means, counts).cumsum()])
    # a coverage between two rows takes part of the next one
    wanted = points * len(losses)
    return np.asarray(np.interp(wanted, np.arange(len(total)), total) / wanted)
