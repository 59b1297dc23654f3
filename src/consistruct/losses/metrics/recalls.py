"""Means of the recalls of all classes: balanced accuracy, geometric mean, least recall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consistruct._validation import check_number
from consistruct.losses.metrics.base import Kind, Metric, check_confusion
from consistruct.protocols import FloatArray, IntArray

__all__ = ["RecallMean"]

# Smaller recalls count as this in gradients, which are infinite at recall 0; the gradient still
# points towards the class that is missed.
LEAST = 1e-3
# powers on the way to the least recall. Each rule starts the search for the next power; going to
# the minimum at once would see one class at a time, as its gradient does
STAGES = (0.0, -2.0, -8.0, -32.0)


@dataclass(frozen=True, eq=False, repr=False)
class RecallMean(Metric):
    """Measure the power mean of the recalls of all classes, (mean r_c^p)^(1/p).

    power = 1 is balanced accuracy, 0 the geometric mean (G-mean), −1 the harmonic mean, and the
    limit −∞, written None, the least recall. The smaller the power, the more the worst class
    counts. Classes without rows are left out.

    Parameters
    ----------
    power : float or None
        At most 1; None is the least recall.

    Notes
    -----
    Given the true labels, recalls are linear in the confusion and power means with p ≤ 1 are
    concave, so that every rule can be held against an upper bound.

    Examples
    --------
    >>> from consistruct.losses.metrics import RecallMean
    >>> confusion = [[80, 5], [10, 5]]  # rows are predictions
    >>> [round(RecallMean(power).value(confusion), 3) for power in (1, 0, None)]
    [0.694, 0.667, 0.5]
    """

    power: float | None = 1.0

    def __post_init__(self) -> None:
        if self.power is not None:
            self._set(power=check_number(self.power, "power", high=1.0))

    @property
    def kind(self) -> Kind:
        return "linear" if self.power == 1.0 else "concave"

    @property
    def worst_class(self) -> bool:  # type: ignore[override]
        return self.power is None

    @property
    def stages(self) -> tuple[Metric, ...]:
        return tuple(RecallMean(p) for p in STAGES) if self.power is None else ()

    def value(self, confusion: FloatArray) -> float:
        recalls = self._recalls(confusion)[0]
        if self.power is None:
            return float(recalls.min())
        if self.power == 1.0:
            return float(recalls.mean())
        if recalls.min() <= 0.0:
            return 0.0
        # logarithms throughout: 0.1^−32 has 32 digits, a product of a thousand recalls underflows
        logs = np.log(recalls)
        if self.power == 0.0:
            return float(np.exp(logs.mean()))
        return float(np.exp(_log_mean(self.power * logs) / self.power))

    def gradient(self, confusion: FloatArray) -> FloatArray:
        recalls, true, present = self._recalls(confusion)
        weight = _weights(recalls, self.power)
        # below LEAST only the direction is known; its length, which is infinite at 0, is left at
        # one
        if self.power is not None and recalls.min() > LEAST:
            weight = weight * _slope(recalls, self.power)
        return self._in_confusion(weight, recalls, true, present)

    def majorant(self, confusion: FloatArray) -> tuple[FloatArray, float]:
        if self.power is not None:
            return super().majorant(confusion)
        # the least recall is at most any weighted mean of them: the weights of a power near −∞
        # are better than those of the single least one
        recalls, true, present = self._recalls(confusion)
        weight = _weights(recalls, STAGES[-1])
        slope = np.zeros((len(true), len(true)))
        slope[present, present] = weight / true[present]
        return slope, 0.0

    def _recalls(self, confusion: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return recalls of the classes that have rows, all true shares, and which have rows."""
        table = check_confusion(confusion, self)
        true = table.sum(axis=0)
        present = np.flatnonzero(true > 0)
        return np.diagonal(table)[present] / true[present], true, present.astype(np.int64)

    def _in_confusion(
        self, weight: FloatArray, recalls: FloatArray, true: FloatArray, present: IntArray
    ) -> FloatArray:
        """Return the gradient in C, (k, k), from one in the recalls."""
        # ∂r_c / ∂C[i, c] = ([i = c] − r_c) / true_c
        share = weight / true[present]
        slope = np.zeros((len(true), len(true)))
        slope[:, present] = -recalls * share
        slope[present, present] += share
        return slope


def _weights(recalls: FloatArray, power: float | None) -> FloatArray:
    """Return weights of the classes in the gradient, ∝ r^(p−1), summing to one."""
    if power is None:
        return np.asarray(np.arange(len(recalls)) == recalls.argmin(), dtype=np.float64)
    logs = (power - 1.0) * np.log(np.maximum(recalls, LEAST))
    weight = np.exp(logs - logs.max())
    return np.asarray(weight / weight.sum())


def _slope(recalls: FloatArray, power: float) -> float:
    """Return Σ_c ∂ψ/∂r_c = M^(1−p) · mean r^(p−1) with M the power mean."""
    logs = np.log(recalls)
    mean = logs.mean() if power == 0.0 else _log_mean(power * logs) / power
    return float(np.exp((1.0 - power) * mean + _log_mean((power - 1.0) * logs)))


def _log_mean(logs: FloatArray) -> float:
    """Return the logarithm of the mean of exp."""
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).mean()))
