"""Which pairs to solve at which ε: from the bottom up, best bound first, lines kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from consistruct._compile import compiled
from consistruct._threads import Run, crew, workers
from consistruct.calibration.methods.explicit_full._batch import Batch, solve_batch, warm_starts
from consistruct.calibration.methods.explicit_full._dual import DualPoints
from consistruct.calibration.methods.explicit_full._gauge import gauge
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Incumbent", "Search"]

FIRST_ROUND = 8  # pairs per worker in the first round at an ε; later rounds are four times larger
LARGEST_ROUND = 4096
RECENT_WINNERS = 6

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Incumbent:
    """A feasible point: the pair, the distribution q on its support, and k·H' there."""

    pair: int
    upper: float
    columns: IntArray
    distribution: FloatArray


@compiled
def best_lines(
    theorem: FloatArray,  # (k²,) slope of Theorem 7's line
    head: IntArray,  # (k²,) newest line of each pair, −1: none
    previous: IntArray,  # (n,)
    slope: FloatArray,
    intercept: FloatArray,
    eps: float,
    height: FloatArray,  # (k²,) out: best lower bound on √(4kH')
    line: IntArray,  # (k²,) out: the line that gives it, −1: Theorem 7
) -> None:
    """Evaluate the best known line of every pair at ε."""
    for pair in range(head.shape[0]):
        best = theorem[pair] * eps
        which = -1
        t = head[pair]
        while t >= 0:
            value = slope[t] * eps + intercept[t]
            if value > best:
                best = value
                which = t
            t = previous[t]
        height[pair] = best
        line[pair] = which


@compiled
def largest_differences(L: FloatArray) -> FloatArray:
    """max_y (L_jy − L_iy) at position i·k + j; −inf for i = j."""
    k, m = L.shape
    largest = np.full(k * k, -np.inf)
    for i in range(k):
        for j in range(k):
            if i != j:
                best = -np.inf
                for y in range(m):
                    best = max(best, L[j, y] - L[i, y])
                largest[i * k + j] = best
    return largest


@compiled
def link(pairs: IntArray, start: int, head: IntArray, previous: IntArray) -> None:
    """Put lines start, start + 1, … at the head of the lists of their pairs."""
    for offset in range(pairs.shape[0]):
        pair = pairs[offset]
        previous[start + offset] = head[pair]
        head[pair] = start + offset


@dataclass
class _Lines:
    """All lines found so far: linked lists per pair, dual points as the batches returned them."""

    head: IntArray
    count: int = 0
    previous: IntArray = field(default_factory=lambda: np.empty(1024, dtype=np.int64))
    slope: FloatArray = field(default_factory=lambda: np.empty(1024))
    intercept: FloatArray = field(default_factory=lambda: np.empty(1024))
    batches: list[Batch] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        n = batch.pairs.size
        if n == 0:
            return
        while self.count + n > self.slope.size:
            self.previous = np.concatenate([self.previous, np.empty_like(self.previous)])
            self.slope = np.concatenate([self.slope, np.empty_like(self.slope)])
            self.intercept = np.concatenate([self.intercept, np.empty_like(self.intercept)])
        part = slice(self.count, self.count + n)
        self.slope[part] = batch.slope
        self.intercept[part] = batch.intercept
        link(batch.pairs, self.count, self.head, self.previous)
        self.count += n
        self.batches.append(batch)

    def points(self, keep: IntArray, k: int) -> DualPoints:
        """The dual points behind the chosen lines (positions in the order of their arrival)."""
        pairs, nu, sizes, rows, weights = [], [], [], [], []
        start = 0
        for batch in self.batches:
            end = start + batch.pairs.size
            inside = keep[(keep >= start) & (keep < end)] - start
            size = np.diff(batch.indptr)
            taken = np.zeros(batch.pairs.size, dtype=bool)
            taken[inside] = True
            entries = np.repeat(taken, size)
            pairs.append(batch.pairs[taken])
            nu.append(batch.mu[taken])
            sizes.append(size[taken])
            rows.append(batch.rows[entries])
            weights.append(batch.weights[entries])
            start = end
        if not pairs:
            none = np.empty(0, dtype=np.int64)
            return DualPoints(none, none, np.empty(0), np.zeros(1, np.int64), none, np.empty(0))
        pair = np.concatenate(pairs)
        return DualPoints(
            i=pair // k,
            j=pair % k,
            nu=np.concatenate(nu),
            indptr=np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
            rows=np.concatenate(rows),
            weights=np.concatenate(weights),
        )


