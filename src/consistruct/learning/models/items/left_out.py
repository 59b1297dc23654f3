"""Scores of queries by fits that did not see them, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import ShuffleSplit
from threadpoolctl import threadpool_limits

from consistruct.learning.encoding.kinds import Examples
from consistruct.learning.encoding.queries import centred, rows_of
from consistruct.learning.encoding.rankings import Queries
from consistruct.learning.encoding.relevance import orders_of_scores
from consistruct.learning.models.items.learners import ItemLearner, TrainingQueries
from consistruct.learning.selection.cross_fitting import folds
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Fold", "LeftOutScores", "Risks", "cross_fit_scores", "query_folds", "risks"]

Fold = tuple[IntArray, IntArray]  # positions of the queries to fit on, and of those left out
FOLDS = 5
MANY_ITEMS = 30_000  # above, one split in place of folds
LEFT_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class LeftOutScores:
    """Attributes: `queries` (m,), sorted positions in the training queries; `values`, scores of
    their items, centred, (N,), or (stages, N) where a fit is judged after several numbers of trees.
    """

    queries: IntArray
    values: FloatArray

    def take(self, queries: IntArray, training: TrainingQueries) -> LeftOutScores:
        """Those of some of the queries, by sorted positions in the training queries."""
        lengths = np.diff(training.problem.offsets)[self.queries]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = rows_of(offsets, np.searchsorted(self.queries, queries))
        return LeftOutScores(queries, self.values[..., rows])


@dataclass(frozen=True, eq=False)
class Risks:
    """Attributes: `task` (m,), task loss of each left-out query; `surrogate`, mean of the risk."""

    task: FloatArray
    surrogate: float

    @property
    def task_loss(self) -> float:
        return float(self.task.mean())


def risks(scores: FloatArray, left: TrainingQueries) -> Risks:
    """What centred scores (N,) of left-out queries cost."""
    orders = orders_of_scores(left.grades.with_values(scores))
    errors = left.problem.item_weight @ (scores - left.problem.targets) ** 2
    return Risks(left.loss(orders, left.grades), 0.5 * float(errors) / len(left))


def query_folds(queries: TrainingQueries, cv: Any, rng: np.random.Generator) -> list[Fold]:
    """Queries to fit on and to leave out: by `cv`, or by the number of items if it is None."""
    if len(queries) < 2:
        raise ValueError(
            "models of items are compared by leaving out queries, got one query that tells "
            "anything; give more, or choose model='ridge' with a number for alpha"
        )
    if cv is None:
        cv = FOLDS
        if queries.problem.offsets[-1] > MANY_ITEMS and len(queries) > FOLDS:
            cv = ShuffleSplit(1, test_size=LEFT_SHARE, random_state=int(rng.integers(2**31)))
    return folds(
        Examples(Queries(queries.loss), None, queries.grades, np.ones(len(queries))), cv, rng
    )


def cross_fit_scores(
    learner: ItemLearner,
    queries: TrainingQueries,
    parts: Sequence[Fold],
    rng: np.random.Generator,
    n_jobs: int | None,
    stages: tuple[int, ...] = (),
) -> LeftOutScores:
    """One fit per fold, the same whatever `n_jobs`; a query that several leave out gets the mean.

    With `stages`, numbers of trees, the scores after each.
    """
    seeds = rng.integers(2**63, size=len(parts))

    def estimate(fold: Fold, seed: int) -> FloatArray:
        with threadpool_limits(1 if n_jobs not in (None, 1) else None):
            fitted: Any = learner.fit(queries.take(fold[0]), np.random.default_rng(seed))
            left = queries.take(fold[1]).problem
            if stages:
                return np.asarray(fitted.stages(left.items, left.offsets, stages))
            return np.asarray(fitted.scores(left.items, left.offsets))

    found = Parallel(n_jobs=n_jobs)(
        delayed(estimate)(fold, int(seed)) for fold, seed in zip(parts, seeds, strict=True)
    )
    return _joined(queries.problem.offsets, [left for _, left in parts], found)


def _joined(
    offsets: IntArray, left: Sequence[IntArray], found: Sequence[FloatArray]
) -> LeftOutScores:
    total = np.zeros((int(offsets[-1]), *found[0].shape[:-1]))  # items first
    count = np.zeros(len(offsets) - 1)
    for numbers, values in zip(left, found, strict=True):
        total[rows_of(offsets, numbers)] += values.T
        count[numbers] += 1
    seen = np.flatnonzero(count)
    lengths = np.diff(offsets)[seen]
    divisor = np.repeat(count[seen], lengths).reshape(-1, *[1] * (total.ndim - 1))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return LeftOutScores(seen, centred(total[rows_of(offsets, seen)] / divisor, starts).T)
