"""Several learners of item scores, compared and combined on queries that they did not see.

Each learner estimates the same thing, −Pū, so that estimates can be averaged: greedily, by the
left-out surrogate risk times the square root of the left-out task loss. The one is steady and
knows little of the top of a list, the other counts and is noisy. (On training parts of rankings
non-negative least squares, uniform weights and the task loss alone were no better.)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from consistruct.learning.models.items.learners import (
    ItemLearner,
    ItemScores,
    TrainingQueries,
    entry,
)
from consistruct.learning.models.items.left_out import (
    Fold,
    LeftOutScores,
    cross_fit_scores,
    risks,
)
from consistruct.learning.models.items.ridge import RidgeLearner
from consistruct.learning.selection.averaging import Criterion, greedy_weights
from consistruct.protocols import FloatArray

__all__ = ["Portfolio", "fit_portfolio"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Portfolio:
    """Attributes: `members` and their `weights`; `left_out` scores of the combination; `tried`, an
    entry for each learner.
    """

    members: list[ItemScores]
    weights: FloatArray
    left_out: LeftOutScores
    tried: list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class _Candidate:
    name: str
    fitted: list[ItemScores]  # averaged
    left_out: LeftOutScores
    seconds: float


def fit_portfolio(
    learners: Sequence[ItemLearner],
    queries: TrainingQueries,
    parts: Sequence[Fold],
    *,
    exact: bool,
    time_limit: float | None,
    n_jobs: int | None,
    rng: np.random.Generator,
) -> Portfolio:
    """Fits and left-out scores of each learner, and their weights.

    `exact`: the folds are our own. Then ridge leaves out query by query in their place, and fits on
    folds are averaged; with folds of the user's each learner is fitted again on all queries.
    """
    start = monotonic()
    candidates: list[_Candidate] = []
    late: list[str] = []
    for learner in learners:
        if candidates and time_limit is not None and monotonic() - start > time_limit / 2:
            late.append(learner.name)  # the next one may take as long as all before
            continue
        before = monotonic()
        fitted, left_out = _fit(learner, queries, parts, exact, rng, n_jobs)
        candidates.append(_Candidate(learner.name, fitted, left_out, monotonic() - before))
    common = candidates[0].left_out.queries
    for candidate in candidates[1:]:
        common = np.intersect1d(common, candidate.left_out.queries)
    left = queries.take(common)
    columns = np.array([c.left_out.take(common, queries).values for c in candidates])
    weights, criterion = greedy_weights(list(columns), SurrogateTimesTask(left))
    tried = []
    for place, candidate in enumerate(candidates):
        found = risks(columns[place], left)
        tried.append(
            entry(
                candidate.name,
                "used" if weights[place] > 0 else "not used",
                float(weights[place]),
                criterion=float(criterion[place]),
                task_loss=found.task_loss,
                surrogate_risk=found.surrogate,
                seconds=candidate.seconds,
            )
        )
    tried += [entry(name, "not tried: time_limit", 0.0) for name in late]
    for line in tried:
        logger.info("items: %s", line)
    kept = [(c.fitted, float(w)) for c, w in zip(candidates, weights, strict=True) if w > 0]
    return Portfolio(
        [model for fitted, _ in kept for model in fitted],
        np.array([weight / len(fitted) for fitted, weight in kept for _ in fitted]),
        LeftOutScores(common, weights @ columns),
        tried,
    )


def _fit(
    learner: ItemLearner,
    queries: TrainingQueries,
    parts: Sequence[Fold],
    exact: bool,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[list[ItemScores], LeftOutScores]:
    """Fits that are averaged, and scores of queries that they did not see."""
    if isinstance(learner, RidgeLearner) and exact:
        ridge, left_out = learner.fit_and_leave_out(queries, rng)
        return [ridge], left_out
    fitted, left_out = cross_fit_scores(learner, queries, parts, rng, n_jobs)
    if not exact:
        stage = getattr(fitted[0], "stage", None)
        again: Any = learner.fit(queries, rng)
        fitted = [again if stage is None else again.at(stage)]
    return fitted, left_out


class SurrogateTimesTask(Criterion):
    """Left-out surrogate risk times the square root of the task loss."""

    def __init__(self, left: TrainingQueries) -> None:
        self.left = left
        # a task loss of zero on few queries is luck
        self.least = 1e-3 * (left.loss.max_value or 1.0) / np.sqrt(len(left))

    def __call__(self, expected: FloatArray) -> float:
        found = risks(expected, self.left)
        return found.surrogate * float(np.sqrt(found.task_loss + self.least))
