"""Features of items: the same choices as for single examples, compared by leaving out queries."""

from __future__ import annotations

import numpy as np

from consistruct.labels import Ragged
from consistruct.learning.encoding.queries import rows_of
from consistruct.learning.models.features.feature_choice import (
    FIRST_ROWS,
    SEARCH_ROWS,
    Risks,
    Trial,
    kernel_or_inputs,
)
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    FeatureOptions,
    KernelFeatures,
    LinearFeatures,
    NystroemFeatures,
    RandomFeatures,
    Scaling,
    transformer_features,
)
from consistruct.learning.models.features.kernels import KERNELS, Kernel
from consistruct.learning.models.items.query_ridge import (
    QueryProblem,
    QueryRidge,
    leave_one_query_out,
)
from consistruct.losses.rankings.orders import RelevanceLoss
from consistruct.protocols import IntArray

__all__ = ["choose_item_features", "some_queries"]


def some_queries(offsets: IntArray, n_items: int, rng: np.random.Generator) -> IntArray:
    """Sorted numbers of random queries with about `n_items` items together; two at least."""
    lengths = np.diff(offsets)
    if int(offsets[-1]) <= n_items:
        return np.arange(len(lengths))
    order = rng.permutation(len(lengths))
    count = int(np.searchsorted(np.cumsum(lengths[order]), n_items, side="right"))
    return np.sort(order[: max(count, 2)])


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
        truths = Ragged(grades.values[rows_of(problem.offsets, queries)], part.offsets)

        def risks(features: FeatureMap) -> Risks:
            ridge = QueryRidge(part, features, np.arange(len(part.weight)))
            path = leave_one_query_out(ridge, part, loss, truths, ridge.grid())
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
