"""CSV and Parquet: one row per example, columns found by name."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct._budgets import FILES
from consistruct.exceptions import DataFileError
from consistruct.learning.files.data.base import (
    DataSet,
    Layout,
    Request,
    bad,
    check_finite,
    is_number,
    kind_of,
    numbers_or_names,
    plain_digits,
    safe_integers,
    truth_column,
)
from consistruct.learning.files.data.columns import Columns, choose_columns
from consistruct.learning.files.data.raw import (
    RawTable,
    array_column,
    asked_kinds,
    raw_table,
    text_column,
)

__all__ = ["read_csv", "read_parquet", "read_tsv"]


def read_csv(path: Path, request: Request, *, delimiter: str = ",") -> DataSet:
    """Read a comma-separated table: complete numbers in one pass, 8 bytes per cell.

    A table with other cells is read once more, as text, and each column becomes what its cells
    say. The first line is a header unless all of its cells are numbers.
    """
    try:
        if not request.columns and (request.like is None or request.like.kinds is None):
            with path.open(newline="", encoding="utf-8-sig") as file:
                found = _parse_csv(
                    path, csv.reader(file, delimiter=delimiter, strict=True), request
                )
            if found is not None:
                return found
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _parse_raw(path, csv.reader(file, delimiter=delimiter, strict=True), request)
    except UnicodeDecodeError as error:
        raise bad(path, f"not a UTF-8 text file ({error.reason} at byte {error.start})") from None


def read_tsv(path: Path, request: Request) -> DataSet:
    """Read a table whose cells are separated by tabs."""
    return read_csv(path, request, delimiter="\t")


def _parse_csv(path: Path, reader: Any, request: Request) -> DataSet | None:
    """Complete numbers; None where a cell is something else."""
    try:
        first = next(reader, None)
        if first is None:
            raise bad(path, "the file is empty")
        width = len(first)
        names = None if all(is_number(cell) for cell in first) else [cell.strip() for cell in first]
        columns = choose_columns(path, names, width, request)
        pick = _picker(columns.features)
        values, lines = array("d"), array("q")
        truths: list[list[str]] = [[] for _ in columns.target]
        groups: list[str] = []
        rows = _rows(path, reader, width, first if names is None else None)
        for line, row in rows:
            cells = pick(row)
            try:
                values.extend(map(float, cells))
                plain = plain_digits("".join(cells))
            except ValueError:
                plain = False
            if not plain:
                return None
            for column, position in zip(truths, columns.target, strict=True):
                if not row[position].strip():
                    fault = f"the target {_name(names, position)} is empty; drop the line"
                    raise bad(path, fault, line=line)
                column.append(row[position])
            if columns.groups is not None:
                groups.append(row[columns.groups])
            lines.append(line)
    except csv.Error as error:
        raise bad(path, f"not a CSV table ({error})", line=reader.line_num) from None
    if not lines:
        raise bad(path, "there is no line of data below the header")
    X = np.frombuffer(values, dtype=np.float64).reshape(len(lines), len(columns.features)).copy()
    if not np.isfinite(X).all():
        return None
    single = [truth_column(path, cells, lines, request.like) for cells in truths]
    return _table(
        "csv", X, single, numbers_or_names(groups) if groups else None, names, columns, request
    )


def _rows(path: Path, reader: Any, width: int, first: list[str] | None) -> Any:
    if first is not None:
        yield 1, first
    for row in reader:
        if len(row) != width:
            if not row or (len(row) == 1 and not row[0].strip()):
                continue  # blank line
            raise bad(
                path, f"{len(row)} cells, but the first line has {width}", line=reader.line_num
            )
        yield reader.line_num, row


def _picker(positions: Sequence[int]) -> Callable[[list[str]], Sequence[str]]:
    if len(positions) == 1:
        only = positions[0]
        return lambda row: (row[only],)
    return itemgetter(*positions)


def _parse_raw(path: Path, reader: Any, request: Request) -> DataSet:
    """Columns of any kind, read as text."""
    try:
        first = next(reader, None)
        if first is None:
            raise bad(path, "the file is empty")
        width = len(first)
        names = None if all(is_number(cell) for cell in first) else [cell.strip() for cell in first]
        columns = choose_columns(path, names, width, request)
        rows = list(_rows(path, reader, width, first if names is None else None))
    except csv.Error as error:
        raise bad(path, f"not a CSV table ({error})", line=reader.line_num) from None
    if not rows:
        raise bad(path, "there is no line of data below the header")
    lines = [line for line, _ in rows]
    cells = [[row[place] for _, row in rows] for place in range(width)]
    for place in columns.target:
        empty = next((i for i, cell in enumerate(cells[place]) if not cell.strip()), None)
        if empty is not None:
            fault = f"the target {_name(names, place)} is empty; drop the line"
            raise bad(path, fault, line=lines[empty])
    features = [_name(names, place) for place in columns.features]
    kinds = asked_kinds(path, features, request.columns, request.like)
    table = raw_table(
        path,
        features,
        [
            text_column(path, name, cells[place], lines, kind)
            for name, place, kind in zip(features, columns.features, kinds, strict=True)
        ],
        asked=kinds,
        like=request.like,
        named=names is not None,
    )
    truths = [truth_column(path, cells[place], lines, request.like) for place in columns.target]
    groups = None if columns.groups is None else numbers_or_names(cells[columns.groups])
    return _raw_data("csv", table, truths, groups, names, columns, request)


def _raw_data(
    kind: str,
    table: RawTable,
    truths: Sequence[NDArray[Any]],
    groups: NDArray[Any] | None,
    names: list[str] | None,
    columns: Columns,
    request: Request,
) -> DataSet:
    kept = Columns(
        tuple(columns.features[place] for place in table.kept), columns.target, columns.groups
    )
    found = _table(kind, table.X, truths, groups, names, kept, request)
    if request.like is not None:
        return replace(found, columns=table.notes)
    layout = replace(found.layout, kinds=table.kinds)
    return replace(found, layout=layout, columns=table.notes)


def _name(names: list[str] | None, position: int) -> str:
    return names[position] if names is not None else str(position)


def _table(
    kind: str,
    X: NDArray[np.float64],
    truths: Sequence[NDArray[Any]],
    groups: NDArray[Any] | None,
    names: list[str] | None,
    columns: Columns,
    request: Request,
) -> DataSet:
    feature_names = None if names is None else tuple(names[place] for place in columns.features)
    target = tuple(_name(names, place) for place in columns.target)
    y = None if not truths else truths[0] if len(truths) == 1 else np.column_stack(truths)
    label_names = target if len(target) > 1 and names is not None else None
    groups_name = None if columns.groups is None else _name(names, columns.groups)
    if request.like is not None:
        layout = request.like
    else:
        layout = Layout(
            kind,
            X.shape[1],
            feature_names,
            target,
            label_names,
            groups_name,
            truth_kind=kind_of(y),
        )
    return DataSet(X, y, feature_names, label_names, groups, layout)


def read_parquet(path: Path, request: Request) -> DataSet:
    """Read a Parquet table; needs pyarrow, which the extra ``io`` installs."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataFileError(
            f"{path}: Parquet needs pyarrow; install it with: pip install 'consistruct[io]'"
        ) from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
        names = [str(name) for name in file.schema_arrow.names]
        columns = choose_columns(path, names, len(names), request)
        _check_size(path, file.metadata.num_rows, len(names))
        wanted = [*columns.features, *columns.target]
        if columns.groups is not None:
            wanted.append(columns.groups)
        table = file.read(columns=[names[place] for place in wanted])
    except (pyarrow.ArrowException, OSError) as error:
        raise bad(path, f"not a Parquet file ({str(error).splitlines()[0]})") from None
    if table.num_rows == 0:
        raise bad(path, "there are no rows")
    features = [names[place] for place in columns.features]
    kinds = asked_kinds(path, features, request.columns, request.like)
    raw = raw_table(
        path,
        features,
        [
            array_column(path, name, table.column(name), kind)
            for name, kind in zip(features, kinds, strict=True)
        ],
        asked=kinds,
        like=request.like,
        named=True,
    )
    truths = [_truths(path, table.column(names[place]), names[place]) for place in columns.target]
    groups = None
    if columns.groups is not None:
        groups = _truths(path, table.column(names[columns.groups]), names[columns.groups])
    if raw.plain and (request.like is None or request.like.kinds is None):
        return _table("parquet", raw.X, truths, groups, names, columns, request)
    return _raw_data("parquet", raw, truths, groups, names, columns, request)


