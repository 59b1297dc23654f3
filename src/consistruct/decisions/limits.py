"""Limits on a batch: at most so many rows may be decided as a given prediction.

minimize Σ_i E_i(a_i)  subject to  |{i : a_i = c}| ≤ m_c
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

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
    capped = np.flatnonzero(most < n)
    free = np.flatnonzero(most >= n)
    if len(free) == 0:
        return _transported(losses, most, np.arange(k), np.full(n, np.inf), codes)
    best = free[losses[:, free].argmin(axis=1)]
    least = losses[np.arange(n), best]
    if len(capped) > 1:
        return _transported(losses, most, capped, least, best)
    # One limit: rows take the capped prediction in the order of what it saves them. Any other
    # choice of as many rows saves less, which is all there is to prove.
    saved = least - losses[:, capped[0]]
    rows = np.argsort(-saved, kind="stable")[: most[capped[0]]]
    found = best.copy()
    found[rows[saved[rows] > 0.0]] = capped[0]
    return found


def _transported(
    losses: FloatArray, most: IntArray, capped: IntArray, least: FloatArray, best: IntArray
) -> IntArray:
    """Return the cheapest transport of rows to predictions, by the simplex method.

    x_ic says whether row i takes the capped prediction c: Σ_c x_ic ≤ 1 (= 1 where no prediction is
    free) and Σ_i x_ic ≤ m_c. The constraints are those of a bipartite graph, hence totally
    unimodular: every vertex is integral, and the simplex method ends in one.
    """
    from scipy.optimize import linprog  # a second to import, for several limits only

    n, forced = len(losses), np.isinf(least[0])
    gain = losses[:, capped] if forced else losses[:, capped] - least[:, None]
    rows, columns = np.nonzero(np.ones_like(gain) if forced else gain < 0.0)
    each, ones = np.arange(len(rows)), np.ones(len(rows))
    of_rows = sp.csr_array((ones, (rows, each)), shape=(n, len(rows)))
    of_caps = sp.csr_array((ones, (columns, each)), shape=(len(capped), len(rows)))
    caps = most[capped].astype(np.float64)
    both: Any = sp.vstack([of_rows, of_caps])
    equal: Any = of_rows if forced else None
    solved: Any = linprog(
        gain[rows, columns],
        A_ub=both,
        b_ub=np.append(np.ones(n), caps),
        A_eq=equal,
        b_eq=np.ones(n) if forced else None,
        method="highs-ds",
    )
    if solved.status != 0 or np.abs(solved.x - np.rint(solved.x)).max(initial=0.0) > 1e-6:
        raise RuntimeError(f"HiGHS did not find a vertex: {solved.message}")
    taken = np.rint(solved.x) > 0
    found = best.copy()
    found[rows[taken]] = capped[columns[taken]]
    return found
