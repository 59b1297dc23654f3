"""Columns of a table as people write them: numbers, categories, dates, missing cells.

A column holds numbers if every cell that is not missing is one, dates if every one is an ISO date
(days since 1970 then), else categories. What a model was fitted on is kept in its `Layout`, and
later files are read alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct.learning.files.data.base import Layout, bad, is_number, plain_digits

__all__ = [
    "KINDS",
    "ColumnNote",
    "RawTable",
    "array_column",
    "asked_kinds",
    "raw_table",
    "text_column",
]

KINDS = ("number", "category", "date", "drop")
MISSING = frozenset({"", "?", "na", "n/a", "nan", "nat", "null", "none"})
SLIPS = 0.1  # so few cells that are no numbers in a column of numbers are mistakes
OWN_VALUES = 20  # so many categories, each in a single row, are names of rows and tell nothing
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?Z?)?", re.ASCII)


@dataclass(frozen=True)
class ColumnNote:
    """What was made of a column.

    Attributes
    ----------
    name : str
    kind : "number", "category", "date" or "drop"
    missing : int
        Cells without a value.
    distinct : int
        Different values.
    reason : str
        Why it was dropped; empty for others.
    """

    name: str
    kind: str
    missing: int
    distinct: int
    reason: str = ""

    def __str__(self) -> str:
        gaps = f", {self.missing} missing" if self.missing else ""
        if self.kind == "drop":
            return f"dropped: {self.reason}"
        if self.kind == "category":
            return f"category of {self.distinct} values{gaps}"
        return f"{self.kind}{gaps}"


@dataclass(frozen=True, eq=False)
class RawTable:
    """Inputs of an estimator, and how they came about.

    Attributes
    ----------
    X : (n, d) array of floats, or of objects where there are categories
        NaN, or None among categories, where a cell is missing.
    kept : tuple of int
        Which of the given columns are columns of X.
    kinds : tuple of str
        Of the kept ones.
    notes : tuple of ColumnNote
        Of all given ones.
    """

    X: NDArray[Any]
    kept: tuple[int, ...]
    kinds: tuple[str, ...]
    notes: tuple[ColumnNote, ...]

    @property
    def plain(self) -> bool:
        """Whether all columns are complete numbers."""
        whole = len(self.kept) == len(self.notes) and set(self.kinds) == {"number"}
        return whole and bool(np.isfinite(self.X).all())


@dataclass(frozen=True, eq=False)
class _Column:
    kind: str
    values: NDArray[Any]  # (n,) floats, or strings and None
    reason: str = ""


def raw_table(
    path: Path,
    names: Sequence[str],
    columns: Sequence[Any],  # what `text_column` or `array_column` made of each
    *,
    asked: Sequence[str | None],
    like: Layout | None,
    named: bool,
) -> RawTable:
    """Put the columns together, without those that tell nothing unless they are `asked` for.

    Without names (`named`) none is dropped, so that places stay.
    """
    notes: list[ColumnNote] = []
    kept: list[int] = []
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        present = column.values[~_missing(column.values)]
        distinct = len(set(present.tolist()))
        kind, reason = column.kind, column.reason
        if like is None and named and asked[place] is None:
            if len(present) == 0:
                kind, reason = "drop", "it is empty"
            elif distinct == 1 and len(present) == len(column.values):
                kind, reason = "drop", "it has a single value"
            elif kind == "category" and distinct == len(present) >= OWN_VALUES:
                kind, reason = "drop", "every row has a different value"
        if kind == "drop":
            reason = reason or "asked for"
        else:
            kept.append(place)
        missing = len(column.values) - len(present)
        notes.append(ColumnNote(name, kind, missing, distinct, reason))
    if not kept:
        raise bad(path, "no feature column is left: all are empty or dropped")
    categories = any(columns[place].kind == "category" for place in kept)
    n = len(columns[0].values)
    X: NDArray[Any] = np.empty((n, len(kept)), dtype=object if categories else np.float64)
    for position, place in enumerate(kept):
        X[:, position] = columns[place].values
    return RawTable(X, tuple(kept), tuple(columns[place].kind for place in kept), tuple(notes))


def text_column(
    path: Path,
    name: str,
    cells: Sequence[str],
    lines: Sequence[int],
    kind: str | None = None,
) -> _Column:
    """A column of text as its kind, which is found if none is given."""
    stripped = [cell.strip() for cell in cells]
    missing = np.array([cell.lower() in MISSING for cell in stripped])
    present = [cell for cell, gone in zip(stripped, missing.tolist(), strict=True) if not gone]
    if kind == "drop":
        return _Column("drop", np.full(len(stripped), np.nan))
    numbers = _numbers(present) if kind in (None, "number") else None
    if numbers is not None:
        return _Column("number", _spread(numbers, missing))
    dates = _days(present) if kind in (None, "date") else None
    if dates is not None:
        return _Column("date", _spread(dates, missing))
    if kind is None:
        _refuse_doubtful(path, name, stripped, missing, lines)
    if kind in (None, "category"):
        values = np.array(stripped, dtype=object)
        values[missing] = None
        return _Column("category", values)
    wanted, good = ("a number", _is_finite) if kind == "number" else ("a date", _is_date)
    place = next(i for i, cell in enumerate(stripped) if not missing[i] and not good(cell))
    hint = "write dates as 2026-01-31" if kind == "date" else "such a column was all numbers"
    if kind == "number" and is_number(stripped[place]):
        hint = "numbers must be finite"
    fault = f"column {name!r} must contain {wanted}, got {stripped[place]!r}; {hint}"
    raise bad(path, fault, line=lines[place])


def array_column(path: Path, name: str, values: Any, kind: str | None = None) -> _Column:
    """A column of a Parquet file (a pyarrow array) as its kind."""
    import pyarrow.types as kinds

    stored = values.type
    found: NDArray[Any]
    if kind == "drop":
        return _Column("drop", np.full(len(values), np.nan))
    if kinds.is_date(stored) or kinds.is_timestamp(stored):
        own, seconds = "date", np.asarray(values.to_numpy()).astype("datetime64[s]")
        found = np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / 86400.0)
    elif kinds.is_integer(stored) or kinds.is_floating(stored) or kinds.is_decimal(stored):
        own, found = "number", _floats(values)
    elif kinds.is_boolean(stored):
        own, found = "number", _floats(values.cast("int8"))
    elif kinds.is_dictionary(stored) or kinds.is_string(stored) or kinds.is_large_string(stored):
        cells = ["" if value is None else str(value) for value in values.to_pylist()]
        return text_column(path, name, cells, range(1, len(cells) + 1), kind)
    else:
        fault = (
            f"column {name!r} has type {stored}; only numbers, strings, booleans and dates are read"
        )
        raise bad(path, f"{fault}; leave it out with --columns {name}=drop")
    if np.isinf(found).any():
        raise bad(path, f"column {name!r} contains infinite numbers; numbers must be finite")
    if kind in (None, own):
        return _Column(own, found)
    if kind == "category":
        shown = [
            None if gone else _plain(v) for v, gone in zip(found, np.isnan(found), strict=True)
        ]
        return _Column("category", np.array(shown, dtype=object))
    raise bad(path, f"column {name!r} contains {own}s of type {stored}, not {kind}s")


def asked_kinds(
    path: Path, names: Sequence[str], wanted: Mapping[str, str], like: Layout | None
) -> list[str | None]:
    """The kind of each column: that of the model's training file, or the one asked for, or None."""
    if like is not None:
        known = like.kinds or ("number",) * len(names)
        return list(known)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise bad(path, f"there is no feature column {unknown[0]!r} for --columns")
    wrong = [name for name, kind in wanted.items() if kind not in KINDS]
    if wrong:
        raise bad(
            path,
            f"column {wrong[0]!r} cannot be a {wanted[wrong[0]]!r}; kinds are {', '.join(KINDS)}",
        )
    return [wanted.get(name) for name in names]


