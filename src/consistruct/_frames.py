"""Frames of any library as arrays: their cells, their names, rows in the order of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from consistruct._missing import is_gone, refuse_missing_rows

__all__ = [
    "EXACT",
    "as_array",
    "inexact_integer",
    "is_frame",
    "label_names",
    "labels_in_order",
    "read_frame",
    "refuse_inexact_integers",
    "unmasked",
]

EXACT = 2**53  # up to here a float holds every integer


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas, Polars, pyarrow or another library of narwhals."""
    remedy = {"LazyFrame": "X.collect()", "RecordBatch": "pyarrow.Table.from_batches([X])"}
    name = type(X).__name__
    if name in remedy and type(X).__module__.startswith(("polars", "pyarrow")):
        raise TypeError(f"X is a {name}, which cannot be read as a table; pass {remedy[name]}")
    return bool(nw.dependencies.is_into_dataframe(X))


def labels_in_order(y: Any, names: Sequence[str] | None, name: str = "y") -> Any:
    """Return y with its columns in the order of `names`, where both have names.

    >>> import pyarrow as pa
    >>> labels_in_order(pa.table({"sea": [1], "sun": [0]}), ["sun", "sea"])
    array([[0, 1]])
    """
    given = label_names(y)
    if names is None or given is None or given == tuple(names):
        return y
    if sorted(given) != sorted(names):
        raise ValueError(
            f"{name} must have the columns {', '.join(names)}, in any order, got "
            f"{', '.join(given)}; rename them, or pass an array"
        )
    return as_array(y)[:, [given.index(column) for column in names]]


def label_names(y: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of y, or None where there are none or a single one."""
    names = tuple(map(str, read_frame(y).columns)) if is_frame(y) else ()
    return names if len(names) > 1 else None


def as_array(values: Any, name: str = "y", *, complete: bool = True) -> Any:
    """A series or a frame of any library as a NumPy array, anything else as it is.

    With `complete`, a missing value is refused with its row.

    >>> import pyarrow as pa
    >>> as_array(pa.chunked_array([[1, 2]]))
    array([1, 2])
    """
    if is_frame(values):
        columns = [as_array(c, name, complete=complete) for c in read_frame(values).iter_columns()]
        return np.column_stack(columns)
    if isinstance(values, np.ma.MaskedArray):  # asarray would take what lies below the mask
        if complete:
            mask = np.ma.getmaskarray(values).reshape(len(values), -1)
            refuse_missing_rows(name, np.asarray(mask.any(axis=1)))
        return unmasked(values)
    if type(values).__module__ == "pyarrow.lib" and hasattr(values, "dictionary_encode"):
        from pyarrow import chunked_array

        values = chunked_array([values]) if not hasattr(values, "chunks") else values
    if isinstance(values, nw.Series):
        series = values
    elif nw.dependencies.is_into_series(values):
        series = nw.from_native(values, series_only=True)
    else:
        return values
    if complete:
        refuse_missing_rows(name, series.is_null().to_numpy())
    if series.dtype.is_decimal():  # of databases; their casts to floats round twice
        cells = series.to_list()
        exact = np.array([np.nan if is_gone(cell) else float(cell) for cell in cells])
        whole = complete and (exact == np.floor(exact)).all() and (np.abs(exact) < EXACT).all()
        return exact.astype(np.int64) if whole else exact
    array = np.asarray(series.to_numpy())
    # pandas has its own dtypes for numbers that may be missing: complete ones are plain numbers
    return np.array(series.to_list()) if array.dtype == object and _plain(series) else array


def unmasked(values: Any) -> Any:
    """A masked array with NaN, or None among words, in masked cells; anything else as it is.

    >>> unmasked(np.ma.masked_equal([1, 2], 2)).tolist()
    [1.0, nan]
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return np.asarray(values)
    numbers = values.dtype.kind in "biuf"
    filled: Any = values.astype(np.float64 if numbers else object)
    return np.asarray(filled.filled(np.nan if numbers else None))


def inexact_integer(values: Any) -> int | None:
    """Return the first whole number of an array that no float holds, or None.

    >>> inexact_integer(np.array([3, 2**60, 2**53 + 1]))
    9007199254740993
    """
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        large = (values >= EXACT) | (values <= -EXACT if values.dtype.kind == "i" else False)
        cells = np.unique(values[large]).tolist()
    elif values.dtype == object:
        whole = (cell for cell in values.ravel() if isinstance(cell, int | np.integer))
        cells = [int(cell) for cell in whole if not -EXACT < cell < EXACT]
    else:
        return None
    # beyond 2^1023 there is no float at all
    return next((n for n in cells if n.bit_length() > 1023 or int(float(n)) != n), None)


def refuse_inexact_integers(X: Any) -> None:
    """Refuse an array with whole numbers that would become other numbers as floats.

    Frames keep such a column as a category; an array has one kind for all of its cells.
    """
    if isinstance(X, list | tuple):
        try:
            X = np.asarray(X)
        except ValueError:  # rows of several lengths, which are reported where they are read
            return
    if isinstance(X, np.ma.MaskedArray):
        X = X.compressed()
    if not isinstance(X, np.ndarray):
        X = getattr(X, "data", None)  # of sparse arrays: the stored entries
    number = inexact_integer(X) if isinstance(X, np.ndarray) else None
    if number is not None:
        shown = number if number.bit_length() < 256 else f"of {number.bit_length()} bits"
        raise ValueError(
            f"X contains a whole number that no float holds exactly, {shown} (an identifier?); "
            "pass a data frame, which keeps its column as a category, or divide it"
        )


def _plain(series: Any) -> bool:
    return series.dtype.is_numeric() or series.dtype == nw.Boolean


def read_frame(X: Any) -> Any:
    try:
        return nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError:
        names = list(getattr(X, "column_names", X.columns))
        double = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(
            f"two columns of X are called {double!r}; rename one of them, or drop it"
        ) from None
