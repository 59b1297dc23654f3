"""What every reader returns, what it is given, and how it complains."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct._budgets import FILES
from consistruct._validation import read_integer, read_number
from consistruct.exceptions import DataFileError
from consistruct.learning.encoding.text_columns import (
    loses_digits,
)

__all__ = [
    "DataSet",
    "Layout",
    "Request",
    "bad",
    "check_features",
    "check_finite",
    "check_fit_width",
    "check_gaps",
    "is_number",
    "kind_of",
    "label_column",
    "numbers_or_names",
    "plain_digits",
    "safe_integers",
    "word_array",
]


MOST_SHOWN = 10  # lines that a message lists


@dataclass(frozen=True)
class Layout:
    """How a file was read: what a second file needs in order to be read alike.

    A model that was fitted on a file keeps the layout, so that the columns of a test file are
    found by name whatever their order, and so that index bases and label columns agree.
    """

    format: str
    n_features: int
    feature_names: tuple[str, ...] | None = None
    target: tuple[str, ...] = ()
    label_names: tuple[str, ...] | None = None
    groups: str | None = None
    zero_based: bool | None = None
    multilabel: bool = False
    label_kind: str | None = None  # "int", "float" or "str"
    kinds: tuple[str, ...] | None = None  # of the features where not all are complete numbers
    # of the features: the decimal sign of numbers, the format of dates, "" for categories
    formats: tuple[str, ...] | None = None
    missing: tuple[str, ...] = ()  # words for missing cells, besides those that always are
    hash_bits: int | None = None  # features are hashed into so many bits, for folders
    complete: bool = True  # whether a table of numbers had no missing cell

    def as_dict(self) -> dict[str, Any]:
        """Plain values only, for a JSON header."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Layout:
        """The inverse of `as_dict`; what is unknown, missing or of another type: TypeError."""
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        layout = cls(**plain)
        for name, value in plain.items():
            if not _is_plain(value, _TYPES[name]):
                raise TypeError(f"{name} of a layout cannot be {value!r}")
        return layout


# what a layout in a file may contain: "names" for a tuple of texts
_TYPES: dict[str, tuple[Any, ...]] = {
    "format": (str,),
    "n_features": (int,),
    "feature_names": ("names", None),
    "target": ("names",),
    "label_names": ("names", None),
    "groups": (str, None),
    "zero_based": (bool, None),
    "multilabel": (bool,),
    "label_kind": (str, None),
    "kinds": ("names", None),
    "formats": ("names", None),
    "missing": ("names",),
    "hash_bits": (int, None),
    "complete": (bool,),
}


def _is_plain(value: Any, allowed: tuple[Any, ...]) -> bool:
    if isinstance(value, tuple):
        return "names" in allowed and all(type(part) is str for part in value)
    return (value is None and None in allowed) or type(value) in allowed


@dataclass(frozen=True)
class Request:
    """What the caller wants from a file; each reader uses the fields that its format knows."""

    target: tuple[str, ...] = ()
    groups: str | None = None
    ignore: tuple[str, ...] = ()
    labels: int | Path | None = None
    labels_at: str = "end"
    part: str | None = None
    like: Layout | None = None
    with_target: bool = True
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    missing: tuple[str, ...] = ()
    decimal: str | None = None
    date_format: str | None = None
    drop_missing_target: bool = False

    @property
    def notation(self) -> bool:
        """Whether cells are to be read in another way than programs write them."""
        return bool(self.columns or self.missing or self.decimal or self.date_format)


