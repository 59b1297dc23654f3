"""pred(F) for explicit F: which labels can win at all."""

from __future__ import annotations

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.protocols import FloatArray, IntArray

__all__ = ["predictable_rows"]

MARGIN_TOLERANCE = 1e-8  # margins below this, for θ in the unit box and rows in it too, are ties
N_RANDOM_DIRECTIONS = 256


def predictable_rows(F: FloatArray) -> tuple[IntArray, bool]:
    """Rows of F (k, width) that win for some θ when ties go to the smallest index.

    Row c wins iff some θ has ⟨F_c−F_d, θ⟩ > 0 for d < c and ≥ 0 for d > c. Strict winners
    are found by random directions where possible, the others by one linear program each.

    Returns
    -------
    indices : (m,) int array, sorted
    order_matters : bool
        True if some label wins only thanks to its place in the order, or loses because of it.
    """
    _, first = np.unique(F, axis=0, return_index=True)
    first.sort()  # of equal rows only the first can win
    rows = F[first]
    merged = len(first) < len(F)
    scale = float(np.abs(rows).max(initial=0.0))
    rows = rows / scale if scale > 0 else rows

    strict = _random_winners(rows)
    winners = strict.copy()
    for c in np.flatnonzero(~strict).tolist():
        # With every other row strictly beaten the place in the order is irrelevant.
        strict[c] = _best_margin(rows, c, np.delete(np.arange(len(rows)), c)) > MARGIN_TOLERANCE
        winners[c] = strict[c] or _best_margin(rows, c, np.arange(c)) > MARGIN_TOLERANCE
    return first[winners].astype(np.int64), bool(merged or not strict.all())


def _random_winners(rows: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows that beat all others by a clear margin for one of some directions."""
    centred = rows - rows.mean(axis=0)
    directions = np.random.default_rng(0).standard_normal((N_RANDOM_DIRECTIONS, rows.shape[1]))
    directions = np.vstack([centred, directions])  # a vertex far out wins along itself
    won = np.zeros(len(rows), dtype=np.bool_)
    if len(rows) == 1:
        return ~won
    for start in range(0, len(directions), 1024):
        scores = directions[start : start + 1024] @ rows.T
        top = np.argpartition(scores, -2, axis=1)[:, -2:]
        pair = np.take_along_axis(scores, top, axis=1)
        clear = np.abs(pair[:, 1] - pair[:, 0]) > 1e-6
        won[top[np.arange(len(top)), pair.argmax(axis=1)][clear]] = True
    return won


def _best_margin(rows: FloatArray, c: int, strict: IntArray) -> float:
    """max δ ≤ 1 with ⟨F_c−F_d, θ⟩ ≥ δ for d in `strict`, ≥ 0 for all d, ‖θ‖_∞ ≤ 1."""
    if len(strict) == 0:
        return 1.0  # θ = 0 ties everything and the order decides
    others = np.delete(np.arange(len(rows)), c)
    width = rows.shape[1]
    margin = np.isin(others, strict).astype(np.float64)
    result = scipy.optimize.linprog(
        np.append(np.zeros(width), -1.0),
        A_ub=np.column_stack([rows[others] - rows[c], margin]),
        b_ub=np.zeros(len(others)),
        bounds=[(-1.0, 1.0)] * width + [(0.0, 1.0)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    # θ = 0, δ = 0 is feasible and δ ≤ 1: only a numerical failure ends without an optimum
    if result.status != 0 or result.fun is None:
        raise RuntimeError(f"the predictability of label {c} was not decided: {result.message}")
    return float(-result.fun)
