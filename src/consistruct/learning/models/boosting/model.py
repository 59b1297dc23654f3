"""Boosting: symmetric trees with vectors in their leaves, for classes and for any target."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils.validation import check_is_fitted

from consistruct._threads import workers
from consistruct._validation import check_count, check_jobs, check_number, to_dense
from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.base import TargetModel
from consistruct.learning.models.boosting.bins import MOST_BINS, Bins
from consistruct.learning.models.boosting.growing import (
    ClassRows,
    RowLoss,
    Settings,
    SquareRows,
    Table,
    grow,
)
from consistruct.learning.models.boosting.trees import Trees
from consistruct.learning.models.coordinates import Coordinates, coordinates_of
from consistruct.learning.selection.columns import Columns
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Boosting"]

FEWEST_HELD = 10  # fewer held-out rows cannot say when to stop
ENOUGH_HELD, MOST_PARTS = 300, 3  # small parts are noisy: several are tried one after the other
MOST_HELD = 5000  # and more of them say the same
REFITTED = 5000  # rows up to which what was held out is worth a second fit


class Boosting(TargetModel):
    """Gradient boosting with symmetric trees: every level of a tree makes one comparison.

    Each tree serves all classes, or all coordinates of the target, by vectors in its leaves, so
    that ten classes take little more time than two, and label sets are fitted at once. Classes are
    fitted by the log loss, other targets by the quadratic surrogate. Every comparison is judged by
    all rows of a sample, which keeps trees of few rows from learning noise; how many trees there
    are is decided on held-out rows, and then all rows are fitted.

    Choose it for tables of numbers and categories: thresholds, interactions, columns that say
    nothing. Missing values are taken as they are, categories of tables one by one.

    Parameters
    ----------
    rounds : int
        Trees at most.
    learning_rate : float
        Share of a Newton step that each tree makes.
    depth : int
        Comparisons of a tree, at most 12; it has 2^depth leaves.
    l2 : float
        Weight that is added to that of a leaf; larger is more cautious.
    row_share, column_share : float
        Of rows and of columns that the comparisons of a tree are chosen by; leaves use all rows.
        Rows of larger gradients are more likely to be drawn.
    most_rows : int
        Rows that comparisons are chosen by, at most.
    bins : int
        Values of a column that are distinguished, at most 255.
    validation_fraction : float
        Share of rows that are held out to say when to stop, at most 5,000. Up to 5,000 rows, all
        are then fitted again with as many trees. 0: all rounds are made.
    patience : int
        Rounds without a gain on held-out rows after which no more are tried.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Attributes
    ----------
    statistic_ : Statistic
    trees_ : Trees
    n_rounds_ : int
        Trees that are used.
    path_ : dict
        ``"loss"``: mean loss of the held-out rows before the first tree and after each.

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = cs.TaskLossClassifier(model=cs.models.Boosting(), random_state=0)
    >>> model = model.fit(X[::2], y[::2])
    >>> bool((model.predict(X[1::2]) == y[1::2]).mean() > 0.9)
    True
    """

    raw_inputs = True
    takes_missing = True

    trees_: Trees
    bins_: Bins
    coordinates_: Coordinates | None

    def __init__(
        self,
        rounds: int = 1000,
        *,
        learning_rate: float = 0.05,
        depth: int = 6,
        l2: float = 1.0,
        row_share: float = 0.5,
        most_rows: int = 20_000,
        column_share: float = 0.25,
        bins: int = 64,
        validation_fraction: float = 0.2,
        patience: int = 60,
        n_jobs: int | None = None,
    ) -> None:
        self.rounds = rounds
        self.learning_rate = learning_rate
        self.depth = depth
        self.l2 = l2
        self.row_share = row_share
        self.most_rows = most_rows
        self.column_share = column_share
        self.bins = bins
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.n_jobs = n_jobs

    # --- learning ---

    def fit(
        self,
        X: Any,
        codes: Any,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        settings = self._settings()
        self.statistic_ = statistic
        values = statistic.values(codes)
        n = values.shape[0]
        weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
        weight = weight / weight.mean()
        numbers, categories = self._prepare(X)
        self.bins_ = Bins.of(numbers, self.bins, categories, rng)
        table = Table(self.bins_.codes(numbers), self.bins_.categorical)
        rows = self._rows(values, weight)
        self._grow(table, rows, self._held_out(rows, groups, rng), settings, rng)
        return self

    def _grow(
        self,
        table: Table,
        rows: RowLoss,
        held: list[IntArray],
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        """Find the number of trees on held-out rows, and fit that many to all rows."""
        rounds, self.path_ = self.rounds if rows.open else 0, {}
        seeds = rng.integers(2**63, size=len(held) + 1)
        curves = []
        for left, seed in zip(held, seeds[1:], strict=True):
            rest = np.setdiff1d(np.arange(table.n), left, assume_unique=True)
            watched = (table.take(left), rows.take(left), self.patience)
            generator = np.random.default_rng(seed)
            self.trees_, curve = grow(
                table.take(rest), rows.take(rest), settings, rounds, generator, watched
            )
            curves.append(curve)
        if curves:
            longest = max(map(len, curves))
            # one that has ended would only have become worse
            padded = [np.pad(one, (0, longest - len(one)), mode="edge") for one in curves]
            self.path_ = {"loss": np.mean(padded, axis=0)}
            rounds = int(self.path_["loss"].argmin())
        if not curves or table.n <= REFITTED:
            self.trees_, _ = grow(table, rows, settings, rounds, np.random.default_rng(seeds[0]))
        self.n_rounds_ = len(self.trees_.columns)

    def _settings(self) -> Settings:
        check_count(self.rounds, "rounds")
        check_count(self.patience, "patience")
        check_count(self.most_rows, "most_rows")
        if not 1 <= check_count(self.depth, "depth") <= 12:
            raise ValueError(f"depth must be a number from 1 to 12, got {self.depth!r}")
        if not 2 <= check_count(self.bins, "bins") <= MOST_BINS:
            raise ValueError(f"bins must be a number from 2 to {MOST_BINS}, got {self.bins!r}")
        for name in ("learning_rate", "row_share", "column_share"):
            check_number(getattr(self, name), name, low=0.0, high=1.0, open_low=True)
        check_number(self.l2, "l2", low=0.0, open_low=True)
        check_number(self.validation_fraction, "validation_fraction", low=0.0, high=0.9)
        check_jobs(self.n_jobs)
        return Settings(
            self.learning_rate,
            self.depth,
            self.l2,
            self.row_share,
            self.most_rows,
            self.column_share,
            workers(self.n_jobs),
        )

    def _prepare(self, X: Any) -> tuple[FloatArray, list[int]]:
        """Numbers and codes, and which columns are codes of categories."""
        kinds = Columns.of(X)
        self.transformer_ = None if kinds.plain else kinds.for_trees().fit(X)
        return self._numbers(X), [] if kinds.plain else kinds.coded()

    def _numbers(self, X: Any) -> FloatArray:
        if self.transformer_ is not None:
            X = self.transformer_.transform(X)
        elif hasattr(X, "to_numpy"):
            X = X.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(to_dense(X), dtype=np.float64)

    def _rows(self, values: Any, weight: FloatArray) -> RowLoss:
        """What is minimized: the log loss of the classes that occur, or squares of coordinates."""
        if self.statistic_.of_classes:
            self.classes_, classes = np.unique(values.indices, return_inverse=True)
            self.coordinates_ = None
            return ClassRows(classes, len(self.classes_), weight)
        self.coordinates_ = coordinates_of(self.statistic_, values, weight)
        columns = np.ascontiguousarray(self.coordinates_.forward(values))
        return SquareRows(columns, weight)

    def _held_out(self, rows: RowLoss, groups: Any, rng: np.random.Generator) -> list[IntArray]:
        """Rows to stop by, in parts: of every class its share, or whole groups."""
        n = len(rows.weight)
        share = min(self.validation_fraction, MOST_HELD / n)
        if share == 0.0:
            return []
        parts = min(MOST_PARTS, int(1 / share), int(np.ceil(ENOUGH_HELD / (share * n))))
        if groups is not None:
            found = _whole_groups(np.asarray(groups), share, parts, rng)
        else:
            mixed = rng.permutation(n)
            if isinstance(rows, ClassRows):  # class by class
                mixed = mixed[np.argsort(rows.classes[mixed], kind="stable")]
            # a place in [0, 1) for each row, evenly within every class; part p is [p, p + 1)·share
            place = (np.arange(n) * ((np.sqrt(5.0) - 1) / 2) + rng.random()) % 1.0
            found = [np.sort(mixed[(place / share).astype(np.int64) == p]) for p in range(parts)]
        return [left for left in found if len(left) >= FEWEST_HELD]

    # --- predictions ---

    def expected(self, X: Any) -> FloatArray:
        check_is_fitted(self, "trees_")
        codes = self.bins_.codes(self._numbers(X))
        scores = self.trees_.scores(codes, self.bins_.categorical, workers(self.n_jobs))
        if self.coordinates_ is not None:
            return self.coordinates_.back(scores)
        found = np.zeros((len(scores), self.statistic_.width))
        found[:, self.classes_] = _probabilities(scores, len(self.classes_))
        return found


def _whole_groups(
    groups: IntArray, share: float, parts: int, rng: np.random.Generator
) -> list[IntArray]:
    if len(np.unique(groups)) < 2:
        return []
    split = GroupShuffleSplit(parts, test_size=share, random_state=int(rng.integers(2**31)))
    return [np.sort(left) for _, left in split.split(np.zeros(len(groups)), groups=groups)]


def _probabilities(scores: FloatArray, k: int) -> FloatArray:
    """(n, k) of log-odds or of scores of every class."""
    if k == 2:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    return np.asarray(softmax(scores, axis=1))
