"""Names of labels: distinct ones, their codes, and how messages show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.protocols import LabelArray

__all__ = ["UNSEEN", "are_codes", "as_kind", "distinct_labels", "listed", "lookup_codes", "shown"]

UNSEEN = -1


def distinct_labels(labels: Any) -> Any:
    """The different labels in order, which must be of one type."""
    try:
        return np.unique(np.asarray(labels))
    except TypeError:
        raise TypeError(
            "y must contain labels of one type that can be sorted, got a mixture (numbers and "
            "strings, or missing values); convert them to strings first"
        ) from None


def lookup_codes(labels: Any, classes: Any) -> LabelArray:
    """Position of each label in `classes`, −1 if it is not there."""
    if len(labels) == 0:
        return np.zeros(0, dtype=np.int64)
    _check_kinds(labels, classes)
    if labels.dtype.kind in "OUS" or classes.dtype.kind in "OUS":
        position = {label: code for code, label in reversed(list(enumerate(classes.tolist())))}
        return np.array([position.get(label, UNSEEN) for label in labels.tolist()], dtype=np.int64)
    whole = labels.dtype.kind in "iu" and classes.dtype.kind in "iu"
    if whole and np.array_equal(classes, np.arange(len(classes))):
        inside = (labels >= 0) & (labels < len(classes))
        return np.where(inside, labels.astype(np.int64), UNSEEN)
    order = np.argsort(classes, kind="stable")
    place = np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)
    codes = order[place]
    return np.where(classes[codes] == labels, codes, UNSEEN).astype(np.int64)


def _check_kinds(labels: Any, classes: Any) -> None:
    """Refuse text where the classes are numbers, and the other way round: all would be unknown."""
    for given, known, one, other in (
        (labels, classes, "text", "numbers"),
        (classes, labels, "numbers", "text"),
    ):
        if given.dtype.kind in "US" and known.dtype.kind in "iufb":
            raise ValueError(
                f"y contains {one} such as {shown(labels[0])}, but the classes are {other}, "
                f"{listed(classes)}; convert y to the type that the model was fitted on"
            )


def are_codes(distinct: Any, size: int) -> bool:
    """Whether labels are integers of 0..size−1 already."""
    return distinct.dtype.kind in "iub" and int(distinct.min()) >= 0 and int(distinct.max()) < size


def as_kind(labels: list[Any], kind: np.dtype[Any]) -> Any:
    """Labels as an array of the dtype of y where they fit, else of objects."""
    if kind.kind in "US":
        return np.array(labels)
    if kind.kind in "iufb":
        try:
            return np.array(labels).astype(kind)
        except ValueError:  # names that are no numbers
            pass
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def shown(label: Any) -> str:
    """A label as messages show it."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def listed(labels: Any) -> str:
    """Several labels as messages show them, the first eight."""
    first = [shown(label) for label in list(labels)[:8]]
    return ", ".join(first) + (", …" if len(labels) > 8 else "")
