"""How far a rule is from the best that any rule could do, for concave metrics."""

from __future__ import annotations

import numpy as np

from consistruct.learning.rules.counts import Counts
from consistruct.learning.rules.mixtures import best_mixture
from consistruct.losses.metrics import Metric
from consistruct.protocols import FloatArray

__all__ = ["optimality_gap"]


def optimality_gap(
    metric: Metric,
    rows: Counts,
    costs: FloatArray,  # (m, k, k): one matrix, or those that are drawn
    shares: FloatArray | None = None,  # (m,): how often each is drawn
) -> tuple[float, float] | None:
    """(upper bound, bound − value of the rule), counted as the search counts; None if not concave.

    ψ lies below its tangents, and the largest value of a linear function of the confusion is that
    of its Bayes decisions if the probabilities are right: so no rule, drawn at random or not, is
    above the bound.
    """
    if metric.kind not in ("linear", "concave"):
        return None
    each = np.array([rows.confusion(rows.decide(one)).sum(axis=0) for one in costs])
    drawn = np.ones(1) if shares is None or not len(shares) else shares
    reached = metric.value(np.tensordot(drawn, each, axes=1))
    bound = best_mixture(metric, rows, costs).bound
    return bound, max(bound - reached, 0.0)
