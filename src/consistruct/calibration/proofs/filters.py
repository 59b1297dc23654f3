"""Lower bounds of all pairs at once in floats, each provably below its exact value.

Exact integers decide every pair, but slowly. Here the loss, its projection and the kernel are
rounded once (relative error u per entry) and each bound is lowered by what rounding can have
added to it. A sum of n products in any order is wrong by at most n·2u times the sum of absolute
values; constants are rounded up generously. What the filter leaves open goes to the integers.

All this is true of normal floats only: a subnormal number is rounded by an absolute error that no
factor covers. So nothing is proved unless the numbers that go in are in SAFE (products of three of
them, times a unit of rounding, are still normal), and quotients below LEAST count as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from consistruct.calibration.proofs.base import up
from consistruct.certificates.listed import Problem
from consistruct.protocols import FloatArray

__all__ = ["FloatView", "is_safe", "safe_eps"]

UNIT = 2.0**-52  # twice the unit roundoff
# magnitudes of what goes in, zero apart: w·K·w and its rounding are then within 2^(±900 ± 52)
SAFE = (Fraction(1, 2**300), Fraction(2**300))
LEAST = 2.0**-1000  # of a quotient and of its square: smaller ones may have been subnormal
MOST_KNOWN = 100_000  # dual points whose numbers are kept

Point = tuple[dict[int, Fraction], Fraction]
Line = tuple[float, float, float]
NO_LINE: Line = (0.0, 0.0, 0.0)  # a bound of zero


class FloatView:
    """A listed problem in floats. Bounds are on H; use it only where `is_safe`."""

    def __init__(self, problem: Problem) -> None:
        self.k = problem.k
        self.full = problem.full
        self.loss = _floats(problem.loss, problem.unit)
        self.projected = self.loss if self.full else _floats(problem.projected, problem.unit)
        if self.full:
            self.kernel = np.diag([x / problem.scale for x in problem.inverse])
        else:
            self.kernel = _floats(problem.kernel, problem.scale)
        self.size = np.abs(self.loss).max(axis=1) + np.abs(self.projected).max(axis=1)  # (k,)
        self.known: dict[tuple[int, int, int], tuple[dict[int, Fraction], Line]] = {}

    def infeasible(self, eps: float) -> np.ndarray:
        """(k, k): at [i, j] whether max_y (L_j − L_i)_y is surely below ε."""
        largest = np.stack([(self.loss - row).max(axis=1) for row in self.loss])
        return np.asarray(largest + 4 * UNIT * (self.size[:, None] + self.size) < eps * (1 - UNIT))

    def start(self, eps: float) -> FloatArray:
        """(k, k): the bound of w = e_i, ν = 1 for every pair [i, j]."""
        diagonal = np.diag(self.kernel)
        norm = diagonal[:, None] - 2 * self.kernel + diagonal
        norm += 8 * UNIT * (diagonal[:, None] + 2 * np.abs(self.kernel) + diagonal)
        if self.full:
            height: FloatArray = np.full((self.k, self.k), eps * (1 - UNIT))  # P = L cancels
        else:
            rest = self.loss - self.projected
            least = np.stack([(row - rest).min(axis=1) for row in rest])  # [i, j]
            height = eps * (1 - UNIT) + least - 8 * UNIT * (self.size[:, None] + self.size + eps)
        return _quotient(height, norm)

    def lines(self, i: int, j: int, points: Sequence[Point], eps: float) -> float:
        """The best bound of some dual points of one pair; +inf where one shows infeasibility."""
        best = 0.0
        for point in points:
            slope, rest, norm = self._line(i, j, point)
            height = slope * eps * (1 - 4 * UNIT) + rest
            best = max(best, float(_quotient(np.array(height), np.array(norm))))
        return best

    def _line(self, i: int, j: int, point: Point) -> Line:
        """(slope, rest, norm): the bound of a dual point is (slope·ε + rest)²/2norm, lowered.

        The same points are requested at many ε, and none of this depends on it.
        """
        w, nu = point
        known = self.known.get((i, j, id(w)))
        if known is None:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            safe = all(_safe(x, 1) for x in (nu, *w.values()))
            # w is kept, so that its id is its own
            known = self.known[i, j, id(w)] = w, self._new_line(i, j, point) if safe else NO_LINE
        return known[1]

    def _new_line(self, i: int, j: int, point: Point) -> Line:
        w, nu = point
        slope, rest, norm = float(nu), 0.0, 0.0
        labels = [c for c, weight in w.items() if weight and c != j]
        if labels:
            weights = np.array([float(w[c]) for c in labels])
            terms = len(labels) + 8
            gap = self.loss[j] - self.loss[i]
            reduced = -(weights @ (self.projected[labels] - self.projected[j])) - slope * gap
            size = weights @ (self.size[labels] + self.size[j])
            size += slope * (self.size[i] + self.size[j])
            rest = float(reduced.min() - 2 * terms * UNIT * size)
            chosen = [*labels, j]
            direction = np.append(weights, -weights.sum())
            kernel = self.kernel[np.ix_(chosen, chosen)]
            spread = np.abs(direction)
            norm = float(direction @ kernel @ direction)
            norm += 4 * terms * UNIT * float(spread @ np.abs(kernel) @ spread)
        return slope, rest, norm

    def proved(
        self,
        eps: Fraction,
        lower: Fraction,
        points: dict[tuple[int, int], list[Point]],
        rows: Iterable[int],
    ) -> set[tuple[int, int]]:
        """Pairs of `rows` that are surely infeasible or above `lower`; none where ε is not safe."""
        if not safe_eps(eps):
            return set()
        kept = np.zeros(self.k, dtype=np.bool_)
        kept[list(rows)] = True
        at = float(eps)
        claimed = up(lower)
        good = self.infeasible(at * (1 - UNIT)) | (self.start(at * (1 - UNIT)) >= claimed)
        good[~kept] = True
        good[:, ~kept] = True
        np.fill_diagonal(good, True)
        for i, j in np.argwhere(~good).tolist():
            found = points.get((i, j))
            good[i, j] = found is not None and self.lines(i, j, found, at * (1 - UNIT)) >= claimed
        return {(i, j) for i, j in np.argwhere(good).tolist()}


def is_safe(problem: Problem) -> bool:
    """Whether all magnitudes of a problem are those for which `FloatView` counts its errors."""
    kernel = [problem.inverse] if problem.full else problem.kernel
    return all(
        _safe(x, unit)
        for rows, unit in (
            (problem.loss, problem.unit), (problem.projected, problem.unit), (kernel, problem.scale)
        )
        for row in rows
        for x in row
    )  # fmt: skip


def safe_eps(eps: Fraction) -> bool:
    """Whether ε is of a magnitude for which `FloatView` counts its errors."""
    return _safe(eps, 1)


def _safe(top: int | Fraction, bottom: int) -> bool:
    """Whether top/bottom is zero or has a magnitude within SAFE."""
    size = abs(Fraction(top))
    return size == 0 or SAFE[0] * bottom <= size <= SAFE[1] * bottom


def _floats(rows: Sequence[Sequence[int]], unit: int) -> FloatArray:
    """Integers over a common denominator, each rounded once; Python divides integers exactly."""
    return np.array([[x / unit for x in row] for row in rows])


def _quotient(height: FloatArray, norm: FloatArray) -> FloatArray:
    """(height₊)²/2norm, lowered for its own rounding; zero where the norm is not positive."""
    positive = np.maximum(height, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore", over="ignore"):
        share = positive / norm
        found = share * positive * (0.5 * (1 - 16 * UNIT))
    normal = (norm > 0) & (share >= LEAST) & (found >= LEAST) & np.isfinite(found)
    return np.asarray(np.where(normal, found, 0.0))
