"""The largest convex function below H, as Jensen's inequality needs it.

H itself is neither convex nor continuous. A slope s ≥ 0 supports the line s·ε − H*(s) with the
conjugate H*(s) = sup_x [s·x − H(x)], and the envelope is the highest of these lines at every ε:

    Ȟ(ε) = sup_{s ≥ 0} s·ε − H*(s).

H is given by quadratics (or points) of which the least that covers x is at most H(x), so H* is a
maximum over a few formulas. Every slope gives a valid line: floating point only chooses s, by
bisection, then H*(s) is taken in exact rational arithmetic and the value rounded down. What is
returned is a bound that a single line proves, however badly s was chosen.

Where H is known by values only, it never falls, so on [x_m, x_{m+1}] it is at least its value at
x_m (and at least Theorem 7). This step function is what is proved; the hull of the values
themselves is what more of them can reach. A line just below that hull at the ε in question is to
be proved: every interval whose step is still below the line is halved. Where a method keeps lines
below √H of every pair, a value of H where the envelope touches them is enough to raise it: a few
values do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consistruct.calibration.problem.pair_bounds import Line
from consistruct.calibration.proofs.base import down, up
from consistruct.protocols import FloatArray

__all__ = [
    "Envelope",
    "as_rows",
    "envelope_from_floor",
    "envelope_from_values",
    "squared_lines",
]

ORIGIN = np.zeros((1, 5))  # H(0) = 0
STEEPEST = np.float64(2.0**900)  # no line needs more
UNIT = float(np.finfo(np.float64).eps)

MOST_ROUNDS = 24  # of touching and raising
ROUNDING = 64 * UNIT
GRAIN = 2.0**-40  # share of the range below which an interval is not halved

Values = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Source = Literal["pieces", "values", "theorem 7"]


def as_rows(pieces: Any) -> FloatArray:
    """`Quadratic` pieces as (n, 5) rows: low, high, a, b, c."""
    rows = [(p.low, p.high, p.a, p.b, p.c) for p in pieces]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


@dataclass(frozen=True, eq=False)
class Envelope:
    """Ȟ(ε)·exp(−log_scale) of convex quadratics, +inf above max_eps.

    Attributes
    ----------
    rows : (n, 5) array
        low, high, a, b, c: H is at least the least of a·ε² + b·ε + c over the rows that hold ε,
        a ≥ 0. A row with low = high also covers what is left of it: H never falls.
    source : str
        "pieces": H is known exactly, and so is its envelope; "values": H is known at some ε, and
        `gap` states how far the envelope may be off; "theorem 7": H is known from below only.
    ceiling : (m, 2) array, optional
        Points (ε, y) with H(ε) ≤ y·exp(log_scale): their hull is above the envelope of H.
    """

    rows: FloatArray
    max_eps: float
    log_scale: float = 0.0
    source: Source = "pieces"
    ceiling: FloatArray | None = None
    _proved: dict[float, Fraction] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        distinct = np.unique(np.concatenate([ORIGIN, self.rows]), axis=0)
        object.__setattr__(self, "rows", distinct)

    # --- values ---

    def __call__(self, eps: ArrayLike) -> Any:
        """A number at most Ȟ(ε): a float, or an array of the shape of `eps`."""
        scaled = self._scaled(eps)
        factor = math.exp(self.log_scale)
        result = np.where(np.isinf(scaled), np.inf, scaled * factor)
        return float(result) if result.ndim == 0 else result

    def log(self, eps: ArrayLike) -> Any:
        """log of the value, −inf where it is 0: finite where the value itself underflows."""
        with np.errstate(divide="ignore"):
            result = np.log(self._scaled(eps)) + self.log_scale
        return float(result) if result.ndim == 0 else result

    def gap(self, eps: ArrayLike) -> Any:
        """By which share of the value Ȟ(ε) may be larger: 0 if exact, NaN if nothing is known."""
        x = np.asarray(eps, dtype=np.float64)
        if self.source == "pieces":
            found = np.zeros(x.shape)
        elif self.ceiling is None:
            found = np.where(x > self.max_eps, 0.0, np.nan)
        else:
            low, high = self._scaled(x), self._above._scaled(x)
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.where((high > low) & (x <= self.max_eps), high / low - 1, 0.0)
        return float(found) if found.ndim == 0 else found

    @property
    def _above(self) -> Envelope:
        assert self.ceiling is not None
        x, y = self.ceiling[np.isfinite(self.ceiling[:, 1])].T
        zero = np.zeros_like(x)
        end = float(x.max(initial=0.0))
        return Envelope(np.column_stack([x, x, zero, zero, y]), end, self.log_scale)

    def line(self, eps: float) -> tuple[float, Fraction]:
        """(slope, intercept) of a line below H everywhere, highest at ε; both exact."""
        slopes = [0.0, *self._slopes(np.array([eps]))[:, 0].tolist()]
        lines = [(s, self._intercept(s)) for s in slopes]
        return max(lines, key=lambda line: Fraction(line[0]) * Fraction(eps) + line[1])

    def touches(self, eps: float) -> tuple[float, float]:
        """Where the highest line at ε touches what it lies below, left of ε and right of it."""
        left, right = self._contact(self._slopes(np.array([eps]))[:, 0])[0].tolist()
        return left, right

    def _scaled(self, eps: ArrayLike) -> FloatArray:
        x = np.asarray(eps, dtype=np.float64)
        flat = x.ravel()
        inside = flat <= self.max_eps
        slopes = self._slopes(np.where(inside, flat, 0.0)).T
        found = [
            max(down(Fraction(s) * Fraction(value) + self._intercept(s)) for s in pair)
            if within
            else math.inf
            for value, pair, within in zip(
                flat.tolist(), slopes.tolist(), inside.tolist(), strict=True
            )
        ]
        return np.maximum(np.array(found, dtype=np.float64), 0.0).reshape(x.shape)

    # --- the inverse ---

    def inverse(self, delta: float) -> float:
        """sup{ε ≤ max_eps : Ȟ(ε) ≤ δ}, rounded up."""
        if not delta >= 0:
            raise ValueError(f"delta must be non-negative, got {delta}")
        return self.inverse_log(math.log(delta) if delta > 0 else -math.inf)

    def inverse_log(self, log_delta: float) -> float:
        """`inverse` at δ = exp(log_delta), for δ below all floats."""
        log_level = log_delta - self.log_scale
        level = math.exp(log_level) if log_level < 700 else math.inf
        if level == 0:
            return self._zero_until()
        if level >= float(self._scaled(self.max_eps)):
            return self.max_eps
        low, high = np.zeros(1), np.full(1, STEEPEST)
        for _ in range(64):  # a line that touches below the level is too flat
            middle = _between(low, high)
            flat = self._contact(middle)[1] <= level
            low, high = np.where(flat, middle, low), np.where(flat, high, middle)
        bounds = [
            (Fraction(level) - self._intercept(s)) / Fraction(s)
            for s in (float(low[0]), float(high[0]))
            if s > 0
        ]
        return min(up(min(bounds)), self.max_eps)

    def _zero_until(self) -> float:
        """The largest ε at which some row is not above zero: up to there the hull is zero.

        For a single row it is a root, to the nearest float.
        """
        found = 0.0
        for low, high, a, b, c in self.rows.tolist():
            if (a * high + b) * high + c <= 0:
                found = max(found, high)
            elif a > 0 and (square := Fraction(b) ** 2 - 4 * Fraction(a) * Fraction(c)) >= 0:
                root = (-b + math.sqrt(square)) / (2 * a)
                found = max(found, min(root, high)) if root >= low else found
        return found

    # --- conjugates ---

    def _contact(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Where the line of each slope touches, and the height there, (m,) each, in floats."""
        x, terms, _ = self._lowest(slopes)
        best = terms.argmin(axis=1)
        touch = x[np.arange(len(slopes)), best]
        _, _, a, b, c = self.rows[best].T
        return touch, (a * touch + b) * touch + c

    def _lowest(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """For each slope and row, (m, n): where row(x) − s·x is least, its value and error.

        The error covers the rounding of all terms.
        """
        low, high, a, b, c = self.rows.T
        s = slopes[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            free = np.where(a > 0, (s - b) / np.where(a > 0, 2 * a, 1.0), 0.0)
        x = np.where(a > 0, np.clip(free, low, high), np.where(s >= b, high, low))
        value = c + x * (a * x + (b - s))
        error = 8 * UNIT * (np.abs(c) + x * (a * x + np.abs(b) + s))
        return x, value, error

    def _slopes(self, eps: FloatArray) -> FloatArray:
        """(2, m): neighboring slopes whose lines touch left of ε, and at or right of it."""
        low, high = np.zeros(len(eps)), np.full(len(eps), STEEPEST)
        for _ in range(64):
            middle = _between(low, high)
            left = self._contact(middle)[0] < eps
            low, high = np.where(left, middle, low), np.where(left, high, middle)
        return np.stack([low, high])

    def _intercept(self, slope: float) -> Fraction:
        """−H*(s) = min over the rows and their x of row(x) − s·x, exactly.

        Rows that floats show to be higher, errors counted, are left out.
        """
        if slope not in self._proved:
            _, value, error = self._lowest(np.array([slope]))
            near = np.flatnonzero(value[0] - error[0] <= (value[0] + error[0]).min())
            self._proved[slope] = min(_exact_minimum(row, slope) for row in self.rows[near])
        return self._proved[slope]


def _exact_minimum(row: FloatArray, slope: float) -> Fraction:
    low, high, a, b, c = (Fraction(value) for value in row.tolist())
    b -= Fraction(slope)
    if a > 0 and low < (free := -b / (2 * a)) < high:
        return c + free * b / 2
    return min((a * x + b) * x + c for x in (low, high))


def _between(low: FloatArray, high: FloatArray) -> FloatArray:
    """The middle in the order of floats: 64 steps find a neighbor, whatever the magnitude."""
    bits = low.view(np.int64) + (high.view(np.int64) - low.view(np.int64)) // 2
    return bits.view(np.float64)


# --- where H is known by values only ---


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
