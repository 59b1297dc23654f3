"""Estimators and metrics: what is fitted in place of a metric, and the rule put after the model.

A model is fitted as for the 0-1 loss (label sets: the Hamming loss): its probabilities serve every
cost matrix. The rule found on out-of-fold rows is a cost matrix, and from then on the estimator is
one for these costs: predictions, expected losses and files need to know nothing of metrics.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.decisions.recalibration import Recalibration, Unchanged
from consistruct.decisions.statistics import ClassProbabilities, Statistic
from consistruct.exceptions import ConsistructError
from consistruct.learning.encoding.kinds import Examples, take_codes
from consistruct.learning.models.base import OutOfFold
from consistruct.learning.part_statistics import PartProbabilities
from consistruct.learning.rules.labels import label_confusion
from consistruct.learning.rules.rule import MetricRule, class_rule, label_rule
from consistruct.losses import CostMatrix, LabelCosts
from consistruct.losses.base import Loss
from consistruct.losses.metrics import Metric
from consistruct.protocols import IntArray

__all__ = [
    "choose_rule",
    "confusion_of",
    "group_codes",
    "loss_to_fit",
    "rule_loss",
]


def loss_to_fit(metric: Metric, y: Any) -> str:
    """The loss whose model serves the metric, checked against the labels (n,) or (n, T)."""
    if np.ndim(y) == 2:
        if not metric.labels:
            raise ValueError(
                f"{metric!r} is for classes and needs y of shape (n,), got {np.shape(y)}; for "
                "label matrices use fbeta (F1 of each row), macro-f1, micro-f1, macro-jaccard or "
                "a budget on them"
            )
        return "hamming"
    found = len(np.unique(y))
    if found < 2:
        raise ValueError(f"{metric!r} compares classes, but y contains only 1 class")
    conditions = metric.conditions
    if metric.n_classes not in (None, found):
        hint = "macro-f1 and similar metrics work for any number"
        if conditions is not None:
            hint = (
                "in Python, Constrained takes a metric for any number of classes and conditions "
                "on one of them, such as Constrained(FScore(average='macro'), "
                f"RecallAtLeast(0.9, label={found - 1}))"
            )
        raise ValueError(
            f"{metric!r} is for {metric.n_classes} classes, the second of which is the positive "
            f"one, but y contains {found}; {hint}"
        )
    for part in () if conditions is None else conditions.constraints:
        if getattr(part, "label", 0) >= found:
            raise ValueError(
                f"{part!r} names class number {part.label}, but y contains {found} classes, "
                f"numbered 0..{found - 1} in sorted order"
            )
    return "zero_one"


def choose_rule(
    metric: Metric,
    statistic: Statistic,
    left: OutOfFold,
    examples: Examples,
    groups: IntArray | None,
    group_names: tuple[Any, ...],
    seed: int,
) -> tuple[MetricRule, Recalibration]:
    """The rule for out-of-fold estimates of a model, and the recalibration that goes with it."""
    codes = take_codes(examples.codes, left.rows)
    weight = examples.weight[left.rows]
    if isinstance(statistic, ClassProbabilities):
        if len(np.unique(examples.codes)) < 2:
            raise ValueError(
                f"{metric!r} compares classes, but y contains only 1 class with a positive "
                "sample_weight; give rows of another class a weight"
            )
        return class_rule(
            metric,
            statistic.project(left.expected),
            codes,
            weight,
            groups=None if groups is None else groups[left.rows],
            group_names=group_names,
            seed=seed,
        )
    parts = statistic.with_loss(LabelCosts(*np.ones((2, codes.shape[1]))))
    assert isinstance(parts, PartProbabilities)
    return label_rule(metric, parts.probabilities(left.expected), codes, weight, seed=seed), (
        Unchanged()
    )


def rule_loss(rule: MetricRule, *, labels: bool) -> Loss:
    """The task loss that the rule decides by: a cost matrix, or costs of every label."""
    if not labels:
        drawn = rule.shares if len(rule.shares) else None
        return CostMatrix(np.average(rule.costs, axis=0, weights=drawn), rows="pred")
    missed = rule.costs[:, 0, 1] - rule.costs[:, 1, 1]
    false = rule.costs[:, 1, 0] - rule.costs[:, 0, 0]
    return LabelCosts(np.maximum(missed, 0.0), np.maximum(false, 0.0))


def group_codes(
    metric: Metric, inputs: Any, names: Any, known: tuple[Any, ...] | None = None
) -> tuple[IntArray | None, tuple[Any, ...]]:
    """Codes of the groups that a constraint tells apart, (n,), and their values.

    `names` are those of the columns, where they have some; `known` the groups of `fit`.
    """
    column = None if metric.conditions is None else metric.conditions.column
    if column is None:
        return None, ()
    values = np.asarray(_column(inputs, column, names, metric))
    if known is None:
        known = tuple(np.unique(values).tolist())
        if len(known) < 2:
            raise ValueError(f"{metric!r} compares groups, but column {column!r} contains only one")
    number = {value: code for code, value in enumerate(known)}
    codes = np.array([number.get(value, -1) for value in values.tolist()])
    if (codes < 0).any():
        unseen = values[codes < 0].tolist()[0]
        raise ValueError(
            f"column {column!r} contains the group {unseen!r}, which was not seen in training; "
            f"the known groups are {', '.join(map(str, known))}"
        )
    return codes, known


def _column(inputs: Any, column: Any, names: Any, metric: Metric) -> Any:
    if hasattr(inputs, "columns") and column in inputs.columns:
        return inputs[column]
    listed = [] if names is None else list(names)
    place = listed.index(column) if column in listed else column
    width = inputs.shape[1]
    if isinstance(place, str) or not 0 <= place < width:
        raise ValueError(
            f"{metric!r} names the column {column!r}, which X does not have; it has "
            f"{_some(listed) if listed else f'numbers 0..{width - 1}'}"
        )
    if hasattr(inputs, "iloc"):
        return inputs.iloc[:, place]
    part = inputs[:, [place]]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part)[:, 0]


def _some(names: list[Any], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def confusion_of(metric: Metric, codes: Any, true_codes: Any, weight: Any, k: int) -> Any:
    """Mean confusion of predictions: (k, k), or (T, 2, 2) for label sets, by checked codes."""
    share = np.asarray(weight, dtype=np.float64) / np.sum(weight)
    if np.ndim(true_codes) == 2:
        return label_confusion(np.asarray(codes), np.asarray(true_codes), share)
    if (np.asarray(true_codes) < 0).any():
        raise ConsistructError(
            f"{metric!r} cannot be counted: the true labels hold a class that was not seen in "
            "training"
        )
    return np.bincount(codes * k + true_codes, weights=share, minlength=k * k).reshape(k, k)
