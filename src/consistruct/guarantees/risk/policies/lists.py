"""Rankings shown in part: the first items of the order, as many as it takes.

A list counts what its own metric states of the items shown, the others bring nothing. Losses never
increase: one more item adds a gain that is not negative (`prefix_losses`). An item is shown if the
gain expected of it at its position is above a threshold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.guarantees.risk.policies.base import Family, Options, Policy
from consistruct.guarantees.risk.views import View
from consistruct.learning.encoding.queries import ranks_of_orders, with_grades
from consistruct.learning.estimator import TargetEstimator
from consistruct.losses.rankings.orders import rows_at
from consistruct.protocols import FloatArray, IntArray, ListLoss
from consistruct.structures import Ragged

__all__ = ["Lists"]


class _Lists(Family):
    """Rung j shows j + 1 items; padded to the longest query."""

    def __init__(self, view: View, gains: FloatArray, lengths: IntArray) -> None:
        n, longest = gains.shape
        self.view, self.lengths = view, lengths
        thresholds = np.maximum.accumulate(-gains[:, 1:], axis=1)
        self.thresholds = np.where(np.arange(1, longest) < lengths[:, None], thresholds, np.inf)
        self.answered = np.ones((n, longest), dtype=bool)
        self.sizes = np.minimum(np.arange(1.0, longest + 1), lengths[:, None])

    def losses(self, y: Any) -> FloatArray:
        codes: Any = self.view.codes
        loss: Any = self.view.loss
        if not isinstance(codes, Ragged):
            return np.asarray(loss.prefix_losses(codes, self.view.true_codes(y)))
        grades = self.view.true_codes(y)
        loss = with_grades(loss, grades)
        found = np.empty(self.answered.shape)
        for length in np.unique(self.lengths).tolist():
            rows = np.flatnonzero(self.lengths == length)
            member = loss if loss.n is not None else loss.at(length)
            part = member.prefix_losses(rows_at(codes, rows), rows_at(grades, rows))
            found[rows, :length] = part
            found[rows, length:] = part[:, [-1]]
        return found

    def present(self, rungs: IntArray) -> Any:
        shown = rungs + 1
        codes: Any = self.view.codes
        if isinstance(codes, Ragged):
            ranks = ranks_of_orders(codes)
            cut = np.where(ranks.values <= shown[ranks.rows], ranks.values, 0)
            return self.view.inputs.unpack(ranks.with_values(cut))
        orders = np.array(self.view.present(codes))
        orders[np.arange(orders.shape[1]) >= shown[:, None]] = -1
        return orders


class Lists(Policy):
    """A list that is long where the model is unsure; −1, or rank 0, stands for "not shown"."""

    name = "list"
    counts = "the metric of the items shown"
    size = "items in a list"

    def refusal(self, estimator: TargetEstimator, options: Options) -> str | None:
        if not isinstance(options.loss, ListLoss):
            return "the loss does not define the cost of a truncated list"
        if estimator.kind_.name not in ("rows", "queries"):
            return "it needs orders of items"
        return None

    def monotone(self, options: Options) -> bool:
        return True  # what ListLoss demands of prefix_losses

    def bounds(self, options: Options) -> tuple[float, float]:
        return 0.0, max(1.0, options.loss.max_value)  # nothing relevant among the items shown

    def family(self, view: View, options: Options) -> Family:
        codes: Any = view.codes
        if isinstance(codes, Ragged):
            lengths = codes.lengths
            gains = np.zeros((len(codes), int(lengths.max())))
            for row, (order, target) in enumerate(zip(codes, view.target, strict=True)):
                scores = -np.asarray(target).ravel()[order]
                discount = _discount(view.loss, len(order))
                gains[row, : len(order)] = (scores - scores.min()) * discount
            return _Lists(view, gains, lengths)
        n_items = codes.shape[1]
        if view.target.shape[1] == n_items:  # a score per item
            gains = -np.take_along_axis(view.target, codes, axis=1) * _discount(view.loss, n_items)
        else:  # scores of pairs say nothing of single items: the same length for all
            gains = np.broadcast_to(-np.arange(n_items, dtype=np.float64), codes.shape)
        return _Lists(view, gains, np.full(len(codes), n_items))


def _discount(loss: Any, n_items: int) -> FloatArray:
    member = loss if loss.n is not None else loss.at(n_items)
    return np.asarray(getattr(member.score_space, "discount", np.ones(n_items)))
