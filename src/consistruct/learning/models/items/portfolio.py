"""Several learners of item scores, compared and combined on queries that they did not see.

Each learner estimates the same thing, −Pū, so that estimates can be averaged. Weights w ≥ 0 are
those of least left-out surrogate risk,

    min_w  Σ_q v_q ‖y_q − Σ_k w_k θ̂_k,₋q‖²      (non-negative least squares),

unless a single learner has a lower left-out task loss by more than a standard error of the
difference: the surrogate has the smaller variance, the task loss the last word.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from scipy.optimize import nnls

from consistruct.learning.models.items.learners import ItemLearner, ItemScores, TrainingQueries
from consistruct.learning.models.items.left_out import (
    Fold,
    LeftOutScores,
    Risks,
    cross_fit_scores,
    query_folds,
    risks,
)
from consistruct.learning.models.items.regressors import BoostingLearner
from consistruct.learning.models.items.ridge import RidgeLearner
from consistruct.protocols import FloatArray

__all__ = ["Portfolio", "fit_portfolio"]

logger = logging.getLogger(__name__)

STAGES = (25, 50, 100, 150, 200, 300)  # numbers of boosted trees that are compared


@dataclass(frozen=True, eq=False)
class Portfolio:
    """Attributes: `members` and their `weights`; `left_out` scores of the combination; `tried`,
    a line for each learner (name, left-out task loss and surrogate risk, weight).
    """

    members: list[ItemScores]
    weights: FloatArray
    left_out: LeftOutScores
    tried: list[dict[str, Any]]


@dataclass(eq=False)
class _Candidate:
    learner: ItemLearner
    left_out: LeftOutScores
    fitted: ItemScores | None = None  # on all queries, where that came first


def fit_portfolio(
    learners: Sequence[ItemLearner],
    queries: TrainingQueries,
    *,
    cv: Any,
    time_limit: float | None,
    n_jobs: int | None,
    rng: np.random.Generator,
) -> Portfolio:
    """Left-out scores of each, weights, and fits on all queries of those with a weight."""
    start = monotonic()
    parts = query_folds(queries, cv, rng)
    candidates: list[_Candidate] = []
    seconds, late = 0.0, []
    for learner in learners:
        # half of the time is for the fits on all queries
        if time_limit is not None and monotonic() - start + seconds > time_limit / 2 and candidates:
            late.append(learner.name)
            continue
        before = monotonic()
        candidates.append(_candidate(learner, queries, parts, cv, rng, n_jobs))
        seconds = monotonic() - before
    common = candidates[0].left_out.queries
    for candidate in candidates[1:]:
        common = np.intersect1d(common, candidate.left_out.queries)
    left = queries.take(common)
    columns = np.array([c.left_out.take(common, queries).values for c in candidates])
    found = [risks(values, left) for values in columns]
    weights = _weights(columns, found, left)
    tried: list[dict[str, Any]] = [
        {
            "name": candidate.learner.name,
            "task_loss": risk.task_loss,
            "surrogate_risk": risk.surrogate,
            "weight": float(weight),
        }
        for candidate, risk, weight in zip(candidates, found, weights, strict=True)
    ]
    tried += [{"name": name, "skipped": "time_limit"} for name in late]
    for line in tried:
        logger.info("items: %s", line)
    kept = [(c, float(w)) for c, w in zip(candidates, weights, strict=True) if w > 0]
    members = [c.fitted or c.learner.fit(queries, rng) for c, _ in kept]
    return Portfolio(
        members,
        np.array([weight for _, weight in kept]),
        LeftOutScores(common, weights @ columns),
        tried,
    )


def _candidate(
    learner: ItemLearner,
    queries: TrainingQueries,
    parts: Sequence[Fold],
    cv: Any,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> _Candidate:
    if isinstance(learner, RidgeLearner) and cv is None:
        # exact leave-one-query-out, on queries that the folds of the others leave out too
        seen = np.unique(np.concatenate([left for _, left in parts]))
        fitted = learner.fit(queries, rng, among=seen)
        positions = np.searchsorted(queries.numbers, fitted.left_out_queries)
        return _Candidate(learner, LeftOutScores(positions, fitted.left_out.values), fitted)
    if isinstance(learner, BoostingLearner):
        return _stopped_boosting(learner, queries, parts, rng, n_jobs)
    return _Candidate(learner, cross_fit_scores(learner, queries, parts, rng, n_jobs))


def _stopped_boosting(
    learner: BoostingLearner,
    queries: TrainingQueries,
    parts: Sequence[Fold],
    rng: np.random.Generator,
    n_jobs: int | None,
) -> _Candidate:
    """As many trees as are best for left-out queries."""
    stages = tuple(n for n in STAGES if n <= learner.iterations) or (learner.iterations,)
    found = cross_fit_scores(learner, queries, parts, rng, n_jobs, stages)
    left = queries.take(found.queries)
    best = int(np.argmin([risks(values, left).surrogate for values in found.values]))
    return _Candidate(learner.at(stages[best]), LeftOutScores(found.queries, found.values[best]))


def _weights(columns: FloatArray, found: Sequence[Risks], left: TrainingQueries) -> FloatArray:
    """w ≥ 0, (k,), adding up to one."""
    k = len(columns)
    best = int(np.argmin([risk.task_loss for risk in found]))
    alone = np.eye(k)[best]
    root = np.sqrt(left.problem.item_weight)
    weights, _ = nnls((columns * root).T, left.problem.scaled_targets)
    if not weights.any():  # no learner says anything about left-out queries
        return np.asarray(alone)
    weights = weights / weights.sum()  # scale changes no order
    gain = risks(weights @ columns, left).task - found[best].task
    error = float(gain.std()) / np.sqrt(len(gain))
    return np.asarray(alone if gain.mean() > error else weights)
