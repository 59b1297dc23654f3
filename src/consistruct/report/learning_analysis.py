"""From a fitted model and held-out data to its learning report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct._validation import check_count
from consistruct.exceptions import ConsistructError
from consistruct.losses import Decision, Hamming
from consistruct.protocols import FloatArray, LabelArray
from consistruct.report.baselines import LogisticLaw, fit_baselines, label_kind
from consistruct.report.decisions import decisions_of
from consistruct.report.error_tables import confusion_of, part_errors
from consistruct.report.example_costs import report_of_costs
from consistruct.report.learning import (
    BandwidthPoint,
    CurveFit,
    CurveForecast,
    LearningReport,
    LossBin,
    ModelScore,
    PathPoint,
    Selective,
)
from consistruct.report.learning_forecast import continued
from consistruct.report.learning_parts import (
    MODEL,
    described,
    error_of,
    loss_bins,
    portfolio_of,
    ridge_of,
    score_of,
    selective_of,
)

if TYPE_CHECKING:  # scikit-learn takes a second to import, and calibration reports need none of it
    from consistruct.learning import StructuredPredictor, TaskLossClassifier

__all__ = ["learning_report"]

LOGISTIC = "logistic regression, Bayes decisions"
SIZES = 5  # of the learning curve: n, n/2, …, n/16
SMALLEST = 16  # training examples
BANDWIDTH_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
BANDWIDTH_ROWS = 1000


def learning_report(
    model: TaskLossClassifier | StructuredPredictor,
    X: Any,
    y: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    costs: Any = None,
    learning_curve: bool = True,
    bandwidths: bool = True,
    repeats: int = 3,
    label_names: Any = None,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> LearningReport:
    """Judge a fitted model by its task loss on held-out data, against what it should beat.

    Parameters
    ----------
    model : TaskLossClassifier or StructuredPredictor
        Fitted; labels of a fixed shape.
    X, y : (n, n_features) array or CSR, and true labels
        Held out: not used for fitting. Everything but penalty and bandwidth is measured on them.
    X_train, y_train : optional
        What the model was fitted on. With them the report has baselines, a learning curve and the
        bandwidths that were not taken; without them it has the rest.
    costs : (n, k, k) array, optional
        Of each held-out example: what decision c costs if t is true, for a classifier with
        probabilities. The report then has a profit curve; what refits the model is left out.
    learning_curve, bandwidths : bool
        Each takes about as long as a few fits.
    repeats : int
        Draws of the training examples for each size of the learning curve.
    label_names : sequence of str, optional
        Names of the labels of label sets.
    random_state : int
        Which examples the learning curve draws.
    progress : callable, optional
        Called with (done, total) steps.

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_iris(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    >>> model = cs.TaskLossClassifier("ordinal", cs.models.Ridge(alpha=0.01, bandwidth=1.0))
    >>> model = model.fit(X_train, y_train)
    >>> report = cs.learning_report(model, X_test, y_test, X_train=X_train, y_train=y_train,
    ...                             learning_curve=False, bandwidths=False)
    >>> report.scores[1].name, report.scores[1].mean > report.scores[0].mean
    ('best constant', True)
    """
    _check_model(model)
    if (X_train is None) != (y_train is None):
        raise ValueError("give X_train and y_train together, or neither")
    repeats = check_count(repeats, "repeats")
    truths = np.asarray(y)
    if len(truths) == 0:
        raise ValueError("y is empty: a report needs at least one held-out example")
    if costs is not None:
        return report_of_costs(model, X, truths, costs)
    if getattr(model, "example_costs_", False):
        raise ValueError(
            "the model was fitted with the costs of each example; give costs= of the held-out ones"
        )
    losses = model.task_losses(X, truths)
    predicted = model._codes(model._read(X))
    test = model.label_encoding_.encode(truths, model.loss_)
    reasons: dict[str, str] = {}
    scores = [score_of(MODEL, losses, losses, None, model.loss_)]
    fits: tuple[CurveFit, ...] = ()
    forecast: CurveForecast | None = None
    candidates: tuple[BandwidthPoint, ...] = ()
    if X_train is None:
        for part in ("baselines", "learning_curve", "bandwidths"):
            reasons[part] = "the training data were not given"
    else:
        rows = _Training(model, X_train, y_train, X, truths, test, random_state, progress)
        rows.plan(learning_curve, bandwidths, repeats)
        found, why = rows.baselines(losses)
        scores += found
        if why is not None:
            reasons["baselines"] = why
        fits = rows.learning_curve(losses) if learning_curve else ()
        if fits:
            sizes = sorted(rows.sizes)
            forecast = continued(model.loss_, len(rows.train), sizes, rows.refits, losses)
        candidates, why = rows.bandwidths() if bandwidths else ((), "not asked for")
        if why is not None:
            reasons["bandwidths"] = why
        if not fits:
            reasons["learning_curve"] = (
                "too few training examples" if learning_curve else "not asked for"
            )
    path, criterion = _path(model)
    if not path:
        reasons["path"] = "the penalty was given, or the solver compares none"
    bins: tuple[LossBin, ...] = ()
    correlation: float | None = None
    selective: Selective | None = None
    try:
        expected = model.predict_expected_loss(X)
        bins, correlation = loss_bins(expected, losses)
        selective = selective_of(expected, losses)
    except ConsistructError as error:
        reasons["expected_loss"] = str(error)
    kind = label_kind(model.loss_, test)
    if kind == "other":
        reasons["confusion"] = "errors are counted by class or by label of a set"
    return LearningReport(
        loss=repr(model.loss_),
        estimator=type(model).__name__,
        model=described(model),
        portfolio=portfolio_of(model),
        n_train=None if X_train is None else int(X_train.shape[0]),
        n_test=len(truths),
        max_value=_largest(model.loss_, test, losses),
        alpha=None if ridge_of(model) is None else float(ridge_of(model).alpha_),
        contrast=float(getattr(model.recalibration_, "contrast", 1.0)),
        scores=tuple(scores),
        criterion=criterion,
        path=path,
        bandwidths=candidates,
        learning_curve=fits,
        confusion=confusion_of(model, predicted, truths, test) if kind == "classes" else None,
        parts=part_errors(predicted, test, label_names) if kind == "sets" else (),
        bins=bins,
        rank_correlation=correlation,
        reasons=tuple(reasons.items()),
        decisions=decisions_of(model, X, truths, label_names),
        selective=selective,
        forecast=forecast,
    )


def _largest(loss: Any, test: Any, losses: FloatArray) -> float:
    """Largest loss that was possible; of decisions, whose costs have no limit, on these rows."""
    if not isinstance(loss, Decision):
        return float(loss.max_value)
    if not loss.solver.binary:
        return float(losses.max())
    signed = loss.signed(test)
    most = np.maximum(signed, 0.0).sum(axis=1) + loss.offset(test)
    return float(most.max())


def _check_model(model: Any) -> None:
    from consistruct.learning import StructuredPredictor, TaskLossClassifier

    if not isinstance(model, TaskLossClassifier | StructuredPredictor):
        raise TypeError(
            f"model must be a TaskLossClassifier or StructuredPredictor, got "
            f"{type(model).__name__}; other models are compared by learning.task_loss"
        )
    if not hasattr(model, "loss_"):
        raise ValueError("model must be fitted first: call model.fit(X, y)")
    unlisted = model.loss_.n_labels is None and not isinstance(model.loss_, Decision)
    if model.kind_.name != "rows" or unlisted:
        raise ValueError(
            "a learning report is about labels of a fixed shape; for sequences use "
            "consistruct evaluate, which counts tokens and chunks"
        )


def _path(model: Any) -> tuple[tuple[PathPoint, ...], str | None]:
    """What the solver compared, by increasing penalty."""
    found = getattr(model, "path_", None) or {}
    if "alphas" not in found or len(found["alphas"]) < 2:
        return (), None
    criterion = next((name for name in ("gcv", "surrogate_risk") if name in found), None)
    if criterion is None:
        return (), None
    order = np.argsort(found["alphas"])
    has_loss = "task_loss" in found
    points = tuple(
        PathPoint(
            alpha=float(found["alphas"][n]),
            task_loss=float(found["task_loss"][n]) if has_loss else None,
            task_error=float(found["task_error"][n]) if "task_error" in found else None,
            criterion=float(found[criterion][n]),
        )
        for n in order
    )
    return points, "task_loss" if has_loss else criterion


class _Training:
    """What needs the training data; counts its steps."""

    def __init__(
        self,
        model: Any,
        X_train: Any,
        y_train: Any,
        X_test: Any,
        y_test: Any,
        test: LabelArray,
        seed: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.model, self.loss = model, model.loss_
        self.X_train, self.X_test = X_train, X_test
        self.y_test, self.test = y_test, test
        self.train = model.label_encoding_.encode(np.asarray(y_train), self.loss)
        if len(self.train) != X_train.shape[0]:
            raise ValueError(
                f"X_train and y_train must have the same length, got {X_train.shape[0]} and "
                f"{len(self.train)}"
            )
        if (self.train < 0).any() and label_kind(self.loss, self.train) != "other":
            raise ValueError(
                "y_train holds labels that the model was not fitted on; give the data that it was "
                "fitted on"
            )
        self.seed, self._progress = seed, progress
        self._done, self._total = 0, 1
        self.refits: list[FloatArray] = []  # by growing size, (draws, held-out rows)

    def plan(self, curve: bool, bandwidths: bool, repeats: int) -> None:
        """Count the steps ahead."""
        n = len(self.train)
        self.repeats = repeats
        sizes = [n // 2**step for step in range(1, SIZES)] if curve else []
        self.sizes = [size for size in sizes if size >= SMALLEST]
        self._total = 5 + len(self.sizes) * repeats + (len(BANDWIDTH_FACTORS) if bandwidths else 0)

    def step(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def baselines(self, model_losses: FloatArray) -> tuple[list[ModelScore], str | None]:
        """Mean losses of everything that the model should beat."""
        found, why = fit_baselines(
            self.loss, self.X_train, self.train, self.X_test, seed=self.seed, done=self.step
        )
        encoding = self.model.label_encoding_
        scores = [
            score_of(
                baseline.name,
                encoding.losses(self.loss, baseline.codes, self.y_test),
                model_losses,
                baseline.seconds,
                self.loss,
            )
            for baseline in found
        ]
        logistic = [s.mean for s in scores if s.name.startswith("logistic")]
        self.usual = logistic[-1] if logistic else None  # with Bayes decisions where there are
        return scores, why

    def learning_curve(self, losses: FloatArray) -> tuple[CurveFit, ...]:
        """The model and logistic regression, refitted on random parts of the training data."""
        if not self.sizes:
            return ()
        rng = np.random.default_rng(self.seed)
        compared = self.usual is not None
        fits = []
        for size in reversed(self.sizes):
            ours, usual = [], []
            for _ in range(self.repeats):
                rows = np.sort(rng.choice(len(self.train), size=size, replace=False))
                ours.append(self._refitted(rows))
                if compared:
                    usual.append(self._logistic(rows))
                self.step()
            self.refits.append(np.array(ours))
            means = self.refits[-1].mean(axis=1)
            fits.append(CurveFit(MODEL, size, float(means.mean()), error_of(means)))
            if compared:
                mean, error = float(np.mean(usual)), error_of(np.array(usual))
                fits.append(CurveFit(LOGISTIC, size, mean, error))
        fits.append(CurveFit(MODEL, len(self.train), float(losses.mean()), None))
        if self.usual is not None:
            fits.append(CurveFit(LOGISTIC, len(self.train), self.usual, None))
        return tuple(fits)

    def _same_settings(self, **changes: Any) -> Any:
        from sklearn.base import clone

        again = clone(self.model).set_params(loss=self.loss, **changes)
        if hasattr(self.model.model_, "settled"):  # the models that were chosen, not the choice
            again.set_params(model=self.model.model_.settled(), cv=None, time_limit=None)
        return again

    def _refitted(self, rows: LabelArray) -> FloatArray:
        """Losses of the same settings on part of the data; on codes, so no class gets lost."""
        model = self._same_settings()
        model.fit(self.X_train[rows], self.train[rows])
        return np.asarray(model.task_losses(self.X_test, self.test))

    def _logistic(self, rows: LabelArray) -> float:
        kind = label_kind(self.loss, self.train)
        law = LogisticLaw(self.X_train[rows], self.train[rows], kind)
        chances = law.probabilities(self.X_test)
        if kind == "sets" and isinstance(self.loss, Hamming):  # Bayes decisions are these
            codes = law.likeliest(self.loss, chances)
        else:
            codes = law.bayes(self.loss, chances, np.random.default_rng(self.seed))
        values = self.model.label_encoding_.losses(self.loss, codes, self.y_test)
        return float(values.mean())

    def bandwidths(self) -> tuple[tuple[BandwidthPoint, ...], str | None]:
        """Leave-one-out losses around the bandwidth that was chosen, on at most 1000 rows."""
        ridge = ridge_of(self.model)
        if ridge is None or ridge is not self.model.model_:
            return (), "the model is not a ridge regression with a kernel"
        kernel = getattr(ridge.feature_map_, "kernel", None)
        if kernel is None or kernel.name == "poly":
            return (), "the features have no bandwidth"
        chosen = kernel.bandwidth
        if "task_loss" not in (getattr(self.model, "path_", None) or {}):
            return (), "the penalty was not chosen by leave-one-out"
        rng = np.random.default_rng(self.seed)
        n = len(self.train)
        rows = np.sort(rng.choice(n, size=min(n, BANDWIDTH_ROWS), replace=False))
        standardised = ridge.feature_map_.scaling.scale is not None
        points = []
        for factor in BANDWIDTH_FACTORS:
            model = self._same_settings(
                model__kernel=kernel.name,
                model__bandwidth=factor * chosen,
                model__standardize=standardised,
            )
            model.fit(self.X_train[rows], self.train[rows])
            best = int(np.argmin(np.abs(model.path_["alphas"] - model.model_.alpha_)))
            points.append(
                BandwidthPoint(
                    float(factor * chosen),
                    float(model.path_["task_loss"][best]),
                    float(model.path_["task_error"][best]),
                    factor == 1.0,
                )
            )
            self.step()
        return tuple(points), None
