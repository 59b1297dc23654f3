"""Envelopes where H is known by values only: more of them where they count.

H never falls, so on [x_m, x_{m+1}] it is at least its value at x_m (and at least Theorem 7). This
step function is what is proved; the hull of the values themselves is what more of them can reach.
A line just below that hull at the ε in question is to be proved: every interval whose step is
still below the line is halved.

Where a method keeps lines below √H of every pair, a value of H where the envelope touches them is
enough to raise it: a few values do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from consistruct.calibration.certificate import Line
from consistruct.calibration.envelope import Envelope
from consistruct.protocols import FloatArray

__all__ = ["envelope_from_floor", "envelope_from_values", "squared_lines"]

MOST_ROUNDS = 24  # of touching and raising
ROUNDING = 64 * float(np.finfo(np.float64).eps)
GRAIN = 2.0**-40  # share of the range below which an interval is not halved

Values = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def envelope_from_values(
    values: Values,  # ε (n,) -> lower and upper ends of H·exp(−log_scale)
    grid: FloatArray,  # (n,) increasing, from 0 to max_eps
    *,
    quadratic: float,  # H·exp(−log_scale) ≥ quadratic·ε²
    log_scale: float,
    at: FloatArray,  # (t,) where it should be tight
    tolerance: float,  # allowed share of N* ∝ 1/Ȟ²
    most: int,  # evaluations for each of `at` beyond the grid
) -> Envelope:
    """The envelope of the steps between values of H, refined until it is tight at `at`.

    Loose values (lower end below the upper one) stay loose: `Envelope.gap` tells.
    """
    lower, upper = values(grid)
    budget = most * len(at)
    while True:
        lower = np.maximum.accumulate(lower)  # H never falls, so neither need its lower ends
        rows = _steps(grid, lower, quadratic)
        todo = np.zeros(len(rows), dtype=np.bool_)
        for eps in at.tolist():
            todo |= _too_low(rows, grid, lower, eps, tolerance / 2.5)
        todo &= np.diff(grid) > GRAIN * grid[-1]
        chosen = np.flatnonzero(todo)
        chosen = chosen[np.argsort(-np.diff(grid)[chosen], kind="stable")][:budget]  # widest first
        if not len(chosen):
            break
        budget -= len(chosen)
        middle = np.sort((grid[:-1] + grid[1:])[chosen] / 2)
        more_lower, more_upper = values(middle)
        order = np.argsort(np.concatenate([grid, middle]), kind="stable")
        grid = np.concatenate([grid, middle])[order]
        lower = np.concatenate([lower, more_lower])[order]
        upper = np.concatenate([upper, more_upper])[order]
    ceiling = np.column_stack([grid, upper])
    return Envelope(rows, float(grid[-1]), log_scale, "values", ceiling)


def _steps(grid: FloatArray, lower: FloatArray, quadratic: float) -> FloatArray:
    """One row per interval: its step, or the quadratic from where that is higher."""
    left, right, step = grid[:-1], grid[1:], lower[:-1]
    zero = np.zeros_like(step)
    points = np.column_stack([right, right, zero, zero, step])
    if quadratic <= 0:
        return points
    meet = np.maximum(np.sqrt(step / quadratic), left)
    arcs = np.column_stack([meet, right, np.full_like(step, quadratic), zero, zero])
    return np.where((meet < right)[:, None], arcs, points)


def _too_low(
    rows: FloatArray, grid: FloatArray, lower: FloatArray, eps: float, share: float
) -> NDArray[np.bool_]:
    """(n,): the steps below the best line at ε that the values allow, lowered by a share."""
    zero = np.zeros_like(grid)
    finite = np.isfinite(lower)
    points = np.column_stack([grid, grid, zero, zero, lower])[finite]
    reachable = Envelope(points, float(grid[finite][-1]))
    if not 0 < eps <= reachable.max_eps:
        return np.zeros(len(rows), dtype=np.bool_)
    slope, intercept = reachable.line(eps)
    height = float(reachable(eps))
    _, right, a, b, c = rows.T
    free = np.where(a > 0, np.clip(slope / np.where(a > 0, 2 * a, 1.0), rows[:, 0], right), right)
    below = (a * free + b) * free + c - slope * free < float(intercept) - share * height
    return np.asarray(below & (height > 0))


def envelope_from_floor(
    floor: Callable[[], FloatArray],  # rows below H, higher after each value
    values: Values,
    *,
    max_eps: float,
    log_scale: float,
    at: FloatArray,
    tolerance: float,
) -> Envelope:
    """The envelope of what a method has solved, raised where it touches until tight at `at`."""
    known = np.append(at, max_eps)
    upper = values(known)[1]
    while True:
        ceiling = np.column_stack([known, upper])
        envelope = Envelope(floor(), max_eps, log_scale, "values", ceiling)
        loose = [eps for eps in at.tolist() if (1 + envelope.gap(eps)) ** 2 > 1 + tolerance]
        touched = np.unique([x for eps in loose for x in envelope.touches(eps)])
        fresh = np.setdiff1d(touched[touched > GRAIN * max_eps], known)
        if not len(fresh) or len(known) > MOST_ROUNDS * (len(at) + 1):
            return envelope
        known = np.append(known, fresh)
        upper = np.append(upper, values(fresh)[1])


def squared_lines(lines: Sequence[Line], limit: float) -> FloatArray:
    """½·max(0, lines)² on [0, limit] as rows, a little below: lines bound √2H of one pair."""
    slopes = np.array([line.nu / line.norm for line in lines if line.norm > 0])
    heights = np.array([line.m / line.norm for line in lines if line.norm > 0])
    # zero is a line too; where any two cross the highest may change
    slopes, heights = np.append(slopes, 0.0), np.append(heights, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = (heights[None] - heights[:, None]) / (slopes[:, None] - slopes[None])
    inside = cross[np.isfinite(cross) & (cross > 0) & (cross < limit)]
    edges = np.unique(np.concatenate([[0.0, limit], inside]))
    best = (slopes[:, None] * (edges[:-1] + edges[1:]) / 2 + heights[:, None]).argmax(axis=0)
    s, h = slopes[best], heights[best]
    slack = ROUNDING * (np.abs(s * h) * edges[1:] + h**2)  # of the products b and c
    shrink = 0.5 * (1 - ROUNDING)
    return np.column_stack(
        [edges[:-1], edges[1:], shrink * s**2, 2 * shrink * s * h, shrink * h**2 - slack]
    )
