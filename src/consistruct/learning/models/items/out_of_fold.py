"""Scores of queries by fits that did not see them, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._threads import each
from consistruct.learning.encoding.kinds import Examples
from consistruct.learning.encoding.queries import centered, orders_of_scores, rows_of
from consistruct.learning.encoding.rankings import Queries
from consistruct.learning.models.items.learners import ItemLearner, ItemScores, TrainingQueries
from consistruct.learning.selection.cross_fitting import folds
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Fold", "OutOfFoldScores", "Risks", "cross_fit_scores", "query_folds", "risks"]

Fold = tuple[IntArray, IntArray]  # positions of the queries to fit on, and of those left out
FOLDS, FEW_FOLDS = 5, 3
SMALL = 2**18  # entries of the items; above, few folds


@dataclass(frozen=True, eq=False)
class OutOfFoldScores:
    """Attributes: `queries` (m,), sorted positions in the training queries; `values` (N,), scores
    of their items, centered.
    """

    queries: IntArray
    values: FloatArray

    def take(self, queries: IntArray, training: TrainingQueries) -> OutOfFoldScores:
        """Those of some of the queries, by sorted positions in the training queries."""
        lengths = np.diff(training.problem.offsets)[self.queries]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = rows_of(offsets, np.searchsorted(self.queries, queries))
        return OutOfFoldScores(queries, self.values[rows])


@dataclass(frozen=True, eq=False)
class Risks:
    """Attributes: `task` (m,), task loss of each out-of-fold query; `surrogates` (m,), its risk."""

    task: FloatArray
    surrogates: FloatArray

    @property
    def task_loss(self) -> float:
        return float(self.task.mean())

    @property
    def surrogate(self) -> float:
        return float(self.surrogates.mean())


def risks(scores: FloatArray, left: TrainingQueries) -> Risks:
    """What centered scores (N,) of out-of-fold queries cost."""
    orders = orders_of_scores(left.grades.with_values(scores))
    errors = left.problem.item_weight * (scores - left.problem.targets) ** 2
    sums = np.add.reduceat(errors, left.problem.offsets[:-1])  # a query has two items at least
    return Risks(left.loss(orders, left.grades), 0.5 * sums)


def query_folds(queries: TrainingQueries, cv: Any, rng: np.random.Generator) -> list[Fold]:
    """Queries to fit on and to leave out: by `cv`, or by the size of the data if it is None."""
    if len(queries) < 2:
        raise ValueError(
            "models of items are compared by leaving out queries, but only one query is "
            "informative; pass more queries, or choose model='ridge' with a number for alpha"
        )
    if cv is None:
        cv = FOLDS if np.prod(queries.problem.items.shape) <= SMALL else FEW_FOLDS
    return folds(
        Examples(Queries(queries.loss), None, queries.grades, np.ones(len(queries))), cv, rng
    )


def cross_fit_scores(
    learner: ItemLearner,
    queries: TrainingQueries,
    parts: Sequence[Fold],
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[list[ItemScores], OutOfFoldScores]:
    """One fit per fold, the same whatever `n_jobs`; a query that several leave out gets the mean.

    Of learners with stages the one of least out-of-fold surrogate risk.
    """
    seeds = rng.integers(2**63, size=len(parts))
    stages: tuple[int, ...] = getattr(learner, "stages", ())

    def estimate(fold: Fold, seed: int) -> tuple[Any, FloatArray]:
        fitted: Any = learner.fit(queries.take(fold[0]), np.random.default_rng(seed))
        left = queries.take(fold[1]).problem
        if stages:
            return fitted, fitted.after(stages, left.items)
        return fitted, fitted.scores(left.items, left.offsets)[:, None]

    found = each(estimate, zip(parts, seeds.tolist(), strict=True), n_jobs, threads=True)
    fitted = [model for model, _ in found]
    seen, values = _joined(
        queries.problem.offsets, [left for _, left in parts], [scores for _, scores in found]
    )
    if not stages:
        return fitted, OutOfFoldScores(seen, values[:, 0])
    left = queries.take(seen)
    best = int(np.argmin([risks(column, left).surrogate for column in values.T]))
    return [model.at(stages[best]) for model in fitted], OutOfFoldScores(seen, values[:, best])


def _joined(
    offsets: IntArray,
    left: Sequence[IntArray],
    found: Sequence[FloatArray],  # (items left out, stages) of each fold
) -> tuple[IntArray, FloatArray]:
    """Queries that were left out, and centered scores of their items, (N, stages)."""
    total = np.zeros((int(offsets[-1]), found[0].shape[1]))
    count = np.zeros(len(offsets) - 1)
    for numbers, values in zip(left, found, strict=True):
        total[rows_of(offsets, numbers)] += values
        count[numbers] += 1
    seen = np.flatnonzero(count)
    lengths = np.diff(offsets)[seen]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    means = total[rows_of(offsets, seen)] / np.repeat(count[seen], lengths)[:, None]
    return seen, centered(means, starts)
