"""Hinge surrogates: H by cutting polytopes of distributions, with proofs in exact arithmetic.

For fixed q the surrogate is polyhedral in the scores. Let V(q) be its minimum and V_j(q) that among
scores that predict j; both are concave in q, and H(ε) is the least

    V_j(q) − V(q)   over pairs (i, j) and q with (L_j − L_i)q ≥ ε under which i is optimal.

Every pair is first bounded on its whole polytope of distributions, which gives distributions for
the upper end; then the polytopes are cut (`cuts`) until no pair can be lower. Pairs that a
permutation of the labels exchanges are solved once. The distributions with V_j(q) = V(q) and the
largest (L_j − L_i)q give the consistency level, found by the same cuts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from consistruct.calibration.curve import CurvePoint, Method, Progress, at_each, status_of
from consistruct.calibration.methods.nonquadratic.pairs import Witness
from consistruct.calibration.methods.nonquadratic.polyhedral.cuts import (
    TIE,
    Node,
    PairSearch,
    Values,
)
from consistruct.calibration.methods.nonquadratic.polyhedral.hinges import Hinge, MaxMin
from consistruct.calibration.methods.nonquadratic.polyhedral.snapping import upper_point
from consistruct.calibration.methods.nonquadratic.polyhedral.symmetries import pair_symmetries
from consistruct.calibration.proofs.base import down
from consistruct.calibration.proofs.polyhedral import PolyhedralCertificate
from consistruct.certificates.polyhedral import Problem
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray

__all__ = ["PolyhedralMethod"]

PROGRAMS = 15_000  # linear programs per ε, about a minute; what is open then keeps its bound
LEVEL_PROGRAMS = 3_000  # for the consistency level, after the first of every pair
LEVEL_TIE = 1e-9  # of losses of order one: V_j − V that counts as zero

Pair = tuple[int, int]


@dataclass(eq=False)
class PolyhedralMethod(Method):
    """All pairs of listed labels, up to symmetry."""

    loss: Loss
    model: type[Hinge] | type[MaxMin]
    log_scale: float = 0.0
    most_values = 48  # each takes a second or more from six labels on; the gap is stated

    def __post_init__(self) -> None:
        L: FloatArray = np.asarray(self.loss.matrix(), dtype=np.float64)
        self.name = f"cut polytopes of distributions, {self.model.surrogate}"
        self.rows = L.tolist()
        self.problem = Problem(self.model.surrogate, self.rows)
        size = max(float(np.abs(L).max()), float(np.finfo(np.float64).tiny))
        self.size, self.scale = size, Fraction(1)
        self._model = self.model(L / size)
        self._first, self._symmetries = pair_symmetries(L)
        # at (i, j) the largest ε at which the pair is feasible, one pair of each orbit
        pairs = sorted(set(self._first.values()))
        self._limits = {
            (i, j): max(self.problem.gap(j, i)) / Fraction(self.problem.unit) for i, j in pairs
        }
        self._values: dict[int, Values] = {}
        self._found: dict[float, PolyhedralCertificate] = {}
        self._winners: list[Pair] = []

    # --- curve ---

    @property
    def max_eps(self) -> float:
        return max((down(limit) for limit in self._limits.values() if limit > 0), default=0.0)

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        return at_each(eps, self._point, progress)

    def _point(self, eps: float) -> CurvePoint:
        found = self.certificate(eps)
        lower, upper = float(found.lower), float(found.upper)  # floats they are
        status = status_of(lower, upper, self.size)
        pair = self._labels(found.pair)
        return CurvePoint(eps, lower, upper, 0.0, self.name, status, pair, self.scale)

    def _labels(self, pair: Pair) -> tuple[Any, Any]:
        labels = self.loss.predictions.unindex(np.array(pair))
        one, other = labels.tolist()
        return (tuple(one), tuple(other)) if labels.ndim > 1 else (one, other)

    def certificate(self, eps: float) -> PolyhedralCertificate:
        if eps not in self._found:
            self._found[eps] = self._solve(eps)
        return self._found[eps]

    def _search(self, i: int, j: int, eps: Fraction) -> PairSearch:
        if j not in self._values:
            self._values[j] = Values(self.problem, self._model, j)
        return PairSearch(self._values[j], i, eps)

    def _solve(self, eps: float) -> PolyhedralCertificate:
        exact = Fraction(eps) * self.problem.unit
        recent = {pair: age for age, pair in enumerate(reversed(self._winners))}
        pairs = [pair for pair, limit in self._limits.items() if limit >= Fraction(eps)]
        pairs.sort(key=lambda pair: recent.get(pair, len(recent)))
        searches: dict[Pair, PairSearch] = {}
        bounds: dict[Pair, float] = {}
        incumbent, winner = math.inf, pairs[0]
        limit = self._model.programs + PROGRAMS
        for pair in pairs:
            if incumbent <= TIE:
                break  # H = 0 needs no lower bound
            search = searches[pair] = self._search(*pair, exact)
            bounds[pair] = search.start(incumbent)
            if search.best_value < incumbent:
                incumbent, winner = search.best_value, pair
        for pair in sorted(searches, key=bounds.__getitem__):
            if incumbent <= TIE:
                break
            search = searches[pair]
            search.run(bounds[pair], incumbent, limit)
            if search.best_value < incumbent:
                incumbent, winner = search.best_value, pair
        if winner in self._winners:
            self._winners.remove(winner)
        self._winners.append(winner)
        best = searches[winner]
        top = upper_point(self.problem, self._model, *winner, exact, best.best_distribution)
        proved = [] if incumbent <= TIE else list(searches.values())
        return PolyhedralCertificate.of(
            self.problem, self.rows, eps, winner, top, proved, self._symmetries
        )

    # --- the consistency level ---

    @property
    def consistency_level(self) -> float:
        return self.witness.level

    @property
    def level_interval(self) -> tuple[float, float]:
        found = self.witness
        return found.level, found.level if found.upper is None else found.upper

    @property
    def level_reason(self) -> str | None:
        return self.witness.reason

    @cached_property
    def witness(self) -> Witness:
        """sup{ε : H = 0}: the largest (L_j − L_i)q with V_j(q) = V(q).

        Where `LEVEL_PROGRAMS` do not decide it, the largest found and a bound on the rest.
        """
        best = Witness(0.0, None, None)
        pairs = [pair for pair, limit in self._limits.items() if limit > 0]
        pairs.sort(key=lambda pair: -self._limits[pair])
        order = count()
        heap: list[tuple[float, int, PairSearch, Node, FloatArray]] = []

        def visit(search: PairSearch, node: Node) -> None:
            """Bound a polytope from above, and find a distribution in it."""
            nonlocal best
            found = search.farthest(node)
            if found is None or found[0] * self.size <= best.level + LEVEL_TIE * self.size:
                return
            bound, q = found
            piece = self._model.piece(search.j, q)
            if piece.value - self._model.optimum(q)[0] > LEVEL_TIE:
                # the distributions for which the piece at q is optimal have V_j = V
                every = np.eye(self._model.k)
                other = self._model.farthest(piece.risks, every, search.rows, search.gap)
                attained = None if other is None else other[1]
            else:
                attained = q
            level = -math.inf if attained is None else float(search.gap @ attained) * self.size
            if level > best.level + LEVEL_TIE * self.size:
                best = Witness(level, (search.i, search.j), attained)
            heappush(heap, (-bound * self.size, next(order), search, node, q))

        for i, j in pairs:
            if float(self._limits[i, j]) > best.level + LEVEL_TIE * self.size:
                search = self._search(i, j, Fraction(best.level) * self.problem.unit)
                visit(search, search.root)
        limit, top = self._model.programs + LEVEL_PROGRAMS, 0.0  # top: the largest bound left
        while heap and -heap[0][0] > best.level + LEVEL_TIE * self.size:
            bound, _, search, node, q = heappop(heap)
            piece = self._model.piece(search.j, q)
            search.values.add_piece(piece)
            if self._model.programs <= limit and search.divide(node, q, piece):
                for child in node.children:
                    visit(search, child)
            else:
                top = max(top, -bound)
        if top > best.level + LEVEL_TIE * self.size:
            why = f"not decided by {LEVEL_PROGRAMS} linear programs"
            return Witness(best.level, best.pair, best.distribution, top, why)
        return best
