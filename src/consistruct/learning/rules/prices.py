"""Constraints: a price for each condition, raised while it is broken and lowered while it holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from consistruct.learning.rules.counts import Counts
from consistruct.losses.metrics import Constrained
from consistruct.protocols import FloatArray

__all__ = ["few_priced_rules", "priced_rules"]

ROUNDS, FEWER_ROUNDS = 150, 30
MOST_HELD, MOST_TRIED = 3, 80  # of rules found on fewer rows, tried on all
PACES = (1.0, 0.2)  # of the prices
AIM = 0.003  # prices converge a little inside: at the edge every other rule would miss it


def priced_rules(
    metric: Constrained, rows: Counts, rounds: int = ROUNDS
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Costs (g, k, k) of the Lagrangian ψ(C) + Σ_j price_j · slack_j(C) as prices converge.

    With their confusions as counted and by labels alone; the caller keeps the best that hold.
    """
    k = rows.n_classes
    start = np.broadcast_to(1.0 - np.eye(k), (rows.n_groups, k, k))
    for pace in PACES:
        mixture = rows.confusion(rows.decide(start))
        prices = np.zeros(len(metric.slack(mixture)))
        for number in range(rounds):
            ascent = metric.gradient(mixture.sum(axis=0))[None]
            conditions = metric.slack_gradient(mixture)
            slope = ascent + np.tensordot(prices, conditions, axes=1)
            costs = slope.max(axis=1, keepdims=True) - slope
            decisions = rows.decide(costs)
            corner = rows.confusion(decisions)
            observed = rows.observed(decisions)  # conditions go by labels alone
            yield costs, corner, observed
            # what is missing, as a share of the rows; a price of one unit outweighs the metric
            weight = np.abs(conditions).max(axis=(1, 2, 3))
            spare = metric.spare(observed, rows.effective) / weight - AIM
            step = pace * np.abs(ascent).max() / weight / (1.0 + 0.1 * number)
            prices = np.maximum(prices - step * np.clip(20.0 * spare, -1.0, 1.0), 0.0)
            mixture = mixture + 2.0 / (number + 2.0) * (corner - mixture)


def few_priced_rules(
    metric: Constrained, rows: Counts, few: Counts
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """The same where rows are many: rules of some of them, the best first, until a few hold.

    If none does, all rows are priced.
    """
    found = list(priced_rules(metric, few, FEWER_ROUNDS))
    values = [metric.value(counted.sum(axis=0)) for _, counted, _ in found]
    held = 0
    for place in np.argsort(-np.array(values), kind="stable")[:MOST_TRIED]:
        costs = found[place][0]
        decisions = rows.decide(costs)
        observed = rows.observed(decisions)
        if metric.spare(observed, rows.effective).min() < 0:
            continue
        held += 1
        yield costs, rows.confusion(decisions), observed
        if held == MOST_HELD:
            return
    if not held:
        yield from priced_rules(metric, rows)
