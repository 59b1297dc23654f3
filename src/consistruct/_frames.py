"""Read frames and arrays of any library: which cells are missing, what columns are called.

One rule for pandas, Polars, pyarrow and NumPy, whoever reads them: true labels, costs, samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EXACT",
    "as_array",
    "inexact_integer",
    "is_frame",
    "is_gone",
    "is_missing",
    "is_missing_label",
    "is_table",
    "label_names",
    "labels_by_name",
    "labels_in_order",
    "read_frame",
    "refuse_inexact_integers",
    "refuse_missing_labels",
    "refuse_missing_rows",
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


def is_table(X: Any) -> bool:
    """Whether X has named columns: a data frame, or a list of records."""
    records = isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(x, Mapping) for x in X)
    return records or is_frame(X)


def labels_by_name(estimator: Any, y: Any) -> Any:
    """Return y with its columns (labels of a set, parts, costs) in the order of the fit's.

    Their names are kept in ``label_columns_``; arrays have none, and stay as they are.
    """
    return labels_in_order(y, getattr(estimator, "label_columns_", None))


# --- missing cells and labels ---------------------------------------------------------------------

MOST_SHOWN = 10  # rows that a message lists

# "<na>" is what pandas writes for pandas.NA as text, "#n/a" what spreadsheets show
MISSING = frozenset({"", "?", "na", "n/a", "nan", "nat", "null", "none", "<na>", "#n/a"})


def is_missing(cell: str, missing: Iterable[str] = ()) -> bool:
    """Whether a cell has no value: empty, ``NA`` and the like, or one of the given words."""
    return cell.lower() in MISSING or cell in missing


def is_gone(cell: Any) -> bool:
    """None, NaN, NaT and pandas.NA, which is not equal to itself in its own way."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell)


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


def refuse_missing_labels(y: Any, name: str = "y") -> None:
    """Raise ValueError if a true label of an array, a list or a column is missing, with its rows.

    >>> refuse_missing_labels(["a", "NA", "b", None])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: y is missing in 2 rows (counted from 0: 1, 3); fill them in, or drop these rows...
    """
    values = np.asarray(y)
    if values.dtype.kind not in "fOUSM" or values.ndim not in (1, 2) or values.size == 0:
        return
    if values.dtype.kind in "fM":
        gone = values != values
    elif values.dtype.kind in "US":
        gone = np.isin(
            values, [word for word in set(values.ravel().tolist()) if is_missing_label(word)]
        )
    else:
        gone = np.array([_is_scalar_gone(value) for value in values.ravel()]).reshape(values.shape)
    refuse_missing_rows(name, gone.reshape(len(values), -1).any(axis=1))


def _is_scalar_gone(value: Any) -> bool:
    # sets and lists of labels are true labels too; an empty one is an empty set
    return (
        value is None or np.isscalar(value) or type(value).__name__ in ("NAType", "NaTType")
    ) and is_missing_label(value)


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
