"""Any regressor as a model of the expected target: the statistic is fitted by least squares."""

from __future__ import annotations

import logging
from typing import Any, Self

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.base import TargetModel
from consistruct.learning.models.coordinates import Coordinates, coordinates_of
from consistruct.learning.models.wrapped import (
    check_weights,
    fit_each,
    fit_wrapped,
    n_rows,
    prepared,
    takes_missing,
    takes_several_outputs,
    wants_matrix,
)
from consistruct.protocols import FloatArray

__all__ = ["Regressor"]

logger = logging.getLogger(__name__)


class Regressor(TargetModel):
    """Fit the expected target with a scikit-learn-compatible regressor.

    The regressor sees the statistic in coordinates where squared distance is the quadratic
    surrogate's: `rank` columns and not `width`, without those that are constant over the training
    true labels, centered and scaled together. It minimizes squared error there, and so estimates
    E[target(y) | x], which is all that a decision needs. Any loss will do: classes, label sets,
    rankings, costs of each example.

    Choose it where `Probabilities` cannot serve (rankings, cost vectors, candidate sets with the
    best or worst candidate), and for label sets with many labels, which a multi-output forest fits
    at once.

    Parameters
    ----------
    estimator : regressor, optional
        Anything with `fit` and `predict`: HistGradientBoostingRegressor, forests, XGBoost,
        LightGBM, CatBoost, pipelines. One that takes several outputs (by its tags, or by trial
        where it has none) is fitted once, any other once per column. It must minimize squared
        error: a median is no expected target. Extra trees if None.
    n_jobs : int, optional
        Columns fitted at a time; of an estimator that takes several outputs, its own workers where
        it takes them from joblib and has ``n_jobs=None``. Estimates do not depend on it.

    Attributes
    ----------
    statistic_ : Statistic
        What `expected` estimates: the one given to `fit`.
    estimators_ : list
        Fitted regressors: a single one for all columns, or one per column.
    coordinates_ : Coordinates
        Between the statistic and what the regressors see.

    Notes
    -----
    X is handed over as it is: DataFrames with categorical columns and missing values go to
    regressors that take them. Open seeds (``random_state=None``) are drawn from the estimator's
    own, so that its ``random_state`` fixes everything.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from consistruct.learning.models.regressor import Regressor
    >>> from consistruct.learning.statistics import TargetValues
    >>> from consistruct.losses import Hamming
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[0, 1], [1, 1], [0, 0]])
    >>> statistic, rng = TargetValues(Hamming(2)), np.random.default_rng(0)
    >>> model = Regressor(DecisionTreeRegressor()).fit(X, y, statistic, rng=rng)
    >>> model.coordinates_.n_columns, statistic.decode(model.expected(X)).tolist()
    (2, [[0, 1], [1, 1], [0, 0]])
    """

    raw_inputs = True
    wants_frames = True

    estimators_: list[Any]
    coordinates_: Coordinates

    def __init__(self, estimator: Any = None, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether NaN in X is welcome: as the regressor states."""
        return takes_missing(self._unfitted())

    def _unfitted(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        # larger leaves than the default of one row: a leaf is an estimate of a mean
        return ExtraTreesRegressor(n_estimators=200, min_samples_leaf=2, max_features=0.5)

    def fit(
        self,
        X: Any,
        codes: Any,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        estimator = self._unfitted()
        if not hasattr(estimator, "predict") or hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"Regressor takes a regressor with fit and predict, got {estimator!r}; wrap "
                "classifiers in Probabilities"
            )
        check_weights(estimator, sample_weight, self)
        values = statistic.values(codes)
        self.statistic_ = statistic
        self.coordinates_ = coordinates_of(statistic, values, sample_weight)
        columns = self.coordinates_.forward(values)  # (n, n_columns)
        self.estimators_ = self._fitted(estimator, X, columns, sample_weight, rng)
        return self

    def _fitted(
        self,
        estimator: Any,
        X: Any,
        columns: FloatArray,
        weight: FloatArray | None,
        rng: np.random.Generator,
    ) -> list[Any]:
        if columns.shape[1] == 0:
            return []
        joint = takes_several_outputs(estimator)
        if joint is not False:
            copy = prepared(estimator, rng)
            single = joint and columns.shape[1] == 1 and not wants_matrix(estimator)
            try:
                y = columns[:, 0] if single else columns
                fitted = fit_wrapped(copy, X, y, weight, self.n_jobs)
                _predicted([fitted], _safe_indexing(X, [0]), columns.shape[1])
                return [fitted]
            except Exception as error:
                if joint:
                    raise
                logger.info("%r supports only one output: %s", type(estimator).__name__, error)
        each = [np.ascontiguousarray(column) for column in columns.T]
        return fit_each(estimator, X, each, weight, rng, self.n_jobs)

    def expected(self, X: Any) -> FloatArray:
        check_is_fitted(self, "coordinates_")
        n_columns = self.coordinates_.n_columns
        if not n_columns:
            return self.coordinates_.back(np.zeros((n_rows(X), 0)))
        return self.coordinates_.back(_predicted(self.estimators_, X, n_columns))


def _predicted(estimators: list[Any], X: Any, n_columns: int) -> FloatArray:
    """Predictions of all columns, (n, n_columns)."""
    parts = [np.asarray(estimator.predict(X), dtype=np.float64) for estimator in estimators]
    parts = [part.reshape(len(part), -1) for part in parts]
    found = parts[0] if len(parts) == 1 else np.hstack(parts)
    if found.shape != (n_rows(X), n_columns):
        raise ValueError(
            f"{type(estimators[0]).__name__} predicts an array of shape {found.shape}, but "
            f"{(n_rows(X), n_columns)} is needed"
        )
    return found
