"""What people use: a model with probabilities, then the decision of least expected cost.

Every model gets the form of the columns that suits it: one-hot categories, means for what is
missing and standardized numbers for linear models and forests; categories and NaN as they are for
boosting, which has its own treatment of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

__all__ = ["PEERS", "RECIPE", "Peer", "all_peers", "bayes_decisions", "calibrated", "one_hot"]

TREES = 200
CATBOOST_ROUNDS = 300  # its learning rate follows the number of rounds by its own rule
RECIPE = "boosting, early stopping"


@dataclass(frozen=True)
class Peer:
    """A name on the page and how the model is made for the columns that are categories."""

    name: str
    make: Callable[[np.ndarray], Any]


def one_hot(categorical: np.ndarray) -> ColumnTransformer:
    """Dense numbers: categories one-hot (missing is one of them), numbers filled and scaled."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return ColumnTransformer(
        [
            ("categories", encoder, np.flatnonzero(categorical)),
            ("numbers", numbers, np.flatnonzero(~categorical)),
        ]
    )


def _logistic(categorical: np.ndarray) -> Any:
    return make_pipeline(one_hot(categorical), LogisticRegression(max_iter=2000))


def _random_forest(categorical: np.ndarray) -> Any:
    return make_pipeline(one_hot(categorical), RandomForestClassifier(TREES, random_state=0))


def _extra_trees(categorical: np.ndarray) -> Any:
    return make_pipeline(one_hot(categorical), ExtraTreesClassifier(TREES, random_state=0))


def _boosting(categorical: np.ndarray, early: bool | str = "auto") -> Any:
    columns = np.flatnonzero(categorical).tolist() or None
    return HistGradientBoostingClassifier(
        categorical_features=columns, early_stopping=early, random_state=0
    )


def _boosting_early(categorical: np.ndarray) -> Any:
    return _boosting(categorical, early=True)


class LightGBM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """LightGBM by its defaults, given which columns are categories."""

    def __init__(self, categories: tuple[int, ...] = ()) -> None:
        self.categories = categories

    def fit(self, X: np.ndarray, y: np.ndarray) -> LightGBM:
        from lightgbm import LGBMClassifier

        self.model_ = LGBMClassifier(random_state=0, n_jobs=1, verbose=-1)
        self.model_.fit(X, y, categorical_feature=list(self.categories))
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model_.predict_proba(X))


class CatBoost(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """CatBoost with its own treatment of categories, which it takes as strings or whole numbers."""

    def __init__(self, categories: tuple[int, ...] = (), rounds: int = CATBOOST_ROUNDS) -> None:
        self.categories = categories
        self.rounds = rounds

    def fit(self, X: np.ndarray, y: np.ndarray) -> CatBoost:
        from catboost import CatBoostClassifier

        self.model_ = CatBoostClassifier(
            iterations=self.rounds,
            cat_features=list(self.categories),
            random_seed=0,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )
        self.model_.fit(self._columns(X), y)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model_.predict_proba(self._columns(X), thread_count=1))

    def _columns(self, X: np.ndarray) -> Any:
        if not self.categories:
            return X
        from pandas import DataFrame

        frame = DataFrame(X)
        for column in self.categories:
            frame[column] = frame[column].fillna(-1).astype(int)
        return frame


def _categories(categorical: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(categorical).tolist())


PEERS = (
    Peer("logistic regression", _logistic),
    Peer("random forest", _random_forest),
    Peer("extra trees", _extra_trees),
    Peer("boosting, defaults", _boosting),
    Peer(RECIPE, _boosting_early),
    Peer("LightGBM", lambda categorical: LightGBM(_categories(categorical))),
    Peer("CatBoost", lambda categorical: CatBoost(_categories(categorical))),
)


def calibrated(peer: Peer) -> Peer:
    """The same model, its probabilities corrected by isotonic regression on five folds."""

    def make(categorical: np.ndarray) -> Any:
        return CalibratedClassifierCV(peer.make(categorical), method="isotonic", cv=5)

    return Peer(f"{peer.name}, isotonic", make)


def all_peers() -> tuple[Peer, ...]:
    """Every peer, then every peer calibrated."""
    return PEERS + tuple(calibrated(peer) for peer in PEERS)


def bayes_decisions(probabilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Least expected cost under probabilities (n, k); rows of `costs` (k, k) are predictions."""
    return np.asarray((probabilities @ costs.T).argmin(axis=1))
