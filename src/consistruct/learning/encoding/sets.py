"""Label sets as users write them: rows of 0 and 1."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from consistruct._frames import refuse_missing_labels
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["SetLabels"]


class SetLabels:
    """Label sets as rows of 0 and 1; a set of a size that training never saw can be scored."""

    def class_names(self, loss: Loss) -> Any:
        return np.arange(loss.true_labels.shape[0])

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        return loss.true_labels.check(y, "y")

    def known(self, y: Any, loss: Loss) -> LabelArray:  # sets of any size, for scoring
        refuse_missing_labels(y)
        return dataclasses.replace(loss.true_labels, sizes=None).check(y, "y")  # type: ignore[type-var]

    def decode(self, pred: LabelArray) -> Any:
        return pred

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        refuse_missing_labels(y)
        return loss(pred, y)  # the sizes of F_β restrict what is learned from, not the loss
