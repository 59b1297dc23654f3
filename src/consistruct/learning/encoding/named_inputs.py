"""Tables with named columns as the inputs of an estimator, which keeps the columns of its fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import _check_feature_names

from consistruct._frames import is_frame, is_table, refuse_inexact_integers
from consistruct.learning.encoding.frames import InputColumns, concatenated

__all__ = ["named_columns", "named_frame", "table_numbers"]


def named_columns(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A frame or records as an array with the columns of the fit, found by name.

    The fit itself (`reset`) stores the columns in ``columns_``.
    """
    if reset:
        estimator.columns_, values = InputColumns.fit(X)
        estimator.n_features_in_ = len(estimator.columns_.columns)
        if estimator.columns_.named and _are_words(X):
            estimator.feature_names_in_ = np.array(estimator.columns_.names, dtype=object)
        return values
    known: InputColumns | None = getattr(estimator, "columns_", None)
    if known is not None:
        return known.read(X)
    _check_feature_names(estimator, X, reset=False)  # fitted on an array: scikit-learn warns
    columns, values = InputColumns.fit(X)
    if len(columns.columns) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(columns.columns)} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return values


def _are_words(X: Any) -> bool:
    """Whether columns have names of text, the only ones that scikit-learn knows."""
    names = nw.from_native(X, eager_only=True).columns if is_frame(X) else X[0]
    return all(isinstance(name, str) for name in names)


def table_numbers(estimator: Any, X: Any, *, reset: bool, keep_missing: bool = False) -> Any:
    """Tables of items or tokens as numbers: a frame, a list of frames, an array of objects.

    Categories become indicators and empty cells means (`InputColumns.as_numbers`); whatever else X
    is stays as it is.
    """
    if isinstance(X, list | tuple) and len(X) and is_frame(X[0]):
        if not reset:
            return [table_numbers(estimator, x, reset=False, keep_missing=keep_missing) for x in X]
        sizes = [len(nw.from_native(part, eager_only=True)) for part in X]
        whole = table_numbers(estimator, concatenated(X), reset=reset, keep_missing=keep_missing)
        return np.split(whole, np.cumsum(sizes)[:-1])
    fitted: InputColumns | None = None if reset else getattr(estimator, "columns_", None)
    if not is_table(X):
        for part in X if isinstance(X, list | tuple) else [X]:
            refuse_inexact_integers(part)
    if is_table(X):
        values = named_columns(estimator, X, reset=reset)
    elif _is_matrix(X) and (X.dtype == object or (fitted is not None and fitted.encoded)):
        values = X
        if reset:
            estimator.columns_ = InputColumns.of_array(X)
            estimator.n_features_in_ = X.shape[1]
    else:
        return X
    if reset:
        complete = values.dtype != object and (keep_missing or not np.isnan(values).any())
        plain = complete and set(estimator.columns_.kinds) == {"number"}
        fitted = estimator.columns_ = replace(estimator.columns_, encoded=not plain)
    if fitted is None:  # fitted on an array of complete numbers
        return values
    if len(fitted.columns) != values.shape[1]:
        raise ValueError(
            f"X has {values.shape[1]} features, but the model was fitted on {len(fitted.columns)}"
        )
    return fitted.as_numbers(values, keep_missing=keep_missing) if fitted.encoded else values


def _is_matrix(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.ndim == 2


def named_frame(estimator: Any, X: Any, model: Any, *, reset: bool) -> Any:
    """A frame of several types for a model whose own steps read it; None for numbers alone.

    A ColumnTransformer among the steps reads frames of numbers too, whose columns it may name.

    Records and other libraries' frames become pandas', which scikit-learn's transformers know best.
    """
    values = named_columns(estimator, X, reset=reset)
    steps = model.get_params(deep=True).values()
    by_name = any(type(step).__name__ == "ColumnTransformer" for step in steps)
    if values.dtype != object and set(estimator.columns_.kinds) == {"number"} and not by_name:
        return None
    names = estimator.columns_.names
    if not is_frame(X):
        cells = {name: [record.get(name) for record in X] for name in names}
        return nw.from_dict(cells, backend="pandas").to_native()
    frame = nw.from_native(X, eager_only=True)
    if estimator.columns_.named:
        frame = frame.select(*names)
    return frame.to_native() if frame.implementation.is_pandas() else frame.to_pandas()