@dataclass(frozen=True, eq=False)
class DataSet:
    """Examples from a file, ready for an estimator.

    Attributes
    ----------
    X : (n, d) array or scipy.sparse.csr_array
        Of objects where there are categories (strings); NaN or None where a cell is missing.
    y : (n,) or (n, T) array, or None
        Classes (integers, numbers or strings) or one column per label; None if the file has none.
    feature_names : tuple of str, or None
        One per column of X.
    label_names : tuple of str, or None
        One per column of a two-dimensional y, or the names of the classes 0, 1, … where the file
        lists them.
    groups : (n,) array, or None
        Query or sequence that each row belongs to.
    layout : Layout
        How it was read, for reading another file alike.
    columns : tuple of ColumnNote
        What was made of each feature column of a table with categories, dates or missing cells.
    """

    X: Any
    y: NDArray[Any] | None
    feature_names: tuple[str, ...] | None
    label_names: tuple[str, ...] | None
    groups: NDArray[Any] | None
    layout: Layout
    columns: tuple[Any, ...] = ()


def bad(path: Path, fault: str, *, line: int | None = None, row: int | None = None) -> Exception:
    """The one line that a bad file gets: file, place, fault and remedy."""
    place = f", line {line}" if line is not None else f", row {row}" if row is not None else ""
    return DataFileError(f"{path}{place}: {fault}")


def check_gaps(path: Path, gaps: Sequence[tuple[int, str]], word: str, request: Request) -> None:
    """Refuse missing labels, given as (line or row, name of the column), unless to be dropped."""
    if not gaps or request.drop_missing_target:
        return
    name = gaps[0][1]
    places = [place for place, at in gaps if at == name]
    shown = ", ".join(map(str, places[:MOST_SHOWN])) + (", …" if len(places) > MOST_SHOWN else "")
    plural = word if len(places) == 1 else f"{word}s"
    fault = f"the target {name!r} is missing in {len(places)} {plural} ({word} {shown})"
    raise bad(path, f"{fault}; fill it in, or drop such rows with --drop-missing-target")


def word_array(path: Path, words: Sequence[str]) -> NDArray[Any]:
    """Words as an array, whose cells all take as much memory as the longest word."""
    _refuse_nul(words, f"{path}: ")
    size = 4 * len(words) * max(map(len, words), default=0)
    budget = FILES.inflated(path.stat().st_size)
    if size > budget:
        fault = f"{len(words)} names as long as the longest would take {size} bytes"
        raise bad(path, f"{fault}, but at most {budget} are read from a file of this size")
    return np.array(words, dtype=np.str_)


def _refuse_nul(words: Sequence[str], place: str = "") -> None:
    """Refuse NUL in names: NumPy pads its strings with it, so that one at the end is lost."""
    word = next((word for word in words if "\0" in word), None)
    if word is not None:
        raise DataFileError(
            f"{place}{word[:40]!r} contains the character NUL, which no name may have; is this a "
            "text file?"
        )


def plain_digits(text: str) -> bool:
    """Whether Python's `float` and `int` read numbers in the text as files mean them.

    They also take ``1_000`` and the digits of every script; one look at a line is cheaper than one
    at each cell.
    """
    return text.isascii() and "_" not in text


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        read_number(cell)
    except ValueError:
        return False
    return True


def numbers_or_names(cells: Sequence[str]) -> NDArray[Any]:
    """Cells as integers if all of them are, else as numbers, else as stripped strings.

    >>> numbers_or_names(["1", "-2"]), numbers_or_names(["1", "b"])
    (array([ 1, -2]), array(['1', 'b'], dtype='<U1'))
    """
    stripped = [cell.strip() for cell in cells]
    _refuse_nul(stripped)
    try:
        # "007" is a name: turning it into 7 would lose it
        integers = [read_integer(cell) for cell in stripped]
        if all(
            str(value) == cell.removeprefix("+")
            for value, cell in zip(integers, stripped, strict=True)
        ):
            return np.array(integers, dtype=np.int64)
    except ValueError:
        pass
    else:
        return np.array(stripped, dtype=np.str_)
    if all(is_number(cell) for cell in stripped) and not any(map(loses_digits, stripped)):
        values = np.array([float(cell) for cell in stripped])
        if np.isfinite(values).all():
            whole = values == np.round(values)
            # "1.0" is how many programs write the class 1
            if whole.all() and (np.abs(values) < 2**53).all():
                return values.astype(np.int64)
            return values
    return np.array(stripped, dtype=np.str_)


