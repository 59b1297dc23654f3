"""What estimators do with more rows than memory: read batches, or partitions of an engine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, Self, TypeVar, cast

__all__ = ["FromBatches", "engine_of", "lazily", "refuse_without_engine"]

Answer = TypeVar("Answer", bound=Callable[..., Any])

# Where partitions of other packages are learnt from: the package that made X, and our module with
# `fit` and `predict` for it. Looked up by name, since engines stand above learning.
ENGINES = {"dask": "consistruct.distributed.dask"}


def engine_of(X: Any) -> Any:
    """The module that learns from collections of another package; None for arrays and tables."""
    package = type(X).__module__.partition(".")[0]
    if package not in ENGINES and hasattr(X, "__dask_graph__"):
        package = "dask"  # dask.dataframe's classes live in packages of their own
    return import_module(ENGINES[package]) if package in ENGINES else None


def lazily(method: Answer) -> Answer:
    """A method that answers collections of another package partition by partition, on demand."""

    @functools.wraps(method)
    def answer(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        engine = engine_of(X)
        if engine is None:
            return method(self, X, *args, **options)
        given = {f"argument {place}": value for place, value in enumerate(args, 2)}
        refuse_without_engine(**given, **options)
        return engine.predict(self, X, method.__name__)

    return cast("Answer", answer)


def refuse_without_engine(**given: Any) -> None:
    """Raise if something is given that partitions of an engine are not joined with."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is not supported with partitioned X; pass arrays, or omit it")


class FromBatches:
    """Part of both estimators."""

    def fit_stream(
        self, batches: Any, *, classes: Any = None, held_out: Any = None, passes: int = 1
    ) -> Self:
        """Learn from batches of rows that need not fit in memory together.

        With `Ridge(solver="moments")`, and with "auto" or "ridge", exactly as from all rows at
        once, whatever their order and partition; with a model trained by SGD in steps.

        Parameters
        ----------
        batches : list of (X, y) or (X, y, sample_weight), or a function that returns an iterator
            Read twice where labels or features are not known before: a list or a function can be,
            an iterator cannot.
        classes : array, optional
            All classes. With it (or a loss object) and features="linear" one pass is enough.
        held_out : batches, optional
            Rows that take no part, by whose task loss one of several penalties is chosen; by
            generalised cross-validation if not given.
        passes : int
            For SGD: how often the batches are read, in random order.

        Returns
        -------
        self

        Examples
        --------
        >>> import consistruct as cs
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> batches = [(X[part::5], y[part::5]) for part in range(5)]
        >>> ridge = cs.models.Ridge("linear", solver="moments")
        >>> model = cs.TaskLossClassifier("zero_one", ridge).fit_stream(batches)
        >>> model.predict(X[:2])
        array([0, 0])
        """
        from consistruct.learning.streams import fit_stream

        fit_stream(self, batches, classes=classes, held_out=held_out, passes=passes)
        return self
