"""Limits on a batch: at most so many rows may be decided as a given prediction.

minimize Σ_i E_i(a_i)  subject to  |{i : a_i = c}| ≤ m_c
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import permutations
from typing import Any

import numpy as np

from consistruct.decisions.classes import listed
from consistruct.protocols import FloatArray, IntArray

__all__ = ["limited", "read_limits"]


def read_limits(limits: Mapping[Any, Any], predictions: Any, n: int) -> IntArray:
    """Return the most rows of each prediction, (k,): n where there is no limit.

    >>> read_limits({"review": 200, "reject": 0.05}, np.array(["pay", "reject", "review"]), 1000)
    array([1000,   50,  200])
    """
    most = np.full(len(predictions), n, dtype=np.int64)
    names = [str(name) for name in predictions.tolist()]
    for name, limit in limits.items():
        if str(name) not in names:
            raise ValueError(
                f"limits name {name!r}, which is no prediction; they are {listed(predictions)}"
            )
        share = isinstance(limit, float | np.floating)
        if isinstance(limit, bool) or not limit >= 0 or (share and limit > 1.0):
            raise ValueError(
                f"the limit of {name!r} must be a number of rows (200) or a share of them (0.05), "
                f"got {limit!r}"
            )
        # 0.07 · 100 is 7.000000000000001 and 0.29 · 100 is 28.999999999999996
        rows = int(np.floor(limit * n + 1e-9 * n)) if share else int(limit)
        most[names.index(str(name))] = min(rows, n)
    if most.sum() < n:
        raise ValueError(
            f"the limits leave room for {most.sum()} decisions, but there are {n} rows; raise a "
            "limit, or leave a prediction without one"
        )
    return most


def limited(losses: FloatArray, codes: IntArray, most: IntArray) -> IntArray:
    """Return the decisions of least total loss within the limits, exactly.

    Parameters
    ----------
    losses : (n, k) array
        Expected loss of every prediction.
    codes : (n,) int array
        Decisions without limits, which stay where they keep them.
    most : (k,) int array

    Returns
    -------
    codes : (n,) int array

    Examples
    --------
    >>> losses = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]])
    >>> limited(losses, np.array([1, 1, 1]), np.array([3, 1]))
    array([0, 1, 0])
    """
    n, k = losses.shape
    if (np.bincount(codes, minlength=k) <= most).all():
        return codes
    capped, free = np.flatnonzero(most < n), np.flatnonzero(most >= n)
    if len(capped) > 1:
        return _transported(losses, codes, most)
    best = free[losses[:, free].argmin(axis=1)]
    least = losses[np.arange(n), best]
    # One limit: rows take the capped prediction in the order of what it saves them. Any other
    # choice of as many rows saves less, which is all there is to prove.
    saved = least - losses[:, capped[0]]
    rows = np.argsort(-saved, kind="stable")[: most[capped[0]]]
    found = best.copy()
    found[rows[saved[rows] > 0.0]] = capped[0]
    return found


def _transported(losses: FloatArray, codes: IntArray, most: IntArray) -> IntArray:
    """Return the cheapest decisions within several limits, by successive shortest paths.

    The decisions without limits are a cheapest flow with too much in some predictions. One row too
    many leaves along a shortest path of moves: from a to b at min_{i decided a} E_i(b) − E_i(a),
    from b to c at the same for its rows, up to a prediction with room. The flow stays a cheapest
    one for its counts (Ahuja, Magnanti and Orlin, 1993, ch. 9), so the end is exact. Paths visit
    predictions and not rows: for 100,000 rows and four limits this takes a second, where the linear
    programme (HiGHS) had not ended after two minutes.
    """
    k, codes = losses.shape[1], codes.copy()
    counts = np.bincount(codes, minlength=k)
    # paths that are shorter by rounding only would go round in circles
    slack = 1e-12 * float(np.abs(losses).max(initial=0.0))
    moves: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for a, b in permutations(range(k), 2):
        rows = np.flatnonzero(codes == a)
        cost = losses[rows, b] - losses[rows, a]
        order = np.argsort(cost, kind="stable")  # a sorted list is a heap
        moves[a, b] = list(zip(cost[order].tolist(), rows[order].tolist(), strict=True))

    def cost_of(pair: tuple[int, int]) -> float:
        """Return the least that moving one row from a to b costs; +inf where a has none."""
        heap = moves[pair]
        while heap and codes[heap[0][1]] != pair[0]:  # a row that has left since
            heappop(heap)
        return heap[0][0] if heap else np.inf

    while (counts > most).any():
        distance = [0.0 if over else np.inf for over in counts > most]
        before = [-1] * k
        costs = {pair: cost_of(pair) for pair in moves}
        # counts of a path change at its ends only: what is full in between stays full
        for _ in range(k - 1):  # Bellman and Ford: moves may save something on the way
            for (a, b), cost in costs.items():
                if distance[a] + cost < distance[b] - slack:
                    distance[b], before[b] = distance[a] + cost, a
        # the nearest prediction with room, and back along the path to where the row leaves
        b = min(np.flatnonzero(counts < most).tolist(), key=distance.__getitem__)
        counts[b] += 1
        while before[b] >= 0:
            a = before[b]
            row = heappop(moves[a, b])[1]
            codes[row] = b
            for c in range(k):
                if c != b:
                    heappush(moves[b, c], (float(losses[row, c] - losses[row, b]), row))
            b = a
        counts[b] -= 1
    return codes
