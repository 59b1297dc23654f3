"""The tables, their five splits and the costs that decisions are judged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks import data as sources

__all__ = ["QUICK", "SPLITS", "TABLES", "Split", "Table", "costs_of", "read_table", "splits_of"]

TABLES = ("german", "contraceptive", "yeast", "wine_white", "page_blocks", "adult")
QUICK = ("german", "contraceptive", "yeast")
SPLITS = 5
FEWEST = 10  # rows of a class: with fewer, folds of folds would lack it
ORDINAL = ("wine_white",)


@dataclass(frozen=True, eq=False)
class Table:
    """One data set.

    Attributes
    ----------
    X : (n, d) float array
        NaN is missing; columns marked in `categorical` hold codes of a category.
    y : (n,) int array
        Classes 0..k−1, in the order of the file.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    categorical: np.ndarray  # (d,) bool

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from and rows to test on."""

    number: int
    train: np.ndarray
    test: np.ndarray


def read_table(name: str) -> Table:
    """The table without classes of fewer than ten rows (one of yeast, one grade of wine)."""
    with np.load(sources.data_file(f"tab_{name}")) as archive:
        X, y = archive["X"].astype(np.float64), archive["y"].astype(np.int64)
        categorical = archive["categorical"].copy()
    keep = np.bincount(y)[y] >= FEWEST
    return Table(name, X[keep], np.unique(y[keep], return_inverse=True)[1], categorical)


def splits_of(table: Table, n_splits: int, *, held_out: bool) -> list[Split]:
    """Five folds, each row tested once; `held_out` cuts the first training part into five again.

    The test rows of the first fold are therefore never seen during development.
    """
    folds = StratifiedKFold(SPLITS, shuffle=True, random_state=0)
    parts = list(folds.split(table.X, table.y))
    if held_out:
        rows, _ = parts[0]
        again = StratifiedKFold(SPLITS, shuffle=True, random_state=1)
        parts = [(rows[a], rows[b]) for a, b in again.split(table.X[rows], table.y[rows])]
    return [Split(i, train, test) for i, (train, test) in enumerate(parts[:n_splits])]


def costs_of(table: Table, split: Split) -> dict[str, np.ndarray]:
    """Cost matrices (k, k) by name; rows are predictions, columns true labels."""
    k = table.n_classes
    rows = np.bincount(table.y[split.train], minlength=k)
    found = {"proportional": proportional_costs(rows, seed=split.number)}
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(np.float64)
    if table.name == "german":  # published with the data: "good" for a bad customer costs 5
        found["published 5:1"] = np.array([[0.0, 5.0], [1.0, 0.0]])
    if table.name in ORDINAL:
        found["absolute error"] = distance
        found["squared error"] = distance**2
    rare = (distance > 0).astype(np.float64)
    rare[:, np.bincount(table.y, minlength=k).argmin()] *= 10.0
    found["rare class 10:1"] = rare
    return found


def proportional_costs(rows: np.ndarray, *, seed: int) -> np.ndarray:
    """Abe, Zadrozny, Langford (2004): predicting c for true label t costs uniform [0, 2000·n_c/n_t].

    Mistakes on rare classes are expensive in proportion to their rarity.
    """
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(0.0, 2000.0 * rows[:, None] / rows[None, :])
    np.fill_diagonal(matrix, 0.0)
    return matrix
