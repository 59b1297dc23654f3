"""Scores ⟨w, φ(x)⟩ of items by the closed form, the penalty chosen by leaving out queries."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.learning.models.features.feature_choice import Risks
from consistruct.learning.models.features.feature_maps import FeatureMap, FeatureOptions
from consistruct.learning.models.items.feature_search import choose_item_features, some_queries
from consistruct.learning.models.items.learners import ItemLearner, ItemScores, TrainingQueries
from consistruct.learning.models.items.left_out import LeftOutScores
from consistruct.learning.models.items.query_ridge import (
    QueryRidge,
    leave_one_query_out,
    left_out_scores,
)
from consistruct.learning.models.solvers.base import check_alpha
from consistruct.protocols import FloatArray, IntArray

__all__ = ["JudgedFit", "RidgeLearner", "RidgeScores"]

logger = logging.getLogger(__name__)

SELECTION_ITEMS = 8192  # leave-one-query-out losses are averaged over about so many items


class RidgeScores(ItemScores):
    """One weight per feature.

    Attributes
    ----------
    feature_map : FeatureMap
    weights : (n_outputs,) array
    alpha : float
    path : dict of arrays
        Penalties that were compared; empty if one was given.
    """

    takes_missing = False

    def __init__(
        self,
        feature_map: FeatureMap,
        weights: FloatArray,
        alpha: float,
        path: dict[str, FloatArray],
    ) -> None:
        self.feature_map = feature_map
        self.weights = weights
        self.alpha = alpha
        self.path = path

    def scores(self, items: Any, offsets: IntArray) -> FloatArray:
        return np.asarray(self.feature_map.transform(items) @ self.weights).ravel()


@dataclass(frozen=True, eq=False)
class JudgedFit:
    """Attributes: the `fitted` scores; `left_out`, of (some of) the queries by the fit without
    each, exactly; their `risks`.
    """

    fitted: RidgeScores
    left_out: LeftOutScores
    risks: Risks


class RidgeLearner(ItemLearner):
    """Ridge regression within queries on features of the items."""

    takes_missing = False

    def __init__(
        self,
        options: FeatureOptions,
        alpha: Any = "auto",
        selection: str = "task_loss",
        *,
        name: str = "ridge",
    ) -> None:
        self.name = name
        self.options = options
        self.alpha = alpha
        self.selection = selection

    def fit(self, queries: TrainingQueries, rng: np.random.Generator) -> RidgeScores:
        return self.fit_and_leave_out(queries, rng)[0]

    def fit_and_leave_out(
        self, queries: TrainingQueries, rng: np.random.Generator
    ) -> tuple[RidgeScores, LeftOutScores]:
        """The fit, and scores of (some of) the queries by the fit without each, exactly."""
        problem = queries.problem
        features = choose_item_features(self.options, problem, queries.loss, queries.grades, rng)
        chosen = some_queries(problem.offsets, SELECTION_ITEMS, rng)
        found = self._judged(queries, features, chosen)
        return found.fitted, found.left_out

    def _judged(
        self, queries: TrainingQueries, features: FeatureMap, chosen: IntArray
    ) -> JudgedFit:
        """The fit on the features with the best penalty by the chosen queries, left out."""
        alphas = check_alpha(self.alpha)
        problem = queries.problem
        ridge = QueryRidge(problem, features, chosen)
        part = problem.take(chosen)
        if isinstance(alphas, float):
            grid = np.array([alphas])
        else:
            grid = ridge.grid() if alphas is None else alphas
        grades = queries.grades.take(chosen)
        compared = leave_one_query_out(ridge, part, queries.loss, grades, grid)
        best = compared.best(self.selection)
        alpha = float(compared.alphas[best])
        logger.info(
            "rankings: alpha %.3g of %d, leave-one-query-out task loss %.4f",
            alpha,
            len(grid),
            compared.task_loss[best],
        )
        path = {} if isinstance(alphas, float) else compared.as_dict()
        return JudgedFit(
            RidgeScores(features, ridge.weights(alpha), alpha, path),
            LeftOutScores(chosen, left_out_scores(ridge, part, alpha).values),
            (
                float(compared.task_loss[best]),
                float(compared.surrogate_risk[best]),
                float(compared.task_error[best]),
            ),
        )
