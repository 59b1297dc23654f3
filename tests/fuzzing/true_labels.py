"""Slow, independent readers: what a file states, so that a number read otherwise is seen.

Each takes what the product read (read.json) and the file, and gives None or what is wrong. Where an
independent reader cannot make sense of a damaged file, it does not judge.
"""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "costs_changed",
    "npz_changed",
    "parquet_changed",
    "svmlight_changed",
    "table_changed",
    "tree_changed",
]

MISSING = {"", "?", "na", "nan", "n/a", "null", "none", "-", ".", "nil", "missing"}


def _exact(value: Any, cell: str, *, label: bool = False) -> bool:
    """Whether a number is the double nearest to what a cell states; of a label, every digit."""
    try:
        stated = float(cell)
    except ValueError:
        return False
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return math.isnan(stated) or cell.strip().lower() in MISSING
    if isinstance(value, str):
        return False
    try:
        whole = int(cell)
    except ValueError:
        return float(value) == stated
    return float(value) == stated and (not label or int(value) == whole)


def _same(value: Any, cell: str, *, label: bool = False) -> bool:
    """Whether what was read is what the cell states: its number, its words, or missing."""
    words = cell.strip()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return words.lower() in MISSING or _exact(value, words)
    if isinstance(value, str):
        return value.strip() == words or _date_of(words) is not None
    return _exact(value, words, label=label) or _date_of(words) is not None


def _date_of(words: str) -> str | None:
    """Dates become numbers of days: they are not compared here."""
    return words if len(words) >= 8 and sum(c in "-/:." for c in words) >= 2 else None


def table_changed(found: dict[str, Any], text: str, separator: str, target: str) -> str | None:
    """A CSV file with a header, cell by cell."""
    try:
        rows = [
            row
            for row in csv.reader(
                io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator
            )
            if row and any(cell.strip() for cell in row)
        ]
    except csv.Error:
        return None
    if not rows or any(len(row) != len(rows[0]) for row in rows) or found["features"] is None:
        return None
    header = [cell.strip() for cell in rows[0]]
    if target not in header or len(set(header)) != len(header):
        return None
    body = rows[1:]
    if len(body) != len(found["X"]):
        return f"{len(body)} rows were written, {len(found['X'])} read"
    kinds = found["kinds"] or ["number"] * len(found["features"])
    for column, (name, kind) in enumerate(zip(found["features"], kinds, strict=True)):
        if name.strip() not in header or kind == "date":
            continue
        place = header.index(name.strip())
        for number, row in enumerate(body):
            value = found["X"][number][column]
            if not _same(value, row[place]):
                return f"row {number}, column {name}: {row[place]!r} was read as {value!r}"
    place = header.index(target)
    for number, row in enumerate(body):
        value = found["y"][number]
        if not _same(value, row[place], label=True):
            return f"row {number}, true label: {row[place]!r} was read as {value!r}"
    return None


