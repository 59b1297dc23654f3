"""Scores ⟨w, φ(x)⟩ of items by the closed form: features and penalty chosen by leaving out queries.

The features are the same choices as for single examples.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._validation import check_alpha
from consistruct.learning.encoding.queries import rows_of
from consistruct.learning.models.features.approximations import NystroemFeatures, RandomFeatures
from consistruct.learning.models.features.feature_choice import (
    FIRST_ROWS,
    SEARCH_ROWS,
    Risks,
    Trial,
    kernel_or_inputs,
)
from consistruct.learning.models.features.feature_maps import (
    KERNELS,
    FeatureMap,
    FeatureOptions,
    Kernel,
    KernelFeatures,
    LinearFeatures,
    Scaling,
    transformer_features,
)
from consistruct.learning.models.items.learners import ItemLearner, ItemScores, TrainingQueries
from consistruct.learning.models.items.out_of_fold import OutOfFoldScores
from consistruct.learning.models.items.query_ridge import (
    QueryProblem,
    QueryRidge,
    leave_one_query_out,
    out_of_fold_scores,
)
from consistruct.losses.rankings.orders import RelevanceLoss
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Ragged

__all__ = ["BestFit", "RidgeLearner", "RidgeScores", "some_queries"]

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
class BestFit:
    """Attributes: the `fitted` scores; `out_of_fold`, of (some of) the queries by the fit without
    each, exactly; their `risks`.
    """

    fitted: RidgeScores
    out_of_fold: OutOfFoldScores
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
        grade_share: float = 0.0,
    ) -> None:
        self.name = name
        self.grade_share = grade_share
        self.options = options
        self.alpha = alpha
        self.selection = selection

    def fit(self, queries: TrainingQueries, rng: np.random.Generator) -> RidgeScores:
        return self.fit_and_leave_out(queries, rng)[0]

    def fit_and_leave_out(
        self, queries: TrainingQueries, rng: np.random.Generator
    ) -> tuple[RidgeScores, OutOfFoldScores]:
        """The fit, and scores of (some of) the queries by the fit without each, exactly."""
        queries = queries.toward_grades(self.grade_share)
        problem = queries.problem
        features = choose_item_features(self.options, problem, queries.loss, queries.grades, rng)
        chosen = some_queries(problem.offsets, SELECTION_ITEMS, rng)
        found = self._best_fit(queries, features, chosen)
        return found.fitted, found.out_of_fold

    def _best_fit(
        self, queries: TrainingQueries, features: FeatureMap, chosen: IntArray
    ) -> BestFit:
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
        return BestFit(
            RidgeScores(features, ridge.weights(alpha), alpha, path),
            OutOfFoldScores(chosen, out_of_fold_scores(ridge, part, alpha).values),
            (
                float(compared.task_loss[best]),
                float(compared.surrogate_risk[best]),
                float(compared.task_error[best]),
            ),
        )


# --- features ---


def choose_item_features(
    options: FeatureOptions,
    problem: QueryProblem,
    loss: RelevanceLoss,
    grades: Ragged,
    rng: np.random.Generator,
) -> FeatureMap:
    """Fit the feature map that the model's arguments describe."""
    X = problem.items
    n_items, n_features = X.shape
    if not isinstance(options.features, str):
        return transformer_features(options.features, X)
    features = options.name(X)
    if features == "linear":
        return options.linear(X, problem.item_weight)
    names = options.kernels(features, X)
    components = options.components()
    kernel, scaling = _choose_kernel(names, options, problem, loss, grades, rng)
    if kernel is None:
        return LinearFeatures(n_features, scaling)
    if features == "random":
        return RandomFeatures(kernel, n_features, components, rng, scaling)
    if features in KERNELS or n_items <= components:
        return KernelFeatures(kernel, X, scaling)
    landmarks = np.sort(rng.choice(n_items, size=components, replace=False))
    return NystroemFeatures(kernel, X[landmarks], scaling)


def _choose_kernel(
    names: tuple[str, ...],
    options: FeatureOptions,
    problem: QueryProblem,
    loss: RelevanceLoss,
    grades: Ragged,
    rng: np.random.Generator,
) -> tuple[Kernel | None, Scaling]:
    """Kernel, bandwidth and scaling by leaving out queries, by the rule of single examples."""

    def trial(queries: IntArray) -> Trial:
        part = problem.take(queries)
        codes = Ragged(grades.values[rows_of(problem.offsets, queries)], part.offsets)

        def risks(features: FeatureMap) -> Risks:
            ridge = QueryRidge(part, features, np.arange(len(part.weight)))
            path = leave_one_query_out(ridge, part, loss, codes, ridge.grid())
            best = path.best("task_loss")
            return (
                float(path.task_loss[best]),
                float(path.surrogate_risk[best]),
                float(path.task_error[best]),
            )

        return Trial(part.items, risks)

    trials = [trial(some_queries(problem.offsets, SEARCH_ROWS, rng))]
    sample = trials[0].rows[:SEARCH_ROWS]
    if trials[0].rows.shape[0] > FIRST_ROWS:
        trials.insert(0, trial(some_queries(problem.offsets, FIRST_ROWS, rng)))
    X, weight = problem.items, problem.item_weight
    return kernel_or_inputs(names, options, X, weight, sample, trials)


def some_queries(offsets: IntArray, n_items: int, rng: np.random.Generator) -> IntArray:
    """Sorted numbers of random queries with about `n_items` items together; two at least."""
    lengths = np.diff(offsets)
    if int(offsets[-1]) <= n_items:
        return np.arange(len(lengths))
    order = rng.permutation(len(lengths))
    count = int(np.searchsorted(np.cumsum(lengths[order]), n_items, side="right"))
    return np.sort(order[: max(count, 2)])
