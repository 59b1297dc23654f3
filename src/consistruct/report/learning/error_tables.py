"""Where the loss comes from: by pair of classes, or by label of a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from consistruct.protocols import FloatArray, LabelArray
from consistruct.report.formats import label_text
from consistruct.report.learning.entries import Confusion, PartErrors

__all__ = ["confusion_of", "confusion_table", "part_errors"]

N_SHOWN = 20  # classes, or labels of a set; the costliest
NAME_LENGTH = 200
UNKNOWN = "not seen in training"
OTHERS = "others"


def confusion_of(
    model: Any,
    predicted: LabelArray,
    y_true: Any,
    test: LabelArray,
    losses: FloatArray | None = None,
) -> Confusion:
    """Counts and costs of all pairs that occur; beyond 20 classes the cheapest are put together.

    A true label that the model has never seen costs the largest loss, as in `task_losses`; `losses`
    (n,) are given where every example has its own costs.
    """
    encoding, loss = model.label_encoding_, model.loss_
    values = encoding.losses(loss, predicted, y_true) if losses is None else losses
    return confusion_table(
        predicted, test, values / len(test), encoding.predictions, encoding.classes
    )


def confusion_table(
    predicted: LabelArray, true: LabelArray, cost: FloatArray, predictions: Any, classes: Any
) -> Confusion:
    """Counts of codes (N,) that meet, and the sums of their costs (N,); −1 is a label never seen.

    `predictions` and `classes` are the names behind the codes.
    """
    k, m = len(predictions), len(classes)
    columns = np.where(true < 0, m, true)
    counts = np.zeros((k, m + 1), dtype=np.int64)
    costs = np.zeros((k, m + 1))
    np.add.at(counts, (predicted, columns), 1)
    np.add.at(costs, (predicted, columns), cost)
    rows = _names(predictions)
    names = [*_names(classes), UNKNOWN]
    if not counts[:, m].any():
        counts, costs, names = counts[:, :m], costs[:, :m], names[:m]
    counts, costs, rows = _merged(counts, costs, rows)
    columns_counts, columns_costs, names = _merged(counts.T, costs.T, names)
    return Confusion(
        tuple(rows),
        tuple(names),
        tuple(tuple(int(c) for c in row) for row in columns_counts.T),
        tuple(tuple(float(c) for c in row) for row in columns_costs.T),
    )


def _names(labels: Any) -> list[str]:
    listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return [label_text(str(label), NAME_LENGTH) for label in listed]


def _merged(
    counts: LabelArray, cost: FloatArray, names: list[str]
) -> tuple[LabelArray, FloatArray, list[str]]:
    """The rows that cost most, in their order, and one row for all others."""
    if len(names) <= N_SHOWN:
        return counts, cost, names
    kept = np.sort(np.argsort(-cost.sum(axis=1), kind="stable")[: N_SHOWN - 1])
    rest = np.setdiff1d(np.arange(len(names)), kept)

    def merge(table: Any) -> Any:
        return np.vstack([table[kept], table[rest].sum(axis=0)])

    return merge(counts), merge(cost), [*(names[row] for row in kept), OTHERS]


def part_errors(
    predicted: LabelArray, test: LabelArray, names: Sequence[str] | None
) -> tuple[PartErrors, ...]:
    """Labels of a set by their errors, the worst first."""
    n_labels = test.shape[1]
    if names is not None and len(names) != n_labels:
        raise ValueError(f"label_names must have {n_labels} entries, got {len(names)}")
    missed = ((predicted == 0) & (test == 1)).mean(axis=0)
    spurious = ((predicted == 1) & (test != 1)).mean(axis=0)
    order = np.argsort(-(missed + spurious), kind="stable")[:N_SHOWN]
    return tuple(
        PartErrors(
            f"label {part}" if names is None else label_text(str(names[part]), NAME_LENGTH),
            float(missed[part]),
            float(spurious[part]),
        )
        for part in order.tolist()
    )
