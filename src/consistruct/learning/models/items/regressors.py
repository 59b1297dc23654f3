"""Scores of items by any scikit-learn regressor: forests, or a user's own.

Each item is a row, its centered target −Pu what is regressed, its weight that of its query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from consistruct.learning.models.items.learners import ItemLearner, ItemScores, TrainingQueries
from consistruct.protocols import FloatArray, IntArray

__all__ = ["RegressorLearner", "RegressorScores", "forest"]

TREE_ITEMS = 10_000  # that a tree of a forest sees at most


class RegressorScores(ItemScores):
    """A fitted regressor of item targets.

    Attributes
    ----------
    regressor : fitted scikit-learn regressor
    takes_missing : bool
    """

    def __init__(self, regressor: Any, takes_missing: bool) -> None:
        self.regressor = regressor
        self.takes_missing = takes_missing

    def scores(self, items: Any, offsets: IntArray) -> FloatArray:
        return np.asarray(self.regressor.predict(items), dtype=np.float64).ravel()


class RegressorLearner(ItemLearner):
    """A regressor that is fitted on a clone."""

    def __init__(self, regressor: Any, name: str = "", *, grade_share: float = 0.0) -> None:
        self.regressor = regressor
        self.name = name or type(regressor).__name__
        self.grade_share = grade_share
        self.takes_missing = bool(get_tags(regressor).input_tags.allow_nan)

    def fit(self, queries: TrainingQueries, rng: np.random.Generator) -> RegressorScores:
        problem = queries.toward_grades(self.grade_share).problem
        regressor = _seeded(clone(self.regressor), rng)
        name = _weight_argument(regressor)
        if name is None and queries.weighted:
            raise ValueError(
                f"{type(regressor).__name__} does not support sample_weight, but weights of "
                "queries were given; omit them, or choose a regressor with sample_weight"
            )
        # without weights of rows the regressor still estimates E[u | x]
        weight = {} if name is None else {name: problem.item_weight}
        regressor.fit(problem.items, problem.targets, **weight)
        return RegressorScores(regressor, self.takes_missing)


def forest(n_items: int, n_columns: int, n_folds: int) -> RegressorLearner:
    """Extremely randomized trees, about 120 over all folds, each of 10,000 items at most."""
    many = n_items > 2 * TREE_ITEMS
    return RegressorLearner(
        ExtraTreesRegressor(
            max(120 // n_folds, 10),
            min_samples_leaf=4,
            max_features=min(n_columns, max(20, n_columns // 10)),
            bootstrap=many,
            max_samples=TREE_ITEMS if many else None,
        ),
        "forest",
        grade_share=0.5,
    )


def _weight_argument(regressor: Any) -> str | None:
    """Under which name `fit` takes weights of rows; None if it takes none."""
    if isinstance(regressor, Pipeline):
        name, last = regressor.steps[-1]
        inner = _weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(regressor, "sample_weight") else None


def _seeded(regressor: Any, rng: np.random.Generator) -> Any:
    """The regressor with every open random_state drawn, in the order of the names."""
    for name, value in sorted(regressor.get_params(deep=True).items()):
        if name.rpartition("__")[2] == "random_state" and value is None:
            regressor.set_params(**{name: int(rng.integers(2**31))})
    return regressor
