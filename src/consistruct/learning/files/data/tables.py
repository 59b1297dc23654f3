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
from consistruct._frames import is_missing_label
from consistruct.exceptions import DataFileError
from consistruct.learning.encoding.text_columns import (
    loses_digits,
)
from consistruct.learning.files.data.base import (
    DataSet,
    Layout,
    Request,
    bad,
    check_finite,
    check_gaps,
    is_number,
    kind_of,
    label_column,
    numbers_or_names,
    plain_digits,
    safe_integers,
    word_array,
)
from consistruct.learning.files.data.columns import Columns, choose_columns
from consistruct.learning.files.data.raw import (
    RawTable,
    array_column,
    notations,
    raw_table,
    requested_kinds,
    text_column,
)

__all__ = ["decoded_bytes", "missing_rows", "read_csv", "read_parquet", "read_tsv"]

BATCH_ROWS = 2**16  # of a Parquet file that are decoded before the budget is looked at again


def read_csv(path: Path, request: Request, *, delimiter: str = ",") -> DataSet:
    """Read a comma-separated table: complete numbers in one pass, 8 bytes per cell.

    A table with other cells is read once more, as text, and each column becomes what its cells
    say. The first line is a header unless all of its cells are numbers.
    """
    try:
        like = request.like
        if not request.notation and (like is None or (like.kinds is None and not like.missing)):
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
        labels: list[list[str]] = [[] for _ in columns.target]
        groups: list[str] = []
        gaps: list[tuple[int, str]] = []
        rows = _rows(path, reader, width, first if names is None else None)
        for line, row in rows:
            empty = [
                _name(names, place)
                for place in columns.target
                if is_missing_label(row[place], request.missing)
            ]
            if empty:
                gaps.append((line, empty[0]))
                continue
            cells = pick(row)
            try:
                values.extend(map(float, cells))
                # identifiers beyond 2^53 are kept by text only
                plain = plain_digits("".join(cells)) and not any(map(loses_digits, cells))
            except ValueError:
                plain = False
            if not plain:
                return None
            for column, position in zip(labels, columns.target, strict=True):
                column.append(row[position])
            if columns.groups is not None:
                groups.append(row[columns.groups])
            lines.append(line)
    except csv.Error as error:
        raise bad(path, f"not a CSV table ({error})", line=reader.line_num) from None
    check_gaps(path, gaps, "line", request)
    if not lines:
        raise bad(path, "there is no line of data below the header")
    X = np.frombuffer(values, dtype=np.float64).reshape(len(lines), len(columns.features)).copy()
    if not np.isfinite(X).all():
        return None
    single = [label_column(path, cells, lines, request.like) for cells in labels]
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
    places = columns.target
    empty = [
        next((_name(names, at) for at in places if is_missing_label(row[at], request.missing)), "")
        for _, row in rows
    ]
    gaps = [(line, name) for (line, _), name in zip(rows, empty, strict=True) if name]
    check_gaps(path, gaps, "line", request)
    rows = [row for row, name in zip(rows, empty, strict=True) if not name]
    if not rows:
        raise bad(path, "there is no line of data below the header")
    lines = [line for line, _ in rows]
    cells = [[row[place] for _, row in rows] for place in range(width)]
    features = [_name(names, place) for place in columns.features]
    kinds = requested_kinds(path, features, request.columns, request.like)
    table = raw_table(
        path,
        features,
        [
            text_column(path, name, cells[place], lines, kind, notation)
            for name, place, kind, notation in zip(
                features, columns.features, kinds, notations(request, kinds), strict=True
            )
        ],
        requested=kinds,
        like=request.like,
        named=names is not None,
    )
    labels = [label_column(path, cells[place], lines, request.like) for place in columns.target]
    groups = None if columns.groups is None else numbers_or_names(cells[columns.groups])
    return _raw_data("csv", table, labels, groups, names, columns, request)


def _raw_data(
    kind: str,
    table: RawTable,
    labels: Sequence[NDArray[Any]],
    groups: NDArray[Any] | None,
    names: list[str] | None,
    columns: Columns,
    request: Request,
) -> DataSet:
    kept = Columns(
        tuple(columns.features[place] for place in table.kept), columns.target, columns.groups
    )
    found = _table(kind, table.X, labels, groups, names, kept, request)
    if request.like is not None:
        return replace(found, columns=table.notes)
    layout = replace(
        found.layout, kinds=table.kinds, formats=table.formats, missing=request.missing
    )
    return replace(found, layout=layout, columns=table.notes)


def _name(names: list[str] | None, position: int) -> str:
    return names[position] if names is not None else str(position)


