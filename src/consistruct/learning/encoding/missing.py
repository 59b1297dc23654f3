"""Which cells and true labels are missing, and the one line that refuses true labels that are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from consistruct._frames import refuse_missing_rows

__all__ = ["is_missing", "is_missing_label", "refuse_missing_labels"]

# "<na>" is what pandas writes for pandas.NA as text, "#n/a" what spreadsheets show
MISSING = frozenset({"", "?", "na", "n/a", "nan", "nat", "null", "none", "<na>", "#n/a"})


def is_missing(cell: str, missing: Iterable[str] = ()) -> bool:
    """Whether a cell has no value: empty, ``NA`` and the like, or one of the given words."""
    return cell.lower() in MISSING or cell in missing


def is_missing_label(value: Any, missing: Iterable[str] = ()) -> bool:
    """Whether a true label is missing: None, NaN, or text that states it.

    The word ``none`` in small letters is a class: "none", "mild", "severe".

    >>> [is_missing_label(value) for value in (None, float("nan"), "NA", "", "none", 0)]
    [True, True, True, True, False, False]
    """
    if isinstance(value, str):
        cell = value.strip()
        return cell != "none" and is_missing(cell, missing)
    # NaN and NaT differ from themselves; pandas.NA compares to something that is no Boolean
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def refuse_missing_labels(y: Any) -> None:
    """Raise ValueError if a true label of an array, a list or a column is missing, with its rows.

    >>> refuse_missing_labels(["a", "NA", "b", None])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: y is missing in 2 rows (counted from 0: 1, 3); fill them in, or drop these rows...
    """
    values = np.asarray(y)
    if values.dtype.kind not in "fOUSM" or values.ndim not in (1, 2):
        return
    if values.dtype.kind in "fM":
        gone = values != values
    elif values.dtype.kind in "US":
        gone = np.isin(
            values, [word for word in set(values.ravel().tolist()) if is_missing_label(word)]
        )
    else:
        gone = np.array([_is_scalar_gone(value) for value in values.ravel()]).reshape(values.shape)
    refuse_missing_rows("y", gone.reshape(len(values), -1).any(axis=1))


def _is_scalar_gone(value: Any) -> bool:
    # sets and lists of labels are true labels too; an empty one is an empty set
    return (
        value is None or np.isscalar(value) or type(value).__name__ in ("NAType", "NaTType")
    ) and is_missing_label(value)
