"""How `StructuredPredictor` ranks the items of queries of different lengths.

θ_i = ⟨w, φ(x_i)⟩ for item i: one weight vector for all queries, items sorted by θ. The quadratic
surrogate of every query is minimised within the query (see `item_targets`), in closed form, and
the penalty is chosen by leaving out whole queries, whose items belong together.
"""

from __future__ import annotations

import logging
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from consistruct.labels import Ragged
from consistruct.learning.encoding.queries import QueryBatch, pack_queries
from consistruct.learning.encoding.relevance import (
    RelevanceLabels,
    losses_of_ranks,
    ranking_loss,
    ranks_of_scores,
)
from consistruct.learning.encoding.weights import check_sample_weight, generator
from consistruct.learning.models.items.feature_search import choose_item_features, some_queries
from consistruct.learning.models.items.item_targets import item_targets, require_item_scores
from consistruct.learning.models.items.query_ridge import (
    QueryProblem,
    QueryRidge,
    leave_one_query_out,
    rows_of,
)
from consistruct.learning.models.ridge.closed_form import ClosedForm
from consistruct.learning.models.solvers.base import check_alpha
from consistruct.learning.models.solvers.score_map import ScoreMap
from consistruct.losses.orders import RelevanceLoss
from consistruct.protocols import FloatArray
from consistruct.surrogates import QuadraticSurrogate

__all__ = ["fit_queries", "item_scores", "query_task_losses", "rank_items", "ranks_queries"]

logger = logging.getLogger(__name__)

Estimator = TypeVar("Estimator")
SELECTION_ITEMS = 8192  # leave-one-query-out losses are averaged over about so many items


def ranks_queries(estimator: Any) -> bool:
    """Whether the estimator was fitted on items of queries."""
    return isinstance(getattr(estimator, "label_encoding_", None), RelevanceLabels)


def fit_queries(estimator: Any, X: Any, y: Any, groups: Any, sample_weight: Any) -> Any:
    """Learn item scores on behalf of `estimator`, which keeps them and its attributes."""
    batch = _checked_items(estimator, pack_queries(X, groups), reset=True)
    grades = batch.truths(y)
    loss = ranking_loss(estimator.loss, grades)
    _check_settings(estimator, loss)
    targets, weight = item_targets(loss, grades)
    weight = weight * _query_weight(sample_weight, batch)
    kept = np.flatnonzero(weight > 0)
    if len(kept) == 0:
        raise ValueError(
            "no query tells anything: each has a single item, or its orders all cost the same; "
            "give queries with several items"
        )
    problem = QueryProblem(batch.items[batch.positions], batch.offsets, targets, weight).take(kept)
    truths = Ragged(grades.values[rows_of(grades.offsets, kept)], problem.offsets)
    rng = generator(estimator.random_state)
    features = choose_item_features(estimator._feature_options(), problem, loss, truths, rng)
    weights, alpha, path = _solve(estimator, problem, features, loss, truths, rng)
    learned = {
        "loss_": loss,
        "surrogate_": QuadraticSurrogate(loss),
        "label_encoding_": RelevanceLabels(),
        "feature_map_": features,
        "coef_": weights[None, :],
        "intercept_": np.zeros(1),  # a constant changes no order
        "alpha_": alpha,
        "n_iter_": 1,
        "path_": path,
        "contrast_": 1.0,  # nor does a scale
        "centre_": None,
    }
    for name, value in learned.items():
        setattr(estimator, name, value)
    return estimator


def _check_settings(estimator: Any, loss: RelevanceLoss) -> None:
    require_item_scores(loss, estimator.scores)
    if estimator.decoding not in ("argmax", "bayes"):
        raise ValueError(f"decoding must be 'argmax' or 'bayes', got {estimator.decoding!r}")
    if estimator.surrogate not in ("auto", "quadratic", QuadraticSurrogate):
        raise ValueError(
            f"rankings with item features take surrogate='quadratic', got {estimator.surrogate!r}"
        )
    if estimator.solver not in ("auto", "closed_form") and not isinstance(
        estimator.solver, ClosedForm
    ):
        raise ValueError(
            f"rankings with item features take solver='closed_form', got {estimator.solver!r}"
        )


def _solve(
    estimator: Any,
    problem: QueryProblem,
    features: Any,
    loss: RelevanceLoss,
    truths: Ragged,
    rng: np.random.Generator,
) -> tuple[FloatArray, float, dict[str, FloatArray]]:
    """Weights at the given or best penalty, and what was compared."""
    solver = estimator.solver
    given = isinstance(solver, ClosedForm)
    alphas = check_alpha(solver.alpha if given else estimator.alpha)
    if isinstance(alphas, float):
        ridge = QueryRidge(problem, features, np.zeros(0, dtype=np.int64))
        return ridge.weights(alphas), alphas, {}
    chosen = some_queries(problem.offsets, SELECTION_ITEMS, rng)
    ridge = QueryRidge(problem, features, chosen)
    part = problem.take(chosen)
    kept = Ragged(truths.values[rows_of(truths.offsets, chosen)], part.offsets)
    path = leave_one_query_out(ridge, part, loss, kept, ridge.grid() if alphas is None else alphas)
    criterion = "surrogate" if given and solver.selection != "task_loss" else "task_loss"
    best = path.best(criterion)
    logger.info(
        "rankings: alpha %.3g of %d, leave-one-query-out task loss %.4f",
        path.alphas[best],
        len(path.alphas),
        path.task_loss[best],
    )
    alpha = float(path.alphas[best])
    return (
        ridge.weights(alpha),
        alpha,
        {
            "alphas": path.alphas,
            "task_loss": path.task_loss,
            "surrogate_risk": path.surrogate_risk,
            "task_error": path.task_error,
        },
    )


def _query_weight(sample_weight: Any, batch: QueryBatch) -> FloatArray:
    if np.ndim(sample_weight) == 1 and len(sample_weight) != len(batch):
        raise ValueError(
            f"sample_weight must have shape ({len(batch)},), one per query, "
            f"got {np.shape(sample_weight)}"
        )
    return check_sample_weight(sample_weight, len(batch))


# --- predicting ----------------------------------------------------------------------------------


def item_scores(estimator: Any, X: Any, groups: Any = None) -> tuple[QueryBatch, Ragged]:
    """The queries, and θ of every item."""
    check_is_fitted(estimator)
    batch = _checked_items(estimator, pack_queries(X, groups, one_query=True), reset=False)
    score_map = ScoreMap(estimator.feature_map_, fit_intercept=False)
    theta = score_map.apply(estimator.coef_.T, batch.items)[:, 0]
    return batch, batch.pack(theta)


def rank_items(estimator: Any, X: Any, groups: Any = None) -> Any:
    """Rank of each item in its query, 1 is best, in the order of the data."""
    batch, theta = item_scores(estimator, X, groups)
    return batch.unpack(ranks_of_scores(theta))


def query_task_losses(estimator: Any, X: Any, y: Any, groups: Any = None) -> FloatArray:
    """Task loss of each query, (n,)."""
    batch, theta = item_scores(estimator, X, groups)
    grades = batch.truths(y)
    return losses_of_ranks(estimator.loss_, ranks_of_scores(theta), grades)


def _checked_items(estimator: Any, batch: QueryBatch, *, reset: bool) -> QueryBatch:
    items = validate_data(
        estimator,
        batch.items,
        reset=reset,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
    )
    return QueryBatch(items, batch.positions, batch.offsets, batch.listed)
