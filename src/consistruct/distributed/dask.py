"""Dask: partitions are surveyed and summed where they lie, and only sums travel.

`TaskLossClassifier.fit` and `predict` call this for dask.dataframe and dask.array inputs. Tasks are
pure functions of a partition, so that Dask repeats those of a worker that died.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from consistruct._threads import alone
from consistruct.exceptions import ConsistructError
from consistruct.learning.encoding.kinds import generator
from consistruct.learning.streams.plan import Plan, make_plan, sample_size, stream_model
from consistruct.learning.streams.source import Batch
from consistruct.learning.streams.summary import Summary
from consistruct.learning.streams.survey import Survey, survey_batch

__all__ = [
    "FAN_IN",
    "added_surveys",
    "dask_module",
    "fit",
    "partitions",
    "predict",
    "tree_reduced",
]

FAN_IN = 8  # sums that one task adds up


def fit(estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None) -> Any:
    """Fit to partitions: a survey, then the moments of each, added up in a tree.

    Parameters
    ----------
    estimator : TaskLossClassifier or StructuredPredictor
        With "auto", "ridge" or Ridge(solver="moments").
    X : dask.dataframe or dask.array
    y : dask Series, DataFrame or array, with the same partitions
    sample_weight : the same, optional
    classes : array, optional
        All classes; with it and features="linear" one look at the data is enough.
    """
    dask = dask_module()
    model = stream_model(estimator)
    if not model.by_sums:
        raise ValueError(
            "Dask inputs need a model that learns from sums: use model='auto' or "
            "Ridge(solver='moments'); for SGD: consistruct.distributed.fit_averaged"
        )
    batches = partitions(X, y, sample_weight)
    size = sample_size(model, X.shape[1])
    seed = 0
    if not isinstance(estimator.random_state, np.random.Generator | np.random.RandomState):
        seed = int(generator(estimator.random_state).integers(2**31))
    look = dask.delayed(_survey, pure=True)
    surveys = [look(*batch, size, seed) for batch in batches]
    (survey,) = dask.compute(tree_reduced(surveys, added_surveys))
    plan = make_plan(estimator, survey, classes=classes)
    shared = dask.delayed(plan)
    sums = dask.delayed(_summarize, pure=True)
    (summary,) = dask.compute(
        tree_reduced([sums(shared, *batch) for batch in batches], _added_summaries)
    )
    if summary is None:
        raise ValueError("there are no rows with a positive weight to learn from")
    estimator._forget()
    return plan.finish(summary, into=estimator)


def predict(estimator: Any, X: Any, method: str = "predict") -> Any:
    """A method of a fitted estimator on each partition, lazily; nothing is collected here.

    Parameters
    ----------
    estimator : fitted TaskLossClassifier or StructuredPredictor
    X : dask.dataframe or dask.array
    method : str
        "predict", "predict_proba", "expected_losses", "predict_expected_loss" or
        "decision_function".

    Returns
    -------
    dask.array with the rows of X
    """
    dask, da = dask_module(), dask_module("dask.array")
    frame = hasattr(X, "dtypes") and hasattr(X, "map_partitions")
    parts = X.to_delayed() if frame else _row_blocks(X)
    # what the result looks like is learned from one row of zeros
    example = getattr(estimator, method)(_one_row(estimator))
    lengths: Sequence[float] = [np.nan] * len(parts) if frame else X.chunks[0]
    apply = dask.delayed(_applied, pure=True)
    shared = dask.delayed(estimator)
    arrays = [
        da.from_delayed(
            apply(shared, method, part), shape=(length, *example.shape[1:]), dtype=example.dtype
        )
        for part, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def tree_reduced(values: list[Any], add: Callable[[list[Any]], Any]) -> Any:
    """One delayed value from many, `FAN_IN` at a time: no task holds more than so many sums."""
    adding = dask_module().delayed(add, pure=True)
    while len(values) > 1:
        values = [adding(values[i : i + FAN_IN]) for i in range(0, len(values), FAN_IN)]
    return values[0]


def dask_module(module: str = "dask") -> Any:
    """Dask, which has no types."""
    return import_module(module)


def partitions(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, ...]]:
    """(X, y) or (X, y, sample_weight) of every partition, as delayed values."""
    given = {"X": X, "y": y, "sample_weight": sample_weight}
    given = {name: one for name, one in given.items() if one is not None}
    for name, one in given.items():
        if not hasattr(one, "to_delayed"):
            raise ConsistructError(
                f"{name} must be a Dask collection like X, got {type(one).__name__}"
            )
    columns = {name: _parts(one) for name, one in given.items()}
    if len(set(map(len, columns.values()))) > 1:
        # Dask reads several files at once where few columns are wanted of them: not here
        columns = {name: _parts(one, optimize=False) for name, one in given.items()}
    for name, parts in columns.items():
        if len(parts) != len(columns["X"]):
            raise ConsistructError(
                f"X has {len(columns['X'])} partitions and {name} has {len(parts)}; take both from "
                f"one frame, or rechunk"
            )
    return list(zip(*columns.values(), strict=True))


def _parts(given: Any, optimize: bool = True) -> list[Any]:
    """Partitions of a frame or series, blocks of rows of an array."""
    if hasattr(given, "dtypes") or hasattr(given, "map_partitions"):
        return list(given.to_delayed(optimize_graph=optimize))
    return _row_blocks(given)


def _row_blocks(array: Any) -> list[Any]:
    """Blocks of whole rows, as delayed arrays."""
    if array.ndim > 1:
        array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    return list(array.to_delayed().ravel())


def _one_row(estimator: Any) -> Any:
    if not hasattr(estimator, "feature_names_in_"):
        return np.zeros((1, estimator.n_features_in_))
    return [dict.fromkeys(estimator.feature_names_in_, 0.0)]


# --- what runs on workers ---


@alone()
def _survey(X: Any, y: Any, *rest: Any) -> Survey | None:
    *weight, size, seed = rest
    return survey_batch(Batch(X, y, *weight), size=size, seed=seed) if len(y) else None


@alone()
def _summarize(plan: Plan, X: Any, y: Any, *weight: Any) -> Summary | None:
    passed = plan.start()
    rows = passed.add(Batch(X, y, *weight)) if len(y) else 0
    return passed.summary() if rows else None


def added_surveys(parts: list[Survey | None]) -> Survey | None:
    """What several looks saw together; None if all partitions are empty."""
    return _added(parts)


def _added_summaries(parts: list[Summary | None]) -> Summary | None:
    return _added(parts)


def _added(parts: list[Any]) -> Any:
    found = [part for part in parts if part is not None]
    return sum(found[1:], found[0]) if found else None


@alone()
def _applied(estimator: Any, method: str, X: Any) -> Any:
    if not len(X):
        return getattr(estimator, method)(_one_row(estimator))[:0]
    return getattr(estimator, method)(X)
