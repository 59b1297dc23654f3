"""Features of items: the same choices as for single examples, compared by leaving out queries."""

from __future__ import annotations

import logging

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from consistruct._sparse import is_sparse, to_dense
from consistruct._validation import check_count
from consistruct.labels import Ragged
from consistruct.learning.feature_choice import (
    BANDWIDTH_FACTORS,
    DEFAULT_COMPONENTS,
    FEATURES,
    SEARCH_ROWS,
    WIDE,
    FeatureOptions,
)
from consistruct.learning.feature_maps import (
    FeatureMap,
    KernelFeatures,
    LinearFeatures,
    NystroemFeatures,
    RandomFeatures,
    Scaling,
    TransformerFeatures,
)
from consistruct.learning.kernels import KERNELS, Kernel, median_bandwidth
from consistruct.learning.rankings.query_ridge import (
    QueryProblem,
    QueryRidge,
    leave_one_query_out,
    rows_of,
)
from consistruct.losses.orders import RelevanceLoss
from consistruct.protocols import IntArray

__all__ = ["choose_item_features", "some_queries"]

logger = logging.getLogger(__name__)


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
    """Fit the feature map that the estimator's arguments describe."""
    features, X = options.features, problem.items
    n_items, n_features = X.shape
    if not isinstance(features, str):
        if not hasattr(features, "fit") or not hasattr(features, "transform"):
            raise TypeError(
                f"features must be one of {', '.join(FEATURES)} or a scikit-learn transformer, "
                f"got {type(features).__name__}"
            )
        fitted = clone(features).fit(X)
        return TransformerFeatures(fitted, fitted.transform(X[:1]).shape[1])
    if features not in FEATURES:
        raise ValueError(
            f"features must be one of {', '.join(FEATURES)} or a scikit-learn transformer, "
            f"got {features!r}"
        )
    if options.standardize not in ("auto", True, False):
        raise ValueError(f"standardize must be 'auto', True or False, got {options.standardize!r}")
    if features == "auto":
        features = "linear" if is_sparse(X) or n_features > WIDE else "nystroem"
    if features == "linear":
        scaled = options.standardize is True
        weight = problem.item_weight
        return LinearFeatures(n_features, Scaling.standard(X, weight) if scaled else None)
    name = features if features in KERNELS else options.kernel
    components = DEFAULT_COMPONENTS
    if options.n_components is not None:
        components = check_count(options.n_components, "n_components")
    kernel, scaling = _choose_kernel(name, options, problem, loss, grades, rng)
    if features == "random":
        return RandomFeatures(kernel, n_features, components, rng, scaling)
    if features in KERNELS or n_items <= components:
        return KernelFeatures(kernel, X, scaling)
    landmarks = np.sort(rng.choice(n_items, size=components, replace=False))
    return NystroemFeatures(kernel, X[landmarks], scaling)


def _choose_kernel(
    name: str,
    options: FeatureOptions,
    problem: QueryProblem,
    loss: RelevanceLoss,
    grades: Ragged,
    rng: np.random.Generator,
) -> tuple[Kernel, Scaling]:
    """Bandwidth and scaling by leaving out queries, by the rule of single examples.

    Of the candidates within one standard error of the least task loss, standardised ones come
    first, then the least surrogate risk.
    """
    X, weight = problem.items, problem.item_weight
    queries = some_queries(problem.offsets, SEARCH_ROWS, rng)
    sample = problem.take(queries)
    rows = rows_of(problem.offsets, queries)
    truths = Ragged(grades.values[rows], sample.offsets)
    scalings = {
        "auto": [Scaling(), Scaling.standard(X, weight)],
        True: [Scaling.standard(X, weight)],
        False: [Scaling()],
    }[options.standardize]
    candidates = []
    for scaling in scalings:
        inputs = np.asarray(to_dense(scaling(sample.items[:SEARCH_ROWS])), dtype=np.float64)
        if options.bandwidth == "auto":
            centre = median_bandwidth(inputs, name)
            widths = [factor * centre for factor in BANDWIDTH_FACTORS]
        elif options.bandwidth == "median":
            widths = [median_bandwidth(inputs, name)]
        else:
            widths = [options.bandwidth]
        candidates += [
            (Kernel(name, width, options.degree, options.coef0), scaling)  # type: ignore[arg-type]
            for width in widths
        ]
    if len(candidates) == 1:
        return candidates[0]
    n_jobs = options.n_jobs or 1
    scores = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_candidate_risks)(kernel, scaling, sample, loss, truths, n_jobs != 1)
        for kernel, scaling in candidates
    )
    task, risk, error = np.array(scores).T
    tied = task <= task.min() + error[task.argmin()]
    standard = np.array([scaling.scale is not None for _, scaling in candidates])
    if (tied & standard).any():
        tied &= standard
    best = int(np.argmin(np.where(tied, risk, np.inf)))
    kernel, scaling = candidates[best]
    logger.info(
        "items: %s, standardised: %s, leave-one-query-out task loss %.4f",
        kernel,
        scaling.scale is not None,
        task[best],
    )
    return kernel, scaling


def _candidate_risks(
    kernel: Kernel,
    scaling: Scaling,
    problem: QueryProblem,
    loss: RelevanceLoss,
    grades: Ragged,
    single_thread: bool,
) -> tuple[float, float, float]:
    """Task loss and surrogate risk at the best penalty, and the loss's standard error."""
    features = KernelFeatures(kernel, problem.items, scaling)
    with threadpool_limits(1 if single_thread else None):
        ridge = QueryRidge(problem, features, np.arange(len(problem.weight)))
        path = leave_one_query_out(ridge, problem, loss, grades, ridge.grid())
    best = path.best("task_loss")
    return (
        float(path.task_loss[best]),
        float(path.surrogate_risk[best]),
        float(path.task_error[best]),
    )
