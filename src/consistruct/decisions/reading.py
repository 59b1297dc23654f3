"""Probabilities as people hold them: arrays, frames with names, lists per label or per sequence.

Most wrong decisions come from here and not from the loss: columns in another order than the costs,
scores in place of probabilities, a transposed matrix. None of them raises by itself, because any
matrix of numbers can be decoded. So everything is checked that numbers and names can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._frames import as_array, is_frame, read_frame
from consistruct._validation import on_host
from consistruct.decisions.classes import (
    ClassLabels,
    class_labels,
    distinct_labels,
    in_order,
    listed,
)
from consistruct.losses.base import Loss, Sizes, as_loss
from consistruct.losses.costs.tables import is_cost_table, loss_with_rows
from consistruct.losses.registry import parse_loss
from consistruct.protocols import FloatArray
from consistruct.structures import Ragged

__all__ = [
    "Given",
    "check_distributions",
    "check_shares",
    "columns_by_class",
    "loss_for",
    "read_given",
    "refuse_two_names",
    "stacked",
]

# Sums of float32 probabilities are off by 1e-7 per class; that says nothing about the model.
EXACT_SUM = 1e-5
# Files with two digits are off by up to 0.005 per class; beyond this it is another mistake.
ROUNDED_SUM = 0.02


@dataclass(frozen=True, eq=False)
class Given:
    """Hold what was given, as numbers.

    Attributes
    ----------
    values : array, Ragged or list
        (n, m) or (n, T, s); packed where rows have different lengths. A list of matrices may hold
        one per label, as scikit-learn returns, or one per sequence: the loss tells (`stacked`).
    names : list or None
        What the m columns are called.
    """

    values: Any
    names: list[Any] | None = None


def read_given(values: Any, classes: Any = None, what: str = "probabilities") -> Given:
    """Return numbers and the names of their columns, from a frame or from `classes`.

    >>> read_given([[0.9, 0.1], [0.4, 0.6]], ["ham", "spam"]).names
    ['ham', 'spam']
    """
    if isinstance(values, Given):
        return values
    if isinstance(values, dict):
        raise TypeError(
            f"{what} must be an array, a list or a data frame, got a dict; wrap it in one"
        )
    if is_frame(values):
        columns = list(read_frame(values).columns)
        # pandas numbers the columns of an array: these are no names
        own = _given_names(classes) if columns == list(range(len(columns))) else columns
        return Given(np.asarray(as_array(values, what), dtype=np.float64), own)
    if isinstance(values, Ragged):
        return Given(values.with_values(np.asarray(values.values, dtype=np.float64)))
    names = _given_names(classes)
    if isinstance(values, list | tuple) and len(values) and np.ndim(values[0]) > 0:
        arrays = [np.asarray(on_host(value), dtype=np.float64) for value in values]
        # T labels of n rows, or n sequences of T tokens: equal shapes leave it open
        if arrays[0].ndim > 1:
            return Given(arrays, names)
        alike = len({len(array) for array in arrays}) == 1
        return Given(np.array(arrays) if alike else Ragged.pack(arrays), names)
    array = np.asarray(on_host(as_array(values, what)), dtype=np.float64)
    if array.ndim not in (2, 3):
        raise ValueError(
            f"{what} must have one row per example, (n, classes), got shape {array.shape}; for two "
            "classes pass both columns, np.column_stack([1 - p, p])"
        )
    return Given(array, names)


def _given_names(classes: Any) -> list[Any] | None:
    """Return names as a list of Python values, which compare with those of a frame."""
    return None if classes is None else np.asarray(as_array(classes, "classes")).tolist()


def refuse_two_names(given: Given, classes: Any) -> None:
    """Raise if a data frame names its columns and `classes` names them otherwise."""
    names = _given_names(classes)
    if names is not None and [str(name) for name in given.names or ()] != [*map(str, names)]:
        raise ValueError(
            f"the columns of probabilities are called {listed(given.names or ())}, but classes= "
            f"are {listed(names)}; rename the columns, or omit classes="
        )


def loss_for(loss: Any, rows: Any, values: Any) -> Loss:
    """Return the loss: a table of costs by `rows`, a spec with its sizes from the probabilities."""
    if is_cost_table(loss) or rows is not None:
        loss = loss_with_rows(loss, rows)
    if not isinstance(loss, str):
        return as_loss(loss)
    if isinstance(values, Ragged):
        raise ValueError(
            f"{loss!r} has no length, and rows have several; pass a loss of all lengths"
        )
    shape = values.shape if isinstance(values, np.ndarray) else stacked(values).shape
    states = int(shape[2]) if len(shape) > 2 else 2
    return parse_loss(loss, sizes=Sizes(int(shape[1]), int(shape[1]), states))


def stacked(arrays: list[FloatArray]) -> FloatArray:
    """Return (n, T, s) from T arrays (n, s), one per label of a set.

    >>> stacked([np.array([[0.9, 0.1]]), np.array([[0.4, 0.6]])]).shape
    (1, 2, 2)
    """
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) > 1:
        raise ValueError(
            f"the arrays of the labels must have the same shape (n, states), got {shapes[0]} and "
            f"{shapes[-1]}; a classifier that saw one state only has one column: give it the other "
            "one, with probability 0"
        )
    return np.stack(arrays, axis=1)


def columns_by_class(given: Given, loss: Loss) -> tuple[FloatArray, ClassLabels]:
    """Return the columns in the order of the true labels of the loss, and what they are called.

    Names are matched; where one side has none, its order is only taken if it cannot be mistaken:
    predict_proba has sorted classes, so a loss without names is over the sorted classes, too.
    """
    values, size = given.values, loss.true_labels.size
    names = getattr(loss.true_labels, "names", None)
    if not isinstance(values, np.ndarray):
        raise ValueError(f"{loss!r} needs an array of {size} columns, got a list of arrays")
    if values.ndim != 2 or values.shape[1] != size:
        raise ValueError(
            f"{loss!r} needs probabilities of {size} classes, (n, {size}), got shape {values.shape}"
        )
    if given.names is None:
        if names is not None and not loss.ordered_classes and sorted(names) != list(names):
            raise ValueError(
                f"the classes of the loss are {listed(names)}, which is not sorted, and the "
                "columns of the probabilities have no names; pass a data frame, or classes= in the "
                "order of the columns (such as model.classes_)"
            )
        return values, class_labels(
            loss, np.arange(values.shape[1]) if names is None else np.array(names)
        )
    if len(given.names) != size or len(set(given.names)) != size:
        raise ValueError(
            f"the {size} columns of probabilities need {size} different names, got "
            f"{listed(given.names)}"
        )
    # the same order that `fit` gives to the classes of y, so that costs mean the same in both
    known = distinct_labels(given.names)
    if names is None and loss.ordered_classes:
        known = in_order(known, None, loss)
    labels = class_labels(loss, known)
    columns = [given.names.index(name) for name in labels.classes.tolist()]
    moved = columns != list(range(len(columns)))
    if moved and names is None and not loss.ordered_classes and not _same_for_all(loss, columns):
        raise ValueError(
            f"the columns are {listed(given.names)}, which is not sorted, and the costs have no "
            "names, so that it is open which cost is whose; name the costs (a data frame, a dict, "
            "or CostMatrix(M, names, names)), or sort the columns and the costs"
        )
    return (values[:, columns] if moved else values), labels


def _same_for_all(loss: Loss, columns: Sequence[int]) -> bool:
    """Return whether the loss stays the same if its classes are permuted, as the 0-1 loss."""
    matrix = loss.matrix()
    # predictions beyond the classes (to abstain) stay where they are
    rows = [*columns, *range(len(columns), len(matrix))]
    return np.array_equal(matrix[rows][:, columns], matrix)


def check_distributions(p: FloatArray, what: str = "row") -> str | None:
    """Raise unless the last axis sums to one; return a note where it does so only nearly."""
    p = p.reshape(-1, p.shape[-1])
    # a product with ones sums rows of ten several times faster than p.sum(axis=1)
    sums = p @ np.ones(p.shape[1])
    low, high = float(p.min(initial=0.0)), float(p.max(initial=0.0))
    _check_finite(p, sums)
    error = float(np.abs(sums - 1.0).max(initial=0.0))
    if low >= -EXACT_SUM and error <= EXACT_SUM:
        return None
    # what it most likely is instead, from the signs and the sums: one hint, the first that fits
    worst = int(np.abs(sums - 1.0).argmax())
    if low >= 0.0 and error <= ROUNDED_SUM:
        return (
            f"rows sum to {sums.min():.4g} to {sums.max():.4g}, as rounded numbers do: each was "
            "replaced by the nearest probabilities"
        )
    if low < -EXACT_SUM or (high > 1.0 and np.abs(sums - 100.0).max() > 100.0 * ROUNDED_SUM):
        hint = "these look like logits or scores: pass scipy.special.softmax(scores, axis=1)"
    elif high > 1.0:
        hint = "these look like percentages: divide them by 100"
    elif np.abs(p.sum(axis=0) - 1.0).max() <= ROUNDED_SUM:
        hint = "the columns sum to 1: transpose them"
    else:
        hint = (
            "probabilities of one class against the rest do not sum to 1: divide each row by its "
            "sum, or calibrate= them; probabilities of labels of a set need a loss over sets"
        )
    raise ValueError(
        f"each {what} of probabilities must contain numbers of at least 0 that sum to 1, got "
        f"{low:.4g} to {high:.4g}, and a sum of {sums[worst]:.4g} in {what} {worst}; {hint}"
    )


def check_shares(p: FloatArray) -> None:
    """Raise unless every number is a probability by itself: one per label of a set."""
    _check_finite(p.reshape(-1, p.shape[-1]), p.reshape(-1, p.shape[-1]) @ np.ones(p.shape[-1]))
    low, high = float(p.min(initial=0.0)), float(p.max(initial=0.0))
    if low < 0.0 or high > 1.0:
        raise ValueError(
            f"probabilities of labels must be between 0 and 1, got {low:.4g} to {high:.4g}; these "
            "look like logits: pass scipy.special.expit(scores)"
        )


def _check_finite(p: FloatArray, sums: FloatArray) -> None:
    """Raise if a row has an entry that is no number, given its sums (n,)."""
    # a NaN or an infinite entry shows in the sum, which is k times shorter to look through
    if not np.isfinite(sums).all():
        row = int(np.argmin(np.isfinite(sums)))
        raise ValueError(f"probabilities must be finite, got {p[row].tolist()[:8]} in row {row}")
