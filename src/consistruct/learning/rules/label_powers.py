"""Probabilities of labels corrected on out-of-fold rows: a power and an offset of the odds of each.

p → σ(a·logit p + b) with a > 0 keeps the order of the rows, so that a threshold on the right
probabilities is one on those that the model gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from consistruct.protocols import FloatArray, IntArray

__all__ = ["LabelPowers", "fit_powers"]

SLOPE_PENALTY, OFFSET_PENALTY = 10.0, 4.0  # rows' worth of log loss: rare labels move little
LEAST_SLOPE = 0.05
FLOOR = 1e-4  # forests give a probability of exactly 0
ROUNDS = 12
CLOSE = 1e-4
MOST_ROWS = 20_000
CHUNK = 2_000_000  # entries at a time


@dataclass(frozen=True, eq=False)
class LabelPowers:
    """σ(slope·logit p + offset) of every label; arrays (T,)."""

    slope: FloatArray
    offset: FloatArray

    def __call__(self, chances: FloatArray) -> FloatArray:
        return np.asarray(expit(self.slope * _logit(chances) + self.offset))

    def undone(self, thresholds: FloatArray) -> FloatArray:
        """Thresholds (T,) on right probabilities as thresholds on those that were given.

        0 and 1 stay: nothing is below the one, or above the other.
        """
        inside = np.clip(thresholds, FLOOR, 1.0 - FLOOR)
        found = expit((logit(inside) - self.offset) / self.slope)
        found = np.where(thresholds <= 0.0, 0.0, found)
        return np.asarray(np.where(thresholds >= 1.0, 1.0, found))


def fit_powers(
    chances: FloatArray,  # (n, T)
    codes: IntArray,  # (n, T)
    weight: FloatArray,  # (n,)
) -> LabelPowers:
    """Of least log loss on out-of-fold rows, shrunk to no change; Newton on all labels at once."""
    n, n_labels = chances.shape
    if n > MOST_ROWS:
        rows = np.random.default_rng(0).choice(n, MOST_ROWS, replace=False)
        chances, codes, weight = chances[rows], codes[rows], weight[rows]
    weight = weight * (len(weight) / weight.sum())
    slope, offset = np.ones(n_labels), np.zeros(n_labels)
    size = max(1, CHUNK // len(weight))
    for start in range(0, n_labels, size):
        part = slice(start, start + size)
        slope[part], offset[part] = _newton(_logit(chances[:, part]), codes[:, part], weight)
    return LabelPowers(slope, offset)


def _newton(z: FloatArray, y: IntArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    a, b = np.ones(z.shape[1]), np.zeros(z.shape[1])
    for _ in range(ROUNDS):
        p = expit(a * z + b)
        gap = p - y
        curve = p * (1.0 - p)
        by_a = weight @ (gap * z) + SLOPE_PENALTY * (a - 1.0)
        by_b = weight @ gap + OFFSET_PENALTY * b
        aa = weight @ (curve * z * z) + SLOPE_PENALTY
        ab = weight @ (curve * z)
        bb = weight @ curve + OFFSET_PENALTY
        determinant = aa * bb - ab**2
        step_a = (bb * by_a - ab * by_b) / determinant
        step_b = (aa * by_b - ab * by_a) / determinant
        length = np.maximum(np.abs(step_a), np.abs(step_b))
        shorter = np.minimum(1.0, 1.0 / np.maximum(length, 1e-12))  # far away Newton overshoots
        a = np.maximum(a - shorter * step_a, LEAST_SLOPE)
        b = b - shorter * step_b
        if length.max(initial=0.0) < CLOSE:
            break
    return a, b


def _logit(chances: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(chances, FLOOR, 1.0 - FLOOR)))
