"""Frames of any library and lists of records as arrays, and the columns that a model was fitted on.

narwhals reads pandas, Polars and pyarrow alike, so that equal tables give equal models. Numbers
stay numbers, dates are days since 1970, text is read by the same rule as the cells of a file, and
what is left is a category. An estimator keeps the columns of its fit (`InputColumns`); later tables
are read by name, in any order, with any further columns.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from consistruct._frames import is_frame, is_gone, read_frame
from consistruct.learning.encoding.cells import as_words, listed_cells, series_cells
from consistruct.learning.encoding.text_columns import (
    CellError,
    TextColumn,
    is_unique,
    many_values_note,
    read_text_column,
)
from consistruct.protocols import FloatArray

__all__ = [
    "Column",
    "InputColumns",
    "column_names",
    "concatenated",
]

MOST_INDICATORS = 50  # of one category, as numbers; rarer values read as zeros


@dataclass(frozen=True)
class Column:
    """What a column was at the fit.

    Attributes
    ----------
    name : str
        Its number, as text, where columns have no names.
    kind : "number", "date", "duration" or "category"
        Dates are days since 1970, durations are days.
    categories : tuple of str
        The values of a category, the most frequent first.
    date_format : str or None
        How dates that came as text are written.
    decimal : str or None
        The decimal sign of numbers that came as text.
    mean, scale : float
        Mean and standard deviation of numbers, for models that take numbers alone.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    date_format: str | None = None
    decimal: str | None = None
    mean: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class InputColumns:
    """The columns of a fit, in the order of the model's inputs.

    Parameters
    ----------
    columns : tuple of Column
    named : bool
        Whether later tables are read by name; by position otherwise.
    missing : tuple of str
        Words for missing cells, besides those that always are, such as ``unknown``.
    encoded : bool
        Whether the model was fitted on `as_numbers`, as items and tokens are where not all columns
        are complete numbers. The fit decides: a later table may happen to have no missing cell.

    Examples
    --------
    >>> from consistruct.learning.encoding.frames import InputColumns
    >>> rows = [{"age": 31, "town": "Bonn"}, {"age": None, "town": "Ulm"}]
    >>> columns, values = InputColumns.fit(rows)
    >>> [(column.name, column.kind) for column in columns.columns]
    [('age', 'number'), ('town', 'category')]
    >>> columns.read([{"town": "Ulm", "seen": True, "age": 5}]).tolist()
    [[5.0, 'Ulm']]
    """

    columns: tuple[Column, ...]
    named: bool = True
    missing: tuple[str, ...] = ()
    encoded: bool = False

    @classmethod
    def fit(cls, X: Any) -> tuple[InputColumns, NDArray[Any]]:
        """Read the columns of a table, and the table as an array."""
        names, cells, named = _columns_of(X)
        read = [_read(name, column, None, ()) for name, column in zip(names, cells, strict=True)]
        for note in [column.note for column in read if column.note is not None]:
            warnings.warn(note, stacklevel=2)
        found = [_described(name, column) for name, column in zip(names, read, strict=True)]
        single = [_is_single(column) for column in cells]
        values = _joined(
            [column.values for column in read], np.float32 if all(single) else np.float64
        )
        return cls(tuple(found), named), values

    @classmethod
    def of_array(
        cls,
        X: NDArray[Any],
        names: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        formats: Sequence[str] | None = None,
        missing: tuple[str, ...] = (),
    ) -> InputColumns:
        """Describe the columns of an array; a column of objects with a word in it is a category.

        `formats` are the decimal signs of numbers and the formats of dates, where they are known.
        """
        found = []
        for place in range(X.shape[1]):
            values = X[:, place]
            kind = kinds[place] if kinds is not None else _kind_of_cells(values)
            if kind != "category":
                values = values.astype(np.float64)
            name = str(place) if names is None else names[place]
            form = (formats[place] if formats is not None else "") or None
            date_format, decimal = (form, None) if kind == "date" else (None, form)
            column = TextColumn(kind, values, date_format=date_format, decimal=decimal)
            found.append(_described(name, column))
        return cls(tuple(found), names is not None, missing)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(column.kind for column in self.columns)

    @property
    def mixed(self) -> bool:
        """Whether there are categories, so that tables are arrays of objects."""
        return "category" in self.kinds

    def read(self, X: Any) -> NDArray[Any]:
        """A table as an array with the columns of the fit.

        (n, d) floats, NaN where a cell is empty; of objects where there are categories, which are
        strings or None.
        """
        names, cells, named = _columns_of(X)
        # columns numbered as pandas does are in order, unless a table with all of these numbers
        # has them in another
        by_name = named and (self.named or set(self.names) <= set(names))
        if not by_name:
            if len(cells) != len(self.columns):
                raise ValueError(
                    f"X has {len(cells)} features, but the model was fitted on {len(self.columns)}"
                )
            chosen = cells
        else:
            place = {name: number for number, name in enumerate(names)}
            missing = [name for name in self.names if name not in place]
            if missing:
                raise ValueError(
                    f"X lacks the column {missing[0]!r}, which the model was fitted on "
                    f"({len(missing)} of {len(self.columns)} are missing)"
                )
            chosen = [cells[place[name]] for name in self.names]
        single = all(_is_single(column) for column in chosen)
        return _joined(
            [
                _read(column.name, cell, column, self.missing).values
                for column, cell in zip(self.columns, chosen, strict=True)
            ],
            np.float32 if single else np.float64,
        )

    def as_numbers(self, values: NDArray[Any], *, keep_missing: bool = False) -> FloatArray:
        """Numbers for models that take nothing else, (n, more columns).

        A category becomes one indicator per value, all zero for an empty or unknown cell. Numbers
        are standardized, x ↦ (x − mean) / scale, since days since 1970 beside indicators make
        steps of SGD diverge; an empty one becomes the mean, 0, unless `keep_missing`.
        """
        parts: list[FloatArray] = []
        for place, column in enumerate(self.columns):
            cells = values[:, place]
            if column.kind == "category":
                known = column.categories[:MOST_INDICATORS]
                parts += [(cells == word).astype(np.float64) for word in known]
                continue
            numbers = (cells.astype(np.float64) - column.mean) / column.scale
            parts.append(numbers if keep_missing else np.where(np.isnan(numbers), 0.0, numbers))
        return np.column_stack(parts)


