"""Proofs of H(ε) over listed labels: exact values of few pairs, bounds for the rest.

Floats (the pool of `methods`) only say where to look. Small pair problems are solved by Lemke's
method over the integers; larger ones by the optimality conditions of the active set that a float
solution suggests. Either way both ends are evaluated exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from consistruct.calibration.proofs.base import down, plain, up
from consistruct.calibration.proofs.filters import FloatView, Point, is_safe, safe_eps
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.calibration.proofs.provers.labels import Winners, basis_columns
from consistruct.calibration.proofs.provers.pair import (
    IntegerPair,
    Piece,
    Solution,
    best_level,
    feasible_distribution,
    full_value,
    is_small,
    lemke,
    trace,
)
from consistruct.calibration.proofs.provers.reduced import (
    Guide,
    Reduced,
    active_solution,
    over_cells,
    solve_reduced,
)
from consistruct.certificates.exact import product
from consistruct.certificates.listed import Problem, bound
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["ListedProver", "Proof"]

EXACT_LIMIT = 9  # labels up to which bounds are compared without any slack
EXACT_BITS = 16_000  # and the length of integers, see `is_small`
SLACK = Fraction(3, 10**7)  # relative: bounds this near the incumbent will do beyond that
MOST_LINES = 6  # dual points that are kept per pair


@dataclass(frozen=True, eq=False)
class Proof:
    """lower ≤ H(ε) ≤ upper, exactly, with the point that attains the upper end."""

    eps: Fraction
    lower: Fraction
    upper: Fraction
    pair: tuple[int, int]
    distribution: list[Fraction]
    level: Fraction | None  # full scores
    theta: list[Fraction] | None  # other scores

    def as_certificate(self, **data: Any) -> ListedCertificate:
        """Plain data, with the loss, the scores and all points; the ends are rounded outward."""
        return ListedCertificate(
            eps=plain(self.eps), lower=down(self.lower), upper=up(self.upper), pair=self.pair,
            distribution=list(self.distribution), level=self.level,
            theta=None if self.theta is None else list(self.theta), **data,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Primal:
    value: Fraction
    distribution: list[Fraction]
    level: Fraction | None
    theta: list[Fraction] | None


class ListedProver:
    """All pairs of one loss matrix and one score matrix.

    Parameters
    ----------
    matrix : (k, m) rows of the loss: floats, or fractions where they are no floats.
    embedding : (k, r) scores, or None for one score per label.
    measure : (k,) reference weights, None for uniform ones.
    rank : numerical rank of the embedding; where its floats have a larger exact rank, the columns
        that carry the numerical one are kept, and the claim is about these.
    predictable : labels that certainly can win.
    guide : cells and float solutions, for pairs that are too large for Lemke's method.
    """

    def __init__(
        self,
        matrix: list[list[Any]],
        embedding: FloatArray | None = None,
        measure: FloatArray | None = None,
        *,
        rank: int | None = None,
        predictable: list[int] | None = None,
        guide: Guide | None = None,
    ) -> None:
        self.loss = matrix
        self.measure = None if measure is None else measure.tolist()
        self.embedding = None if embedding is None else basis_columns(embedding, measure, rank)
        if self.embedding is not None and len(self.embedding[0]) == len(matrix):
            self.embedding = None  # invertible: one score per label in other coordinates
        self.problem = Problem(self.loss, self.embedding, self.measure)
        self.guide = guide
        self._solved: dict[tuple[bytes, Fraction], Reduced | None] = {}
        self._predictable = predictable
        # with full scores every label wins
        self.rows = list(range(len(matrix))) if self.problem.full else self.winners.rows
        self.exact = len(self.rows) <= EXACT_LIMIT and (
            guide is None
            or len(self.rows) < 2
            or is_small(self.pair(*self.rows[:2])[0], EXACT_BITS)
        )
        self._filters = not self.exact and is_safe(self.problem)
        self.lines: dict[tuple[int, int], list[Point]] = {}
        self._proofs: dict[Fraction, Proof] = {}
        self._view: FloatView | None = None

    @cached_property
    def winners(self) -> Winners:
        """Which labels can be predicted, by scores that are not full."""
        return Winners(self.problem, self._predictable)

    # --- one pair ---

    def pair(self, i: int, j: int) -> tuple[IntegerPair, list[int]]:
        """The pair problem over the rows other than j."""
        problem = self.problem
        others = [c for c in self.rows if c != j]
        K = [[problem.distance(a, b, j) for b in others] for a in others]
        at_j = problem.projected[j]
        B = [[x - y for x, y in zip(problem.projected[c], at_j, strict=True)] for c in others]
        return IntegerPair(K, B, problem.gap(i, j)), others

    def solve(self, i: int, j: int, eps: Fraction) -> tuple[_Primal | None, Point | None]:
        """A primal and a dual point of the pair, optimal where the problem is small."""
        unit = self.problem.unit
        pair, others = self.pair(i, j)
        if self.guide is None or self.exact:
            q, w, nu = lemke(pair, eps * unit).at(eps * unit)
        else:
            cells = self.guide.cells(i, j)
            if cells is None:
                return None, None
            key = cells.signature, eps
            if key not in self._solved:
                self._solved[key] = solve_reduced(
                    self.guide, pair, others, cells, (i, j), eps, unit
                )
            reduced = self._solved[key]
            if reduced is None:
                return None, None
            q, w, nu = reduced.spread(cells, others, len(pair.g))
        point = {c: x for c, x in zip(others, w, strict=True) if x > 0}
        return self.primal(i, j, q, point, eps), (point, max(nu, Fraction(0)))

    def primal(
        self, i: int, j: int, q: list[Fraction], w: dict[int, Fraction], eps: Fraction
    ) -> _Primal | None:
        """Make the point feasible and evaluate it; its scores come from the multipliers w."""
        problem = self.problem
        distribution = feasible_distribution(q, problem.gap(i, j), eps * problem.unit)
        if distribution is None:
            return None
        support = [y for y, x in enumerate(distribution) if x]
        rows = [[row[y] for y in support] for row in problem.loss]
        costs = product([[distribution[y] for y in support]], rows)[0]
        expected = [x / problem.unit for x in costs]
        if problem.full:
            level = best_level(expected, problem.mu, j)
            value = full_value(expected, problem.mu, j, level)
            return _Primal(value, distribution, level, None)
        # θ = −Y(Σ w_c (e_c − e_j)) − Y M L q with Y = (FᵀMF)⁺Fᵀ; w is in units of its own
        scale = Fraction(problem.scale, problem.unit)
        source = [-m * x for m, x in zip(problem.mu, expected, strict=True)]
        for c, x in w.items():
            source[c] -= scale * x
            source[j] += scale * x
        theta = product([source], problem.dual)[0]
        return self._feasible_scores(j, distribution, expected, theta)

    def _feasible_scores(
        self, j: int, distribution: list[Fraction], expected: list[Fraction], theta: list[Fraction]
    ) -> _Primal | None:
        """Raise j by what it misses, and evaluate; None where no scores put it above the others."""
        problem = self.problem
        f = product([theta], problem.scores)[0]
        missing = max(f) - f[j]
        if missing > 0:
            inside = self.winners.inside(j)
            if inside is None:
                return None
            theta = [a + missing * b for a, b in zip(theta, inside, strict=True)]
            f = product([theta], problem.scores)[0]
        z = [m * (a + b) for m, a, b in zip(problem.mu, f, expected, strict=True)]
        value = product([z], product([z], problem.kernel))[0][0] / (2 * problem.scale)
        return _Primal(value, distribution, None, theta)

    def trace(self, i: int, j: int) -> list[Piece]:
        """H_ij on (0, its largest ε] as rational pieces (low, high, a, b, c)."""
        pair, others = self.pair(i, j)
        cells = None if self.guide is None else self.guide.cells(i, j)
        extra, kernel_extra = 1, 1
        if cells is not None and not is_small(pair):
            pair, extra, kernel_extra = over_cells(pair, others, cells)
        unit, scale = self.problem.unit * extra, self.problem.scale * kernel_extra
        guide = None if is_small(pair) else self.guide

        def solve(at: Fraction) -> Solution:
            found = None if guide is None else active_solution(guide, pair, i, j, at / unit, at)
            return lemke(pair, at) if found is None else found

        # ε here is unit · ε there, ½wᵀKw comes in the unit of K and w in scale/unit
        factor = Fraction(scale, unit**2)
        return [
            (low / unit, high / unit, a * factor * unit**2, b * factor * unit, c * factor)
            for low, high, a, b, c in trace(pair, solve)
        ]

    # --- all pairs ---

    def add_line(self, i: int, j: int, point: Point) -> None:
        """Remember a dual point: it bounds the pair at every ε. The latest few are kept."""
        known = self.lines.setdefault((i, j), [])
        known.append(point)
        del known[:-MOST_LINES]

    def _bound(self, i: int, j: int, eps: Fraction) -> Fraction | None:
        """The best exact bound of the known dual points; None: the pair is infeasible."""
        one = Fraction(1)
        best = Fraction(0)
        for w, nu in [({i: one}, one), *self.lines.get((i, j), [])]:
            found = bound(self.problem, i, j, w, nu, eps)
            if found is None:
                return None
            best = max(best, found)
        return best

    def prove(
        self, eps: Fraction, start: tuple[tuple[int, int], list[Fraction]] | None = None
    ) -> Proof | None:
        """H(ε) for ε > 0; None above the largest excess risk.

        `start` is a pair and a distribution whose best scores are worth a try.
        """
        while eps not in self._proofs:
            found = self._search(eps, start)
            if found is None:
                return None
            if self._can_win(found.pair):
                self._proofs[eps] = found
        return self._proofs[eps]

    def evaluate(self, eps: Fraction, pair: tuple[int, int], distribution: list[Fraction]) -> Proof:
        """Prove what a point and the known dual points are worth, without solving anything."""
        best = self.primal(*pair, distribution, {}, eps)
        if best is None:
            raise ConsistructError(f"the pair {pair} is not feasible at ε = {float(eps)!r}")
        least = best.value
        for (i, j), low in self._start(eps).items():
            if low < least:  # the floats may have been too careful
                known = self._bound(i, j, eps)
                least = least if known is None else min(least, max(low, known))
        proof = Proof(eps, least, best.value, pair, best.distribution, best.level, best.theta)
        self._proofs[eps] = proof
        return proof

    @property
    def widest(self) -> tuple[tuple[int, int], list[Fraction]]:
        """The pair that differs most, and the distribution under which it does."""
        columns = list(zip(*(self.problem.loss[c] for c in self.rows), strict=True))
        y = max(range(len(columns)), key=lambda t: max(columns[t]) - min(columns[t]))
        i, j = (self.rows[columns[y].index(end(columns[y]))] for end in (min, max))
        return (i, j), [Fraction(int(t == y)) for t in range(self.problem.m)]

    def _can_win(self, pair: tuple[int, int]) -> bool:
        """Whether both labels can be predicted; one that cannot is left out from now on.

        Floats stated which labels can: of those that attain an upper end this is decided exactly.
        """
        if self.problem.full:
            return True
        for label in pair:
            self.winners.wins(label)
        self.rows = [c for c in self.rows if c not in self.winners.excluded]
        return all(label in self.rows for label in pair)

    def _search(
        self, eps: Fraction, start: tuple[tuple[int, int], list[Fraction]] | None
    ) -> Proof | None:
        lower = self._start(eps)
        best: _Primal | None = None
        winner = (-1, -1)
        slack = Fraction(0) if self.exact else SLACK
        target: Fraction | None = None
        if start is not None:
            (i, j), distribution = start
            best = self.primal(i, j, distribution, {}, eps)
            if best is not None:
                winner, target = (i, j), best.value * (1 - slack)
        for i, j in sorted(lower, key=lambda pair: lower[pair]):
            if target is not None and lower[i, j] >= target:
                continue
            if not self.exact:  # the floats may have been too careful
                known = self._bound(i, j, eps)
                if known is None:
                    del lower[i, j]
                    continue
                lower[i, j] = max(lower[i, j], known)
                if target is not None and lower[i, j] >= target:
                    continue
            primal, point = self.solve(i, j, eps)
            if point is not None:
                found = bound(self.problem, i, j, *point, eps)
                if found is None:
                    del lower[i, j]
                elif found > lower[i, j]:
                    lower[i, j] = found
                    self.add_line(i, j, point)
            if primal is not None and (best is None or primal.value < best.value):
                best, winner = primal, (i, j)
                target = best.value * (1 - slack)
        if best is None:
            return None
        least = min([best.value, *lower.values()])
        return Proof(eps, least, best.value, winner, best.distribution, best.level, best.theta)

    def _start(self, eps: Fraction) -> dict[tuple[int, int], Fraction]:
        """Bounds of all feasible pairs from the dual points that are known."""
        lower: dict[tuple[int, int], Fraction] = {}
        rough = self._rough(eps) if self._filters and safe_eps(eps) else None
        for i in self.rows:
            for j in self.rows:
                if i == j or (rough is not None and math.isinf(rough[i, j])):
                    continue
                if max(self.problem.gap(i, j)) >= eps * self.problem.unit:
                    known = self._bound(i, j, eps) if rough is None else Fraction(rough[i, j])
                    if known is not None:
                        lower[i, j] = known
        return lower

    def _rough(self, eps: Fraction) -> FloatArray:
        """Float bounds of all pairs, safe against rounding; +inf where infeasible."""
        if self._view is None:
            self._view = FloatView(self.problem)
        at = float(eps) * (1 - 2.0**-52)
        found = self._view.start(at)
        found[self._view.infeasible(at)] = np.inf
        for (i, j), points in self.lines.items():
            if math.isfinite(found[i, j]):
                found[i, j] = max(found[i, j], self._view.lines(i, j, points, at))
        return found

    # --- certificates ---

    def certificate(self, eps: Fraction) -> ListedCertificate | None:
        """Everything that a check of H(ε) needs, as plain data."""
        proof = self.prove(eps)
        if proof is None:
            return None
        points = self._points(eps, proof.lower)
        if points is None:  # a dual point of this proof had to make room for later ones
            del self._proofs[eps]
            proof = self.prove(eps)
            assert proof is not None
            points = self._points(eps, proof.lower)
            assert points is not None
        full = self.embedding is None
        i, j = proof.pair
        return proof.as_certificate(
            loss=self.loss,
            scores=self.embedding,
            measure=self.measure,
            points=points,
            wins={} if full else {label: self.winners.wins(label) for label in (i, j)},
            excluded={} if full else self.winners.excluded,
        )

    def _points(self, eps: Fraction, lower: Fraction) -> dict[tuple[int, int], list[Point]] | None:
        """A dual point for each pair that w = e_i, ν = 1 leaves open; None if one is missing."""
        points: dict[tuple[int, int], list[Point]] = {}
        one = Fraction(1)
        rough = self._rough(eps) if self._filters and safe_eps(eps) else None
        for i in self.rows:
            for j in self.rows:
                if i == j or max(self.problem.gap(i, j)) < eps * self.problem.unit:
                    continue
                known = self.lines.get((i, j), [])
                if not known and rough is not None and rough[i, j] >= lower:
                    continue
                for point in [({i: one}, one), *reversed(known)]:
                    found = bound(self.problem, i, j, *point, eps)
                    if found is None or found >= lower:
                        if point[0] != {i: one} or point[1] != one:
                            points[i, j] = [point]
                        break
                else:
                    return None
        return points
