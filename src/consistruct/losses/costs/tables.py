"""Costs as people hold them: a DataFrame, a dict of dicts by class names, or a plain matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np

from consistruct._frames import is_frame
from consistruct.losses.matrix import CostMatrix, orient, rows_as_predictions
from consistruct.losses.registry import names_cost_file, parse_loss
from consistruct.protocols import FloatArray

__all__ = [
    "cost_table",
    "cost_tensor",
    "in_sorted_order",
    "is_cost_table",
    "loss_of_costs",
    "loss_with_rows",
]


def is_cost_table(loss: Any) -> bool:
    """Return whether a loss is a table of costs rather than a loss or a spec."""
    plain = isinstance(loss, dict | list | tuple | np.ndarray)
    return plain or _is_frame(loss) or is_frame(loss)


def _is_frame(table: Any) -> bool:
    """Return whether a table has names of rows and columns as a pandas data frame does."""
    # by what it has, so that pandas is not imported to look at a list
    return all(hasattr(table, part) for part in ("to_numpy", "index", "columns"))


def cost_table(table: Any, rows: Any = None) -> CostMatrix:
    r"""Return a table of costs as a loss, L(c, y) = M[c, y] with predictions as rows.

    Names are matched with the classes of y later, in any order.

    Unless it is symmetric, a table states what its rows are: a DataFrame on its axes
    (``index.name`` "pred", "true" or ``true\pred``, as in the corner cell of a file), any table by
    `rows`. The rows of a dict of dicts are its outer keys; what a right decision costs may be left
    out of it.

    Parameters
    ----------
    table : data frame, dict of dicts, or (k, k) array
    rows : "pred" or "true", optional
        What the rows stand for.

    Examples
    --------
    >>> cost_table({"ill": {"well": 1}, "well": {"ill": 9}}, rows="pred")([1], [0])
    array([9.])
    """
    if not _is_frame(table) and is_frame(table):  # of a library without row names: as in a file
        table = nw.from_native(table, eager_only=True).to_pandas()
        table = table.set_index(table.columns[0])
    if _is_frame(table):
        if table.index.is_unique and table.columns.is_unique:
            # repeated names cannot be sorted by name; CostMatrix refuses them in one line
            table = table.loc[in_sorted_order(table.index), in_sorted_order(table.columns)]
        return CostMatrix.from_frame(table, rows=rows)
    if not isinstance(table, dict):
        return CostMatrix(np.asarray(table), rows=rows)
    if not table or not all(isinstance(row, dict) and row for row in table.values()):
        raise ValueError(
            "a dict of costs must contain a dict for each prediction (rows='pred') or for each "
            f"true label (rows='true'), got {str(table)[:60]}"
        )
    # not a set: the columns keep the order in which they were written, for messages
    columns = list(dict.fromkeys(label for row in table.values() for label in row))
    for label, row in table.items():
        missing = [other for other in columns if other not in row and other != label]
        if missing:
            raise ValueError(
                f"the costs of {label!r} lack {missing[0]!r}; pass the cost of every prediction "
                "for every true label"
            )
    # only the diagonal may be left out, and a right decision costs nothing unless stated
    labels, columns = in_sorted_order(table), in_sorted_order(columns)
    matrix, pred_names, true_names = orient(
        [[table[label].get(other, 0) for other in columns] for label in labels],
        [*map(str, labels)],
        [*map(str, columns)],
        row_axis=None,
        column_axis=None,
        rows=rows,
    )
    return CostMatrix(matrix, pred_names, true_names, rows="pred")


def loss_of_costs(table: Any) -> CostMatrix:
    """Return the loss of a table of costs; anything else is refused."""
    if not is_cost_table(table):
        raise TypeError(
            f"loss must be a Loss, a spec such as 'zero_one' or a table of costs, "
            f"got {type(table).__name__}"
        )
    return cost_table(table)


def loss_with_rows(loss: Any, rows: Any) -> Any:
    """Return the loss that an estimator was given; costs in a table or file are read by `rows`."""
    if is_cost_table(loss):
        return cost_table(loss, rows)
    if rows is None:
        return loss
    if isinstance(loss, str) and names_cost_file(loss):
        return parse_loss(loss, rows=rows)
    raise ValueError(
        f"rows states what the rows of a table of costs are, but loss is {loss!r}; omit rows"
    )


def in_sorted_order(names: Iterable[Any]) -> list[Any]:
    """Return names sorted like the classes of y, where they can be."""
    # one order whatever the user wrote first: equal tables give equal losses, ties included
    try:
        return sorted(names)
    except TypeError:
        return list(names)


def cost_tensor(costs: Any, n: int, n_classes: int, rows: Any) -> FloatArray:
    """Return the costs C_i[c, y] of each example, checked, with predictions before true labels.

    Parameters
    ----------
    costs : (n, k, k) array
    n, n_classes : int
        The shape that is required.
    rows : "pred" or "true"
        What the second axis of `costs` stands for; may be None if each matrix is symmetric.

    Examples
    --------
    >>> cost_tensor([[[0, 5], [1, 0]]], 1, 2, "true")
    array([[[0., 1.],
            [5., 0.]]])
    """
    values = np.asarray(costs, dtype=np.float64)
    if values.shape != (n, n_classes, n_classes):
        raise ValueError(
            f"costs per example must have shape ({n}, {n_classes}, {n_classes}): what each "
            f"prediction costs for each true label; got {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("costs must be finite, got NaN or infinite entries")
    return rows_as_predictions(values, rows)
