"""Rows of one file, a batch at a time: through pyarrow's datasets, or line by line (svmlight)."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from consistruct._budgets import FILES
from consistruct._frames import EXACT
from consistruct.distributed.hashing import (
    BITS,
    Entries,
    hashed_numbers,
    hashed_places,
    hashed_rows,
    hashed_words,
)
from consistruct.exceptions import DataFileError
from consistruct.learning.files.data.base import (
    Layout,
    Request,
    bad,
    check_gaps,
    safe_integers,
    word_array,
)
from consistruct.learning.files.data.columns import choose_columns
from consistruct.learning.files.data.tables import decoded_bytes, missing_rows

__all__ = ["Columns", "batches_of"]

DELIMITERS = {"csv": ",", "tsv": "\t"}
BLOCK_BYTES = 2**24  # of a CSV file that are parsed at a time
READ_AHEAD = 1  # batches: more would be memory
# how pyarrow reports which cell of a CSV file is no number: its column, counted from 0, and its
# text
_NO_NUMBER = re.compile(r"In CSV column #(\d+):.* error to double: invalid value '(.*?)'")


@dataclass(frozen=True)
class Columns:
    """Names of the columns that are read; svmlight has numbers instead."""

    features: tuple[str, ...] | None
    target: tuple[str, ...]
    n_features: int
    zero_based: bool | None = None
    kinds: tuple[str, ...] | None = None  # of the features where they are hashed
    hash_bits: int | None = None
    whole: frozenset[str] = frozenset()  # features whose first cells are whole numbers
    drop_missing_target: bool = False

    @classmethod
    def of(
        cls,
        file: Path,
        kind: str,
        target: tuple[str, ...],
        ignore: tuple[str, ...],
        like: Layout | None,
        with_target: bool,
        n_features: int | None,
        hash_bits: int | None,
        drop: bool = False,
    ) -> Columns:
        """Chosen by the first file; the others must have them too."""
        bits = hash_bits if like is None else like.hash_bits
        if bits is not None and bits not in BITS:
            raise ValueError(f"hash_bits must be between {BITS[0]} and {BITS[-1]}, got {bits!r}")
        if bits is not None and n_features is not None:
            raise ValueError("hash_bits states how many columns there are; omit n_features")
        if kind == "svmlight":
            width = n_features or (None if like is None else like.n_features)
            if bits is not None:
                width = 2**bits
            if width is None:
                raise DataFileError(
                    f"{file.parent}: svmlight files do not say how many columns there are; give "
                    f"their number (--n-features), or hash them (--hash-bits 18)"
                )
            if target or ignore:
                raise DataFileError("svmlight files have no named columns; omit --target")
            zero_based = False if like is None else bool(like.zero_based)
            return cls(None, (), width, zero_based, hash_bits=bits, drop_missing_target=drop)
        schema = _dataset(file, kind, None).schema
        names = schema.names
        request = Request(target=target, ignore=ignore, like=like, with_target=with_target)
        found = choose_columns(file, names, len(names), request)
        features = tuple(names[place] for place in found.features)
        targets = tuple(names[place] for place in found.target)
        if bits is None:
            whole = frozenset(n for n in features if _is_whole(schema.field(n).type))
            return cls(features, targets, len(features), whole=whole, drop_missing_target=drop)
        kinds = tuple(_kind(file, schema.field(name)) for name in features)
        if like is not None and like.kinds is not None:
            kinds = like.kinds
        return cls(features, targets, 2**bits, None, kinds, bits, drop_missing_target=drop)


def batches_of(
    file: Path, kind: str, columns: Columns, rows: int, *, features: bool = True
) -> Iterator[tuple[Any, NDArray[Any] | None]]:
    """(X, y) of each batch; y is None where no target is read, X has no columns where only y is."""
    if kind == "svmlight":
        yield from _svmlight(file, columns, rows)
        return
    import pyarrow

    names = columns.features or ()
    wanted = [*(names if features else ()), *columns.target]
    data = _dataset(file, kind, columns)
    missing = [name for name in wanted if name not in data.schema.names]
    if missing:
        raise bad(file, f"column {missing[0]!r}, which other files have, is missing")
    try:
        scanned = data.to_batches(
            columns=wanted,
            batch_size=rows,
            batch_readahead=READ_AHEAD,
            fragment_readahead=READ_AHEAD,
        )
        start, budget = 0, FILES.inflated(file.stat().st_size)
        for batch in scanned:
            if sum(map(decoded_bytes, batch.columns)) > budget:
                raise bad(
                    file,
                    f"{batch.num_rows} of its rows would take more than {budget} bytes of memory, "
                    "the most that is read from a file of this size",
                )
            kept = _with_labels(file, batch, columns, start)
            start += batch.num_rows
            if not kept.num_rows:
                continue
            first = start - batch.num_rows
            if columns.hash_bits is not None and features:
                X = _hashed(kept, columns)
            else:
                X = _matrix(file, kept, names if features else (), first, columns.whole)
            yield X, _labels(file, kept, columns.target)
    except (pyarrow.ArrowException, OSError) as error:
        raise _unreadable(file, kind, columns, error) from None


def _dataset(file: Path, kind: str, columns: Columns | None) -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.dataset as datasets
        import pyarrow.parquet
    except ImportError:
        raise DataFileError(
            f"{file}: folders need pyarrow; install it with: pip install 'consistruct[io]'"
        ) from None
    try:
        if kind == "parquet":
            # pages as they are needed, not whole row groups ahead: a fraction of the memory
            lazily = datasets.ParquetFragmentScanOptions(pre_buffer=False)
            # words that repeat stay a dictionary: decoded, a kilobyte of them can take gigabytes
            schema = pyarrow.parquet.read_schema(file)
            words = [field.name for field in schema if _is_text(field.type)]
            style = datasets.ParquetFileFormat(
                read_options=datasets.ParquetReadOptions(dictionary_columns=words),
                default_fragment_scan_options=lazily,
            )
            return datasets.dataset(str(file), format=style)
        types = {}
        if columns is not None:  # numbers where numbers must be, true labels as they are written
            types = dict.fromkeys(columns.features or (), pyarrow.float64())
            for name, what in zip(columns.features or (), columns.kinds or (), strict=False):
                types[name] = pyarrow.float64() if what == "number" else pyarrow.string()
            types |= dict.fromkeys(columns.target, pyarrow.string())
        style = datasets.CsvFileFormat(
            parse_options=pyarrow.csv.ParseOptions(delimiter=DELIMITERS[kind]),
            convert_options=pyarrow.csv.ConvertOptions(column_types=types),
            read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES),
        )
        return datasets.dataset(str(file), format=style)
    except (pyarrow.ArrowException, OSError) as error:
        raise _unreadable(file, kind, columns, error) from None


def _unreadable(file: Path, kind: str, columns: Columns | None, error: Exception) -> Exception:
    """What is wrong with a file, in one line; a cell that is no number is named with its column."""
    reason = str(error).splitlines()[0]
    found = _NO_NUMBER.search(reason)
    if found is None or columns is None:
        return bad(file, f"is not a {kind} file that can be read ({reason})")
    name = _dataset(file, kind, None).schema.names[int(found[1])]
    return bad(
        file,
        f"column {name!r} must contain a number, got {found[2][:40]!r}; the columns of a folder "
        f"are read as numbers with a decimal point: convert it, leave it out with --ignore {name}, "
        "or hash it (--hash-bits 18 --learner ridge --set solver=sgd)",
    )


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def _is_whole(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind))


def _matrix(
    file: Path, batch: Any, names: tuple[str, ...], start: int, whole: frozenset[str]
) -> NDArray[Any]:
    """Columns side by side, (n, d), as memory has them; float32 if all of them are."""
    import pyarrow.types as kinds

    single = bool(names)
    for name in names:
        kind = batch.schema.field(name).type
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
            raise bad(
                file,
                f"feature {name!r} has type {kind}; encode it as numbers first, or leave it out "
                f"with --ignore",
            )
        single &= kinds.is_float32(kind) or kinds.is_float16(kind)
    X = np.empty((batch.num_rows, len(names)), np.float32 if single else np.float64, order="F")
    for place, name in enumerate(names):
        column = batch.column(name)
        _no_nulls(file, column, name, start)
        X[:, place] = column.to_numpy(zero_copy_only=False)
        if name in whole:
            _refuse_long(file, name, column, X[:, place])
    return X


def _refuse_long(file: Path, name: str, column: Any, floats: NDArray[Any]) -> None:
    """Refuse whole numbers that floats do not hold: different ones would become equal."""
    for row in np.flatnonzero(np.abs(floats) >= EXACT).tolist():
        exact = column[row].as_py()  # of a CSV file a float already
        if isinstance(exact, float) or int(floats[row]) != exact:
            raise bad(
                file,
                f"column {name!r} contains {exact:.0f}, a whole number beyond 2^53, which no "
                f"float holds exactly (an identifier?); leave it out with --ignore {name}",
            )


def _kind(file: Path, field: Any) -> str:
    """How a column is hashed: as a number, or as words."""
    import pyarrow.types as kinds

    kind = field.type
    if kinds.is_dictionary(kind):
        kind = kind.value_type
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind):
        return "number"
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_null(kind):
        return "category"
    raise bad(
        file,
        f"feature {field.name!r} has type {kind}; numbers and words can be hashed, leave others "
        f"out with --ignore",
    )


def _hashed(batch: Any, columns: Columns) -> Any:
    """All columns side by side in 2^bits places, CSR; empty cells are no entries."""
    import pyarrow

    def entries() -> Iterator[Entries]:
        for name, kind in zip(columns.features or (), columns.kinds or (), strict=True):
            column = batch.column(name)
            if kind == "number":
                numbers = column.cast(pyarrow.float64()).fill_null(0.0)
                yield hashed_numbers(name, numbers.to_numpy(zero_copy_only=False))
                continue
            if not pyarrow.types.is_dictionary(column.type):
                column = column.cast(pyarrow.string()).dictionary_encode()
            words = column.dictionary.cast(pyarrow.string()).to_pylist()
            places = column.indices.cast(pyarrow.int64()).fill_null(-1)
            yield hashed_words(
                name, [word or "" for word in words], places.to_numpy(zero_copy_only=False)
            )

    assert columns.hash_bits is not None
    return hashed_rows(entries(), batch.num_rows, columns.hash_bits)


def _with_labels(file: Path, batch: Any, columns: Columns, start: int) -> Any:
    """The rows whose labels are all there; others are refused unless they are to be dropped."""
    gone = np.zeros(batch.num_rows, dtype=bool)
    for name in columns.target:
        here = missing_rows(batch.column(name))
        gaps = [(start + row + 1, name) for row in np.flatnonzero(here).tolist()]
        check_gaps(file, gaps, "row", Request(drop_missing_target=columns.drop_missing_target))
        gone |= here
    return batch.filter(~gone) if gone.any() else batch


def _labels(file: Path, batch: Any, names: tuple[str, ...]) -> NDArray[Any] | None:
    import pyarrow.types as kinds

    found = []
    for name in names:
        column = batch.column(name)
        kind = column.type
        if kinds.is_dictionary(kind):
            column, kind = column.dictionary_decode(), kind.value_type
        values = column.to_numpy(zero_copy_only=False)
        if kinds.is_integer(kind) or kinds.is_boolean(kind):
            found.append(safe_integers(file, f"column {name!r}", values))
        elif kinds.is_floating(kind):
            found.append(values.astype(np.float64))
        elif kinds.is_string(kind) or kinds.is_large_string(kind):
            found.append(np.char.strip(word_array(file, values.tolist())))
        else:
            raise bad(file, f"column {name!r} has type {kind}; classes are numbers or strings")
    if not found:
        return None
    return found[0] if len(found) == 1 else np.column_stack(found)


def _no_nulls(file: Path, column: Any, name: str, start: int) -> None:
    if column.null_count:
        row = start + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise bad(
            file, f"column {name!r} is empty; fill in or drop missing values first", row=row + 1
        )


def _svmlight(file: Path, columns: Columns, rows: int) -> Iterator[tuple[Any, NDArray[Any] | None]]:
    start = 0
    with file.open("rb") as stream:
        while lines := list(islice(stream, rows)):
            try:
                X, y = load_svmlight_file(
                    io.BytesIO(b"".join(lines)),
                    n_features=None if columns.hash_bits else columns.n_features,
                    zero_based=bool(columns.zero_based),
                )
            except ValueError as error:
                raise bad(file, f"is not an svmlight file with these columns ({error})") from None
            gone = np.isnan(y)
            gaps = [(start + row + 1, "label") for row in np.flatnonzero(gone).tolist()]
            check_gaps(file, gaps, "row", Request(drop_missing_target=columns.drop_missing_target))
            start += len(y)
            if gone.any():
                X, y = X[~gone], y[~gone]
            if X.shape[0]:
                # beyond 2^53 a double is no longer one whole number
                whole = (y == np.rint(y)).all() and (np.abs(y) < 2.0**53).all()
                if columns.hash_bits:
                    X = hashed_places(X, columns.hash_bits)
                yield X, y.astype(np.int64) if whole else y
