"""After any model: the rule that decides for a metric, and what out-of-fold rows say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from consistruct._members import ArrayField, Member, frozen_array
from consistruct.decisions.recalibration import Recalibration
from consistruct.exceptions import ConsistructError
from consistruct.learning.rules.bounds import optimality_gap
from consistruct.learning.rules.counts import Counts
from consistruct.learning.rules.labels import decide_labels, label_confusion, search_labels
from consistruct.learning.rules.mixtures import best_mixture
from consistruct.learning.rules.offsets import fit_offsets
from consistruct.learning.rules.sample import MANY, MORE, sampled_rows
from consistruct.learning.rules.search import search
from consistruct.losses.metrics import Metric
from consistruct.protocols import FloatArray, IntArray

__all__ = ["MetricRule", "class_rule", "label_rule", "searched_rows"]

FOLDS = 5  # of the out-of-fold rows, for the estimate
FEWEST_ROWS = 10  # two in each fold; scikit-learn's checks fit on so few
LEAST_GAIN = 0.01  # of a mixture over the best single rule


@dataclass(frozen=True, eq=False, repr=False)
class MetricRule(Member):
    """Costs that were found for a metric, and what out-of-fold rows say.

    Parameters
    ----------
    metric : Metric
    costs : (g, k, k) array, or (T, 2, 2) for label sets
        Rows are predictions. Classes: one matrix, one per group of rows that a constraint tells
        apart, or one per rule that is drawn. Label sets: one per label.
    groups : tuple
        Values of the column that the constraint names; empty without one.
    estimate : float
        The metric on out-of-fold rows, counted by labels alone, with costs that were found on other
        rows: what to expect of new rows.
    plain : float
        The same for the likeliest class (labels of probability above ½).
    before, after : (k, k) or (T, 2, 2) arrays
        Shares of the out-of-fold rows behind `plain` and `estimate`; rows are predictions.
    bound, gap : float or None
        Of concave metrics: what no rule could exceed if the probabilities are right, and how much
        of it this rule leaves, both counted as the search counts, on the rows that it used.
    slack : (m,) array
        By how much each constraint holds on out-of-fold rows; empty without constraints.
    n_rows : int
        How many rows were left out.
    shares : (m,) array
        How often each of m cost matrices is drawn; empty where one rule decides.
    seed : int
        Of the draws.
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
    shares: ArrayField = ()
    seed: int = 0

    @property
    def several(self) -> bool:
        """Whether costs differ between rows: by their group, or as drawn."""
        return bool(self.groups) or len(self.shares) > 0

    def __post_init__(self) -> None:
        self._set(
            **{name: frozen_array(getattr(self, name)) for name in _ARRAYS},
            groups=tuple(self.groups),
        )


_ARRAYS = ("costs", "before", "after", "slack", "shares")


def class_rule(
    metric: Metric,
    expected: FloatArray,  # (n, k): out-of-fold estimates
    codes: IntArray,  # (n,)
    weight: FloatArray,  # (n,)
    *,
    groups: IntArray | None = None,
    group_names: tuple[Any, ...] = (),
    seed: int = 0,
) -> tuple[MetricRule, Recalibration]:
    """The rule for classes, and the recalibration of probabilities that goes with it."""
    _check_rows(metric, len(codes))
    n_groups = max(1, len(group_names))
    recalibration, rows = searched_rows(metric, expected, codes, weight, groups, n_groups, seed)
    costs, shares = _found(metric, rows, seed)
    plain = Counts(expected, codes, weight / weight.sum()).observed(expected.argmax(axis=1))[0]
    counted = np.zeros((n_groups, *plain.shape))
    for fit, left in _folds(codes, seed):
        parted = [None if groups is None else groups[part] for part in (fit, left)]
        again, there = searched_rows(
            metric, expected[fit], codes[fit], weight[fit], parted[0], n_groups, seed,
            evidence=rows.effective,
        )  # fmt: skip
        found = _found(metric, there, seed)
        share = weight[left] / weight.sum()
        chances = again.for_decisions(expected[left])
        counted += _observed(Counts(chances, codes[left], share, parted[1], n_groups), *found)
    proof = None
    if metric.conditions is None:
        proof = optimality_gap(metric, rows, costs, shares)
    rule = MetricRule(
        metric=metric,
        costs=costs,
        groups=group_names,
        estimate=metric.value(counted.sum(axis=0)),
        plain=metric.value(plain),
        before=plain,
        after=counted.sum(axis=0),
        bound=None if proof is None else proof[0],
        gap=None if proof is None else proof[1],
        slack=_slack(metric, counted),
        n_rows=len(codes),
        shares=shares,
        seed=seed,
    )
    return rule, recalibration


