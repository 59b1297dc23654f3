"""What the scores of a network stand for, and the criterion that they are trained by."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._validation import is_sparse
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import ConsistructError
from consistruct.learning.statistics import TargetValues
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["RANKING", "Output"]

RANKING = ("hinge", "softmax-margin")  # scores that only rank labels
# and such as tell the distribution of the true label
PROBABILISTIC = ("log", "sparsemax", "member-log")


class Output:
    """What the scores of a network stand for: probabilities of classes, or scores of a criterion.

    Scores are shift + scale · (what the network gives), so that the units of the loss do not matter
    to the optimizer. An offset that depends on the true label is one more score.
    """

    def __init__(self, statistic: Statistic, task: Any, shift: FloatArray, scale: float) -> None:
        self.statistic, self.task = statistic, task
        self.shift, self.scale = shift, scale
        self.n_outputs = len(shift)
        self.classes = task is None  # cross-entropy of classes needs nothing of the loss
        self.extra = not self.classes and task.surrogate == "quadratic" and _open_offset(statistic)

    @classmethod
    def of(cls, statistic: Statistic, task: Any, codes: Any, weight: FloatArray) -> Output:
        """For a criterion (None: class probabilities), with the units that the true labels have."""
        loss = statistic.loss
        if task is None:
            return cls(statistic, None, np.zeros(statistic.width), 1.0)
        own = TargetValues(loss)
        if task.surrogate != "quadratic":
            estimating = (*PROBABILISTIC, *RANKING)
            if own.constant_offset is None and task.surrogate not in estimating:
                raise ConsistructError(
                    f"the offset of {loss!r} depends on the true label, which {task.surrogate!r} "
                    "does "
                    "not estimate; use surrogate='quadratic'"
                )
            return cls(own, task, np.zeros(task.width), 1.0)
        values = own.values(codes)
        share = weight / weight.sum()
        mean = np.asarray(share @ values).ravel()
        squares = values.multiply(values) if is_sparse(values) else np.square(dense_target(values))
        variance = np.asarray(share @ squares).ravel() - mean**2
        scale = float(np.sqrt(max(variance[: task.width].max(initial=0.0), 0.0))) or 1.0
        sign = np.where(np.arange(len(mean)) < task.width, -1.0, 1.0)  # scores are minus targets
        return cls(own, task, sign * mean, scale)

    def value(self, scores: Any, true: Any, weight: Any) -> Any:
        """Mean of the criterion, in units of its own."""
        if self.classes:
            import torch

            each = torch.nn.functional.cross_entropy(scores, true, reduction="none")
            return (each * weight).mean()
        width = self.task.width
        values = self.task(scores[:, :width], true)
        if self.extra:
            offset = self.task.body.true_labels.offset(true, scores.dtype)
            values = values + 0.5 * (scores[:, width] - offset).square()
        return (values * weight).mean() / self.scale**2

    def expected(self, scores: Any) -> FloatArray:
        """E[τ | x] of scores, (n, width of the statistic)."""
        if self.classes:
            return np.asarray(scores.softmax(1).numpy())
        width, task = self.task.width, self.task
        target = task.expected_target(scores[:, :width]).numpy()
        if not _open_offset(self.statistic):
            return np.asarray(target)
        if self.extra:
            offset = scores[:, width:].numpy()
        else:
            offset = task.body.expected_offset(scores).numpy()[:, None]
        return np.hstack([target, offset])

    def decide(self, scores: Any) -> LabelArray:
        """Codes of predictions, by the highest score."""
        return np.asarray(self.task.decode(scores).numpy())

    def to(self, device: Any) -> Output:
        """The same with its criterion on a device."""
        if self.task is not None:
            self.task.to(device)
        return self


def _open_offset(statistic: Statistic) -> bool:
    return statistic.open_offset
