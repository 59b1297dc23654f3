"""The minimum over pairs: solve few, bound the rest.

Every dual point found for a pair is a line below √H_ij for all ε. At a new ε the pairs are visited
in the order of their best line until the smallest lower bound left passes the incumbent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from consistruct.calibration.methods.explicit.pair_solver import PairSolution, solve_pair
from consistruct.calibration.problem.listed import ExplicitProblem, PairProblem
from consistruct.calibration.problem.pair_bounds import ROUNDING, Line, dual_line, hull_slope
from consistruct.calibration.problem.symmetry import Symmetry
from consistruct.protocols import FloatArray, IntArray

__all__ = ["ExplicitPairs", "PairPool", "PairSource", "PoolPoint"]


class Lines:
    """Many lines as arrays; `pairs` states whose they are."""

    def __init__(self, pairs: IntArray, lines: Sequence[Line]) -> None:
        self.pairs = pairs
        self._nu = np.array([line.nu for line in lines])
        self._m = np.array([line.m for line in lines])
        self._norm = np.array([line.norm for line in lines])

    def lower(self, eps: float) -> FloatArray:
        """Each line's bound at ε, as `Line.lower` gives it."""
        height = np.maximum(self._nu * eps + self._m, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = 0.5 * (height / self._norm) ** 2 * (1 - ROUNDING)
        return np.where(height > 0, bound, 0.0)


class PairSource(ABC):
    """Pairs (i, j) of a problem, numbered; H = min over them · exp(log_scale)."""

    log_scale: float
    limits: FloatArray  # (n_pairs,) largest feasible ε of each pair

    @abstractmethod
    def problem(self, number: int) -> tuple[PairProblem, bytes]:
        """The (reduced) problem of a pair, and the signature that equal problems share."""

    @abstractmethod
    def start_line(self, number: int, eps: float) -> Line:
        """The best line at ε without solving anything: it uses the constraint of i only."""

    @abstractmethod
    def start_lower(self, eps: float) -> FloatArray:
        """Fast lower bounds of all pairs at ε, +inf where infeasible, (n_pairs,)."""


@dataclass(eq=False)
class ExplicitPairs(PairSource):
    """All ordered pairs of an explicit problem, reduced by symmetry where there is any."""

    parent: ExplicitProblem
    symmetric: bool = True  # False: never reduce, to compare
    _reduced: dict[int, tuple[PairProblem, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = self.parent.n_rows
        self.log_scale = self.parent.log_scale
        index = np.arange(n * n).reshape(n, n)
        self.pairs = np.column_stack(np.divmod(index[~np.eye(n, dtype=np.bool_)], max(n, 1)))
        self.limits = self.parent.pair_limits[self.pairs[:, 0], self.pairs[:, 1]]
        self._distance = self.parent.distances[self.pairs[:, 0], self.pairs[:, 1]]
        symmetry = Symmetry(self.parent) if self.symmetric and n > 2 else None
        self._symmetry = None if symmetry is None or symmetry.trivial else symmetry

    def problem(self, number: int) -> tuple[PairProblem, bytes]:
        i, j = (int(row) for row in self.pairs[number])
        if self._symmetry is None:
            return self.parent.pair(i, j), b"%d" % number
        if number not in self._reduced:
            self._reduced[number] = self._symmetry.reduce(i, j)
        return self._reduced[number]

    def two_label(self, number: int) -> PairProblem:
        """The pair with the order constraint of i alone."""
        i, j = (int(row) for row in self.pairs[number])
        parent = self.parent
        return PairProblem(
            order=(parent.embedding[i] - parent.embedding[j])[None],
            order_rhs=(parent.projected[i] - parent.projected[j])[None],
            gap=parent.loss[j] - parent.loss[i],
            row_cells=(np.array([i]),),
            column_cells=tuple(np.arange(parent.loss.shape[1])[:, None]),
        )

    def start_line(self, number: int, eps: float) -> Line:
        pair = self.two_label(number)
        slope = hull_slope(pair.gap, -pair.order_rhs[0], eps)
        return dual_line(pair, np.ones(1), slope)

    @cached_property
    def _first_lines(self) -> Lines:
        """Start lines of all pairs, each at half of its range: one pass, good for every ε."""
        lines = [
            self.start_line(number, limit / 2) for number, limit in enumerate(self.limits.tolist())
        ]
        return Lines(np.arange(len(lines)), lines)

    def start_lower(self, eps: float) -> FloatArray:
        lower = np.full(len(self.limits), np.inf)
        feasible = eps <= self.limits
        if self.parent.expresses:
            # Theorem 7: w = ν e_i; P_i − P_j = L_i − L_j up to the residual cancels the gap
            height = max(eps - self.parent.residual * (1 + ROUNDING) - ROUNDING / 16, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                bound = height**2 / (2 * self._distance) * (1 - ROUNDING)
            lower[feasible] = np.nan_to_num(bound[feasible], nan=0.0, posinf=0.0)
            return lower
        lower[feasible] = self._first_lines.lower(eps)[feasible]
        return lower


@dataclass(frozen=True, eq=False)
class PoolPoint:
    """H at one ε without the factor exp(log_scale), and what proves it."""

    eps: float
    lower: float
    upper: float
    pair: int  # number of the winning pair, −1 if all are infeasible
    solution: PairSolution | None


@dataclass(frozen=True, eq=False)
class StoredLine:
    """A line with the multipliers behind it."""

    pair: int
    w: FloatArray
    line: Line


class PairPool:
    """Evaluates the minimum over a source of pairs, keeping every line it ever found."""

    def __init__(self, source: PairSource, *, tolerance: float = 1e-6) -> None:
        self.source = source
        self.tolerance = tolerance
        self.stored: list[StoredLine] = []
        self._lines: Lines | None = None
        self._recent: list[int] = []
        self._points: dict[float, PoolPoint] = {}

    def lower_bounds(self, eps: float) -> FloatArray:
        """Best lower bound of every pair at ε from start lines and stored ones, (n_pairs,)."""
        lower = self.source.start_lower(eps)
        if self.stored:
            if self._lines is None or len(self._lines.pairs) < len(self.stored):
                numbers = np.array([entry.pair for entry in self.stored])
                self._lines = Lines(numbers, [entry.line for entry in self.stored])
            np.maximum.at(lower, self._lines.pairs, self._lines.lower(eps))
        return lower

    def point(self, eps: float) -> PoolPoint:
        """H(ε) for ε > 0."""
        if eps not in self._points:
            self._points[eps] = self._evaluate(eps)
        return self._points[eps]

    def _evaluate(self, eps: float) -> PoolPoint:
        lower = self.lower_bounds(eps)
        feasible = np.flatnonzero(np.isfinite(lower))
        if len(feasible) == 0:
            return PoolPoint(eps, math.inf, math.inf, -1, None)
        order = feasible[np.argsort(lower[feasible], kind="stable")].tolist()
        recent = [number for number in self._recent if math.isfinite(lower[number])]
        best: PairSolution | None = None
        winner = -1
        threshold = math.inf
        solved: dict[bytes, PairSolution] = {}
        for number in dict.fromkeys([*recent, *order]):
            if lower[number] < threshold:
                line = self.source.start_line(number, eps)
                lower[number] = max(lower[number], line.lower(eps))
            if lower[number] >= threshold:
                continue
            pair, signature = self.source.problem(number)
            solution = solved.get(signature)
            if solution is None:
                found = solve_pair(pair, eps)
                if found is None:  # infeasible by rounding at the very end of its range
                    lower[number] = math.inf
                    continue
                solution = solved[signature] = found
            self.stored.append(StoredLine(number, solution.w, solution.line))
            lower[number] = max(lower[number], solution.lower)
            if best is None or solution.upper < best.upper:
                best, winner = solution, number
                # half of the tolerance is left for the width of the winner itself
                threshold = best.upper * (1 - self.tolerance / 2)
        if winner >= 0:
            self._recent = [winner, *[number for number in self._recent if number != winner]][:8]
        upper = math.inf if best is None else best.upper
        return PoolPoint(eps, min(float(lower.min()), upper), upper, winner, best)
