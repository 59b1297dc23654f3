"""Probabilities of classes corrected on out-of-fold rows: a power and an offset for every class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from consistruct._members import ArrayField, frozen_array
from consistruct.decisions.recalibration import Recalibration
from consistruct.learning.rules.sample import sampled_rows
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Offsets", "fit_offsets"]

PENALTY = 20.0  # rows' worth of log loss per unit offset squared: small classes move little
FLOOR = 1e-3  # over the number of classes: forests give a probability of exactly 0
MOST_ROWS = 20_000
CHUNK = 4096  # rows at a time: they stay in the processor's cache


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
        found = np.empty(expected.shape)
        for start in range(0, len(found), CHUNK):
            part = slice(start, start + CHUNK)
            scores = _logs(expected[part], self.floor)
            scores *= self.power
            scores += np.asarray(self.offsets)[:, None]
            scores -= scores.max(axis=0)
            chances = np.exp(scores, out=scores)
            chances /= chances.sum(axis=0)
            found[part] = chances.T
        return found

    def for_reports(self, expected: FloatArray) -> FloatArray:
        return self.for_decisions(expected)


def fit_offsets(
    expected: FloatArray,  # (n, k)
    codes: IntArray,  # (n,)
    weight: FloatArray,  # (n,)
    penalty: float = PENALTY,
) -> Offsets:
    """Power and offsets of least out-of-fold log loss, offsets and log power shrunk to 0."""
    n, k = expected.shape
    floor = FLOOR / k
    if n > MOST_ROWS:  # k + 1 numbers need no more
        rows, weight = sampled_rows(codes, weight, MOST_ROWS, np.random.default_rng(0))
        expected, codes = expected[rows], codes[rows]
    weight = weight * (len(weight) / weight.sum())
    logs = _logs(expected, floor)
    picked = codes, np.arange(len(codes))
    actual, right = np.bincount(codes, weights=weight, minlength=k), weight @ logs[picked]

    def objective(free: FloatArray) -> tuple[float, FloatArray]:
        power, offsets = np.exp(free[0]), free[1:]
        scores = power * logs
        scores += offsets[:, None]
        top = scores.max(axis=0)
        scores -= top
        chances = np.exp(scores, out=scores)
        total = chances.sum(axis=0)
        # the log loss of the true label, summed: its score is linear in what is sought
        lost = weight @ (top + np.log(total)) - power * right - offsets @ actual
        chances *= weight / total
        by_power = np.vdot(chances, logs) - right
        slope = np.concatenate([[power * by_power], chances.sum(axis=1) - actual])
        return float(lost + 0.5 * penalty * (free @ free)), slope + penalty * free

    found = minimize(objective, np.zeros(k + 1), jac=True, method="L-BFGS-B")
    offsets = found.x[1:] - found.x[1:].mean()
    return Offsets(float(np.exp(found.x[0])), floor, offsets)


def _logs(expected: FloatArray, floor: float) -> FloatArray:
    """log(p + floor), (k, n): what is done for each row then runs along memory."""
    found = np.maximum(expected.T, 0.0, order="C", dtype=np.float64)
    found += floor
    return np.asarray(np.log(found, out=found))
