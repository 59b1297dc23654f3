"""Scores of items by boosted symmetric trees, fitted within queries.

The trees descend the surrogate itself, ½ Σ_q v_q ‖P_q(θ_q + u_q)‖², in which the mean score of a
query is free. Regressing the centered targets item by item is not the same: it requires the scores
of different queries to be comparable, and pays for columns that differ between queries. (Columns
standardized within the query were tried in place of the given ones and beside them: no better.)

Trees of the targets and trees of the grades are grown apart: both by the leaves of the same trees
took half the time, but the two were too alike to be worth averaging.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from consistruct._validation import to_dense
from consistruct.learning.models.boosting.bins import Bins
from consistruct.learning.models.boosting.growing import QueryRows, Settings, Table, grow
from consistruct.learning.models.boosting.trees import Trees
from consistruct.learning.models.items.learners import ItemLearner, ItemScores, TrainingQueries
from consistruct.protocols import FloatArray, IntArray

__all__ = ["BoostedLearner", "BoostedScores", "item_bins"]

BINS = 64
STAGES, MANY_STAGES = (30, 60, 90, 120, 150), (80, 160, 240, 320)
MANY_ITEMS = 20_000  # that more trees are tried on
FEWEST_COLUMNS, COLUMN_SHARE = 8, 0.1  # that a comparison is chosen from


class BoostedScores(ItemScores):
    """Attributes: `bins` of the columns, `trees`; `stage`, how many were chosen by out-of-fold
    queries (None: all that there are).
    """

    takes_missing = True

    def __init__(self, bins: Bins, trees: Trees, stage: int | None = None) -> None:
        self.bins = bins
        self.trees = trees
        self.stage = stage

    def scores(self, items: Any, offsets: IntArray) -> FloatArray:
        return self._sum(self.trees, self.bins.codes(to_dense(items)))

    def _sum(self, trees: Trees, codes: IntArray) -> FloatArray:
        return trees.scores(codes, self.bins.categorical, 1)[:, 0]

    def after(self, stages: tuple[int, ...], items: Any) -> FloatArray:
        """Scores after so many trees, (N, len(stages))."""
        codes = self.bins.codes(to_dense(items))
        steps = [self._sum(self.trees.part(*ends), codes) for ends in pairwise((0, *stages))]
        return np.cumsum(np.column_stack(steps), axis=1)

    def at(self, stage: int) -> BoostedScores:
        """The same with so many of its trees."""
        return BoostedScores(self.bins, self.trees.part(0, stage), stage)


class BoostedLearner(ItemLearner):
    """Symmetric trees of the targets, or of grades scaled to them; more of them for more items.

    Parameters
    ----------
    n_items : int
        Of all queries: a fit on some of them has the same stages.
    bins : Bins
    of_grades : bool
    """

    takes_missing = True

    def __init__(self, n_items: int, bins: Bins, *, of_grades: bool = False) -> None:
        self.name = "boosting of grades" if of_grades else "boosting"
        self.stages = STAGES if n_items <= MANY_ITEMS else MANY_STAGES
        self.bins = bins
        self.grade_share = 1.0 if of_grades else 0.0

    def fit(self, queries: TrainingQueries, rng: np.random.Generator) -> BoostedScores:
        problem, n_columns = queries.toward_grades(self.grade_share).problem, self.bins.n_columns
        weight = problem.item_weight
        owners = np.repeat(np.arange(len(queries)), np.diff(problem.offsets))
        settings = Settings(
            learning_rate=0.07,
            depth=6,
            l2=3.0,
            row_share=0.5,
            most_rows=20_000,
            column_share=min(1.0, max(FEWEST_COLUMNS / n_columns, COLUMN_SHARE)),
            n_jobs=1,
        )
        trees, _ = grow(
            Table(self.bins.codes(to_dense(problem.items)), self.bins.categorical),
            QueryRows(problem.targets[:, None], weight / weight.mean(), owners),
            settings,
            self.stages[-1],
            rng,
        )
        return BoostedScores(self.bins, trees)


def item_bins(items: Any, rng: np.random.Generator) -> Bins:
    """Of every column, found once for all fits."""
    return Bins.of(np.asarray(to_dense(items), dtype=np.float64), BINS, [], rng)
