"""Sets of classes in place of one class: a set counts the least loss in it.

A set grows by the class that lowers the expected least loss the most, as long as it lowers it by
more than a threshold. For the 0-1 loss the gain of a class is its probability, which gives the sets
of least average size. Losses never increase: a minimum over more classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._compile import compiled
from consistruct.guarantees.risk.policies.base import Family, Options, Policy, two_valued
from consistruct.guarantees.risk.views import View
from consistruct.learning.estimator import TargetEstimator
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures.base import ENUMERATION_LIMIT

__all__ = ["ClassSets"]

GREEDY_WORK = 2**18  # k²·m up to which sets are grown by their gain, per row


class _Sets(Family):
    def __init__(self, view: View, order: IntArray, thresholds: FloatArray) -> None:
        n, k = order.shape
        self.view, self.order = view, order  # classes in the order in which they enter
        self.thresholds = np.maximum.accumulate(thresholds, axis=1)
        self.answered = np.ones((n, k), dtype=bool)
        self.sizes = np.broadcast_to(np.arange(1.0, k + 1), (n, k))

    def losses(self, y: Any) -> FloatArray:
        columns = [self.view.losses(self.order[:, rung], y) for rung in range(self.order.shape[1])]
        return np.minimum.accumulate(np.column_stack(columns), axis=1)

    def present(self, rungs: IntArray) -> Any:
        answers = np.empty(len(rungs), dtype=object)
        names = self.view.present(self.order.ravel()).reshape(self.order.shape).tolist()
        for row, rung in enumerate(rungs.tolist()):
            answers[row] = tuple(names[row][: rung + 1])
        return answers


class ClassSets(Policy):
    """A set of classes, best first, that is small where the model is sure."""

    name = "sets"
    counts = "the smallest loss of a class in the set"
    size = "classes in a set"

    def refusal(self, estimator: TargetEstimator, options: Options) -> str | None:
        predictions = options.loss.predictions
        if predictions.shape != () or predictions.size is None:
            return "predictions are not plain classes"
        if predictions.size > ENUMERATION_LIMIT:
            return f"there are more than {ENUMERATION_LIMIT} classes, too many to list"
        if not estimator.model_.estimates:
            return "it needs expected losses, and this model only ranks predictions"
        return None

    def monotone(self, options: Options) -> bool:
        return True  # the least loss over more classes

    def two_values(self, options: Options) -> bool:
        return two_valued(options.loss)

    def family(self, view: View, options: Options) -> Family:
        k, probabilities = view.prices.shape[1], view.probabilities
        if probabilities is None or k * k * probabilities.shape[1] > GREEDY_WORK:
            return _by_price(view)
        matrix = view.loss.matrix()
        first = np.asarray(view.codes, dtype=np.int64)
        if np.array_equal(matrix, 1.0 - np.eye(len(matrix))):
            return _by_gain(view, probabilities, first)
        order, gains = _greedy(np.ascontiguousarray(probabilities), matrix, first)
        return _Sets(view, order, -gains)


def _by_gain(view: View, gain: FloatArray, first: IntArray) -> _Sets:
    """Classes by falling gain, after the one that is predicted."""
    ranked = np.array(gain)
    ranked[np.arange(len(ranked)), first] = np.inf
    order = np.argsort(-ranked, axis=1, kind="stable")
    return _Sets(view, order, -np.take_along_axis(ranked, order, axis=1)[:, 1:])


def _by_price(view: View) -> _Sets:
    """Classes by rising expected loss: what is left where probabilities are not known."""
    return _by_gain(view, -view.prices, np.asarray(view.codes, dtype=np.int64))


@compiled
def _greedy(
    probabilities: FloatArray,  # (n, m)
    matrix: FloatArray,  # (k, m)
    first: IntArray,  # (n,)
) -> tuple[IntArray, FloatArray]:
    """Classes in the order of their gains, (n, k), and the gains of all but the first."""
    n, m = probabilities.shape
    k = matrix.shape[0]
    order = np.empty((n, k), dtype=np.int64)
    gains = np.empty((n, k - 1))
    for row in range(n):
        least = matrix[first[row]].copy()
        inside = np.zeros(k, dtype=np.bool_)
        inside[first[row]] = True
        order[row, 0] = first[row]
        for rung in range(1, k):
            best, largest = -1, -1.0
            for c in range(k):
                if inside[c]:
                    continue
                gain = 0.0
                for y in range(m):
                    drop = least[y] - matrix[c, y]
                    if drop > 0.0:
                        gain += probabilities[row, y] * drop
                if gain > largest:
                    best, largest = c, gain
            inside[best] = True
            order[row, rung] = best
            gains[row, rung - 1] = largest
            for y in range(m):
                least[y] = min(least[y], matrix[best, y])
    return order, gains
