"""Decisions from probabilities of the true labels: decode E[target | p], report what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.decisions.result import Decisions
from consistruct.losses import CostMatrix
from consistruct.losses.base import as_loss

__all__ = ["decide_from_probabilities"]


def decide_from_probabilities(loss: Any, probabilities: Any, *, rows: Any = None) -> Decisions:
    """Return argmin_c Σ_y p(y | x) L(c, y) for each row of class probabilities.

    Parameters
    ----------
    loss : Loss, spec or (k, m) costs
    probabilities : (n, m) array
    rows : "pred" or "true", optional
        What the rows of a plain matrix of costs stand for.

    Returns
    -------
    decisions : Decisions
    """
    if not hasattr(loss, "true_labels") and not isinstance(loss, str):
        loss = CostMatrix(np.asarray(loss), rows=rows)
    losses = np.asarray(probabilities, dtype=np.float64) @ as_loss(loss).matrix().T
    order = np.argsort(losses, axis=1, kind="stable")
    each = np.arange(len(losses))
    expected = losses[each, order[:, 0]]
    if losses.shape[1] == 1:
        return Decisions(order[:, 0], expected)
    gap = losses[each, order[:, 1]] - expected
    return Decisions(order[:, 0], expected, order[:, 1], gap)
