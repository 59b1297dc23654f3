"""What the estimators share: one model, one recalibration, one decoder, whatever the examples are.

(X, y) ─▶ kind.read ─▶ model.fit(inputs, codes, statistic) ─▶ recalibration on out-of-fold rows
    X  ─▶ model.expected ─▶ recalibration ─▶ statistic.decode ─▶ labels, expected losses
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from consistruct._frames import labels_by_name
from consistruct._progress import showing
from consistruct._threads import libraries_for, within_cores
from consistruct._validation import check_cost_scale
from consistruct.decisions.recalibration import Recalibration, Unchanged
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.fitted_classes import prediction_columns
from consistruct.learning.encoding.kinds import Examples, Kind, generator, take_codes
from consistruct.learning.encoding.labels import loss_class
from consistruct.learning.models import make_model
from consistruct.learning.models.base import TargetModel
from consistruct.learning.parameters import LossParameters
from consistruct.learning.recalibration import recalibrate
from consistruct.learning.selection.cross_fitting import cross_fit, without_rows
from consistruct.losses import Decision
from consistruct.losses.base import Loss
from consistruct.losses.metrics import Metric
from consistruct.protocols import FloatArray

__all__ = ["TargetEstimator", "has_probabilities", "lazily", "streams", "verbosity"]

CHUNK_BYTES = 64 * 2**20  # estimates that are decoded at a time
Method = TypeVar("Method", bound=Callable[..., Any])

# Where partitions of other packages are learned from: the package that made X, and our module with
# `fit` and `predict` for it. Looked up by name, since engines stand above learning.
ENGINES = {"dask": "consistruct.distributed.dask"}


# --- when methods exist, where they run, what is logged meanwhile ---


def has_probabilities(estimator: Any) -> bool:
    """Whether predict_proba exists: the model estimates probabilities of classes."""
    if hasattr(estimator, "statistic_") and estimator.statistic_.of_classes:
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


def lazily(method: Method) -> Method:
    """A method that takes collections of another package partition by partition, on demand."""

    @functools.wraps(method)
    def compute(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        engine = _engine_of(X)
        if engine is None:
            with libraries_for(X):
                return method(self, X, *args, **options)
        given = {f"argument {place}": value for place, value in enumerate(args, 2)}
        _refuse_without_engine(**given, **options)
        return engine.predict(self, X, method.__name__)

    return cast("Method", compute)


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


# --- the estimator ---


class TargetEstimator(LossParameters):
    """Shared by `TaskLossClassifier` and `StructuredPredictor`, which read the data.

    Everything after the model is written here once: recalibration on out-of-fold rows, decisions,
    expected losses, a change of loss.
    """

    # learned; the annotations are for readers and type checkers
    loss_: Loss
    kind_: Kind
    model_: TargetModel
    statistic_: Statistic
    recalibration_: Recalibration
    path_: dict[str, FloatArray]

    def __init__(
        self,
        loss: Any,
        model: Any,
        cv: Any,
        time_limit: float | None,
        random_state: Any,
        n_jobs: int | None,
        verbose: int,
    ) -> None:
        self.loss = loss
        self.model = model
        self.cv = cv
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _html_repr(self) -> str:
        """What scikit-learn shows in notebooks, below what was learned."""
        diagram: str = super()._html_repr()
        if not hasattr(self, "model_"):
            return diagram
        from consistruct.learning.card import estimator_card  # in notebooks only

        return f"{estimator_card(self)}{diagram}"

    # --- fitting ---

    def _forget(self) -> None:
        """Remove whatever an earlier fit learned."""
        for name in [key for key in vars(self) if key.endswith("_") and not key.startswith("_")]:
            delattr(self, name)

    def _model_for(self, kind: str) -> TargetModel:
        """The unfitted model that the parameters describe, checked against the kind of data."""
        return make_model(
            self.model, kind, cv=self.cv, time_limit=self.time_limit, n_jobs=self.n_jobs
        )

    def _fit_model(
        self, model: TargetModel, examples: Examples, metric: Metric | None = None
    ) -> None:
        """Fit, recalibrate on out-of-fold rows, and store what was learned.

        For a non-decomposable metric, out-of-fold rows choose the decisions too.
        """
        rng = generator(self.random_state)
        self.kind_, self.loss_ = examples.kind, examples.kind.loss
        check_cost_scale(self.loss_.max_value)
        positive = np.flatnonzero(examples.weight > 0)
        cv = given = model.get_params(deep=False)["cv"] if model.uses_cv else self.cv
        if len(positive) < len(examples):
            cv = without_rows(cv, positive, len(examples))
            examples = examples.take(positive)
            if model.uses_cv and cv is not given:
                model = clone(model).set_params(cv=cv)
        statistic = examples.kind.statistic()
        with verbosity(self.verbose), showing(f"fitting {type(self).__name__}"):
            self.model_ = clone(model).fit(
                examples.inputs,
                examples.codes,
                statistic,
                sample_weight=examples.weight,
                groups=examples.groups,
                rng=rng,
            )
            self.statistic_ = self.model_.statistic_
            if metric is None:
                self._recalibrate(model, examples, statistic, cv, rng)
            else:
                self._choose_rule(metric, model, examples, statistic, cv, rng)
        if hasattr(self.model_, "portfolio_"):
            self.portfolio_ = self.model_.portfolio_

    def _recalibrate(
        self,
        model: TargetModel,
        examples: Examples,
        requested: Statistic,
        cv: Any,
        rng: np.random.Generator,
    ) -> None:
        """Learn from out-of-fold estimates: the model's own, or those of `cv` folds."""
        self.recalibration_, self.path_ = Unchanged(), dict(getattr(self.model_, "path_", {}))
        if examples.kind.name == "queries" or not self.model_.estimates:
            return
        if self._recalibration_requested():
            left = cross_fit(model, examples, requested, cv=cv, rng=rng, n_jobs=self.n_jobs)
        else:
            try:
                left = self.model_.out_of_fold()
            except CapabilityError:  # nothing is known of rows that the model did not see
                return
        values = self.statistic_.values(examples.codes)
        if examples.kind.name == "sequences":
            mean = values.values.mean(axis=0)
        else:
            mean = np.asarray(values.T @ examples.weight).ravel() / examples.weight.sum()
        self.recalibration_, compared = recalibrate(
            self.statistic_,
            left.expected,
            take_codes(examples.codes, left.rows),
            examples.weight[left.rows],
            mean,
            codes=left.codes,
            # what a Stack averages has been corrected one by one
            powers=self.model_.shrinks or self._recalibration_requested(),
        )
        self.path_.update(compared)

    def _stream(self, model: TargetModel, examples: Examples) -> None:
        """One pass of `partial_fit`; the generator goes on from call to call."""
        self.loss_ = examples.kind.loss
        if not hasattr(self, "stream_"):
            self.stream_ = generator(self.random_state)
            self.model_ = clone(model)
        positive = np.flatnonzero(examples.weight > 0)
        examples = examples.take(positive)
        with verbosity(self.verbose):
            self.model_.partial_fit(
                examples.inputs,
                examples.codes,
                examples.kind.statistic(),
                sample_weight=examples.weight,
                rng=self.stream_,
            )
        self.statistic_ = self.model_.statistic_
        self.recalibration_, self.path_ = Unchanged(), {}

    def _row_kind(self) -> str:
        """Rows of a table, or decisions, which "auto" treats otherwise."""
        return "decisions" if loss_class(self.loss) is Decision else "rows"

    def _takes_missing(self) -> bool:
        """Whether the model welcomes NaN, for scikit-learn's tags."""
        try:
            return bool(self._model_for(self._row_kind()).takes_missing)
        except (TypeError, ValueError):
            return False

    def _recalibration_requested(self) -> bool:
        """Whether cv was given for a model that has no use for it of its own."""
        return self.cv is not None and not self.model_.uses_cv

    # --- more rows than memory ---

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
            generalized cross-validation if not given.
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

    # --- predicting ---

    def _read(self, X: Any, groups: Any = None) -> Any:
        check_is_fitted(self, "model_")
        return self.kind_.inputs(self, X, groups)

    def _in_chunks(self, inputs: Any, compute: Any) -> Any:
        """`compute` of packed inputs; wide estimates of rows are held for few at a time."""
        n = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
        if self.kind_.name != "rows":
            return compute(inputs)
        # the model may average something finer than was requested
        averaged = (self.statistic_, self.model_.statistic_)
        width = max(getattr(statistic, "width", 1) for statistic in averaged)
        size = max(1, CHUNK_BYTES // (8 * max(1, width)))
        if n <= size:
            return compute(inputs)
        parts = [
            compute(self.kind_.take(inputs, np.arange(start, min(start + size, n))))
            for start in range(0, n, size)
        ]
        return np.concatenate(parts)

    def _codes(self, inputs: Any) -> Any:
        """Predictions as codes."""
        if self.model_.decides:
            return self.model_.decisions(inputs)
        if hasattr(self, "rule_") and self.rule_.several:  # costs that differ between rows
            return self._codes_of_several(inputs)

        def decide(part: Any) -> Any:
            expected = self.recalibration_.for_decisions(self.model_.expected(part))
            return self.statistic_.decode(expected)

        return self._in_chunks(inputs, decide)

    def _require_estimates(self, need: str) -> None:
        if not self.model_.estimates:
            raise CapabilityError(
                self.model_,
                "expected",
                need,
                "it only ranks predictions; use a model that estimates, such as model='auto'",
            )

    @lazily
    def predict(self, X: Any, groups: Any = None) -> Any:
        """Predictions for X, written like the labels of `fit`."""
        inputs = self._read(X, groups)
        return self.kind_.present(inputs, self._codes(inputs))

    @within_cores
    def expected_target(self, X: Any, groups: Any = None) -> Any:
        """ū(x) = E[target(y) | x], (n, width of the loss's scores): all that a decision needs.

        For sequences and items of queries it is packed (`Ragged`).
        """
        inputs = self._read(X, groups)
        self._require_estimates("the expected target")

        def compute(part: Any) -> Any:
            expected = self.recalibration_.for_reports(self.model_.expected(part))
            return self.statistic_.target(self.statistic_.project(expected))

        return self._in_chunks(inputs, compute)

    @lazily
    def expected_losses(self, X: Any) -> FloatArray:
        """Expected loss of every prediction, (n, k): the sorted classes, then other predictions.

        Other predictions, such as abstaining, are in the order of the loss. Estimated by the model,
        recalibrated on out-of-fold predictions, never outside the range of the loss.
        Predictions are those of the least price, unless out-of-fold rows proved a contrast better
        (`recalibration_`): prices are computed without it.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame

        Returns
        -------
        prices : (n, k) array
        """
        inputs = self._read(X)
        self._require_estimates("expected losses")

        def compute(part: Any) -> FloatArray:
            expected = self.recalibration_.for_reports(self.model_.expected(part))
            return self._in_range(self._prediction_losses(expected))

        return np.asarray(self._in_chunks(inputs, compute))

    def _prediction_losses(self, expected: Any) -> FloatArray:
        """Expected losses by the order of `classes_`, whatever the order of the loss is."""
        losses = self.statistic_.expected_losses(expected)
        columns = prediction_columns(self.kind_.labels)
        return losses if columns is None else losses[:, columns]

    @lazily
    def predict_expected_loss(self, X: Any, groups: Any = None) -> FloatArray:
        """Expected loss of each prediction, (n,): how sure the model is; within the loss's range.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        expected : (n,) array
        """
        inputs = self._read(X, groups)
        self._require_estimates("expected losses")

        def compute(part: Any) -> FloatArray:
            expected = self.model_.expected(part)
            if self.model_.decides:
                codes = self.model_.decisions(part)
            else:
                codes = self.statistic_.decode(self.recalibration_.for_decisions(expected))
            reported = self.recalibration_.for_reports(expected)
            return self._in_range(self.statistic_.expected_loss(reported, codes))

        return np.asarray(self._in_chunks(inputs, compute))

    def _in_range(self, losses: FloatArray) -> FloatArray:
        low, high = self.loss_.value_range
        return np.clip(losses, low, high)

    @within_cores
    def task_losses(self, X: Any, y: Any, groups: Any = None) -> FloatArray:
        """Task loss of each example, (n,); a true label never seen in training counts as wrong.

        Parameters
        ----------
        X, y, groups
            As in `fit`.

        Returns
        -------
        losses : (n,) array
            One per row, sequence or query.
        """
        inputs = self._read(X, groups)
        return self.kind_.losses(inputs, self._codes(inputs), labels_by_name(self, y))

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Minus the mean task loss: greater is better, 0 is perfect.

        Parameters
        ----------
        X, y, groups
            As in `fit`.
        sample_weight : (n,) array, optional

        Returns
        -------
        score : float
        """
        return -float(np.average(self.task_losses(X, y, groups), weights=sample_weight))

    @property
    def label_encoding_(self) -> Any:
        """Between labels as users write them and codes."""
        check_is_fitted(self, "model_")
        return self.kind_.labels
