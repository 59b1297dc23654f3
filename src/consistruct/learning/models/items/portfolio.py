"""Several learners of item scores, compared and combined on queries that they did not see.

Each learner estimates the same thing, −Pū, so that estimates can be averaged. Weights are judged by
the out-of-fold surrogate risk times the square root of the out-of-fold task loss: the one is steady
and knows little of the top of a list, the other counts and is noisy. Both are means over few
queries, so the best weights are those of chance to a large part. Hence weights are the mean of the
best ones of many random quarters of the queries: where a learner is clearly better, all quarters
say so; where learners are alike, they get about equal weights. (On training parts of rankings the
best weights of all queries, non-negative least squares, uniform weights, and the task loss alone
were no better.)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from time import monotonic
from typing import Any

import numpy as np

from consistruct._clock import Deadline, duration
from consistruct.learning.models.items.learners import (
    ItemLearner,
    ItemScores,
    TrainingQueries,
    entry,
)
from consistruct.learning.models.items.out_of_fold import (
    Fold,
    OutOfFoldScores,
    cross_fit_scores,
    risks,
)
from consistruct.learning.models.items.ridge import RidgeLearner
from consistruct.protocols import FloatArray

__all__ = ["Portfolio", "fit_portfolio", "resampled_weights"]

logger = logging.getLogger(__name__)

PARTS = 4  # weights that are compared are multiples of 1/4
SAMPLES, SAMPLE_SHARE = 200, 0.25
LEAST_WEIGHT = 0.02  # less is not worth the time of predicting


@dataclass(frozen=True, eq=False)
class Portfolio:
    """Attributes: `members` and their `weights`; `out_of_fold` scores of the combination; `tried`,
    an entry for each learner.
    """

    members: list[ItemScores]
    weights: FloatArray
    out_of_fold: OutOfFoldScores
    tried: list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class _Candidate:
    name: str
    fitted: list[ItemScores]  # averaged
    out_of_fold: OutOfFoldScores
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
    """Fits and out-of-fold scores of each learner, and their weights.

    `exact`: the folds are our own. Then ridge leaves out query by query in their place, and fits on
    folds are averaged; with folds of the user's each learner is fitted again on all queries.
    """
    deadline = None if time_limit is None else Deadline(time_limit)
    candidates: list[_Candidate] = []
    late: list[str] = []
    for learner in learners:
        limit = deadline if candidates else None
        if limit is not None and not _in_time(learner, queries, parts, exact, limit):
            late.append(learner.name)
            continue
        before = monotonic()
        fitted, out_of_fold = _fit(learner, queries, parts, exact, rng, n_jobs)
        candidates.append(_Candidate(learner.name, fitted, out_of_fold, monotonic() - before))
    common = candidates[0].out_of_fold.queries
    for candidate in candidates[1:]:
        common = np.intersect1d(common, candidate.out_of_fold.queries)
    left = queries.take(common)
    columns = np.array([c.out_of_fold.take(common, queries).values for c in candidates])
    weights, criterion = resampled_weights(columns, left, rng)
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
        OutOfFoldScores(common, weights @ columns),
        tried,
    )


def _in_time(
    learner: ItemLearner,
    queries: TrainingQueries,
    parts: Sequence[Fold],
    exact: bool,
    deadline: Deadline,
) -> bool:
    """Whether fits on parts of the queries say that all fits of the learner end in time."""
    n = len(queries)
    alone = isinstance(learner, RidgeLearner) and exact

    def fit(share: float) -> None:
        rng = np.random.default_rng(0)
        part = queries.take(np.sort(rng.choice(n, max(2, round(share * n)), replace=False)))
        if isinstance(learner, RidgeLearner) and exact:
            learner.fit_and_leave_out(part, rng)
        else:
            learner.fit(part, rng)

    time = duration(fit, deadline)
    if time is None:
        return False
    shares = [1.0] if alone else [len(used) / n for used, _ in parts] + [1.0] * (not exact)
    return deadline.allows(sum(map(time.of, shares)))


def _fit(
    learner: ItemLearner,
    queries: TrainingQueries,
    parts: Sequence[Fold],
    exact: bool,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[list[ItemScores], OutOfFoldScores]:
    """Fits that are averaged, and scores of queries that they did not see."""
    if isinstance(learner, RidgeLearner) and exact:
        ridge, out_of_fold = learner.fit_and_leave_out(queries, rng)
        return [ridge], out_of_fold
    fitted, out_of_fold = cross_fit_scores(learner, queries, parts, rng, n_jobs)
    if not exact:
        stage = getattr(fitted[0], "stage", None)
        again: Any = learner.fit(queries, rng)
        fitted = [again if stage is None else again.at(stage)]
    return fitted, out_of_fold


def resampled_weights(
    columns: FloatArray,  # (k, N), centered scores of the out-of-fold queries by each learner
    left: TrainingQueries,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Weights of the learners, summing to one, and the criterion of each alone."""
    grid = _multiples(len(columns))
    found = [risks(weights @ columns, left) for weights in grid]
    surrogate = np.array([one.surrogates for one in found])  # (g, m)
    task = np.array([one.task for one in found])
    # a task loss of zero on few queries is luck
    least = 1e-3 * (left.loss.max_value or 1.0) / np.sqrt(len(left))

    def criterion(queries: Any) -> FloatArray:
        root = np.sqrt(task[:, queries].mean(axis=1) + least)
        return np.asarray(surrogate[:, queries].mean(axis=1) * root)

    size = min(len(left), max(2, round(SAMPLE_SHARE * len(left))))
    best = [
        int(criterion(rng.choice(len(left), size, replace=False)).argmin()) for _ in range(SAMPLES)
    ]
    mean = grid[best].mean(axis=0)
    mean[mean < LEAST_WEIGHT] = 0.0
    alone = [int(place) for place in grid.argmax(axis=0)]  # the first entry 1 of each column
    return mean / mean.sum(), criterion(slice(None))[alone]


def _multiples(n: int) -> FloatArray:
    """All weights of n learners that are multiples of 1/`PARTS`, (g, n)."""
    # n − 1 bars between stars: the gaps are the numbers of stars
    bars = combinations(range(n + PARTS - 1), n - 1)
    return np.array([np.diff([-1, *places, n + PARTS - 1]) - 1 for places in bars]) / PARTS
