"""No answer where the expected loss is too high: abstain, or hand the row over at a price."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.guarantees.risk.policies.base import Family, Options, Policy, two_valued
from consistruct.guarantees.risk.views import View
from consistruct.learning.estimator import TargetEstimator
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Abstention", "Deferral"]


def _needs_expected_loss(estimator: TargetEstimator) -> str | None:
    if not estimator.model_.estimates:
        return "it needs expected losses, and this model only ranks predictions"
    if estimator.kind_.name == "queries":
        return "it needs expected losses, and scores of items are comparable only within a query"
    return None


class _Abstaining(Family):
    """Rung 0 is the answer, rung 1 none; rows of greater `doubt` climb first."""

    def __init__(self, view: View, doubt: FloatArray, silent: np.ndarray | None) -> None:
        n = len(view)
        self.view = view
        self.silent = np.zeros(n, dtype=bool) if silent is None else silent
        self.thresholds = -doubt[:, None]
        self.answered = np.column_stack([~self.silent, np.zeros(n, dtype=bool)])
        self.sizes = np.ones((n, 2))

    def losses(self, y: Any) -> FloatArray:
        answer = np.where(self.silent, 0.0, self.view.losses(self.view.codes, y))
        return np.column_stack([answer, np.zeros(len(answer))])

    def present(self, rungs: IntArray) -> Any:
        loss = self.view.loss
        quiet = self.silent | (rungs == 1)
        if loss.abstain_index is not None:
            return self.view.present(np.where(quiet, loss.abstain_index, self.view.codes))
        return self.view.without(self.view.present(self.view.codes), quiet)


class Abstention(Policy):
    """Answer where the expected loss is below a threshold."""

    name = "abstain"
    counts = "0 without an answer"
    silent = True

    def refusal(self, estimator: TargetEstimator, options: Options) -> str | None:
        return _needs_expected_loss(estimator)

    def monotone(self, options: Options) -> bool:
        return options.loss.value_range[0] >= 0.0  # from a loss that is not negative to 0

    def bounds(self, options: Options) -> tuple[float, float]:
        low, high = options.loss.value_range
        return min(low, 0.0), max(high, 0.0)

    def safest(self, options: Options) -> float:
        return 0.0

    def two_values(self, options: Options) -> bool:
        return two_valued(options.loss)

    def family(self, view: View, options: Options) -> Family:
        own = None if view.loss.abstain_index is None else view.codes == view.loss.abstain_index
        return _Abstaining(view, view.expected_loss, own)


class _HandOver(_Abstaining):
    def __init__(self, view: View, options: Options, second: View | None) -> None:
        doubt = view.expected_loss
        if second is not None and not _needs_expected_loss(second.estimator):
            doubt = doubt - second.expected_loss
        super().__init__(view, doubt, None)
        self.options, self.second = options, second

    def losses(self, y: Any) -> FloatArray:
        handed = np.full(len(self.view), self.options.defer_cost)
        if self.second is not None:
            handed = handed + self.second.losses(self.second.codes, y)
        return np.column_stack([self.view.losses(self.view.codes, y), handed])

    def present(self, rungs: IntArray) -> Any:
        first = self.view.present(self.view.codes)
        if self.second is None:
            return self.view.without(first, rungs == 1)
        other = self.second.present(self.second.codes)
        if isinstance(first, list):
            return [b if up else a for a, b, up in zip(first, other, rungs == 1, strict=True)]
        shape = (-1,) + (1,) * (np.ndim(first) - 1)
        return np.where((rungs == 1).reshape(shape), other, first)


class Deferral(Policy):
    """Hand rows over to a person or a second model where the expected loss is high."""

    name = "defer"
    counts = "the cost of handing over plus the loss of the second model"
    silent = True

    def refusal(self, estimator: TargetEstimator, options: Options) -> str | None:
        second = options.defer_to
        if second is not None and second.kind_.name != estimator.kind_.name:
            return "the second model takes a different kind of examples than the first"
        if second is not None and second.loss_ != estimator.loss_:
            return f"the second model is for {second.loss_!r}, the first for {estimator.loss_!r}"
        return _needs_expected_loss(estimator)

    def monotone(self, options: Options) -> bool:
        return False  # a right answer that is handed over costs more than before

    def bounds(self, options: Options) -> tuple[float, float]:
        low, high = options.loss.value_range
        cost = options.defer_cost
        if options.defer_to is None:
            return min(low, cost), max(high, cost)
        return low, high + cost

    def safest(self, options: Options) -> float:
        # a mixture may cost less than handing everything over: no level is ruled out beforehand
        return self.bounds(options)[0]

    def family(self, view: View, options: Options) -> Family:
        second = None
        if options.defer_to is not None:
            second = View(options.defer_to, view.inputs)
        return _HandOver(view, options, second)
