"""Frames of any library as arrays: their cells, their names, rows in the order of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EXACT",
    "as_array",
    "is_frame",
    "label_names",
    "labels_in_order",
    "read_frame",
    "refuse_missing_rows",
    "unmasked",
]

EXACT = 2**53  # up to here a float holds every integer
MOST_SHOWN = 10  # rows that a message lists


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
    if isinstance(values, nw.Series):
        series = values
    elif nw.dependencies.is_into_series(values):
        series = nw.from_native(values, series_only=True)
    else:
        return values
    if complete:
        refuse_missing_rows(name, series.is_null().to_numpy())
    if series.dtype.is_decimal():  # of databases
        series = series.cast(nw.Float64)
        whole = series.drop_nulls().to_numpy()
        if complete and (whole == np.floor(whole)).all() and (np.abs(whole) < EXACT).all():
            series = series.cast(nw.Int64)
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


def refuse_missing_rows(name: str, gone: NDArray[np.bool_]) -> None:
    """Raise ValueError with the numbers of the rows that are `gone`, if there are any."""
    rows = np.flatnonzero(gone).tolist()
    if not rows:
        return
    shown = ", ".join(map(str, rows[:MOST_SHOWN])) + (", …" if len(rows) > MOST_SHOWN else "")
    plural, them = ("rows", "them") if len(rows) > 1 else ("row", "it")
    raise ValueError(
        f"{name} is missing in {len(rows)} {plural} (counted from 0: {shown}); fill {them} in, or "
        f"drop {'these rows' if len(rows) > 1 else 'this row'} from X too"
    )
