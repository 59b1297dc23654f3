"""What methods of estimators share: when they exist, where they run, what is logged meanwhile."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Self, TypeVar, cast

from sklearn.utils.metaestimators import available_if

from consistruct.learning.statistics import ClassProbabilities

__all__ = [
    "FromBatches",
    "has_probabilities",
    "lazily",
    "streams",
    "verbosity",
]

Answer = TypeVar("Answer", bound=Callable[..., Any])

# Where partitions of other packages are learnt from: the package that made X, and our module with
# `fit` and `predict` for it. Looked up by name, since engines stand above learning.
ENGINES = {"dask": "consistruct.distributed.dask"}


def has_probabilities(estimator: Any) -> bool:
    """Whether predict_proba exists: the model estimates probabilities of classes."""
    if isinstance(getattr(estimator, "statistic_", None), ClassProbabilities):
        return True
    raise AttributeError("predict_proba needs a fitted model that estimates class probabilities")


def can_stream(estimator: Any) -> bool:
    """Whether partial_fit exists: the model has it."""
    model = getattr(estimator, "model_", estimator.model)
    if getattr(model, "can_stream", False):
        return True
    raise AttributeError(
        f"partial_fit needs a model with stochastic training, such as "
        f"consistruct.models.Ridge(solver='sgd'); got model={estimator.model!r}"
    )


streams = available_if(can_stream)


def _engine_of(X: Any) -> Any:
    """The module that learns from collections of another package; None for arrays and tables."""
    package = type(X).__module__.partition(".")[0]
    if package not in ENGINES and hasattr(X, "__dask_graph__"):
        package = "dask"  # dask.dataframe's classes live in packages of their own
    return import_module(ENGINES[package]) if package in ENGINES else None


def lazily(method: Answer) -> Answer:
    """A method that answers collections of another package partition by partition, on demand."""

    @functools.wraps(method)
    def answer(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        engine = _engine_of(X)
        if engine is None:
            return method(self, X, *args, **options)
        given = {f"argument {place}": value for place, value in enumerate(args, 2)}
        _refuse_without_engine(**given, **options)
        return engine.predict(self, X, method.__name__)

    return cast("Answer", answer)


def _refuse_without_engine(**given: Any) -> None:
    """Raise if something is given that partitions of an engine are not joined with."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is not supported with partitioned X; pass arrays, or omit it")


@contextmanager
def verbosity(verbose: int) -> Iterator[None]:
    """Show the package's messages while fitting: 1 for progress, 2 for details."""
    logger = logging.getLogger("consistruct")
    before, handler = logger.level, None
    if verbose:
        logger.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
        if not logger.hasHandlers():
            handler = logging.StreamHandler()
            logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(before)
        if handler is not None:
            logger.removeHandler(handler)


class FromBatches:
    """Part of both estimators: what they do with more rows than memory."""

    def _fit_partitions(self, X: Any, y: Any, sample_weight: Any, **given: Any) -> bool:
        """Fit where X lies, if it is a collection of another package; whether it was one."""
        engine = _engine_of(X)
        if engine is None:
            return False
        _refuse_without_engine(**given)
        engine.fit(self, X, y, sample_weight)
        return True

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
