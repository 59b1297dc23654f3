"""Many pair problems at one ε in one compiled call, free of the interpreter lock."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consistruct._compile import compiled
from consistruct.calibration.methods.explicit_full._gauge import add_weight
from consistruct.calibration.methods.explicit_full._pair import solve_pair, workspace
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Batch", "Warm", "solve_batch", "warm_starts"]

WARM_COLUMNS = 24  # support of q that is remembered per pair; rarely larger, and only a start
FEASIBILITY = 1e-12  # d·q may miss ε by this times the largest loss difference


class Warm(NamedTuple):
    """The last q of every pair, on its heaviest true labels; touched pages only cost memory."""

    size: IntArray  # (k²,)
    columns: NDArray[np.int32]  # (k², WARM_COLUMNS)
    weights: FloatArray  # (k², WARM_COLUMNS)


def warm_starts(k: int) -> Warm:
    """No pair has a start yet."""
    return Warm(
        np.zeros(k * k, dtype=np.int64),
        np.empty((k * k, WARM_COLUMNS), dtype=np.int32),
        np.empty((k * k, WARM_COLUMNS)),
    )


class Batch(NamedTuple):
    """What a batch found: one dual point per solved pair, and its best primal point."""

    pairs: IntArray  # (n,) i·k + j of the pairs that were solved, not skipped
    slope: FloatArray  # (n,) √(4kH') ≥ slope·ε + intercept
    intercept: FloatArray  # (n,)
    mu: FloatArray  # (n,)
    indptr: IntArray  # (n + 1,)
    rows: IntArray  # supports of w, one after the other
    weights: FloatArray
    best_pair: int  # −1 where no pair went below the incumbent
    best_upper: float
    columns: IntArray  # support of the best q
    distribution: FloatArray  # q on it


@compiled
def start_point(
    d: FloatArray,  # (m,)
    eps: float,
    pair: int,
    warm: Warm,
    columns: IntArray,
    x: FloatArray,
) -> int:
    """A distribution with d·q ≥ ε: the last one, mixed with the label of largest d if needed."""
    top = 0
    for y in range(d.shape[0]):
        if d[y] > d[top]:
            top = y
    n = warm.size[pair]
    reach = 0.0
    for a in range(n):
        columns[a] = warm.columns[pair, a]
        x[a] = warm.weights[pair, a]
        reach += x[a] * d[columns[a]]
    if n > 0 and reach >= eps:
        return n
    if n == 0 or d[top] <= eps or (eps - reach) >= 0.999 * (d[top] - reach):
        columns[0] = top
        x[0] = 1.0
        return 1
    theta = (eps - reach) / (d[top] - reach)
    for a in range(n):
        x[a] *= 1.0 - theta
    return add_weight(columns, x, n, top, theta)


@compiled
def remember(pair: int, columns: IntArray, x: FloatArray, n: int, warm: Warm) -> None:
    """Keep the heaviest true labels of the distribution, normalized."""
    width = warm.columns.shape[1]
    if n <= width:
        for a in range(n):
            warm.columns[pair, a] = columns[a]
            warm.weights[pair, a] = x[a]
        warm.size[pair] = n
        return
    order = np.argsort(-x[:n])
    total = 0.0
    for a in range(width):
        total += x[order[a]]
    for a in range(width):
        warm.columns[pair, a] = columns[order[a]]
        warm.weights[pair, a] = x[order[a]] / total
    warm.size[pair] = width


@compiled
def solve_batch(
    losses: FloatArray,  # (k, m) as given: feasibility and d are read from it
    L: FloatArray,  # (k, m), column minima removed
    LT: FloatArray,  # (m, k), its transpose
    p: FloatArray,  # (k,)
    pairs: IntArray,  # (n,)
    known: FloatArray,  # (n,) lower bounds that are known already
    eps: float,
    incumbent: float,
    tolerance: float,
    warm: Warm,
) -> Batch:
    """Solve the pairs in order, each until its lower bound passes the incumbent."""
    k, m = L.shape
    work = workspace(k, m)
    columns = work.columns
    x = work.x
    d = np.empty(m)
    scale = L.max()

    n = pairs.shape[0]
    solved = np.empty(n, dtype=np.int64)
    slope = np.empty(n)
    intercept = np.empty(n)
    multiplier = np.empty(n)
    indptr = np.zeros(n + 1, dtype=np.int64)
    all_rows = np.empty(16 * n + k, dtype=np.int64)
    all_w = np.empty(16 * n + k)
    best_pair = -1
    best_upper = incumbent
    best_columns = np.empty(0, dtype=np.int64)
    best_distribution = np.empty(0)
    done = 0
    for position in range(n):
        target = best_upper * (1.0 - 0.5 * tolerance)
        if known[position] >= target:
            continue
        pair = pairs[position]
        i = pair // k
        j = pair - i * k
        for y in range(m):
            d[y] = losses[j, y] - losses[i, y]
        size = start_point(d, eps, pair, warm, columns, x)
        _, upper, lower, mu, size, support = solve_pair(
            L, LT, d, p, j, eps, target, 0.05 * tolerance, size, work
        )
        remember(pair, columns, x, size, warm)
        reach = 0.0
        for a in range(size):
            reach += x[a] * d[columns[a]]
        if upper < best_upper and reach >= eps - FEASIBILITY * scale:
            best_upper = upper
            best_pair = pair
            best_columns = columns[:size].copy()
            best_distribution = x[:size].copy()
        total = 0.0
        square = 0.0
        for s in range(support):
            total += work.best_w[s]
            square += work.best_w[s] * work.best_w[s] / p[work.best_rows[s]]
        slope[done] = mu / np.sqrt(0.5 * (total * total / p[j] + square))
        intercept[done] = np.sqrt(4.0 * lower) - slope[done] * eps
        multiplier[done] = mu
        solved[done] = pair
        start = indptr[done]
        if start + support > all_rows.shape[0]:
            grown = 2 * all_rows.shape[0] + support
            more_rows = np.empty(grown, dtype=np.int64)
            more_w = np.empty(grown)
            more_rows[:start] = all_rows[:start]
            more_w[:start] = all_w[:start]
            all_rows = more_rows
            all_w = more_w
        all_rows[start : start + support] = work.best_rows[:support]
        all_w[start : start + support] = work.best_w[:support]
        done += 1
        indptr[done] = start + support
    end = indptr[done]
    return Batch(
        solved[:done].copy(),
        slope[:done].copy(),
        intercept[:done].copy(),
        multiplier[:done].copy(),
        indptr[: done + 1].copy(),
        all_rows[:end].copy(),
        all_w[:end].copy(),
        best_pair,
        best_upper,
        best_columns,
        best_distribution,
    )
