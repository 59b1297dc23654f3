"""Costs of each example: their columns in the order of the classes, and back."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from consistruct._frames import as_array, is_frame
from consistruct.decisions.classes import are_codes, distinct_labels, listed
from consistruct.losses.base import Loss
from consistruct.losses.costs.tables import in_sorted_order
from consistruct.protocols import FloatArray, LabelArray

__all__ = [
    "CostLabels",
    "example_costs",
]


def example_costs(costs: Any, y: Any, classes: Any = None) -> tuple[FloatArray, Any]:
    """Costs (n, k) with a column per class, in the order of the classes, and the classes.

    The columns of a DataFrame are found by name. `y` (n,) names the classes of a plain array, or
    nothing does: they are 0..k−1 then. `classes`, of a fitted model, are kept as they are.
    """
    values = np.asarray(as_array(costs, "costs"))
    if values.ndim != 2:
        raise ValueError(f"costs must have shape (n, classes), got {values.shape}")
    if is_frame(costs):
        names = np.asarray(nw.from_native(costs, eager_only=True).columns)
        wanted = np.array(in_sorted_order(names)) if classes is None else classes
        column = {str(name): position for position, name in enumerate(names.tolist())}
        missing = [name for name in wanted.tolist() if str(name) not in column]
        if missing:
            raise ValueError(f"costs have no column {missing[0]!r}; they have {listed(names)}")
        # in the order of rows, as arrays are: products then add in the same order
        values = np.ascontiguousarray(values[:, [column[str(name)] for name in wanted.tolist()]])
        classes = wanted
    if classes is None:
        classes = np.arange(values.shape[1])
        if y is not None and not are_codes(distinct_labels(y), values.shape[1]):
            classes = distinct_labels(y)
    if len(classes) != values.shape[1]:
        raise ValueError(
            f"costs have {values.shape[1]} columns, but there are {len(classes)} classes, "
            f"{listed(classes)}; pass a cost for each, or a DataFrame with the classes as columns"
        )
    unknown = [] if y is None else sorted(set(map(str, y)) - set(map(str, classes.tolist())))
    if unknown:
        raise ValueError(f"y contains {unknown[0]!r}, which has no column in costs")
    return values, classes


class CostLabels:
    """Costs of every prediction for each example; `predictions` name the columns."""

    def __init__(self, predictions: Any) -> None:
        self.predictions = predictions  # (k,)

    def class_names(self, loss: Loss) -> Any:
        return self.predictions

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        costs = np.asarray(y)
        if costs.ndim != 2:
            raise ValueError(
                "the model was fitted with a cost per example and class: pass costs of shape (n, "
                f"{len(self.predictions)}), got {costs.shape}"
            )
        return loss.true_labels.check(costs, "costs")

    def decode(self, pred: LabelArray) -> Any:
        return self.predictions[pred]

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        return loss(pred, self.encode(y, loss))
