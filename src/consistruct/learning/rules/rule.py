"""After any model: the rule that decides for a metric, and what left-out rows say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from consistruct._members import ArrayField, Member, frozen_array
from consistruct.exceptions import ConsistructError
from consistruct.learning.recalibration import Recalibration
from consistruct.learning.rules.bounds import optimality_gap
from consistruct.learning.rules.counts import Counts
from consistruct.learning.rules.labels import decide_labels, label_confusion, search_labels
from consistruct.learning.rules.offsets import fit_offsets
from consistruct.learning.rules.search import search
from consistruct.losses.metrics import Constrained, Metric
from consistruct.protocols import FloatArray, IntArray

__all__ = ["MetricRule", "class_rule", "label_rule"]

FOLDS = 5  # of the left-out rows, for the estimate
FEWEST_ROWS = 20  # fewer say nothing


@dataclass(frozen=True, eq=False, repr=False)
class MetricRule(Member):
    """Costs that were found for a metric, and what left-out rows say.

    Parameters
    ----------
    metric : Metric
    costs : (g, k, k) array, or (T, 2, 2) for label sets
        Rows are predictions. Classes: one matrix, or one per group of rows that a constraint
        tells apart. Label sets: one per label.
    groups : tuple
        Values of the column that the constraint names; empty without one.
    estimate : float
        The metric on left-out rows, counted by labels alone, with costs that were found on other
        rows: what to expect of new rows.
    plain : float
        The same for the likeliest class (labels of probability above ½).
    before, after : (k, k) or (T, 2, 2) arrays
        Shares of the left-out rows behind `plain` and `estimate`; rows are predictions.
    bound, gap : float or None
        Of concave metrics: what no rule could exceed if the probabilities are right, and how much
        of it this rule leaves, both counted as the search counts.
    slack : (m,) array
        By how much each constraint holds on left-out rows; empty without constraints.
    n_rows : int
        How many rows were left out.
    """

    metric: Metric
    costs: ArrayField
    groups: tuple[Any, ...]
    estimate: float
    plain: float
    before: ArrayField
    after: ArrayField
    bound: float | None
    gap: float | None
    slack: ArrayField
    n_rows: int

    def __post_init__(self) -> None:
        self._set(
            **{name: frozen_array(getattr(self, name)) for name in _ARRAYS},
            groups=tuple(self.groups),
        )


_ARRAYS = ("costs", "before", "after", "slack")


def class_rule(
    metric: Metric,
    expected: FloatArray,  # (n, k): left-out estimates
    truths: IntArray,  # (n,)
    weight: FloatArray,  # (n,)
    *,
    groups: IntArray | None = None,
    group_names: tuple[Any, ...] = (),
    seed: int = 0,
) -> tuple[MetricRule, Recalibration]:
    """The rule for classes, and the recalibration of probabilities that goes with it."""
    _check_rows(metric, len(truths))
    share = weight / weight.sum()
    recalibration = fit_offsets(expected, truths, weight)
    rows = Counts(
        recalibration.for_decisions(expected), truths, share, groups, max(1, len(group_names))
    )
    found = search(metric, rows, np.random.default_rng(seed))
    plain = rows.confusion(expected.argmax(axis=1), rows.truth)
    decisions = np.zeros(len(truths), dtype=np.int64)
    for fit, left in _folds(truths, seed):
        again = fit_offsets(expected[fit], truths[fit], weight[fit])
        there = rows.take(fit, again.for_decisions(expected[fit]))
        costs = search(metric, there, np.random.default_rng(seed)).costs
        decisions[left] = rows.take(left, again.for_decisions(expected[left])).decide(costs)
    counted = rows.confusion(decisions, rows.truth)
    proof = None if isinstance(metric, Constrained) else optimality_gap(metric, rows, found.costs)
    rule = MetricRule(
        metric=metric,
        costs=found.costs,
        groups=group_names,
        estimate=metric.value(counted.sum(axis=0)),
        plain=metric.value(plain.sum(axis=0)),
        before=plain.sum(axis=0),
        after=counted.sum(axis=0),
        bound=None if proof is None else proof[0],
        gap=None if proof is None else proof[1],
        slack=metric.slack(counted) if isinstance(metric, Constrained) else np.zeros(0),
        n_rows=len(truths),
    )
    return rule, recalibration


def label_rule(
    metric: Metric,
    chances: FloatArray,  # (n, T): left-out probabilities of the labels
    truths: IntArray,  # (n, T)
    weight: FloatArray,  # (n,)
    *,
    seed: int = 0,
) -> MetricRule:
    """Thresholds of all labels, as costs (T, 2, 2)."""
    _check_rows(metric, len(truths))
    share = weight / weight.sum()
    costs = search_labels(metric, chances, truths, share)
    decisions = np.zeros(truths.shape, dtype=bool)
    for fit, left in _folds(np.zeros(len(truths)), seed):
        part = share[fit] / share[fit].sum()
        there = search_labels(metric, chances[fit], truths[fit], part, evidence=len(truths))
        decisions[left] = decide_labels(there, chances[left])
    after = label_confusion(decisions, truths, share)
    before = label_confusion(chances > 0.5, truths, share)
    return MetricRule(
        metric=metric,
        costs=costs,
        groups=(),
        estimate=metric.value(after),
        plain=metric.value(before),
        before=before,
        after=after,
        bound=None,
        gap=None,
        slack=(
            metric.slack(after / len(after)) if isinstance(metric, Constrained) else np.zeros(0)
        ),
        n_rows=len(truths),
    )


def _check_rows(metric: Metric, n: int) -> None:
    if n < FEWEST_ROWS:
        raise ConsistructError(
            f"{metric!r} needs at least {FEWEST_ROWS} held-out rows to find its decisions, got {n}"
        )


def _folds(truths: Any, seed: int) -> list[tuple[IntArray, IntArray]]:
    rarest = np.bincount(np.unique(truths, return_inverse=True)[1]).min()
    if rarest < FOLDS:
        splitter: Any = KFold(FOLDS, shuffle=True, random_state=seed)
    else:
        splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(truths)), truths))
