"""Predictions as a CSV table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct._plain_data import csv_text

if TYPE_CHECKING:
    from consistruct.learning.files.data import Layout

__all__ = ["predictions_csv"]


def predictions_csv(predictions: Any, expected: Any, layout: Layout, *, ranks: bool) -> str:
    """A column per part, the classes of a set in one field, nothing where there is no answer."""
    columns = predictions.reshape(len(predictions), -1)
    if columns.dtype == object:  # sets of classes, best first
        columns = _joined_sets(columns)
    names = layout.label_names if layout.label_names and predictions.ndim > 1 else None
    if ranks:
        header = ["rank"]
    elif predictions.ndim == 1:
        header = [layout.target[0] if layout.target and layout.feature_names else "prediction"]
    elif names is not None and len(names) == columns.shape[1]:
        header = list(names)
    else:
        header = [f"prediction_{part}" for part in range(columns.shape[1])]
    rows = columns.tolist()
    if expected is not None:
        header = [*header, "expected_loss"]
        rows = [[*row, float(value)] for row, value in zip(rows, expected, strict=True)]
    return csv_text(header, rows)


def _joined_sets(columns: Any) -> Any:
    joined = np.empty(columns.shape, dtype=object)
    for place, cell in np.ndenumerate(columns):
        joined[place] = "|".join(map(str, cell)) if isinstance(cell, tuple) else cell
    return joined
