"""Data in a few cells: a full tree must find the mean of the statistic in each."""

from __future__ import annotations

import numpy as np

from consistruct.losses.base import dense_target
from consistruct.losses.registry import LOSSES

N_CELLS = 4

# every registered loss, small enough to look at
MEMBERS = [member for entry in LOSSES.values() for member in entry.examples]


def short(loss):
    return repr(loss)[:60]


def cells(n=200, seed=0):
    """Inputs (n, 2): the number of a cell, and a column that carries no information."""
    rng = np.random.default_rng(seed)
    cell = np.concatenate([np.arange(N_CELLS), rng.integers(0, N_CELLS, n - N_CELLS)])
    return np.column_stack([cell, np.zeros(n)]).astype(np.float64)


def codes_of(loss, n=200, seed=1):
    """True labels at random, as codes."""
    rng = np.random.default_rng(seed)
    if loss.true_labels.size is None:
        return loss.true_labels.sample(n, rng) * getattr(loss, "max_cost", 1.0)
    return loss.true_labels.sample(n, rng)


def cell_means(statistic, X, codes, weight=None):
    """Weighted mean of the statistic over the rows of the same cell, (n, width)."""
    values = dense_target(statistic.values(codes))
    weight = np.ones(len(X)) if weight is None else weight
    means = np.empty_like(values)
    for cell in np.unique(X[:, 0]):
        rows = X[:, 0] == cell
        means[rows] = weight[rows] @ values[rows] / weight[rows].sum()
    return means
