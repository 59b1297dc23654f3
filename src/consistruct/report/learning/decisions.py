"""What the choice of decisions for a metric changed: from the estimator to plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.exceptions import ConsistructError
from consistruct.report.formats import label_text
from consistruct.report.learning.entries import DecisionChange

__all__ = ["decisions_of"]

NAME_LENGTH = 200


def decisions_of(model: Any, X: Any, y_true: Any, label_names: Any) -> DecisionChange | None:
    """None for a model that is for a loss."""
    if not hasattr(model, "metric_"):
        return None
    rule = model.rule_
    try:
        held_out = float(model.score(X, y_true))
    except ConsistructError:  # a class that training never saw
        held_out = None
    sets = rule.before.ndim == 3
    names = model.classes_ if sets else model.label_encoding_.classes  # as the rule counts them
    if sets and label_names is not None:
        names = label_names
    return DecisionChange(
        metric=repr(rule.metric),
        held_out=held_out,
        estimate=float(rule.estimate),
        plain=float(rule.plain),
        gap=None if rule.gap is None else float(rule.gap),
        out_of_fold_rows=int(rule.n_rows),
        names=tuple(label_text(str(name), NAME_LENGTH) for name in np.asarray(names).tolist()),
        before=_rows(rule.before),
        after=_rows(rule.after),
        slack=tuple(float(value) for value in rule.slack),
    )


def _rows(confusion: Any) -> tuple[tuple[float, ...], ...]:
    flat = confusion.reshape(len(confusion), -1)
    return tuple(tuple(float(share) for share in row) for row in flat)