def safe_integers(path: Path, name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers as int64, exactly; what would wrap around or lose a fraction is refused."""
    if values.dtype.kind == "u" and values.size and int(values.max()) >= 2**63:
        fault = (
            f"{name} contains {int(values.max())}, which does not fit into a signed 64-bit integer"
        )
        raise bad(path, f"{fault}; number the classes from 0")
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = np.isfinite(values) & (values == np.rint(values)) & (np.abs(values) < 2.0**53)
        if not whole.all():
            wrong = values[~whole].ravel()[0]
            raise bad(path, f"{name} must contain whole numbers, got {wrong}")
    elif values.dtype.kind not in "biu":
        raise bad(path, f"{name} must contain whole numbers, got dtype {values.dtype}")
    return values.astype(np.int64)


def check_features(path: Path, n_features: int, line: int | None = None) -> None:
    """Refuse more columns than a model can have weights for."""
    if n_features > FILES.features:
        raise bad(
            path,
            f"{n_features} features, but at most {FILES.features} are read; number the features "
            "that occur from 1, or hash them",
            line=line,
        )


def check_fit_width(path: Path, n_features: int, y: NDArray[Any] | None) -> None:
    """Refuse a sparse table whose linear fit would take far more memory than the file accounts for.

    The width is a number, and 32·classes·width bytes of weights follow from it. A file with at
    least as many bytes as columns may name all of them; a narrower one has the memory that a file
    of its size may take, about 30 million columns for two classes.
    """
    size = path.stat().st_size
    if n_features <= size:
        return
    classes = 1
    if y is not None and y.ndim == 2:
        classes = y.shape[1]
    elif y is not None and y.dtype.kind != "f":  # numbers are one output
        classes = len(np.unique(y))
    needed, budget = FILES.weight_bytes * max(classes, 2) * n_features, FILES.inflated(size)
    if needed > budget:
        outputs = f" and {classes} classes" if classes > 1 else ""
        raise bad(
            path,
            f"a fit on {n_features} features{outputs} would take {needed} bytes, but at most "
            f"{budget} are allowed for a file of this size; number the features that occur from 1, "
            "or hash them",
        )


def kind_of(values: NDArray[Any] | None) -> str | None:
    """What kind of true labels an array holds, as `Layout` records it."""
    return None if values is None else {"i": "int", "f": "float"}.get(values.dtype.kind, "str")


def label_column(
    path: Path, cells: Sequence[str], lines: Sequence[int], like: Layout | None
) -> NDArray[Any]:
    """True labels as the model knows them: ``1`` is the class "1" where its classes are strings."""
    kind = None if like is None else like.label_kind
    _refuse_nul(cells, f"{path}: ")
    if kind == "str":
        return word_array(path, [cell.strip() for cell in cells])
    values = numbers_or_names(cells)
    if kind in ("int", "float") and values.dtype.kind == "U":
        place = next(
            i for i, cell in enumerate(cells) if numbers_or_names([cell]).dtype.kind == "U"
        )
        fault = f"the model was fitted on numbers as true labels, got {cells[place].strip()!r}"
        raise bad(path, fault, line=lines[place])
    return values


def check_finite(
    path: Path,
    values: NDArray[np.float64],  # (n, d), or the stored values of a sparse matrix
    names: Sequence[str] | None = None,
    lines: Sequence[int] | None = None,
) -> None:
    """Refuse NaN and infinities, naming row or line and column of the first one."""
    if np.isfinite(values).all():
        return
    where = np.argwhere(~np.isfinite(values))[0]
    remedy = "fill in or drop missing values first, for example with sklearn.impute.SimpleImputer"
    if values.ndim == 1:
        raise bad(path, f"a stored value is {values[where[0]]}; {remedy}")
    row, column = int(where[0]), int(where[1])
    name = repr(names[column]) if names is not None else str(column + 1)
    fault = f"column {name} contains {values[row, column]}; {remedy}"
    raise bad(path, fault, line=lines[row]) if lines is not None else bad(path, fault, row=row + 1)
