"""Columns of a table as people write them: numbers, categories, dates, missing cells.

`read_text_column` states what a column of text holds. What a model was fitted on is kept in its
`Layout`, and later files are read alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct._frames import EXACT
from consistruct.learning.encoding.text_columns import CellError, is_unique, read_text_column
from consistruct.learning.files.data.base import Layout, Request, bad

__all__ = [
    "KINDS",
    "ColumnNote",
    "Notation",
    "RawTable",
    "array_column",
    "notations",
    "raw_table",
    "requested_kinds",
    "text_column",
]

KINDS = ("number", "category", "date", "drop")


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
    formats : tuple of str
        Of the kept ones, as `Layout.formats` keeps them.
    """

    X: NDArray[Any]
    kept: tuple[int, ...]
    kinds: tuple[str, ...]
    notes: tuple[ColumnNote, ...]
    formats: tuple[str, ...]

    @property
    def plain(self) -> bool:
        """Whether all columns are complete numbers, as programs write them."""
        whole = len(self.kept) == len(self.notes) and set(self.formats) == {"."}
        return whole and bool(np.isfinite(self.X).all())


@dataclass(frozen=True, eq=False)
class _Column:
    kind: str
    values: NDArray[Any]  # (n,) floats, or strings and None
    reason: str = ""
    form: str = ""  # decimal sign or format of dates, as `Layout.formats` keeps it
    note: str | None = None  # one line for the user


@dataclass(frozen=True)
class Notation:
    """How the text of one column is written; None where it is to be found out."""

    missing: tuple[str, ...] = ()
    decimal: str | None = None
    date_format: str | None = None


def notations(request: Request, kinds: Sequence[str | None]) -> list[Notation]:
    """The notation of each feature: that of the model's training file, or the one requested."""
    like = request.like
    if like is None:
        wanted = Notation(request.missing, request.decimal, request.date_format)
        return [wanted] * len(kinds)
    forms = like.formats or ("",) * len(kinds)
    return [
        Notation(
            request.missing,
            (form or ".") if kind == "number" else None,
            (form or "iso") if kind == "date" else None,
        )
        for form, kind in zip(forms, kinds, strict=True)
    ]


def raw_table(
    path: Path,
    names: Sequence[str],
    columns: Sequence[Any],  # what `text_column` or `array_column` made of each
    *,
    requested: Sequence[str | None],
    like: Layout | None,
    named: bool,
) -> RawTable:
    """Put the columns together, without those that tell nothing unless they are `requested`.

    Without names (`named`) none is dropped, so that places stay.
    """
    notes: list[ColumnNote] = []
    kept: list[int] = []
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        present = column.values[~_missing(column.values)]
        # a set of Python's floats would take ten times the memory of the column
        distinct = len(set(present.tolist()) if present.dtype == object else np.unique(present))
        kind, reason = column.kind, column.reason
        if like is None and named and requested[place] is None:
            if len(present) == 0:
                kind, reason = "drop", "it is empty"
            elif distinct == 1 and len(present) == len(column.values):
                kind, reason = "drop", "it has a single value"
            elif kind == "category" and is_unique(present.tolist()):
                kind, reason = "drop", "every row has a different value"
        if kind == "drop" and column.kind == "category" and len(present) and column.note:
            warnings.warn(
                f"column {name!r} is dropped: {reason}, such as {present[0]!r}; keep it for steps "
                f"of your own with --columns {name}=category"
                if "different values" in column.note
                else f"{column.note} (dropped now: {reason})",
                stacklevel=2,
            )
        elif column.note:
            warnings.warn(column.note, stacklevel=2)
        if kind == "drop":
            reason = reason or "requested"
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
    return RawTable(
        X,
        tuple(kept),
        tuple(columns[place].kind for place in kept),
        tuple(notes),
        tuple(columns[place].form for place in kept),
    )


def text_column(
    path: Path,
    name: str,
    cells: Sequence[str],
    lines: Sequence[int],
    kind: str | None,
    notation: Notation,
) -> _Column:
    """A column of text as its kind, which is found if none is given."""
    if kind == "drop":
        return _Column("drop", np.full(len(cells), np.nan))
    try:
        found = read_text_column(
            name,
            cells,
            missing=notation.missing,
            decimal=notation.decimal,
            date_format=notation.date_format,
            kind=kind,
        )
    except CellError as error:
        raise bad(path, str(error), line=lines[error.place]) from None
    form = found.decimal or found.date_format or ""
    return _Column(found.kind, found.values, form=form, note=found.note)


def array_column(
    path: Path, name: str, values: Any, kind: str | None, notation: Notation
) -> _Column:
    """A column of a Parquet file (a pyarrow array) as its kind.

    Whole numbers beyond 2^53 are identifiers far more often than quantities, and as floats
    different ones become equal: such a column is a category of exact numbers, with a note.
    """
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
        return text_column(path, name, cells, range(1, len(cells) + 1), kind, notation)
    else:
        fault = (
            f"column {name!r} has type {stored}; only numbers, strings, booleans and dates are read"
        )
        raise bad(path, f"{fault}; leave it out with --columns {name}=drop")
    if np.isinf(found).any():
        raise bad(path, f"column {name!r} contains infinite numbers; numbers must be finite")
    inexact = None if kinds.is_floating(stored) or own == "date" else _inexact(values, found)
    if inexact is not None and kind == "number":
        fault = f"column {name!r} contains {inexact}, which no float holds exactly"
        raise bad(path, f"{fault}; read it as --columns {name}=category, or divide it first")
    if kind == "category" or inexact is not None:
        whole = kinds.is_integer(stored) or kinds.is_decimal(stored)
        exact = values.to_pylist() if whole else found.tolist()
        shown = [
            None if gone else _plain(value)
            for value, gone in zip(exact, np.isnan(found), strict=True)
        ]
        note = None
        if kind is None:
            note = (
                f"column {name!r} contains whole numbers beyond 2^53 such as {inexact}, which no "
                "float holds exactly (identifiers?); they are kept as categories"
            )
        return _Column("category", np.array(shown, dtype=object), note=note)
    if kind in (None, own):
        return _Column(own, found, form="." if own == "number" else "iso")
    raise bad(path, f"column {name!r} contains {own}s of type {stored}, not {kind}s")


def requested_kinds(
    path: Path, names: Sequence[str], wanted: Mapping[str, str], like: Layout | None
) -> list[str | None]:
    """The kind of each column: that of the model's training file, or the one requested, or None."""
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


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.array([value is None for value in values])


def _floats(values: Any) -> NDArray[np.float64]:
    """A pyarrow array as float64, NaN where there is none."""
    import pyarrow.types as kinds

    if kinds.is_decimal(values.type):  # its cast divides by a power of ten, rounding twice
        values = values.cast("string")
    return np.asarray(values.cast("float64", safe=False).to_numpy(), dtype=np.float64)


def _inexact(values: Any, floats: NDArray[np.float64]) -> str | None:
    """The first whole number of a pyarrow array that no float holds; None if there is none."""
    for place in np.flatnonzero(np.abs(floats) >= EXACT).tolist():
        exact = values[place].as_py()
        if exact == int(exact) and int(floats[place]) != exact:
            return str(exact)
    return None


def _plain(value: Any) -> str:
    """A number as it is written: whole ones without a point."""
    return str(int(value)) if value == int(value) else repr(float(value))