class Search:
    """The pairs of one loss matrix, their lines so far, and the best point at each visited ε."""

    def __init__(self, L: FloatArray, p: FloatArray, tolerance: float, jobs: int) -> None:
        k = L.shape[0]
        self.losses = L
        self.p = p
        self.tolerance = tolerance
        self.jobs = workers(jobs)
        self.centered = np.ascontiguousarray(L - L.min(axis=0))
        self.transposed = np.ascontiguousarray(self.centered.T)
        self.largest = largest_differences(L)
        self.theorem = np.sqrt(2 / (1 / p[:, None] + 1 / p)).ravel()
        self.lines = _Lines(np.full(k * k, -1, dtype=np.int64))
        self.warm = warm_starts(k)
        self.height = np.empty(k * k)
        self.line = np.empty(k * k, dtype=np.int64)
        self.found: dict[float, Incumbent] = {}

    def run(self, eps: FloatArray, progress: Progress | None) -> dict[float, Incumbent]:
        """Visit the values (distinct, positive, feasible); return the best point at each.

        From the smallest up: Theorem 7 decides the first ones, a distribution for one ε mixed with
        the true label of largest d is nearly right for the next, and pairs drop out for good.
        Coarse to fine from the top solves twice as many pairs.
        """
        with crew(self.jobs) as run:
            for done, value in enumerate(np.sort(eps).tolist()):
                if progress is not None:
                    progress(done, eps.size)
                self._visit(value, run)
        if progress is not None:
            progress(eps.size, eps.size)
        return self.found

    def needed_points(self) -> DualPoints:
        """The dual points that some visited ε needs beyond Theorem 7."""
        kept = [np.empty(0, dtype=np.int64)]
        for eps, incumbent in self.found.items():
            self._evaluate(eps)
            needed = (self.largest >= eps) & (self.line >= 0)
            needed &= (self.theorem * eps) ** 2 / 4 < incumbent.upper * (1 - 1e-3 * self.tolerance)
            kept.append(self.line[needed])
        return self.lines.points(np.unique(np.concatenate(kept)), self.p.size)

    def _evaluate(self, eps: float) -> None:
        lines = self.lines
        best_lines(
            self.theorem,
            lines.head,
            lines.previous,
            lines.slope,
            lines.intercept,
            eps,
            self.height,
            self.line,
        )

    def _widest(self) -> Incumbent:
        """All weight on one label, for the pair with the largest difference: feasible for all ε."""
        k = self.p.size
        pair = int(self.largest.argmax())
        i, j = divmod(pair, k)
        y = int((self.losses[j] - self.losses[i]).argmax())
        z = self.centered[j, y] - self.transposed[y]
        _, _, upper = gauge(z, self.p, j, 0.0, np.empty(k, dtype=np.int64), np.empty(k))
        return Incumbent(pair, upper, np.array([y]), np.ones(1))

    def _visit(self, eps: float, run: Run) -> None:
        self._evaluate(eps)
        feasible = self.largest >= eps
        # A point for a larger ε is a point for this one too.
        above = [point for value, point in self.found.items() if value >= eps]
        best = min([self._widest(), *above], key=lambda point: point.upper)
        nearest = sorted(self.found, key=lambda value: abs(value - eps))
        recent = list(dict.fromkeys(self.found[value].pair for value in nearest))
        recent = [pair for pair in recent if feasible[pair]][:RECENT_WINNERS]
        for pair in recent:
            best = self._solve(np.array([pair]), eps, best, run)
            feasible[pair] = False
        size = FIRST_ROUND * self.jobs
        bounds = self.height**2 / 4
        while True:
            target = best.upper * (1 - 0.5 * self.tolerance)
            open_pairs = np.flatnonzero(feasible & (bounds < target))
            if open_pairs.size == 0:
                break
            if open_pairs.size > size:
                smallest = np.argpartition(bounds[open_pairs], size)[:size]
                open_pairs = open_pairs[smallest]
            open_pairs = open_pairs[np.argsort(bounds[open_pairs], kind="stable")]
            best = self._solve(open_pairs, eps, best, run)
            feasible[open_pairs] = False  # solved or above the incumbent: once is enough
            size = min(4 * size, LARGEST_ROUND * self.jobs)
        self.found[eps] = best

    def _solve(self, pairs: IntArray, eps: float, best: Incumbent, run: Run) -> Incumbent:
        """Solve the pairs, dealt out to the workers in turn; return the best point known then."""
        incumbent = best.upper
        shares = [pairs[worker :: self.jobs].copy() for worker in range(min(self.jobs, pairs.size))]

        def work(share: IntArray) -> Batch:
            return solve_batch(
                self.losses,
                self.centered,
                self.transposed,
                self.p,
                share,
                self.height[share] ** 2 / 4,
                eps,
                incumbent,
                self.tolerance,
                self.warm,
            )

        for batch in run(work, shares):
            self.lines.add(batch)
            if batch.best_pair >= 0 and batch.best_upper < best.upper:
                best = Incumbent(
                    batch.best_pair, batch.best_upper, batch.columns, batch.distribution
                )
        return best