def _table(
    kind: str,
    X: NDArray[np.float64],
    labels: Sequence[NDArray[Any]],
    groups: NDArray[Any] | None,
    names: list[str] | None,
    columns: Columns,
    request: Request,
) -> DataSet:
    feature_names = None if names is None else tuple(names[place] for place in columns.features)
    target = tuple(_name(names, place) for place in columns.target)
    y = None if not labels else labels[0] if len(labels) == 1 else np.column_stack(labels)
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
            label_kind=kind_of(y),
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
        schema = pyarrow.parquet.read_schema(path)
        # words that repeat stay a dictionary: decoded, a kilobyte of them can take gigabytes
        words = [
            field.name
            for field in schema
            if pyarrow.types.is_string(field.type) or pyarrow.types.is_large_string(field.type)
        ]
        file = pyarrow.parquet.ParquetFile(path, read_dictionary=words)
        names = [str(name) for name in file.schema_arrow.names]
        columns = choose_columns(path, names, len(names), request)
        _check_size(path, file.metadata.num_rows, len(names))
        wanted = [*columns.features, *columns.target]
        if columns.groups is not None:
            wanted.append(columns.groups)
        for place in wanted:
            _check_type(path, names[place], schema.field(place))
        table = _within_budget(path, file, [names[place] for place in wanted])
    except (pyarrow.ArrowException, OSError) as error:
        raise bad(path, f"not a Parquet file ({str(error).splitlines()[0]})") from None
    table = _with_labels(path, table, [names[place] for place in columns.target], request)
    if table.num_rows == 0:
        raise bad(path, "there are no rows")
    features = [names[place] for place in columns.features]
    kinds = requested_kinds(path, features, request.columns, request.like)
    raw = raw_table(
        path,
        features,
        [
            array_column(path, name, table.column(name), kind, notation)
            for name, kind, notation in zip(features, kinds, notations(request, kinds), strict=True)
        ],
        requested=kinds,
        like=request.like,
        named=True,
    )
    labels = [_labels(path, table.column(names[place]), names[place]) for place in columns.target]
    groups = None
    if columns.groups is not None:
        groups = _labels(path, table.column(names[columns.groups]), names[columns.groups])
    if raw.plain and (request.like is None or request.like.kinds is None):
        return _table("parquet", raw.X, labels, groups, names, columns, request)
    return _raw_data("parquet", raw, labels, groups, names, columns, request)


def _check_size(path: Path, n_rows: int, n_columns: int) -> None:
    """Refuse a table that a few bytes of repeats inflate beyond its budget."""
    size, budget = 8 * n_rows * n_columns, FILES.inflated(path.stat().st_size)
    if size > budget:
        fault = f"{n_rows} rows of {n_columns} columns would take {size} bytes"
        raise bad(path, f"{fault}, but at most {budget} are read from a file of this size")


def _check_type(path: Path, name: str, field: Any) -> None:
    """Refuse what is no column of cells before it is read: lists may inflate to any size."""
    import pyarrow.types as kinds

    kind = field.type
    noted = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode(errors="replace")
    stored_as = getattr(kind, "extension_name", noted)  # where pandas has been imported
    if stored_as.startswith("pandas."):  # a period would be read as its number since 1970
        fault = f"column {name!r} has the type {stored_as}; convert it to dates or words first"
        raise bad(path, f"{fault}, or leave it out with --ignore {name}")
    if kinds.is_nested(kind):
        fault = f"column {name!r} has type {kind}; only numbers, strings, booleans and dates are"
        raise bad(path, f"{fault} read; leave it out with --ignore {name}")


def _within_budget(path: Path, file: Any, names: list[str]) -> Any:
    """Read the columns batch by batch, up to the memory that a file of this size may take."""
    import pyarrow

    budget, size, batches = FILES.inflated(path.stat().st_size), 0, []
    for batch in file.iter_batches(columns=names, batch_size=BATCH_ROWS):
        size += sum(map(decoded_bytes, batch.columns))
        if size > budget:
            fault = f"its columns would take more than {budget} bytes of memory"
            raise bad(path, f"{fault}, the most that is read from a file of this size")
        batches.append(batch)
    empty = pyarrow.schema([file.schema_arrow.field(name) for name in names])
    return pyarrow.Table.from_batches(batches, schema=batches[0].schema if batches else empty)


def decoded_bytes(column: Any) -> int:
    """Bytes of a column whose words are written out in each row."""
    import pyarrow.compute
    import pyarrow.types as kinds

    if not kinds.is_dictionary(column.type):
        return int(column.nbytes)
    if not len(column.dictionary) or not kinds.is_string(column.type.value_type):
        return 8 * len(column)
    lengths = pyarrow.compute.binary_length(column.dictionary).fill_null(0).to_numpy()
    rows = column.indices.drop_null().to_numpy()
    return 8 * len(column) + int(lengths[rows].sum(dtype=np.int64))


def _with_labels(path: Path, table: Any, targets: list[str], request: Request) -> Any:
    """The rows whose labels are all there; others are refused unless they are to be dropped."""
    kept = np.ones(table.num_rows, dtype=bool)
    for name in targets:
        chunks = table.column(name).chunks
        gone = np.concatenate(
            [np.zeros(0, bool), *(missing_rows(chunk, request.missing) for chunk in chunks)]
        )
        check_gaps(path, [(row + 1, name) for row in np.flatnonzero(gone).tolist()], "row", request)
        kept &= ~gone
    return table if kept.all() else table.filter(kept)


def missing_rows(column: Any, missing: tuple[str, ...] = ()) -> NDArray[np.bool_]:
    """Which true labels of a pyarrow array are missing: null, NaN, or words that say so."""
    import pyarrow.types as kinds

    if kinds.is_string(column.type) or kinds.is_large_string(column.type):
        column = column.dictionary_encode()
    if kinds.is_dictionary(column.type):
        words = column.dictionary.to_pylist()
        gone = np.array([is_missing_label(word, missing) for word in words] + [True], dtype=bool)
        return gone[column.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)]
    return np.asarray(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), dtype=bool)


def _labels(path: Path, column: Any, name: str) -> NDArray[Any]:
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
        return word_array(path, [str(value) for value in column.to_pylist()])
    raise bad(path, f"column {name!r} has type {kind}; classes are integers, numbers or strings")


def _no_nulls(path: Path, column: Any, name: str) -> None:
    if column.null_count:
        row = next(place for place, value in enumerate(column.to_pylist()) if value is None)
        raise bad(path, f"column {name!r} is null; fill in or drop missing values", row=row + 1)