def svmlight_changed(found: dict[str, Any], text: str) -> str | None:
    """An svmlight file, pair by pair."""
    rows = []
    for line in text.splitlines() if "\x0b" not in text else []:
        words = line.partition("#")[0].split()
        if not words:
            continue
        pairs = words[1:] if ":" not in words[0] else words
        try:
            rows.append(
                {
                    int(pair.split(":")[0]): pair.split(":")[1]
                    for pair in pairs
                    if not pair.startswith("qid:")
                }
            )
        except (ValueError, IndexError):
            return None
    if len(rows) != len(found["X"]):
        return (
            None
            if any(c in text for c in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r")
            else "rows were lost"
        )
    shift = 0 if found["zero_based"] else 1
    for number, row in enumerate(rows):
        entries = {int(place): value for place, value in found["X"][number].items()}
        for place in sorted({*entries, *(place - shift for place in row)}):
            value, cell = entries.get(place, 0.0), row.get(place + shift, "0")
            if not _exact(value, cell):
                return f"row {number}, index {place + shift}: {cell!r} was read as {value!r}"
    return None


def npz_changed(found: dict[str, Any], content: bytes) -> str | None:
    """An archive of X and y, by NumPy's own reader."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            X, y = archive["X"], archive["y"]
    except Exception:  # a damaged archive: whatever NumPy raises
        return "a damaged archive was read" if found.get("X") is None else None
    if X.tolist() != found["X"] and not _nearly_identical(X, found["X"]):
        return "X was read otherwise"
    if y.tolist() != found["y"] and not _nearly_identical(y, found["y"]):
        return "y was read otherwise"
    return None


def _nearly_identical(array: np.ndarray, read: Any) -> bool:
    """Equal as numbers, whatever their types: True is 1, 2.0 is 2."""
    other = np.asarray(read)
    if array.shape != other.shape:
        return False
    if array.dtype.kind in "US" or other.dtype.kind in "US":
        return array.astype(str).tolist() == other.astype(str).tolist()
    return bool(np.array_equal(array, other, equal_nan=True))


def parquet_changed(found: dict[str, Any], path: Path, target: str) -> str | None:
    """A Parquet file, column by column, by Arrow."""
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except Exception:  # a damaged file: whatever Arrow raises
        return None
    columns = table.to_pydict()
    for place, name in enumerate(found["features"] or []):
        if name not in columns or (found["kinds"] and found["kinds"][place] == "date"):
            continue
        for number, value in enumerate(columns[name]):
            read = found["X"][number][place]
            missing = value is None or value != value
            if isinstance(value, int) and read == str(value):
                continue  # an identifier beyond 2^53, exact as a category
            if missing != (read is None or read != read) or (
                not missing and read != _nearest(value)
            ):
                return f"row {number}, column {name}: {value!r} was read as {read!r}"
    if target in columns and columns[target] != found["y"]:
        return f"true labels {columns[target]!r} were read as {found['y']!r}"
    return None


def _nearest(value: Any) -> Any:
    """Features are doubles; whole numbers beyond 2^53 are rounded like any decimal."""
    return float(value) if isinstance(value, int) else value


def costs_changed(found: dict[str, Any], text: str) -> str | None:
    """A cost matrix whose rows are predictions, with or without names."""
    try:
        rows = [
            row
            for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
            if any(cell.strip() for cell in row)
        ]
    except csv.Error:
        return None
    if not rows:
        return "an empty file was read"
    try:
        [float(cell) for cell in rows[0]]
        cells = rows
    except ValueError:
        cells = [row[1:] for row in rows[1:]]
        if rows[0][0].strip().lower() not in ("pred", "pred\\true", ""):
            return None  # names may be in another order, or the file turned
        names = [row[0].strip() for row in rows[1:]]
        if names != [cell.strip() for cell in rows[0][1:]]:
            return None  # columns are matched to rows by name
    if len(cells) != len(found["M"]) or any(len(row) != len(found["M"][0]) for row in cells):
        return "the shape was read otherwise"
    for number, row in enumerate(cells):
        for place, cell in enumerate(row):
            if float(cell) != found["M"][number][place]:
                read = found["M"][number][place]
                return f"row {number}, column {place}: {cell!r} was read as {read!r}"
    return None


def tree_changed(found: dict[str, Any], text: str) -> str | None:
    """A label tree: parents by name, weights."""
    try:
        rows = [
            row
            for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
            if any(cell.strip() for cell in row)
        ]
    except csv.Error:
        return None
    names = [row[0].strip() for row in rows[1:]]
    for number, row in enumerate(rows[1:]):
        parent = row[1].strip()
        expected = names.index(parent) if parent else -1
        if found["parents"][number] != expected:
            return f"node {names[number]}: parent {parent!r} was read as {found['parents'][number]}"
        if len(rows[0]) == 3 and float(row[2]) != found["weights"][number]:
            return f"node {names[number]}: weight {row[2]!r} was read as {found['weights'][number]}"
    return None
