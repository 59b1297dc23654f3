"""Inputs as each kind of model wants them: numbers for linear models, codes for trees.

What a table holds is read off its columns: numbers, categories (strings, booleans), dates. Missing
values are imputed where a model cannot take them, with a column that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
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

__all__ = ["Columns"]

MOST_CATEGORIES = 50  # one-hot columns per category; rarer values share one


@dataclass(frozen=True)
class Columns:
    """Which columns of X are what, by position or name.

    Attributes
    ----------
    numbers, categories, dates : tuples of column names or positions
    sparse, missing : bool
    n_columns : int
    """

    numbers: tuple[Any, ...]
    categories: tuple[Any, ...]
    dates: tuple[Any, ...]
    sparse: bool
    missing: bool
    n_columns: int

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
            kinds = [_object_kind(values[:, j]) for j in range(width)]
            names: list[Any] = list(range(width))
        else:
            names = list(X.columns)
            kinds = [_column_kind(X[name]) for name in names]
        picked = {
            kind: tuple(name for name, found in zip(names, kinds, strict=True) if found == kind)
            for kind in ("number", "category", "date")
        }
        missing = bool(X.isna().any(axis=None)) if hasattr(X, "isna") else True
        return cls(picked["number"], picked["category"], picked["date"], False, missing, width)

    @property
    def plain(self) -> bool:
        """Whether every column holds numbers."""
        return not self.categories and not self.dates

    def for_trees(self) -> Any:
        """A transformer for trees, which take missing values and codes; None if not needed."""
        if self.plain:
            return None
        coded = OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
        )
        return ColumnTransformer(
            [
                ("numbers", "passthrough", list(self.numbers)),
                ("categories", coded, list(self.categories)),
                ("dates", FunctionTransformer(days), list(self.dates)),
            ]
        )

    def for_linear(self) -> Any:
        """A transformer for linear and kernel models: finite, standardised numbers."""
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
                ("categories", named, list(self.categories)),
                ("dates", dated, list(self.dates)),
            ]
        )


def days(dates: Any) -> Any:
    """Days since 1970 of every column of dates, NaN where there is none."""
    values = np.asarray(dates).astype("datetime64[s]")
    seconds = values.astype(np.int64).astype(np.float64)
    return np.where(np.isnat(values), np.nan, seconds / 86400.0)


def _column_kind(column: Any) -> str:
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf":
        return "number"
    return "date" if kind == "M" else "category"


def _object_kind(values: Any) -> str:
    if values.dtype.kind == "O" and any(isinstance(value, str) for value in values):
        return "category"  # also where all of the strings are digits
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return "category"
    return "number"
