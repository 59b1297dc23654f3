"""What learns scores of items: the queries it learns from, and what every learner offers.

Targets are noisy where gains are exponential or divided by those of the best order. Grades are
less so: c·E[Pg | x], with c of least squares, is a biased estimate of −Pū with a smaller variance.
Where several learners are averaged it is welcome: out-of-fold queries tell how much weight each
deserves, and one learner of the targets themselves remains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consistruct.learning.encoding.item_targets import item_targets
from consistruct.learning.encoding.queries import centered
from consistruct.learning.models.items.query_ridge import QueryProblem
from consistruct.losses.rankings.orders import RelevanceLoss
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Ragged

__all__ = ["ItemLearner", "ItemScores", "TrainingQueries", "entry", "training_queries"]


@dataclass(frozen=True, eq=False)
class TrainingQueries:
    """Queries that tell something, with the loss they are judged by.

    Attributes
    ----------
    problem : QueryProblem
        Items, centered targets −u, weights g·v.
    loss : RelevanceLoss
    grades : Ragged of ints
    numbers : (n,) int array
        Which of the given queries these are, sorted.
    weighted : bool
        Whether users gave different weights to queries.
    """

    problem: QueryProblem
    loss: RelevanceLoss
    grades: Ragged
    numbers: IntArray
    weighted: bool

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, queries: IntArray) -> TrainingQueries:
        """Some of them, by sorted positions in `numbers`."""
        return TrainingQueries(
            self.problem.take(queries),
            self.loss,
            self.grades.take(queries),
            self.numbers[queries],
            self.weighted,
        )

    def toward_grades(self, share: float) -> TrainingQueries:
        """The same with (1 − share) of the targets and `share` of the grades, scaled to them."""
        if share == 0.0:
            return self
        targets = (1.0 - share) * self.problem.targets + share * self._grade_targets()
        return replace(self, problem=replace(self.problem, targets=targets))

    def _grade_targets(self) -> FloatArray:
        """Centered grades times the factor that brings them closest to the targets, (N,)."""
        problem = self.problem
        grades = centered(self.grades.values.astype(np.float64), problem.offsets)
        norm = float(problem.item_weight @ grades**2)
        if norm == 0.0:  # all grades are alike, and so are all targets
            return np.zeros_like(problem.targets)
        return np.asarray(float((problem.item_weight * grades) @ problem.targets) / norm * grades)


def training_queries(
    items: Any,  # (N, d), query after query
    grades: Ragged,
    loss: RelevanceLoss,
    sample_weight: FloatArray | None,  # (n,)
) -> TrainingQueries:
    """Queries with their targets, less those in which all orders cost the same."""
    targets, weight = item_targets(loss, grades)
    if sample_weight is not None:
        weight = weight * sample_weight
    kept = np.flatnonzero(weight > 0)
    if len(kept) == 0:
        raise ValueError(
            "no query is informative: each has a single item, or all its orders cost the same; "
            "pass queries with several items"
        )
    every = QueryProblem(items, grades.offsets, targets, weight)
    weighted = sample_weight is not None and bool(np.ptp(sample_weight) > 0)
    if len(kept) == len(weight):
        return TrainingQueries(every, loss, grades, kept, weighted)
    return TrainingQueries(every.take(kept), loss, grades.take(kept), kept, weighted)


class ItemScores(ABC):
    """A fitted score of items, greatest first. Required: `takes_missing`, `scores`."""

    takes_missing: bool

    @abstractmethod
    def scores(self, items: Any, offsets: IntArray) -> FloatArray:
        """θ = −ū of each item, (N,), up to a constant per query; items stand query after query."""


class ItemLearner(ABC):
    """Required: `name`, `takes_missing`, `fit`.

    `grade_share`: how far the targets that it is fitted to are moved toward the grades.
    """

    name: str
    takes_missing: bool
    grade_share: float = 0.0

    @abstractmethod
    def fit(self, queries: TrainingQueries, rng: np.random.Generator) -> ItemScores:
        """Learn scores of items."""


def entry(name: str, status: str, weight: float, **known: float) -> dict[str, Any]:
    """A line of `portfolio_`, with the names that `Stack` has, and the surrogate risk."""
    names = ("criterion", "task_loss", "surrogate_risk", "seconds")
    return {"name": name, "status": status, "weight": weight} | {n: known.get(n) for n in names}