def _refuse_doubtful(
    path: Path,
    name: str,
    cells: Sequence[str],
    missing: NDArray[np.bool_],
    lines: Sequence[int],
) -> None:
    """Refuse what may be a column of numbers with a slip: read as categories, it would be lost."""
    present = [place for place, gone in enumerate(missing.tolist()) if not gone]
    others = [place for place in present if _numbers([cells[place]]) is None]
    slips = [place for place in others if _python_number(cells[place])]  # 1_000, 1e999
    mostly = len(present) >= 10 and len(others) <= SLIPS * len(present)
    if slips or (others and mostly):
        place = (slips or others)[0]
        raise bad(
            path,
            f"column {name!r} must contain a number, got {cells[place]!r}; correct the cell, "
            f"leave it empty, or set the kind of the column: --columns {name}=category",
            line=lines[place],
        )


def _python_number(cell: str) -> bool:
    """Whether Python reads a number there, though files mean something else or nothing finite."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.array([value is None for value in values])


def _spread(present: NDArray[np.float64], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    values = np.full(len(missing), np.nan)
    values[~missing] = present
    return values


def _numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Finite numbers, or None if one of the cells is none."""
    try:
        values = np.array(list(map(float, cells)), dtype=np.float64)
    except ValueError:
        return None
    plain = all(plain_digits(cell) for cell in cells)
    return values if plain and np.isfinite(values).all() else None


def _is_finite(cell: str) -> bool:
    return _numbers([cell]) is not None


def _is_date(cell: str) -> bool:
    return _days([cell]) is not None


def _days(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Days since 1970, or None if one of the cells is no ISO date."""
    if not all(_DATE.fullmatch(cell) for cell in cells):
        return None
    try:
        moments = np.array([cell.rstrip("Z").replace(" ", "T") for cell in cells], "datetime64[s]")
    except ValueError:  # the 31st of February
        return None
    return np.asarray(moments.astype(np.int64) / 86400.0)


def _floats(values: Any) -> NDArray[np.float64]:
    """A pyarrow array as float64, NaN where there is none."""
    return np.asarray(values.cast("float64", safe=False).to_numpy(), dtype=np.float64)


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
