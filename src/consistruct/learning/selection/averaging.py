"""Weights of models from their out-of-fold estimates, by a criterion that generalizes.

The mean task loss of out-of-fold rows is what counts and is noisy: where a few rare mistakes carry
most of the cost, it is decided by a handful of rows. A proper loss uses every row. So models are
averaged greedily by

* class probabilities: the log loss times the square root of the task loss; with many out-of-fold
  rows, the square root of the log loss times the task loss;
* targets of other losses: the quadratic surrogate, which is what all of these models fit.

Probabilities can be averaged as they are or by their logarithms. The mean calls possible what any
model calls possible, which is cautious; the geometric mean, p ∝ Π_m p_m^w_m, calls impossible what
any model does: surer about rare classes, where members are right to be sure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from consistruct.decisions.statistics import Statistic
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Criterion", "combined", "criterion_for", "greedy_weights"]

MOST_STEPS = 30
SMALL_SHARES = (0.25, 0.1)  # of a model that is added, beside its turn: 1/2, 1/3, …
PROBABILITY_FLOOR = 1e-4
LEAST_PROBABILITY = 1e-5  # in geometric means: no model alone can rule a class out


class Criterion(ABC):
    """How bad estimates of out-of-fold rows are: smaller is better.

    Attributes
    ----------
    least_gain : float
        Relative gain on out-of-fold rows below which nothing is added any more.
    """

    least_gain: float = 0.0

    @abstractmethod
    def __call__(self, expected: FloatArray) -> float: ...

    def of_decisions(self, expected: FloatArray) -> float:
        """What the decisions alone cost, where that is known; the criterion itself elsewhere."""
        return self(expected)


class ProperTimesTask(Criterion):
    """Log loss times the square root of the task loss of the decisions.

    The log loss is steady and knows no costs, the task loss knows them and is noisy: the product
    requests both. (Measured on training parts of fourteen tables: choosing by the task loss alone,
    or by a log loss with the classes weighted by their costs, costs 5 to 10 % more. On 45 others:
    small shares, and adding as long as anything is gained, cost 2 % less than equal turns that
    stop at gains of 2e-4.) The task loss of `many` rows is steady too, and then counts in full.
    """

    def __init__(
        self, statistic: Statistic, codes: Any, weight: FloatArray, many: bool = False
    ) -> None:
        self.powers = (0.5, 1.0) if many else (1.0, 0.5)
        self.statistic = statistic
        self.codes = codes
        self.columns: IntArray = statistic.values(codes).indices
        self.share = weight / weight.sum()
        # a task loss of zero on few rows is luck: a thousandth of the range is always at stake
        self.least = 1e-3 * (statistic.loss.max_value or 1.0) / np.sqrt(len(weight))

    def __call__(self, expected: FloatArray) -> float:
        chosen = expected[np.arange(len(self.columns)), self.columns]
        proper = -(self.share @ np.log(np.maximum(chosen, PROBABILITY_FLOOR)))
        of_proper, of_task = self.powers
        return float(proper**of_proper * (self.of_decisions(expected) + self.least) ** of_task)

    def of_decisions(self, expected: FloatArray) -> float:
        return float(self.share @ self.statistic.loss(self.statistic.decode(expected), self.codes))


class QuadraticRisk(Criterion):
    """Σ_i v_i ½‖E_i − τ(y_i)‖² in the metric of the loss's scores.

    It is smooth and convex in the weights: where gains are that small, the optimum is near.
    """

    least_gain = 2e-4

    def __init__(self, statistic: Statistic, codes: Any, weight: FloatArray) -> None:
        self.statistic = statistic
        self.target = dense_target(statistic.values(codes))
        self.share = weight / weight.sum()

    def __call__(self, expected: FloatArray) -> float:
        return float(self.share @ self.statistic.squared_error(expected - self.target))


def criterion_for(
    statistic: Statistic, codes: Any, weight: FloatArray, many: bool = False
) -> Criterion:
    """The criterion for estimates of this statistic; `many`: thousands of out-of-fold rows."""
    if statistic.of_classes:
        return ProperTimesTask(statistic, codes, weight, many)
    return QuadraticRisk(statistic, codes, weight)


def combined(
    weights: FloatArray, estimates: Sequence[FloatArray], geometric: bool = False
) -> FloatArray:
    """The mean of the estimates with their weights, those without left out."""
    used = [(share, one) for share, one in zip(weights, estimates, strict=True) if share > 0.0]
    if not geometric:
        return np.asarray(sum(share * one for share, one in used))
    return _normal(sum(share * _logs(one) for share, one in used))


def _logs(probabilities: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(probabilities, LEAST_PROBABILITY)))


def _normal(logs: Any) -> FloatArray:
    """The probabilities of these logarithms, up to a factor of each row."""
    return np.asarray(softmax(logs, axis=1))


def greedy_weights(
    estimates: Sequence[FloatArray], criterion: Criterion, geometric: bool = False
) -> tuple[FloatArray, FloatArray, float]:
    """Weights of the models, summing to one, the criterion of each alone, and of all together.

    From the best single model on, the one that helps most is added again and again, until nothing
    is gained (Caruana and others, 2004): a sparse average that does not overfit the out-of-fold
    rows.
    """
    alone = np.array([criterion(one) for one in estimates])
    if len(estimates) == 1:
        return np.ones(1), alone, float(alone[0])
    terms = [_logs(one) for one in estimates] if geometric else estimates
    best = int(alone.argmin())
    weights, value, mean = np.eye(len(estimates))[best], float(alone[best]), terms[best]
    for step in range(2, MOST_STEPS + 1):
        turns = [(n, share) for share in (1 / step, *SMALL_SHARES) for n in range(len(alone))]
        trial = [
            criterion(_normal(one) if geometric else one)
            for one in ((1 - share) * mean + share * terms[n] for n, share in turns)
        ]
        place = int(np.argmin(trial))
        if trial[place] >= value - criterion.least_gain * abs(value):
            break
        best, share = turns[place]
        value, mean = trial[place], (1 - share) * mean + share * terms[best]
        weights = (1 - share) * weights + share * np.eye(len(estimates))[best]
    return weights, alone, value
