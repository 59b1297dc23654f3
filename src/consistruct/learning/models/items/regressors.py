"""Scores of items by any scikit-learn regressor: boosted trees, forests, or a user's own.

Each item is a row, its centred target −Pu what is regressed, its weight that of its query.
(Columns standardised within the query were tried beside the given ones: no better, twice the time.)

Targets are noisy where gains are exponential or divided by those of the best order. Grades are
less so: c·E[Pg | x], with c of least squares, is a biased estimate of −Pū with a smaller variance.
Beside a regression of the targets it is welcome: left-out queries tell how much weight it deserves.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from consistruct.learning.encoding.queries import centred
from consistruct.learning.models.items.bins import MOST_BINS, ColumnBins
from consistruct.learning.models.items.learners import ItemLearner, ItemScores, TrainingQueries
from consistruct.protocols import FloatArray, IntArray

__all__ = ["RegressorLearner", "RegressorScores", "boosting", "forest", "grade_targets"]

TREE_ITEMS = 10_000  # that a tree of a forest sees at most


class RegressorScores(ItemScores):
    """A fitted regressor of item targets.

    Attributes
    ----------
    regressor : fitted scikit-learn regressor
    takes_missing : bool
    bins : ColumnBins or None
        What it sees of the columns; the columns themselves if None.
    stage : int or None
        How many of its boosted trees are used; all if None.
    """

    def __init__(
        self,
        regressor: Any,
        takes_missing: bool,
        bins: ColumnBins | None = None,
        stage: int | None = None,
    ) -> None:
        self.regressor = regressor
        self.takes_missing = takes_missing
        self.bins = bins
        self.stage = stage

    def _columns(self, items: Any) -> Any:
        return items if self.bins is None else self.bins(items)

    def scores(self, items: Any, offsets: IntArray) -> FloatArray:
        columns = self._columns(items)
        if self.stage is None:
            return np.asarray(self.regressor.predict(columns), dtype=np.float64).ravel()
        staged = self.regressor.staged_predict(columns)
        return np.asarray(next(islice(staged, self.stage - 1, None)), dtype=np.float64)

    def after(self, stages: tuple[int, ...], items: Any) -> FloatArray:
        """Scores after so many boosted trees, (N, len(stages))."""
        staged = enumerate(self.regressor.staged_predict(self._columns(items)), 1)
        return np.column_stack([values for number, values in staged if number in stages])

    def at(self, stage: int) -> RegressorScores:
        """The same with so many of its boosted trees."""
        return RegressorScores(self.regressor, self.takes_missing, self.bins, stage)


class RegressorLearner(ItemLearner):
    """A regressor that is fitted on a clone.

    Parameters
    ----------
    regressor : scikit-learn regressor
    name : str
    bins : ColumnBins or None
        What it sees of the columns; the columns themselves if None.
    stages : tuple of int
        Numbers of boosted trees to choose from by left-out queries; empty: as it is.
    of_grades : bool
        Whether grades, scaled to the targets, are regressed in place of the targets.
    """

    def __init__(
        self,
        regressor: Any,
        name: str = "",
        bins: ColumnBins | None = None,
        stages: tuple[int, ...] = (),
        *,
        of_grades: bool = False,
    ) -> None:
        self.regressor = regressor
        self.name = name or type(regressor).__name__
        self.bins = bins
        self.stages = stages
        self.of_grades = of_grades
        self.takes_missing = bool(get_tags(regressor).input_tags.allow_nan)

    def fit(self, queries: TrainingQueries, rng: np.random.Generator) -> RegressorScores:
        problem = queries.problem
        regressor = _seeded(clone(self.regressor), rng)
        name = _weight_argument(regressor)
        if name is None and queries.weighted:
            raise ValueError(
                f"{type(regressor).__name__} does not support sample_weight, but weights of "
                "queries were given; omit them, or choose a regressor with sample_weight"
            )
        # without weights of rows the regressor still estimates E[u | x]
        weight = {} if name is None else {name: problem.item_weight}
        columns = problem.items if self.bins is None else self.bins(problem.items)
        targets = grade_targets(queries) if self.of_grades else problem.targets
        regressor.fit(columns, targets, **weight)
        return RegressorScores(regressor, self.takes_missing, self.bins)


def grade_targets(queries: TrainingQueries) -> FloatArray:
    """Centred grades times the factor that brings them closest to the targets, (N,)."""
    problem = queries.problem
    grades = centred(queries.grades.values.astype(np.float64), problem.offsets)
    norm = float(problem.item_weight @ grades**2)
    if norm == 0.0:  # all grades are alike, and so are all targets
        return np.zeros_like(problem.targets)
    return np.asarray(float((problem.item_weight * grades) @ problem.targets) / norm * grades)


def boosting(n_items: int, bins: ColumnBins, *, of_grades: bool = False) -> RegressorLearner:
    """Histogram gradient boosting, larger trees and more of them for more items."""
    stages: tuple[int, ...]
    if n_items <= 5_000:
        leaves, stages = 15, (20, 40)
    elif n_items <= 20_000:
        leaves, stages = 15, (40, 80, 120, 160)
    else:
        leaves, stages = 31, (50, 100, 150)
    return RegressorLearner(
        HistGradientBoostingRegressor(
            max_iter=stages[-1],
            learning_rate=0.1,
            max_leaf_nodes=leaves,
            max_features=0.5,
            max_bins=MOST_BINS,
            early_stopping=False,
        ),
        "boosting of grades" if of_grades else "boosting",
        bins,
        stages,
        of_grades=of_grades,
    )


def forest(n_items: int, n_columns: int, n_folds: int) -> RegressorLearner:
    """Extremely randomised trees, about 120 over all folds, each of 10,000 items at most."""
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