def _check_size(path: Path, n_rows: int, n_columns: int) -> None:
    """Refuse a table that a few bytes of repeats inflate beyond its budget."""
    size, budget = 8 * n_rows * n_columns, FILES.inflated(path.stat().st_size)
    if size > budget:
        fault = f"{n_rows} rows of {n_columns} columns would take {size} bytes"
        raise bad(path, f"{fault}, but at most {budget} are read from a file of this size")


def _truths(path: Path, column: Any, name: str) -> NDArray[Any]:
    import pyarrow.types as kinds

    _no_nulls(path, column, name)
    kind = column.type
    if kinds.is_integer(kind) or kinds.is_boolean(kind):
        return safe_integers(path, f"column {name!r}", np.asarray(column.to_numpy()))
    if kinds.is_floating(kind):
        values = np.asarray(column.to_numpy(), dtype=np.float64)
        check_finite(path, values[:, None], [name])
        return values
    if kinds.is_dictionary(kind) or kinds.is_string(kind) or kinds.is_large_string(kind):
        return np.array([str(value) for value in column.to_pylist()], dtype=np.str_)
    raise bad(path, f"column {name!r} has type {kind}; classes are integers, numbers or strings")


def _no_nulls(path: Path, column: Any, name: str) -> None:
    if column.null_count:
        row = next(place for place, value in enumerate(column.to_pylist()) if value is None)
        raise bad(path, f"column {name!r} is null; fill in or drop missing values", row=row + 1)
