"""Costs as people hold them: a DataFrame, a dict of dicts by class names, or a plain matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from consistruct.learning.encoding.labels import are_codes, distinct_labels, listed
from consistruct.losses import CostMatrix, parse_loss
from consistruct.losses.base import Loss
from consistruct.losses.registry import loss_name
from consistruct.protocols import FloatArray, LabelArray

__all__ = [
    "CostLabels",
    "cost_table",
    "cost_tensor",
    "example_costs",
    "is_cost_table",
    "loss_of_costs",
    "loss_with_rows",
]


def is_cost_table(loss: Any) -> bool:
    """Whether a loss is given as a table of costs rather than as a loss or a spec."""
    return isinstance(loss, dict | list | tuple | np.ndarray) or _is_frame(loss)


def _is_frame(table: Any) -> bool:
    return all(hasattr(table, part) for part in ("to_numpy", "index", "columns"))


def cost_table(table: Any, rows: Any = None) -> CostMatrix:
    r"""The costs as a loss; names are matched with the classes of y later, in any order.

    A DataFrame says on its axes which is which (``index.name`` "pred", "true" or ``true\pred``,
    as in the corner cell of a file) unless it is symmetric. A dict is ``costs[prediction][truth]``,
    or the other way round with ``rows="true"``; what a right decision costs may be left out. A
    plain matrix that is not symmetric needs `rows`.

    >>> cost_table({"ill": {"well": 1}, "well": {"ill": 9}})([1], [0])
    array([9.])
    """
    if rows not in (None, "pred", "true"):
        raise ValueError(f"rows must be 'pred' or 'true', got {rows!r}")
    if _is_frame(table):
        if table.index.is_unique and table.columns.is_unique:
            table = table.loc[_in_order(table.index), _in_order(table.columns)]
        return CostMatrix.from_frame(table, rows=rows)
    if not isinstance(table, dict):
        plain = CostMatrix(np.asarray(table))
        if rows is None and not np.array_equal(plain.M, plain.M.T):
            raise ValueError(
                "the costs are not symmetric, and a plain matrix does not say whether its rows "
                "are predictions or truths; pass rows='pred' or rows='true', a DataFrame with "
                "index.name 'pred' or 'true', or CostMatrix(M), whose rows are predictions"
            )
        return CostMatrix(plain.M.T) if rows == "true" else plain
    if not table or not all(isinstance(row, dict) and row for row in table.values()):
        raise ValueError(
            "a dict of costs must contain a dict for each prediction, costs[prediction][truth], "
            f"got {str(table)[:60]}"
        )
    if rows == "true":
        table = _turned(table)
    truths = list(dict.fromkeys(truth for row in table.values() for truth in row))
    for prediction, row in table.items():
        missing = [truth for truth in truths if truth not in row and truth != prediction]
        if missing:
            raise ValueError(
                f"the costs of predicting {prediction!r} lack the truth {missing[0]!r}; pass the "
                "cost of every prediction for every truth"
            )
    predictions, truths = _in_order(table), _in_order(truths)
    matrix = [[table[prediction].get(truth, 0) for truth in truths] for prediction in predictions]
    return CostMatrix(matrix, tuple(map(str, predictions)), tuple(map(str, truths)))


def loss_of_costs(table: Any) -> CostMatrix:
    """The loss of a table of costs; anything else is refused."""
    if not is_cost_table(table):
        raise TypeError(
            f"loss must be a Loss, a spec such as 'zero_one' or a table of costs, "
            f"got {type(table).__name__}"
        )
    return cost_table(table)


def loss_with_rows(loss: Any, rows: Any) -> Any:
    """The loss that an estimator was given; a table or a file of costs is read by `rows`."""
    if is_cost_table(loss):
        return cost_table(loss, rows)
    if rows is None:
        return loss
    if isinstance(loss, str) and loss_name(loss.partition(":")[0]) == "cost":
        return parse_loss(loss, rows=rows)
    raise ValueError(
        f"rows says what the rows of a table of costs are, but loss is {loss!r}; omit rows"
    )


def _turned(table: dict[Any, Any]) -> dict[Any, Any]:
    """costs[truth][prediction] as costs[prediction][truth]."""
    turned: dict[Any, Any] = {}
    for truth, row in table.items():
        for prediction, cost in row.items():
            turned.setdefault(prediction, {})[truth] = cost
    return turned


def _in_order(names: Iterable[Any]) -> list[Any]:
    """Sorted like the classes of y, where the names can be."""
    try:
        return sorted(names)
    except TypeError:
        return list(names)


def example_costs(costs: Any, y: Any, classes: Any = None) -> tuple[FloatArray, Any]:
    """Costs (n, k) with a column per class, in the order of the classes, and the classes.

    The columns of a DataFrame are found by name. `y` (n,) names the classes of a plain array, or
    nothing does: they are 0..k−1 then. `classes`, of a fitted model, are kept as they are.
    """
    values = np.asarray(costs.to_numpy() if _is_frame(costs) else costs)
    if values.ndim != 2:
        raise ValueError(f"costs must have shape (n, classes), got {values.shape}")
    if _is_frame(costs):
        names = np.asarray(costs.columns)
        wanted = np.array(_in_order(names)) if classes is None else classes
        column = {str(name): position for position, name in enumerate(names.tolist())}
        missing = [name for name in wanted.tolist() if str(name) not in column]
        if missing:
            raise ValueError(f"costs have no column {missing[0]!r}; they have {listed(names)}")
        values = values[:, [column[str(name)] for name in wanted.tolist()]]
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


def cost_tensor(costs: Any, n: int, n_classes: int) -> FloatArray:
    """Costs (n, predictions, truths) of each example, checked; one matrix serves all examples.

    >>> cost_tensor([[[0, 5], [1, 0]]], 1, 2).shape
    (1, 2, 2)
    """
    values = np.asarray(costs, dtype=np.float64)
    if values.ndim != 3 or values.shape[0] != n or values.shape[2] != n_classes:
        raise ValueError(
            f"costs per example must have shape ({n}, predictions, {n_classes}): what prediction "
            f"c costs if the truth is t; got {values.shape}"
        )
    if values.shape[1] != n_classes:
        raise ValueError(
            f"costs must cover {n_classes} predictions, one per class, got {values.shape[1]}"
        )
    if not np.isfinite(values).all():
        raise ValueError("costs must be finite, got NaN or infinite entries")
    return values


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
        return loss.truths.check(costs, "costs")

    def decode(self, pred: LabelArray) -> Any:
        return self.predictions[pred]

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        return loss(pred, self.encode(y, loss))
