"""How far a rule is from the best that any rule could do, for concave metrics."""

from __future__ import annotations

import numpy as np

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
    seen = [mixture]
    smooth = metric.stages[-1] if metric.stages else metric
    for _ in range(ROUNDS):
        slope, constant = metric.majorant(mixture)
        corner = _counted(rows, (slope.max(axis=0) - slope)[None])
        seen.append(corner)
        bound = min(bound, max(float(np.sum(slope * one)) for one in seen) + constant)
        if bound - reached <= CLOSE or metric.kind == "linear":
            break
        if metric.stages:
            corner = _counted(rows, smooth.costs(mixture)[None])
            seen.append(corner)
        trials = [(1.0 - step) * mixture + step * corner for step in STEPS]
        values = [smooth.value(trial) for trial in trials]
        best = int(np.argmax(values))
        if values[best] <= smooth.value(mixture) + 1e-9:
            break
        mixture = trials[best]
    return bound, max(bound - reached, 0.0)


def _counted(rows: Counts, costs: FloatArray) -> FloatArray:
    return rows.confusion(rows.decide(costs)).sum(axis=0)
