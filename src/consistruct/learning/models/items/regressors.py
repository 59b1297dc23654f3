"""Scores of items by any scikit-learn regressor: boosted trees, forests, or a user's own.

Each item is a row, its centred target −Pu what is regressed, its weight that of its query. What
items of a query share tells no order, but how an item stands out from the others of its query
does, and trees that see one row at a time cannot find it out: columns standardised within the
query can be added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from consistruct._sparse import is_sparse, to_dense
from consistruct.learning.encoding.queries import query_means
from consistruct.learning.models.items.learners import ItemLearner, ItemScores, TrainingQueries
from consistruct.protocols import FloatArray, IntArray

__all__ = ["BoostingLearner", "ForestLearner", "RegressorLearner", "RegressorScores"]


class RegressorScores(ItemScores):
    """A fitted regressor of item targets.

    Attributes
    ----------
    regressor : fitted scikit-learn regressor
    within : bool
        Whether columns standardised within the query stand beside the given ones.
    """

    def __init__(self, regressor: Any, within: bool, takes_missing: bool) -> None:
        self.regressor = regressor
        self.within = within
        self.takes_missing = takes_missing

    def scores(self, items: Any, offsets: IntArray) -> FloatArray:
        columns = item_columns(items, offsets, within=self.within)
        return np.asarray(self.regressor.predict(columns), dtype=np.float64).ravel()

    def stages(self, items: Any, offsets: IntArray, iterations: tuple[int, ...]) -> FloatArray:
        """Scores after so many trees, (len(iterations), N)."""
        columns = item_columns(items, offsets, within=self.within)
        staged = self.regressor.staged_predict(columns)
        found = {number: values for number, values in enumerate(staged, 1) if number in iterations}
        return np.array([found[number] for number in iterations])


class RegressorLearner(ItemLearner):
    """A regressor given by the user, fitted on a clone."""

    within = False

    def __init__(self, regressor: Any, name: str = "") -> None:
        self.regressor = regressor
        self.name = name or type(regressor).__name__
        self.takes_missing = bool(get_tags(regressor).input_tags.allow_nan)

    def fit(self, queries: TrainingQueries, rng: np.random.Generator) -> RegressorScores:
        problem = queries.problem
        regressor = _seeded(clone(self.regressor), rng)
        columns = item_columns(problem.items, problem.offsets, within=self.within)
        name = _weight_argument(regressor)
        if name is None and queries.weighted:
            raise ValueError(
                f"{type(regressor).__name__} takes no sample_weight, but weights of queries were "
                f"given; leave them out or choose a regressor with sample_weight"
            )
        # without weights of rows the regressor still estimates E[u | x]
        weight = {} if name is None else {name: problem.item_weight}
        regressor.fit(columns, problem.targets, **weight)
        return RegressorScores(regressor, self.within, self.takes_missing)


class BoostingLearner(RegressorLearner):
    """Histogram gradient boosting of so many trees."""

    def __init__(self, iterations: int, *, within: bool = False) -> None:
        super().__init__(
            HistGradientBoostingRegressor(
                max_iter=iterations,
                learning_rate=0.05,
                max_leaf_nodes=15,
                min_samples_leaf=20,
                max_features=0.5,
                early_stopping=False,
            ),
            "boosting",
        )
        self.iterations = iterations
        self.within = within

    def at(self, iterations: int) -> BoostingLearner:
        """The same with another number of trees."""
        return BoostingLearner(iterations, within=self.within)


class ForestLearner(RegressorLearner):
    """Extremely randomised trees."""

    def __init__(self, n_trees: int = 200, *, within: bool = False) -> None:
        super().__init__(
            ExtraTreesRegressor(n_trees, min_samples_leaf=5, max_features=0.3), "forest"
        )
        self.within = within


def item_columns(items: Any, offsets: IntArray, *, within: bool) -> Any:
    """Features of items as regressors take them: given ones, and those within the query."""
    if not within:
        return items
    rows = np.asarray(to_dense(items) if is_sparse(items) else items, dtype=np.float64)
    return np.hstack([rows, standardised_within(rows, offsets)])


def standardised_within(rows: FloatArray, offsets: IntArray) -> FloatArray:
    """(x − mean)/deviation over the items of each query, (N, d); 0 where all are alike."""
    lengths = np.diff(offsets)
    gaps = rows - np.repeat(query_means(rows, offsets), lengths, axis=0)
    deviations = np.sqrt(query_means(gaps**2, offsets))
    deviations[~(deviations > 0)] = 1.0
    return np.asarray(gaps / np.repeat(deviations, lengths, axis=0))


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
