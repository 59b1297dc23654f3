"""Names of labels: distinct ones, their codes, and how messages show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.protocols import LabelArray

__all__ = [
    "UNSEEN",
    "are_codes",
    "as_kind",
    "distinct_labels",
    "in_order",
    "listed",
    "lookup_codes",
    "order_of",
    "shown",
]

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


def order_of(y: Any) -> tuple[Any, ...] | None:
    """The classes in order, where y is an ordered categorical of pandas; else None."""
    dtype: Any = getattr(y, "dtype", None)
    return tuple(dtype.categories) if getattr(dtype, "ordered", None) is True else None


def in_order(distinct: Any, order: Any, asked: object) -> Any:
    """The classes from the lowest to the highest, for a loss or metric that asks for it.

    Numbers have an order, and so have text that is numbers and single letters; other text must
    be put in order by whoever knows it.
    """
    if order is not None:
        written = {str(label): label for label in distinct}
        unknown = [name for name in written if name not in {str(label) for label in order}]
        if unknown:
            raise ValueError(
                f"y contains {shown(written[unknown[0]])}, which is not one of {listed(order)}"
            )
        known = [written[str(label)] for label in order if str(label) in written]
        return as_kind(known, distinct.dtype)
    if distinct.dtype.kind not in "OUS" or len(distinct) < 3:
        return distinct  # the distance of two classes is the same both ways
    if all(isinstance(label, str) and len(label) == 1 for label in distinct.tolist()):
        return distinct  # A to F
    try:
        return distinct[np.argsort([float(label) for label in distinct], kind="stable")]
    except (TypeError, ValueError):
        raise ValueError(
            f"{asked!r} needs the order of the classes, and text has none: y contains "
            f"{listed(distinct)}; name them from lowest to highest in the loss, such as "
            "'ordinal:low,mid,high' or 'qwk:low,mid,high', or pass numbers or an ordered pandas "
            "Categorical"
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
