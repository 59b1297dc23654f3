"""The learning report where every example has its own costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.report.learning.entries import ColumnEntry
from consistruct.report.learning.error_tables import confusion_table
from consistruct.report.learning.model import LearningReport
from consistruct.report.learning.parts import (
    MODEL,
    described,
    loss_bins,
    portfolio_of,
    score_of,
)
from consistruct.report.learning.profit import profit_of

__all__ = ["report_of_costs"]

SINGLE = "best single decision, in hindsight"
LIKELIEST = "most probable class, ignoring costs"
REFITS = "it would need the costs of the training examples"


def report_of_costs(
    model: Any,
    X: Any,
    y_true: Any,
    costs: Any,
    *,
    rows: Any = None,
    columns: tuple[ColumnEntry, ...] = (),
) -> LearningReport:
    """What decisions cost, saved and earned on held-out examples with these costs (n, k, k)."""
    from consistruct.decisions.classes import lookup_codes
    from consistruct.losses.costs.tables import cost_tensor

    if not hasattr(model, "predict_proba"):
        raise ValueError(
            "costs per example need a classifier with probabilities, such as "
            "TaskLossClassifier(model='auto')"
        )
    chance = model.predict_proba(X)
    n, k = chance.shape
    if len(y_true) != n:
        raise ValueError(f"X and y must have the same length, got {n} and {len(y_true)}")
    tensor = cost_tensor(costs, n, k, model.rows if rows is None else rows)
    codes = lookup_codes(np.asarray(y_true), model.classes_)  # the order of chances and costs
    if (codes < 0).any():
        raise ValueError(
            f"y contains {y_true[codes < 0].tolist()[0]!r}, which the model was not fitted on and "
            "which has no costs"
        )
    expected = np.einsum("ict,it->ic", tensor, chance)
    # (n, k): of each decision, now that the true label is known
    real = tensor[np.arange(n), :, codes]
    decided = expected.argmin(axis=1)
    losses = real[np.arange(n), decided]
    likeliest = real[np.arange(n), chance.argmax(axis=1)]
    single = real[:, real.mean(axis=0).argmin()]
    bins, correlation = loss_bins(expected.min(axis=1), losses)
    reasons = dict.fromkeys(("learning_curve", "bandwidths", "path"), REFITS)
    gains, names = bool((tensor < 0).any()), (model.classes_, model.classes_)
    if gains:
        reasons["confusion"] = (
            "some decisions earn money, so a share of the cost would be meaningless"
        )
    return LearningReport(
        loss="costs of each example",
        estimator=type(model).__name__,
        model=described(model),
        portfolio=portfolio_of(model),
        n_train=None,
        n_test=n,
        max_value=max(0.0, float(tensor.max())),
        alpha=None,
        contrast=1.0,
        scores=(
            score_of(MODEL, losses, losses, None),
            score_of(SINGLE, single, losses, None),
            score_of(LIKELIEST, likeliest, losses, None),
        ),
        criterion=None,
        path=(),
        bandwidths=(),
        learning_curve=(),
        confusion=None if gains else confusion_table(decided, codes, losses / n, *names),
        parts=(),
        bins=bins,
        rank_correlation=correlation,
        reasons=tuple(reasons.items()),
        profit=profit_of(codes, expected, tensor, names=model.classes_),
        loss_title=f"costs of each example for {k} classes",
        columns=columns,
    )
