"""How far a rule is from the best that any rule could do, for concave metrics."""

from __future__ import annotations

import numpy as np

from consistruct.learning.rules.balance import balanced_weights
from consistruct.learning.rules.counts import Counts
from consistruct.losses.metrics import Metric
from consistruct.protocols import FloatArray

__all__ = ["optimality_gap"]

ROUNDS = 60
CLOSE = 1e-5
STEPS = np.concatenate([[1.0], 0.8 ** np.arange(1, 40)])


def optimality_gap(metric: Metric, rows: Counts, costs: FloatArray) -> tuple[float, float] | None:
    """(upper bound, bound − value of the rule), counted as the search counts; None if not concave.

    ψ lies below its tangents, and the largest value of a linear function of the confusion is that
    of its Bayes decisions if the probabilities are right: so no rule, drawn at random or not, is
    above the bound. Where decisions found on the way do better than those of the probabilities,
    they count.
    """
    if metric.kind not in ("linear", "concave"):
        return None
    mixture = _counted(rows, costs)
    reached, bound = metric.value(mixture), np.inf
    if metric.worst_class:
        bound = _least_recall(rows, mixture)
        return bound, max(bound - reached, 0.0)
    seen = [mixture]
    for _ in range(ROUNDS):
        slope, constant = metric.majorant(mixture)
        corner = _counted(rows, (slope.max(axis=0) - slope)[None])
        seen.append(corner)
        bound = min(bound, max(float(np.sum(slope * one)) for one in seen) + constant)
        if bound - reached <= CLOSE or metric.kind == "linear":
            break
        trials = [(1.0 - step) * mixture + step * corner for step in STEPS]
        values = [metric.value(trial) for trial in trials]
        best = int(np.argmax(values))
        if values[best] <= metric.value(mixture) + 1e-9:
            break
        mixture = trials[best]
    return bound, max(bound - reached, 0.0)


def _least_recall(rows: Counts, own: FloatArray) -> float:
    """The least weighted mean of recalls: the least of them is at most any weighted mean."""
    seen, bound = [_recalls(own)], np.inf
    shares = own.sum(axis=0)
    for weights, confusion in balanced_weights(rows):
        seen.append(_recalls(confusion))
        part = weights * shares
        bound = min(bound, max(float(part @ recalls) for recalls in seen) / float(part.sum()))
    return bound


def _recalls(confusion: FloatArray) -> FloatArray:
    return np.asarray(np.diagonal(confusion) / np.maximum(confusion.sum(axis=0), 1e-12))


def _counted(rows: Counts, costs: FloatArray) -> FloatArray:
    return rows.confusion(rows.decide(costs)).sum(axis=0)