def column_names(X: Any) -> tuple[str, ...]:
    """Names of the columns of a frame or of records, as text."""
    if not is_frame(X):
        return tuple(dict.fromkeys(str(name) for record in X for name in record))
    return tuple(str(name) for name in read_frame(X).columns)


def concatenated(parts: Sequence[Any]) -> Any:
    """Tables of equal columns in any order, one below the other, as the first one has them."""
    frames = [read_frame(part) for part in parts]
    names = frames[0].columns
    for number, frame in enumerate(frames):
        if set(frame.columns) != set(names):
            raise ValueError(
                f"table {number} has the columns {', '.join(map(str, frame.columns))}, but table 0 "
                f"has {', '.join(map(str, names))}; give all tables the same columns"
            )
    return nw.concat([frame.select(*names) for frame in frames], how="vertical").to_native()


def _columns_of(X: Any) -> tuple[list[str], list[Any], bool]:
    """Names, columns, and whether the names are names: pandas numbers the columns of an array."""
    if not is_frame(X):
        keys = list(dict.fromkeys(name for record in X for name in record))
        return list(map(str, keys)), [[record.get(key) for record in X] for key in keys], True
    frame = read_frame(X)
    names = list(frame.columns)
    words = [isinstance(name, str) for name in names]
    if any(words) and not all(words):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            "input has names of several types; convert them with X.columns.astype(str)"
        )
    if len(frame) == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={frame.shape}) in X")
    if not names:
        raise ValueError(f"Found array with 0 feature(s) (shape={frame.shape}) in X")
    return list(map(str, names)), list(frame.iter_columns()), names != list(range(len(names)))


def _read(name: str, cells: Any, known: Column | None, missing: tuple[str, ...]) -> TextColumn:
    """Kind and values of a column, as its type and its cells say."""
    listed = isinstance(cells, list)
    kind, values = listed_cells(name, cells) if listed else series_cells(name, cells)
    found = TextColumn(kind, values)
    if kind == "text":
        found = _text(name, values, known, missing)
    elif kind == "identifier":
        note = (
            f"column {name!r} contains whole numbers beyond 2^53, which no float holds exactly "
            "(identifiers?); they are kept as categories"
        )
        found = TextColumn("category", values, note=note)
    elif kind == "category":
        present = [value for value in values.tolist() if value is not None]
        found = TextColumn(kind, values, note=many_values_note(name, present, options=False))
    if known is None or found.kind == known.kind:
        return found
    if known.kind == "category" and found.kind == "number":
        return TextColumn("category", as_words(cells if listed else cells.to_list()))
    if all(map(is_gone, found.values.tolist())):
        return TextColumn(known.kind, np.full(len(found.values), np.nan))
    raise ValueError(
        f"column {name!r} contains values of kind {found.kind}, but the model was fitted on values "
        f"of kind {known.kind}; convert it"
    )


def _text(
    name: str, cells: NDArray[Any], known: Column | None, missing: tuple[str, ...]
) -> TextColumn:
    """Text by the rule of files, as that of the fit was read."""
    how: dict[str, Any] = {"missing": missing, "options": False}
    if known is not None:
        how |= {"kind": known.kind, "decimal": known.decimal, "date_format": known.date_format}
    try:
        return read_text_column(name, cells.tolist(), **how)
    except CellError as error:
        raise ValueError(f"X, row {error.place} (counted from 0): {error}") from None


def _is_single(cells: Any) -> bool:
    """Whether a column holds numbers of single precision, which a table of them keeps."""
    return not isinstance(cells, list) and cells.dtype == nw.Float32


def _joined(columns: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """(n, d) in the order of rows, as arrays are: products then add in the same order."""
    mixed = any(values.dtype == object for values in columns)
    table = np.empty((len(columns[0]), len(columns)), dtype=object if mixed else dtype)
    for place, values in enumerate(columns):
        table[:, place] = values
    return table


def _kind_of_cells(values: NDArray[Any]) -> str:
    words = values.dtype.kind in "US" or any(isinstance(value, str) for value in values)
    return "category" if words else "number"


def _described(name: str, column: TextColumn) -> Column:
    if column.kind == "category":
        counts = Counter(str(value) for value in column.values if not is_gone(value))
        words = sorted(counts, key=lambda word: (-counts[word], word))
        if is_unique(list(counts.elements())):  # as in `Columns`: no indicators of names
            words = []
        return Column(name, "category", tuple(words))
    present = column.values[~np.isnan(column.values)]
    mean, scale = 0.0, 1.0
    if len(present):
        mean, scale = float(present.mean()), float(present.std()) or 1.0
    how = (column.date_format, column.decimal)
    return Column(name, column.kind, (), *how, mean=mean, scale=scale)
