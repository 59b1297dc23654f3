"""Intervals for what is measured on rows: of a mean for any number of rows, of any metric by
resampling.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.learning.evaluation.evidence import capital, stakes
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray

__all__ = ["Interval", "bootstrap_interval", "loss_interval", "mean_interval"]

COARSE = 32  # values of the mean that are tried before bisection
FINE = 2**14  # different values that are kept apart


@dataclass(frozen=True)
class Interval:
    """An estimate and what it may be instead.

    Attributes
    ----------
    estimate, low, high : float
    confidence : float
        Share of samples whose interval holds the true value.
    """

    estimate: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def as_list(self) -> list[float]:
        """[low, high], as JSON has it."""
        return [self.low, self.high]


def mean_interval(
    values: Any, *, bounds: tuple[float, float], confidence: float = 0.95
) -> Interval:
    """Interval of the mean of independent values between known bounds, for any number of them.

    It holds the true mean with at least the stated probability, also where all values are equal
    (no errors in 100 rows do not mean that there will be none). It is the set of means that a
    gambler would not have become rich by betting against (Waudby-Smith & Ramdas 2024), and is about
    as wide as that of a normal approximation where there are many rows.

    Parameters
    ----------
    values : (n,) array
    bounds : (float, float)
        Least and largest value that can occur.
    confidence : float

    Returns
    -------
    interval : Interval

    Examples
    --------
    >>> from consistruct.learning.evaluation.intervals import mean_interval
    >>> interval = mean_interval([0.0] * 100, bounds=(0, 1))
    >>> interval.low, bool(0.03 < interval.high < 0.06)
    (0.0, True)
    """
    found = np.asarray(values, dtype=np.float64)
    low, high = map(float, bounds)
    if found.ndim != 1 or len(found) == 0:
        raise ValueError(f"values must be (n,) with n at least 1, got shape {found.shape}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    least, most = float(found.min()), float(found.max())
    slack = 1e-9 * max(abs(low), abs(high), 1.0)
    if least < low - slack or most > high + slack:
        raise ValueError(
            f"values must be within their bounds [{low:g}, {high:g}], got {least:g} to {most:g}"
        )
    estimate = float(found.mean())
    if high <= low:
        return Interval(estimate, low, high, confidence)
    scaled = np.clip((found - low) / (high - low), 0.0, 1.0)
    delta = (1.0 - confidence) / 2.0
    upper = _largest_mean(scaled, delta)
    lower = 1.0 - _largest_mean(1.0 - scaled, delta)
    width = high - low
    return Interval(
        estimate,
        min(low + width * lower, estimate),
        max(low + width * upper, estimate),
        confidence,
    )


def loss_interval(loss: Loss, losses: Any, confidence: float = 0.95) -> Interval:
    """`mean_interval` of task losses, whose bounds the loss knows; those seen may lie beyond."""
    found = np.asarray(losses, dtype=np.float64)
    low, high = loss.value_range
    bounds = min(low, float(found.min())), max(high, float(found.max()))
    return mean_interval(found, bounds=bounds, confidence=confidence)


def _largest_mean(sample: FloatArray, delta: float) -> float:
    """The largest mean of values in [0, 1] that is not refuted at δ."""
    values, counts = np.unique(sample, return_counts=True)
    if len(values) > FINE:  # rounded up: the result can only become larger
        values, counts = np.unique(np.ceil(sample * FINE) / FINE, return_counts=True)
    n, enough = len(sample), math.log(1.0 / delta)

    def refuted(mean: float) -> bool:
        if not 0.0 < mean < 1.0:
            return False
        logs = [
            np.asarray(counts @ np.log1p(stake * (mean - values)))
            for stake in stakes(n, mean, delta)
        ]
        return float(capital(logs)) >= enough

    start = float(counts @ values) / n
    # from above, so that no mean beyond the result is left standing
    tried = start + (1.0 - start) * np.linspace(1.0, 0.0, COARSE, endpoint=False) ** 2
    above = 1.0
    for mean in tried:
        if mean < 1.0 and not refuted(float(mean)):
            low = float(mean)
            break
        above = float(mean)
    else:
        low = start
    for _ in range(25):
        middle = 0.5 * (low + above)
        low, above = (low, middle) if refuted(middle) else (middle, above)
    return above


def bootstrap_interval(
    metric: Callable[..., float],
    *arrays: Any,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = 0,
) -> Interval:
    """Interval of a non-decomposable metric (F1 of a whole set, AUC, an area): rows drawn again.

    Percentiles of the metric on samples drawn with replacement. An approximation: it knows nothing
    of what was not seen, so prefer `mean_interval` for means.

    Parameters
    ----------
    metric : callable
        metric(*arrays) -> float.
    arrays : arrays with one row per example
    confidence : float
    n_resamples : int
    random_state : int or Generator

    Returns
    -------
    interval : Interval

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.learning.evaluation.intervals import bootstrap_interval
    >>> found = bootstrap_interval(np.median, np.arange(101.0))
    >>> found.estimate, bool(found.low < 50 < found.high)
    (50.0, True)
    """
    if not arrays:
        raise ValueError("bootstrap_interval needs at least one array with a row per example")
    tables = [np.asarray(array) for array in arrays]
    n = len(tables[0])
    if n == 0 or any(len(table) != n for table in tables):
        raise ValueError(f"arrays must have equally many rows, got {[len(t) for t in tables]}")
    rng = np.random.default_rng(random_state)
    drawn = np.array(
        [
            metric(*(table[rows] for table in tables))
            for rows in (rng.integers(n, size=n) for _ in range(n_resamples))
        ]
    )
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(drawn, [tail, 100.0 - tail])
    return Interval(float(metric(*tables)), float(low), float(high), confidence)
