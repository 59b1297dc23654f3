"""Kind and values of one column, as the type of a series or its Python cells say."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from consistruct._frames import EXACT, is_gone
from consistruct.protocols import FloatArray

__all__ = ["as_words", "listed_cells", "series_cells"]

SECONDS_PER_DAY = 86400.0


def series_cells(name: str, cells: Any) -> tuple[str, NDArray[Any]]:
    """A column of a frame: "number", "date", "duration", "category", "text" or "identifier"."""
    dtype = cells.dtype
    if (dtype.is_integer() or dtype.is_decimal()) and _is_long(cells):
        listed = cells.to_list()
        if any(map(_loses_digits, listed)):
            return "identifier", as_words(listed)
    if dtype.is_numeric() or dtype == nw.Boolean:
        return "number", _floats(cells)
    if dtype == nw.Date or dtype == nw.Datetime:
        if getattr(dtype, "time_zone", None) is not None:
            cells = cells.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return "date", _days(cells, "datetime64[s]")
    if dtype == nw.Duration:
        return "duration", _days(cells, "timedelta64[s]")
    if dtype == nw.Categorical or dtype == nw.Enum:
        return "category", as_words(cells.to_list())
    if dtype == nw.String or dtype in (nw.Object, nw.Unknown):
        return listed_cells(name, cells.to_list())
    raise ValueError(
        f"column {name!r} has type {dtype}, but cells must be numbers, text, dates or durations; "
        "convert it, or drop it"
    )


def listed_cells(name: str, cells: list[Any]) -> tuple[str, NDArray[Any]]:
    """A column of Python objects: what all of its cells are."""
    odd = [one for one in {type(cell) for cell in cells} if not _is_known(one)]
    if odd:
        remedy = "convert it, or drop it"
        if odd[0].__name__ == "Period":
            remedy = f"convert it with X[{name!r}].dt.to_timestamp(), or drop it"
        raise ValueError(
            f"column {name!r} contains cells of type {odd[0].__name__}, but a cell must be a "
            f"number, a word, a date or empty; {remedy}"
        )
    present = [None if is_gone(cell) else cell for cell in cells]
    types = {type(cell) for cell in present if cell is not None}
    if types and all(issubclass(one, timedelta | np.timedelta64) for one in types):
        spans = np.array([_span(cell) for cell in present], dtype="timedelta64[s]")
        return "duration", _as_days(spans)
    if types and all(issubclass(one, date | np.datetime64) for one in types):
        moments = np.array([_moment(cell) for cell in present], dtype="datetime64[s]")
        return "date", _as_days(moments)
    if all(issubclass(one, Number | np.bool_) for one in types):
        if any(map(_loses_digits, present)):
            return "identifier", as_words(present)
        return "number", np.array([np.nan if c is None else c for c in present], dtype=np.float64)
    words = [None if cell is None else _word(cell) for cell in present]
    return "text", np.array(words, dtype=object)


def _is_known(one: type) -> bool:
    """Whether cells of a type are numbers, words, dates, durations or missing."""
    known = (str, Number, np.bool_, date, timedelta, np.datetime64, type(None))
    return one.__name__ == "NAType" or (
        issubclass(one, known) and not issubclass(one, complex | np.complexfloating)
    )


def _loses_digits(cell: Any) -> bool:
    """Whether a cell is a whole number that no float holds."""
    if not isinstance(cell, int | np.integer | Decimal) or -EXACT < cell < EXACT:
        return False
    try:
        return cell == int(cell) and int(float(cell)) != cell
    except OverflowError:  # beyond all floats
        return True


def _span(cell: Any) -> Any:
    return np.timedelta64("NaT") if cell is None else np.timedelta64(cell, "s")


def _moment(cell: Any) -> Any:
    if cell is None:
        return np.datetime64("NaT")
    if getattr(cell, "tzinfo", None) is not None:
        cell = (cell - cell.utcoffset()).replace(tzinfo=None)  # universal time
    return np.datetime64(cell, "s")


def _word(value: Any) -> str:
    """A value of a category as text: 3 for 3.0, so that it does not matter how it was stored."""
    if isinstance(value, float | np.floating) and value == np.floor(value):
        return str(int(value))
    return str(value)


def as_words(values: list[Any]) -> NDArray[Any]:
    """Cells of a category as strings, None where one is missing."""
    return np.array([None if is_gone(v) else _word(v) for v in values], dtype=object)


def _is_long(cells: Any) -> bool:
    """Whether a number is beyond the whole ones that floats hold exactly."""
    low, high = cells.min(), cells.max()
    return low is not None and max(-int(low), int(high)) >= EXACT


def _floats(cells: Any) -> FloatArray:
    values = np.asarray(cells.to_numpy())
    if values.dtype == object:  # numbers of pandas that may be missing, and decimals
        values = np.array([np.nan if is_gone(v) else float(v) for v in cells.to_list()])
    return values if values.dtype == np.float32 else values.astype(np.float64)


def _days(cells: Any, unit: str) -> FloatArray:
    values = np.asarray(cells.to_numpy())
    if values.dtype == object:
        values = np.array([np.datetime64("NaT") if is_gone(v) else v for v in cells.to_list()])
    return _as_days(values.astype(unit))


def _as_days(moments: Any) -> FloatArray:
    seconds = moments.astype(np.int64).astype(np.float64)
    return np.where(np.isnat(moments), np.nan, seconds / SECONDS_PER_DAY)
