"""Probabilities of classes made right on left-out rows: a power and an offset for every class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from consistruct._members import ArrayField, frozen_array
from consistruct.learning.recalibration import Recalibration
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Offsets", "fit_offsets"]

PENALTY = 20.0  # rows' worth of log loss per unit offset squared: small classes move little
FLOOR = 1e-3  # over the number of classes: forests give a probability of exactly 0
MOST_ROWS = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class Offsets(Recalibration):
    """p → softmax(power · log(p + floor) + offsets).

    Parameters
    ----------
    power : float
        Above 1 sharpens, below 1 flattens.
    floor : float
    offsets : (k,) array
        Log odds that each class gains.
    """

    power: float
    floor: float
    offsets: ArrayField

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", frozen_array(self.offsets))

    def for_decisions(self, expected: FloatArray) -> FloatArray:
        logs = np.log(np.maximum(expected, 0.0) + self.floor)
        return _softmax(self.power * logs + self.offsets)

    def for_reports(self, expected: FloatArray) -> FloatArray:
        return self.for_decisions(expected)


def fit_offsets(
    expected: FloatArray,  # (n, k)
    truths: IntArray,  # (n,)
    weight: FloatArray,  # (n,)
    penalty: float = PENALTY,
) -> Offsets:
    """Power and offsets of least log loss on left-out rows, offsets and log power shrunk to 0."""
    n, k = expected.shape
    floor = FLOOR / k
    if n > MOST_ROWS:  # k + 1 numbers need no more
        rows = np.random.default_rng(0).choice(n, MOST_ROWS, replace=False)
        expected, truths, weight = expected[rows], truths[rows], weight[rows]
    weight = weight * (len(weight) / weight.sum())
    logs = np.log(np.maximum(expected, 0.0) + floor)
    picked = np.arange(len(truths)), truths
    actual = np.bincount(truths, weights=weight, minlength=k)

    def objective(free: FloatArray) -> tuple[float, FloatArray]:
        power, offsets = np.exp(free[0]), free[1:]
        scores = power * logs + offsets
        top = scores.max(axis=1, keepdims=True)
        chances = np.exp(scores - top)
        total = chances.sum(axis=1, keepdims=True)
        chances /= total
        lost = (top + np.log(total))[:, 0] - scores[picked]
        value = weight @ lost + 0.5 * penalty * (free @ free)
        gap = chances * weight[:, None]
        by_power = np.sum(gap * logs) - weight @ logs[picked]
        slope = np.concatenate([[power * by_power], gap.sum(axis=0) - actual]) + penalty * free
        return float(value), slope

    found = minimize(objective, np.zeros(k + 1), jac=True, method="L-BFGS-B")
    offsets = found.x[1:] - found.x[1:].mean()
    return Offsets(float(np.exp(found.x[0])), floor, offsets)


def _softmax(scores: FloatArray) -> FloatArray:
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))
