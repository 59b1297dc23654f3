"""Sets of labels by a threshold on the probability of each label.

*Grow*: the set names the labels that may apply; it stands for all its subsets and counts the least
loss of one of them, that of S ∩ y. *Shrink*: the labels that surely apply; it stands for all its
supersets and counts that of S ∪ y. Both never increase, since a loss from counts falls with the
labels shared and rises with the labels predicted. *Threshold*: the set is the prediction and counts
its own loss, which goes up and down; larger sets are preferred.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from consistruct.guarantees.risk.policies.base import Family, Options, Policy
from consistruct.guarantees.risk.views import View
from consistruct.learning.estimator import TargetEstimator
from consistruct.protocols import FloatArray, IntArray, LabelSetLoss

__all__ = ["GrowingSets", "ShrinkingSets", "ThresholdSets"]


class _LabelSets(Family):
    """Rung j has j labels more (or fewer) than rung 0, most (least) probable first."""

    def __init__(self, view: View, policy: _ByProbability, options: Options) -> None:
        own: Any = view.loss
        self.view, self.policy, self.loss = view, policy, options.loss
        chance = own.label_probabilities(view.target)  # (n, T)
        n, n_labels = chance.shape
        signed = -chance if policy.grows else chance
        self.order = np.argsort(signed, axis=1, kind="stable")
        self.thresholds = np.take_along_axis(signed, self.order, axis=1)
        self.answered = np.ones((n, n_labels + 1), dtype=bool)
        counts = np.arange(n_labels + 1.0)
        self.sizes = np.broadcast_to(counts if policy.grows else counts[::-1], (n, n_labels + 1))

    def losses(self, y: Any) -> FloatArray:
        codes = np.asarray(self.view.label_sets(y))
        if ((codes != 0) & (codes != 1)).any():
            raise ValueError("y must contain labels that training saw: 0 or 1, or their two names")
        listed = np.take_along_axis(codes, self.order, axis=1).cumsum(axis=1)
        passed = np.column_stack([np.zeros(len(codes), dtype=np.int64), listed])
        total = passed[:, [-1]]
        shared = passed if self.policy.grows else total - passed
        return self.policy.count(self.loss, shared, self.sizes, total)

    def present(self, rungs: IntArray) -> Any:
        n, n_labels = self.order.shape
        before = np.arange(n_labels) < rungs[:, None]
        members = np.zeros((n, n_labels), dtype=np.int64)
        inside = before if self.policy.grows else ~before
        np.put_along_axis(members, self.order, inside.astype(np.int64), axis=1)
        return self.view.present(members)


class _ByProbability(Policy):
    grows: ClassVar[bool]
    size = "labels in a set"

    @staticmethod
    @abstractmethod
    def count(loss: Any, shared: Any, predicted: Any, true: Any) -> FloatArray:
        """What a set counts, from |S ∩ y|, |S| and |y|."""

    def refusal(self, estimator: TargetEstimator, options: Options) -> str | None:
        for loss in (estimator.loss_, options.loss):
            if not isinstance(loss, LabelSetLoss) or loss.predictions.size is None:
                return "predictions are not sets of labels"
            if loss.hamming_shape is not None and loss.hamming_shape[1] != 2:
                return "parts have more than two states"
        if options.loss.true_labels.shape != estimator.loss_.true_labels.shape:
            return "the loss that is guaranteed has another number of labels"
        if estimator.kind_.name != "rows" or not estimator.model_.estimates:
            return "it needs probabilities of labels, which this model does not estimate"
        return None

    def monotone(self, options: Options) -> bool:
        return True

    def family(self, view: View, options: Options) -> Family:
        return _LabelSets(view, self, options)


class GrowingSets(_ByProbability):
    """Labels that may apply: large where the model is unsure."""

    name = "grow"
    grows = True
    counts = "the loss of the best subset: what is missed"

    @staticmethod
    def count(loss: Any, shared: Any, predicted: Any, true: Any) -> FloatArray:
        return np.asarray(loss.count_loss(shared, shared, true))


class ShrinkingSets(_ByProbability):
    """Labels that surely apply: small where the model is unsure."""

    name = "shrink"
    grows = False
    counts = "the loss of the best superset: what is named wrongly"

    @staticmethod
    def count(loss: Any, shared: Any, predicted: Any, true: Any) -> FloatArray:
        return np.asarray(loss.count_loss(true, predicted + true - shared, true))


class ThresholdSets(_ByProbability):
    """The largest sets whose own loss is kept."""

    name = "threshold"
    grows = False
    counts = "the loss of the set itself"

    @staticmethod
    def count(loss: Any, shared: Any, predicted: Any, true: Any) -> FloatArray:
        return np.asarray(loss.count_loss(shared, predicted, true))

    def monotone(self, options: Options) -> bool:
        return False  # the best set is neither empty nor full
