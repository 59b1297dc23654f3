"""Inputs as each kind of model wants them: numbers for linear models, codes for trees.

What a table holds is read off its columns: numbers, categories (strings, booleans), dates. Missing
values are imputed where a model cannot take them, with a column that states it.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from consistruct.learning.encoding.text_columns import is_unique
from consistruct.protocols import FloatArray

__all__ = ["Columns", "TreeNumbers"]

MOST_CATEGORIES = 50  # one-hot columns per category; rarer values share one
MOST_CODES = 255  # of a category that boosting splits into any two sets; more have an order only
SEVERAL = (list, tuple, dict, set, np.ndarray)  # what a cell cannot be


@dataclass(frozen=True)
class Columns:
    """Which columns of X are what, by position or name.

    Attributes
    ----------
    numbers, categories, dates : tuples of column names or positions
    mixed : tuple of column names or positions
        Categories whose cells do not sort, and are read as words: of several types, or with a
        missing value of their own (`pandas.NA`).
    many : tuple of column names or positions
        Categories of too many values for boosting to take them as such.
    unique : tuple of column names or positions
        Words of which each occurs once, such as names: no model takes them, since nothing that is
        learned of one is about a later row.
    sparse, missing : bool
    n_columns : int
    """

    numbers: tuple[Any, ...]
    categories: tuple[Any, ...]
    dates: tuple[Any, ...]
    sparse: bool
    missing: bool
    n_columns: int
    mixed: tuple[Any, ...] = ()
    many: tuple[Any, ...] = ()
    unique: tuple[Any, ...] = ()

    @classmethod
    def of(cls, X: Any) -> Columns:
        """Read the kinds of columns off an array, a CSR matrix or a DataFrame."""
        width = int(X.shape[1])
        if sp.issparse(X):
            return cls(tuple(range(width)), (), (), True, False, width)
        if not hasattr(X, "dtypes"):
            values = np.asarray(X)
            if values.dtype.kind in "biuf":
                missing = values.dtype.kind == "f" and bool(np.isnan(values.sum()))
                missing = missing and bool(np.isnan(values).any())
                return cls(tuple(range(width)), (), (), False, missing, width)
            names: list[Any] = list(range(width))
            columns = list(values.T)
            kinds = [_object_kind(column) for column in columns]
        else:
            names = list(X.columns)
            columns = [X[name] for name in names]
            kinds = [_column_kind(column) for column in columns]
        picked = {
            kind: tuple(name for name, found in zip(names, kinds, strict=True) if found == kind)
            for kind in ("number", "category", "date")
        }
        missing = bool(X.isna().any(axis=None)) if hasattr(X, "isna") else True
        held = [(names[i], columns[i]) for i, kind in enumerate(kinds) if kind == "category"]
        unique = tuple(name for name, column in held if is_unique(words(column).tolist()))
        held = [(name, column) for name, column in held if name not in unique]
        mixed = tuple(name for name, column in held if _is_mixed(name, column))
        many = tuple(name for name, column in held if len(set(words(column))) > MOST_CODES)
        numbers, _, dates = picked.values()
        categories = tuple(name for name, _ in held)
        if not (numbers or categories or dates):  # a table of names alone leaves nothing else
            unique, categories = (), unique
        return cls(numbers, categories, dates, False, missing, width, mixed, many, unique)

    @property
    def plain(self) -> bool:
        """Whether every column holds numbers."""
        return not self.categories and not self.dates and not self.unique

    def for_trees(self) -> Any:
        """A transformer for trees, which take missing values and codes; None if not needed."""
        if self.plain:
            return TreeNumbers() if self.missing and not self.sparse else None
        coded = OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
        )
        return ColumnTransformer(
            [
                ("numbers", TreeNumbers(), list(self.numbers)),
                *self._categories(coded),
                (
                    "dates",
                    make_pipeline(FunctionTransformer(days), TreeNumbers()),
                    list(self.dates),
                ),
            ]
        )

    def coded(self) -> list[int]:
        """Where `for_trees` puts the codes of categories that boosting can take as such."""
        order = [*self.numbers, *self._uniform(), *self.mixed]
        return [place for place, name in enumerate(order) if self._is_code(name)]

    def _is_code(self, name: Any) -> bool:
        return name in self.categories and name not in self.many

    def for_linear(self) -> Any:
        """A transformer for linear and kernel models: finite, standardized numbers."""
        if self.sparse:
            return MaxAbsScaler()
        numbers = make_pipeline(
            SimpleImputer(add_indicator=self.missing, keep_empty_features=True), StandardScaler()
        )
        if self.plain:
            return numbers
        named = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=MOST_CATEGORIES,
            sparse_output=False,
        )
        dated = make_pipeline(
            FunctionTransformer(days), SimpleImputer(keep_empty_features=True), StandardScaler()
        )
        return ColumnTransformer(
            [
                ("numbers", numbers, list(self.numbers)),
                *self._categories(named),
                ("dates", dated, list(self.dates)),
            ]
        )

    def _categories(self, encoder: Any) -> list[tuple[str, Any, list[Any]]]:
        """The encoder for categories as they are, and behind `words` for those that do not sort."""
        found = [("categories", encoder, self._uniform())]
        if self.mixed:
            read = make_pipeline(FunctionTransformer(words), clone(encoder))
            found.append(("words", read, list(self.mixed)))
        return found

    def _uniform(self) -> list[Any]:
        return [name for name in self.categories if name not in self.mixed]


class TreeNumbers(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers for trees: missing ones are NaN, and columns that had none at the fit are 0.

    Histogram boosting refuses columns without a single value, which rare ones are on some folds.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the columns without a value."""
        self.empty_ = np.isnan(_floats(X)).all(axis=0)
        return self

    def transform(self, X: Any) -> FloatArray:
        """(n, d) of float64."""
        return np.where(self.empty_, 0.0, _floats(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _floats(X: Any) -> FloatArray:
    if hasattr(X, "to_numpy"):
        return np.asarray(X.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(X, dtype=np.float64)


def words(cells: Any) -> Any:
    """Every cell as a string, None where it is empty."""
    values = np.asarray(cells, dtype=object)
    found = np.full(values.shape, None, dtype=object)
    there = ~_empty(cells)
    found[there] = [str(value) for value in values[there]]
    return found


def _empty(cells: Any) -> Any:
    if hasattr(cells, "isna"):
        return np.asarray(cells.isna())
    return _is_empty(np.asarray(cells, dtype=object)).astype(bool)


_is_empty = np.frompyfunc(lambda cell: cell is None or cell != cell, 1, 1)


def days(dates: Any) -> Any:
    """Days of every column: dates since 1970, lengths of time as they are; NaN for empty cells."""
    names = getattr(dates, "columns", range(np.shape(dates)[1]))
    columns = [dates[name] if hasattr(dates, "columns") else dates[:, name] for name in names]
    return np.column_stack([_days(column) for column in columns])


def _days(column: Any) -> FloatArray:
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert(None)  # universal time
    values = np.asarray(column)
    kind = "timedelta64[s]" if values.dtype.kind == "m" else "datetime64[s]"
    seconds = values.astype(kind).astype(np.int64).astype(np.float64)
    return np.where(np.isnat(values.astype(kind)), np.nan, seconds / 86400.0)


def _column_kind(column: Any) -> str:
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf":
        return "number"
    return "date" if kind in "mM" else "category"


def _is_mixed(name: Any, column: Any) -> bool:
    """Whether the cells of a category are words only if they are made so."""
    values = np.asarray(column, dtype=object)
    there = values[~_empty(column)]
    types = set(map(type, there))
    for one in types:
        if issubclass(one, SEVERAL):
            raise ValueError(
                f"column {name!r} contains cells of type {one.__name__}, but a cell must be a "
                "number, a word, a date or empty; split it into columns or drop it"
            )
    alike = (str, Number | np.bool_)
    uniform = any(all(issubclass(one, kind) for one in types) for kind in alike)
    gap = getattr(column.dtype, "na_value", np.nan)
    return not uniform or not isinstance(gap, float)


def _object_kind(values: Any) -> str:
    if values.dtype.kind == "O" and any(isinstance(value, str) for value in values):
        return "category"  # also where all of the strings are digits
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return "category"
    return "number"