def searched_rows(
    metric: Metric,
    expected: FloatArray,  # (n, k)
    codes: IntArray,  # (n,)
    weight: FloatArray,  # (n,)
    groups: IntArray | None = None,
    n_groups: int = 1,
    seed: int = 0,
    *,
    evidence: float | None = None,
) -> tuple[Recalibration, Counts]:
    """The recalibration, and the rows that decisions are sought on: all, or many of them.

    A threshold that must keep a condition is found in one sort of all rows. Other conditions are
    counted on the sample, and their margins go by its size.
    """
    k = expected.shape[1]
    one_sort = metric.conditions is not None and k == 2 and groups is None
    most = max(MORE, len(codes) // 2) if metric.worst_class else MANY
    if len(codes) > most and not one_sort:
        strata = codes if groups is None else groups * k + codes
        rows, weight = sampled_rows(strata, weight, most, np.random.default_rng(seed))
        expected, codes = expected[rows], codes[rows]
        groups = None if groups is None else groups[rows]
        share = weight / weight.sum()
        evidence = min(evidence or np.inf, float(1.0 / np.sum(share**2)))
    again = fit_offsets(expected, codes, weight)
    chances, share = again.for_decisions(expected), weight / weight.sum()
    return again, Counts(chances, codes, share, groups, n_groups, evidence)


def _found(metric: Metric, rows: Counts, seed: int) -> tuple[FloatArray, FloatArray]:
    """Costs (g, k, k) and no shares; or those of a mixture, where it may be drawn and wins."""
    found = search(metric, rows, np.random.default_rng(seed))
    if metric.drawn:
        mixed = best_mixture(metric, rows, found.costs)
        if metric.value(mixed.confusion) >= found.value + LEAST_GAIN:
            return mixed.costs, mixed.shares
    return found.costs, np.zeros(0)


def _observed(rows: Counts, costs: FloatArray, shares: FloatArray) -> FloatArray:
    """By labels, (g, k, k): of the rule, or the mean over draws."""
    if not len(shares):
        return rows.observed(rows.decide(costs))
    each = [rows.observed(rows.decide(one)) for one in costs]
    return np.asarray(np.tensordot(shares, np.array(each), axes=1))


def label_rule(
    metric: Metric,
    chances: FloatArray,  # (n, T): out-of-fold probabilities of the labels
    codes: IntArray,  # (n, T)
    weight: FloatArray,  # (n,)
    *,
    seed: int = 0,
) -> MetricRule:
    """Thresholds of all labels, as costs (T, 2, 2)."""
    _check_rows(metric, len(codes))
    share = weight / weight.sum()
    costs = search_labels(metric, chances, codes, share)
    decisions = np.zeros(codes.shape, dtype=bool)
    for fit, left in _folds(np.zeros(len(codes)), seed):
        part = share[fit] / share[fit].sum()
        there = search_labels(metric, chances[fit], codes[fit], part, evidence=len(codes))
        decisions[left] = decide_labels(there, chances[left])
    after = label_confusion(decisions, codes, share)
    before = label_confusion(chances > 0.5, codes, share)
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
        slack=_slack(metric, after / len(after)),
        n_rows=len(codes),
    )


def _slack(metric: Metric, counted: FloatArray) -> FloatArray:
    """By how much each condition holds, (m,); none where there are no conditions."""
    return np.zeros(0) if metric.conditions is None else metric.conditions.slack(counted)


def _check_rows(metric: Metric, n: int) -> None:
    if n < FEWEST_ROWS:
        raise ConsistructError(
            f"{metric!r} needs at least {FEWEST_ROWS} out-of-fold rows to find its decisions, got "
            f"{n}"
        )


def _folds(codes: Any, seed: int) -> list[tuple[IntArray, IntArray]]:
    rarest = np.bincount(np.unique(codes, return_inverse=True)[1]).min()
    if rarest < FOLDS:
        splitter: Any = KFold(FOLDS, shuffle=True, random_state=seed)
    else:
        splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(codes)), codes))
