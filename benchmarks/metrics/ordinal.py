"""ERA and SWD: mean absolute error of ordered classes, by ten folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as LinearRidge
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks import data as sources
from benchmarks.metrics.rows import Outcome, Row, compare, quiet, timed
from consistruct import TaskLossClassifier

__all__ = ["ordinal"]

PENALTIES = [0.1, 1.0, 10.0, 100.0]
CONSTANTS = [0.01, 0.1, 1.0, 10.0]


class MedianLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression that predicts the median of the class probabilities.

    The median has the least expected absolute error, so this is the Bayes decision.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: Any, y: Any) -> MedianLogistic:
        self.model_ = LogisticRegression(C=self.C, max_iter=1000).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        below = self.model_.predict_proba(X).cumsum(axis=1)
        return np.asarray(self.classes_[(below >= 0.5).argmax(axis=1)])


class RoundedRidge(LinearRidge):  # type: ignore[misc]
    """Ridge regression of the class number, rounded to the nearest class."""

    def fit(self, X: Any, y: Any) -> RoundedRidge:
        self.ends_ = y.min(), y.max()
        super().fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.clip(np.rint(super().predict(X)), *self.ends_).astype(np.int64)


def _tuned(model: Any, **grid: list[Any]) -> Any:
    """On standardized inputs, settings by three folds of the training part and their MAE."""
    name = type(model).__name__.lower()
    return GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {f"{name}__{key}": values for key, values in grid.items()},
        scoring="neg_mean_absolute_error",
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
    )


def _models() -> list[tuple[str, str, Callable[[], Any]]]:
    import mord  # the other peers do without it

    return [
        ("consistruct, defaults", "ours", lambda: TaskLossClassifier("ordinal", random_state=0)),
        (
            "logistic regression",
            "usual",
            lambda: _tuned(LogisticRegression(max_iter=1000), C=CONSTANTS),
        ),
        (
            "logistic regression, median of its probabilities",
            "usual",
            lambda: _tuned(MedianLogistic(), C=CONSTANTS),
        ),
        ("mord LogisticAT", "usual", lambda: _tuned(mord.LogisticAT(), alpha=PENALTIES)),
        ("mord LogisticIT", "usual", lambda: _tuned(mord.LogisticIT(), alpha=PENALTIES)),
        ("mord LogisticSE", "usual", lambda: _tuned(mord.LogisticSE(), alpha=PENALTIES)),
        ("mord OrdinalRidge", "usual", lambda: _tuned(mord.OrdinalRidge(), alpha=PENALTIES)),
        ("mord LAD", "usual", lambda: _tuned(mord.LAD(), C=CONSTANTS)),
        ("ridge, rounded", "linear", lambda: _tuned(RoundedRidge(), alpha=PENALTIES)),
        (
            "RBF SVC",
            "kernel",
            lambda: _tuned(SVC(), C=[0.1, 1.0, 10.0], gamma=["scale", 0.03]),
        ),
    ]


def ordinal(name: str, *, held_out: bool, rows: int | None) -> list[Row]:
    """Ten folds; with `held_out` only of a random half of the rows."""
    part = sources.load(name)
    assert part.y is not None
    X, y = part.X, part.y
    if held_out:
        X, _, y, _ = train_test_split(X, y, train_size=0.5, stratify=y, random_state=5)
    if rows is not None:
        X, y = X[:rows], y[:rows]
    with quiet():  # half of the rows hold few of some classes
        folds = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))
    outcomes = []
    for title, kind, make in _models():
        errors, seconds = np.empty(len(y)), 0.0
        for train, test in folds:
            spent, model = timed(lambda train=train: clone(make()).fit(X[train], y[train]))  # type: ignore[misc]  # noqa: B023
            seconds += spent
            errors[test] = np.abs(model.predict(X[test]) - y[test])
        outcomes.append(Outcome(title, kind, errors, seconds))
    return compare(name, "mae", outcomes)
