"""What decisions cost more than the best ones would have."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._frames import as_array, label_names, labels_in_order
from consistruct.losses import Decision, parse_loss
from consistruct.protocols import FloatArray

__all__ = ["normalized_regret", "regret"]


def regret(y_true: Any, y_pred: Any, *, loss: Any) -> FloatArray:
    """What each decision cost more than the best one would have, (n,).

    Parameters
    ----------
    y_true : (n, d) array
        Costs (values with sense="max") that came true.
    y_pred : (n, d) array
        Decisions.
    loss : Decision or str

    Returns
    -------
    regrets : (n,) array

    Examples
    --------
    >>> from consistruct.metrics import normalized_regret, regret
    >>> costs, decisions = [[1.0, 2.0, 2.0, 0.5]], [[1, 0, 1, 0]]
    >>> regret(costs, decisions, loss="path:2x2")
    array([0.5])
    >>> normalized_regret(costs, decisions, loss="path:2x2")
    0.2
    """
    y_pred = as_array(labels_in_order(y_pred, label_names(y_true), "y_pred"))
    y_true, found = as_array(y_true), _decision(loss)
    return found(
        found.predictions.check(y_pred, "y_pred"), found.true_labels.check(y_true, "y_true")
    )


def normalized_regret(y_true: Any, y_pred: Any, *, loss: Any, sample_weight: Any = None) -> float:
    """Sum of the regrets over the sum of the sizes of the best values.

    Parameters
    ----------
    y_true, y_pred, loss
        As in `regret`.
    sample_weight : (n,) array, optional

    Returns
    -------
    share : float
    """
    regrets = regret(y_true, y_pred, loss=loss)
    best = np.abs(_decision(loss).best_values(y_true))
    total = float(np.average(best, weights=sample_weight))
    if total == 0.0:
        raise ValueError(
            "the best values are all 0, so a share is undefined: use the regrets themselves"
        )
    return float(np.average(regrets, weights=sample_weight)) / total


def _decision(loss: Any) -> Decision:
    found = parse_loss(loss) if isinstance(loss, str) else loss
    if not isinstance(found, Decision):
        raise TypeError(f"loss must be a Decision or a spec such as 'path:5x5', got {loss!r}")
    return found
