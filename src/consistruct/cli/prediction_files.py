"""Predictions as CSV text: one row per example, columns named as in the training file."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # scikit-learn takes a second to import: see cli/learning.py
    from consistruct.learning.data_files import Layout

__all__ = ["predictions_csv"]


def predictions_csv(predictions: Any, expected: Any, layout: Layout, *, ranks: bool) -> str:
    """Labels, label matrices or ranks of items, with the expected loss in a last column if given."""
    columns = predictions.reshape(len(predictions), -1)
    names = layout.label_names if layout.label_names and predictions.ndim > 1 else None
    if ranks:
        header = ["rank"]
    elif predictions.ndim == 1:
        header = [layout.target[0] if layout.target and layout.feature_names else "prediction"]
    elif names is not None and len(names) == columns.shape[1]:
        header = list(names)
    else:
        header = [f"prediction_{part}" for part in range(columns.shape[1])]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*header, "expected_loss"] if expected is not None else header)
    for row, cells in enumerate(columns.tolist()):
        writer.writerow(cells if expected is None else [*cells, repr(float(expected[row]))])
    return text.getvalue()
