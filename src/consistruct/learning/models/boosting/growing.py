"""Boosting: gradients of a loss of rows, one symmetric tree for all of them, a Newton step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._threads import Run, crew
from consistruct.learning.models.boosting._kernels import (
    add_trees,
    best_split,
    class_gradients,
    descend,
    draw_rows,
    log_odds_loss,
    pack,
    some_rows,
    square_gradients,
    step,
)
from consistruct.learning.models.boosting.trees import Trees
from consistruct.protocols import FloatArray, IntArray

__all__ = ["ClassRows", "QueryRows", "RowLoss", "Settings", "SquareRows", "Table", "grow"]

SKETCH = 4  # directions in which the gradients of more classes or targets are searched for splits
EVENNESS = 0.3  # of the chances of rows to be drawn; without any, small gradients get large factors
THREAD_WORK = 400_000  # entries of histograms per level that are worth a second thread


@dataclass(frozen=True)
class Settings:
    """How trees are grown; `learning.models.boosting.model.Boosting` states what each means."""

    learning_rate: float
    depth: int
    l2: float
    row_share: float
    most_rows: int
    column_share: float
    n_jobs: int


@dataclass(frozen=True, eq=False)
class Table:
    """Inputs as bytes, (d, n), and which columns are categories."""

    codes: IntArray
    categorical: IntArray

    @property
    def n(self) -> int:
        return int(self.codes.shape[1])

    def take(self, rows: IntArray) -> Table:
        return Table(np.ascontiguousarray(self.codes[:, rows]), self.categorical)


class RowLoss(ABC):
    """A convex loss of the scores of every row, to be minimized."""

    weight: FloatArray  # (n,)

    @property
    @abstractmethod
    def n_scores(self) -> int:
        """Scores of a row."""

    @property
    def open(self) -> bool:
        """Whether there is anything to learn."""
        return self.n_scores > 0

    @abstractmethod
    def start(self) -> FloatArray:
        """The best constant, (c,)."""

    @abstractmethod
    def gradients(self, scores: FloatArray, gradient: FloatArray, hessian: FloatArray) -> None:
        """Fill in negative gradients and diagonal Hessians, (n, c)."""

    @abstractmethod
    def mean(self, scores: FloatArray) -> float:
        """The weighted mean of the loss."""

    @abstractmethod
    def take(self, rows: IntArray) -> RowLoss:
        """The same for some rows."""


@dataclass(frozen=True, eq=False)
class ClassRows(RowLoss):
    """Log loss of classes 0, …, k − 1; two have one score, the log-odds of class 1."""

    classes: IntArray
    k: int
    weight: FloatArray

    @property
    def n_scores(self) -> int:
        return 1 if self.k == 2 else self.k

    @property
    def open(self) -> bool:
        return self.k > 1

    def start(self) -> FloatArray:
        # half a row of every class: one of which no row is at hand stays possible
        share = np.bincount(self.classes, self.weight, minlength=self.k) + 0.5
        logs = np.log(share)
        return np.asarray(logs[1:] - logs[0] if self.k == 2 else logs - logs.mean())

    def gradients(self, scores: FloatArray, gradient: FloatArray, hessian: FloatArray) -> None:
        class_gradients(scores, self.classes, self.weight, gradient, hessian)

    def mean(self, scores: FloatArray) -> float:
        if self.k == 2:  # log(1 + exp(∓score))
            total = log_odds_loss(scores[:, 0], self.classes, self.weight)
            return float(total / self.weight.sum())
        losses = _log_sum(scores) - scores[np.arange(len(scores)), self.classes]
        return float(self.weight @ losses / self.weight.sum())

    def take(self, rows: IntArray) -> ClassRows:
        return ClassRows(self.classes[rows], self.k, self.weight[rows])


@dataclass(frozen=True, eq=False)
class SquareRows(RowLoss):
    """Half the squared distance to targets, (n, c)."""

    targets: FloatArray
    weight: FloatArray

    @property
    def n_scores(self) -> int:
        return int(self.targets.shape[1])

    def start(self) -> FloatArray:
        return np.asarray(self.weight @ self.targets / self.weight.sum())

    def gradients(self, scores: FloatArray, gradient: FloatArray, hessian: FloatArray) -> None:
        square_gradients(scores, self.targets, self.weight, gradient, hessian)

    def mean(self, scores: FloatArray) -> float:
        gaps = self.targets - scores
        return float(np.average(0.5 * np.einsum("nc,nc->n", gaps, gaps), weights=self.weight))

    def take(self, rows: IntArray) -> SquareRows:
        return SquareRows(np.ascontiguousarray(self.targets[rows]), self.weight[rows])


@dataclass(frozen=True, eq=False)
class QueryRows(SquareRows):
    """Half the squared distance to centered targets, scores being free up to a constant per query.

    With weights v_q of queries it is ½ Σ_q v_q ‖t_q − P_q θ_q‖², P_q the centering of query q. Its
    curvatures v_q P_q are taken to be v_q, which they never exceed.

    Attributes
    ----------
    queries : (n,) int array
        To which query each row belongs; its rows have one weight.
    """

    queries: IntArray

    def start(self) -> FloatArray:
        return np.zeros(self.n_scores)

    def gradients(self, scores: FloatArray, gradient: FloatArray, hessian: FloatArray) -> None:
        super().gradients(self._centered(scores), gradient, hessian)

    def mean(self, scores: FloatArray) -> float:
        return super().mean(self._centered(scores))

    def take(self, rows: IntArray) -> QueryRows:
        found = super().take(rows)
        return QueryRows(found.targets, found.weight, self.queries[rows])

    def _centered(self, scores: FloatArray) -> FloatArray:
        lengths = np.maximum(np.bincount(self.queries), 1)
        means = [np.bincount(self.queries, column) / lengths for column in scores.T]
        return np.asarray(scores - np.column_stack(means)[self.queries])


def grow(
    table: Table,
    rows: RowLoss,
    settings: Settings,
    rounds: int,
    rng: np.random.Generator,
    held: tuple[Table, RowLoss, int] | None = None,
) -> tuple[Trees, FloatArray]:
    """Trees, and with held-out rows (and a patience) their mean loss after each tree.

    With held-out rows, trees end once the loss has not fallen for `patience` rounds, and those
    after the best round are dropped.
    """
    start = rows.start()
    n, c, depth = table.n, rows.n_scores, settings.depth
    scores, gradient, hessian = np.tile(start, (n, 1)), np.empty((n, c)), np.empty((n, c))
    columns = np.full((rounds, depth), -1, dtype=np.int32)
    cuts = np.zeros((rounds, depth), dtype=np.uint8)
    values = np.zeros((rounds, 2**depth, c))
    leaves = np.empty(n, dtype=np.int32)
    watched = None if held is None else _Watched(*held, start)
    tops = table.codes.max(axis=1).astype(np.int64)
    done = 0
    drawing = _Drawing(rows.weight, min(settings.row_share, settings.most_rows / n))
    with crew(settings.n_jobs) as run:
        for done in range(1, rounds + 1):
            tree = slice(done - 1, done)
            rows.gradients(scores, gradient, hessian)
            leaves[:] = 0
            found = _splits(table, tops, gradient, drawing, settings, rng, run)
            for level, (column, cut) in enumerate(found):
                columns[tree, level], cuts[tree, level] = column, cut
                descend(table.codes[column], bool(table.categorical[column]), cut, leaves)
            step(
                leaves,
                gradient,
                hessian,
                settings.l2,
                settings.learning_rate,
                values[done - 1],
                scores,
            )
            if watched is not None and watched.ends(columns[tree], cuts[tree], values[tree]):
                break
    losses = np.empty(0)
    if watched is not None:
        losses = np.array(watched.losses)
        done = int(losses.argmin())  # the first entry is before any tree
    return Trees(start, columns[:done], cuts[:done], values[:done]), losses


class _Watched:
    """The loss of held-out rows, tree by tree."""

    def __init__(self, table: Table, rows: RowLoss, patience: int, start: FloatArray) -> None:
        self.table = table
        self.rows, self.patience = rows, patience
        self.scores = np.tile(start, (table.n, 1))
        self.losses = [rows.mean(self.scores)]

    def ends(self, columns: Any, cuts: Any, values: Any) -> bool:
        table = self.table
        add_trees(table.codes, table.categorical, columns, cuts, values, self.scores, 0, table.n)
        self.losses.append(self.rows.mean(self.scores))
        return len(self.losses) - 1 - int(np.argmin(self.losses)) >= self.patience


class _Drawing:
    """Rows that the comparisons of a tree are chosen by, as many as requested on average.

    Chances depend on a unit that makes them sum to the number requested. Gradients change little
    from tree to tree, so the unit of each is that of the one before, put right by what came of it.
    """

    def __init__(self, weight: FloatArray, share: float) -> None:
        self.weight, self.wanted = weight, share * len(weight)
        self.all = share == 1.0
        self.rows, self.chances = np.empty(len(weight), dtype=np.int64), np.empty(len(weight))
        self.unit = 0.0

    def draw(
        self, gradient: FloatArray, rng: np.random.Generator
    ) -> tuple[IntArray | None, FloatArray, FloatArray]:
        """Rows (None: all), and their gradients and weights over the chances they had."""
        if self.all:
            return None, gradient, self.weight
        seed, squares = int(rng.integers(2**63)), float(self.weight @ self.weight)
        if self.unit == 0.0:  # the first tree
            sizes = np.einsum("nc,nc->n", gradient, gradient)
            self.floor = EVENNESS**2 * float(sizes.sum()) / squares or 1.0
            self.unit = _unit(np.sqrt(sizes + self.floor * self.weight**2), self.wanted)
        found, expected, total = draw_rows(
            gradient, self.weight, seed, self.floor, self.unit, self.rows, self.chances
        )
        self.unit *= expected / self.wanted
        if total > 0.0:
            self.floor = EVENNESS**2 * total / squares
        rows, chances = self.rows[:found], self.chances[:found]
        return rows, gradient[rows] / chances[:, None], self.weight[rows] / chances


def _unit(sizes: FloatArray, wanted: float) -> float:
    """The number for which Σ min(1, size/number) is `wanted`."""
    largest_first = np.sort(sizes)[::-1]
    certain = np.arange(int(np.ceil(wanted)))  # rows of chance one, the largest; others share
    rest = np.cumsum(largest_first[::-1])[::-1][: len(certain)]
    units = rest / (wanted - certain)
    return float(units[np.argmax(largest_first[: len(certain)] <= units)])


def _splits(
    table: Table,
    tops: IntArray,
    gradient: FloatArray,
    drawing: _Drawing,
    settings: Settings,
    rng: np.random.Generator,
    run: Run,
) -> Iterator[tuple[int, int]]:
    """(column, cut) of each level, found on some rows and some columns."""
    d = len(table.codes)
    rows, gradient, weight = drawing.draw(gradient, rng)
    if len(weight) == 0:
        return
    codes = table.codes
    if rows is not None:
        codes = np.empty((d, len(rows)), dtype=np.uint8)
        some_rows(table.codes, rows, codes)
    if gradient.shape[1] > SKETCH:  # the splits of many sums of squares are those of a few of them
        gradient = gradient @ rng.normal(size=(gradient.shape[1], SKETCH))
    words, units = _packed(gradient, weight)
    nodes = np.zeros(len(words), dtype=np.uint16)
    n_tried = int(np.ceil(settings.column_share * d))
    threads = min(settings.n_jobs, n_tried, 1 + words.size * n_tried // THREAD_WORK)
    for level, tried in enumerate(_some(settings.depth, d, n_tried, rng)):

        def search(block: IntArray, n_nodes: int = 2**level) -> tuple[float, int, int]:
            found: tuple[float, int, int] = best_split(
                codes, tops, table.categorical, block, nodes, n_nodes, words, units, settings.l2
            )
            return found

        if threads == 1:
            _, column, cut = search(tried)
        else:  # the first of equal ones, as for a single thread
            each = run(search, np.array_split(tried, threads))
            _, column, cut = max(each, key=lambda one: one[0])
        if column < 0:
            return
        yield column, cut
        descend(codes[column], bool(table.categorical[column]), cut, nodes)


def _packed(gradient: FloatArray, weight: FloatArray) -> tuple[IntArray, FloatArray]:
    """Weights and gradients as whole numbers, two in a word, and their units."""
    m, c = gradient.shape
    largest = np.concatenate([[weight.max()], np.abs(gradient).max(axis=0)])
    units = np.where(largest > 0, largest, 1.0) / ((2**31 - 1) // (m + 1))
    words = np.empty((m, c // 2 + 1), dtype=np.int64)
    pack(gradient, weight, units, words)
    return words, units


def _log_sum(scores: FloatArray) -> FloatArray:
    """log Σ_c exp(score), (n,)."""
    largest = scores.max(axis=1)
    return np.asarray(largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1)))


def _some(times: int, n: int, m: int, rng: np.random.Generator) -> IntArray:
    """m of n numbers in order, drawn several times, (times, m)."""
    if m >= n:
        return np.tile(np.arange(n), (times, 1))
    return np.sort(np.argsort(rng.random((times, n)), axis=1)[:, :m], axis=1)
