"""Weights of models from their left-out estimates, by a criterion that generalises.

The mean task loss of left-out rows is what counts and is noisy: where a few rare mistakes carry
most of the cost, it is decided by a handful of rows. A proper loss uses every row. So models are
averaged greedily by

* class probabilities: the log loss, each class weighted by what confusing it costs on average;
* targets of other losses: the quadratic surrogate, which is what all of these models fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from consistruct.learning.statistics import ClassProbabilities, Statistic
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Criterion", "class_stakes", "criterion_for", "greedy_weights"]

MOST_STEPS = 30
LEAST_GAIN = 2e-4  # relative: smaller gains on left-out rows are noise
PROBABILITY_FLOOR = 1e-6


class Criterion(ABC):
    """How bad estimates of left-out rows are: smaller is better."""

    @abstractmethod
    def __call__(self, expected: FloatArray) -> float: ...


class WeightedLogLoss(Criterion):
    """−Σ_i v_i log p_i(y_i), v_i the weight of the row times what its class has at stake."""

    def __init__(self, statistic: ClassProbabilities, truths: Any, weight: FloatArray) -> None:
        self.columns: IntArray = statistic.values(truths).indices
        share = weight * class_stakes(statistic)[self.columns]
        total = float(share.sum())
        self.share = share / total if total > 0 else weight / weight.sum()

    def __call__(self, expected: FloatArray) -> float:
        chosen = expected[np.arange(len(self.columns)), self.columns]
        return float(-(self.share @ np.log(np.maximum(chosen, PROBABILITY_FLOOR))))


class QuadraticRisk(Criterion):
    """Σ_i v_i ½‖E_i − τ(y_i)‖² in the metric of the loss's scores."""

    def __init__(self, statistic: Statistic, truths: Any, weight: FloatArray) -> None:
        self.statistic = statistic
        self.target = dense_target(statistic.values(truths))
        self.share = weight / weight.sum()

    def __call__(self, expected: FloatArray) -> float:
        return float(self.share @ self.statistic.squared_error(expected - self.target))


def criterion_for(statistic: Statistic, truths: Any, weight: FloatArray) -> Criterion:
    """The criterion for estimates of this statistic."""
    if isinstance(statistic, ClassProbabilities):
        return WeightedLogLoss(statistic, truths, weight)
    return QuadraticRisk(statistic, truths, weight)


def class_stakes(statistic: ClassProbabilities) -> FloatArray:
    """What a truth has at stake: its mean loss over the predictions, above the least; (m,)."""
    losses = statistic.expected_losses(np.eye(statistic.width))  # (truths, predictions)
    return np.asarray((losses - losses.min(axis=1, keepdims=True)).mean(axis=1))


def greedy_weights(
    estimates: Sequence[FloatArray], criterion: Criterion
) -> tuple[FloatArray, FloatArray]:
    """Weights of the models, summing to one, and the criterion of each alone.

    From the best single model on, the one that helps most is added again and again, until nothing
    is gained (Caruana and others, 2004): a sparse average that does not overfit the left-out rows.
    """
    alone = np.array([criterion(one) for one in estimates])
    counts = np.zeros(len(estimates))
    best = int(alone.argmin())
    counts[best], value, total = 1.0, float(alone[best]), np.array(estimates[best])
    for step in range(2, MOST_STEPS + 1):
        trial = [criterion((total + one) / step) for one in estimates]
        best = int(np.argmin(trial))
        if trial[best] > value - LEAST_GAIN * abs(value):
            break
        value = trial[best]
        counts[best] += 1.0
        total += estimates[best]
    return counts / counts.sum(), alone
