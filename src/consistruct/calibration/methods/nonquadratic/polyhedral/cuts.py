"""Cutting polytopes of distributions: a lower bound on H_ij, and the proof of it.

V_j(q) = min_f r(f)·q is concave, −V is convex. On a polytope of distributions with vertices v, V_j
is at least the interpolation of values W(v) ≤ V_j(v), so

    V_j(q) − V(q) ≥ min over weights λ of Σ λ_v W(v) − V(Σ λ_v v),

a linear program. Where this is too low at q* = Σ λ_v v, the piece r* of V_j at q* and the piece r_v
at some vertex differ, and the polytope is cut where they are equal: (r* − r_v)·q = 0. On both sides
V_j is closer to linear; there are finitely many pieces, so the bound becomes exact.

The geometry is exact (integers), linear programs are floats: any potential and multipliers that
they suggest give a valid bound, evaluated exactly when a polytope is closed. V_j is evaluated where
a linear program puts weight, else interpolated along the edge on which a cut made the vertex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from consistruct.calibration.methods.nonquadratic.polyhedral.hinges import (
    Piece,
    Polyhedral,
    Relaxation,
)
from consistruct.certificates.exact import integer_dot, integers
from consistruct.certificates.polyhedral import (
    UNIT,
    Distribution,
    Problem,
    Vertex,
    clip,
)
from consistruct.protocols import FloatArray

__all__ = ["Node", "PairSearch", "Values", "float_distribution"]

GOAL = 1e-9  # relative width at which a pair is solved
TIE = 1e-11  # of losses of order one: differences that are rounding
MAX_VERTICES = 1000  # of a polytope that is cut: clipping takes their third power
CUT_BITS = 30  # of the normals of cuts that are no simple fractions


def float_distribution(distribution: Distribution) -> FloatArray:
    """A distribution of integers as probabilities."""
    mass = sum(distribution)
    return np.array([x / mass for x in distribution])


class Values:
    """V_j at vertices, for all pairs of the same j."""

    def __init__(self, problem: Problem, model: Polyhedral, j: int) -> None:
        self.problem, self.model, self.j = problem, model, j
        self.points: dict[Distribution, tuple[Fraction, Any]] = {}  # W and the point that shows it
        self._distributions: dict[Distribution, FloatArray] = {}
        self._pieces = np.zeros((0, model.k))  # risks of the pieces met
        self._attained: dict[Distribution, int] = {}  # the piece that attains V_j

    def height(self, distribution: Distribution, between: Fraction | None) -> Fraction:
        """The best lower bound known: a point or the interpolation."""
        if between is None:
            between = self.problem.below(self.j, distribution, [])
        known = self.points.get(distribution)
        return between if known is None else max(between, known[0])

    def distribution(self, distribution: Distribution) -> FloatArray:
        if distribution not in self._distributions:
            self._distributions[distribution] = float_distribution(distribution)
        return self._distributions[distribution]

    def add_piece(self, piece: Piece) -> None:
        self._pieces = np.vstack([self._pieces, piece.risks])

    def attain(self, distribution: Distribution, value: float) -> None:
        """Find V_j at a vertex, unless the value so far attains it."""
        if distribution in self.points:
            return
        q = self.distribution(distribution)
        known = self._pieces @ q
        if len(known) and known.min() <= value + TIE:
            self._attained[distribution] = int(known.argmin())
            return
        piece = self.model.piece(self.j, q)
        self.add_piece(piece)
        self._attained[distribution] = len(self._pieces) - 1
        point = rounded_point(self.model.surrogate, self.j, distribution, piece.point)
        self.points[distribution] = self.problem.below(self.j, distribution, point), point

    def piece_at(self, distribution: Distribution) -> FloatArray:
        return np.asarray(self._pieces[self._attained[distribution]])


def rounded_point(
    surrogate: str, j: int, distribution: Distribution, point: FloatArray
) -> list[Any]:
    """A coupling, or p, without what lies on j, rounded down to integers over `UNIT`."""
    mass = sum(distribution)
    room = [x * UNIT // mass for x in distribution]
    if surrogate == "max-min":
        found = []
        left = UNIT
        for c, share in enumerate(point.tolist()):
            whole = 0 if c == j else min(round(share * UNIT), room[c], left)
            if whole > 0:
                left -= whole
                found.append([c, whole])
        return found
    rows, columns, cells = list(room), list(room), []
    for c, y in np.argwhere(point > 1e-13).tolist():
        if c != j:
            whole = min(round(point[c, y] * UNIT), rows[c], columns[y])
            if whole > 0:
                rows[c] -= whole
                columns[y] -= whole
                cells.append([c, y, whole])
    return cells


@dataclass(eq=False)
class Node:
    """A polytope of distributions: cut in two, or bounded."""

    vertices: list[Vertex]
    bit: int  # of the next cut
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))  # λ of the last bound
    relaxation: Relaxation | None = None
    cut: Distribution | None = None
    children: list[Node] = field(default_factory=list)  # where cut·q ≥ 0, where it is ≤ 0

    def leaf(self) -> dict[str, Any]:
        """Potential and multipliers as integers over `UNIT`."""
        assert self.relaxation is not None
        nu = [round(x * UNIT) for x in self.relaxation.nu.tolist()]
        return {
            "potential": [round(x * UNIT) for x in self.relaxation.potential.tolist()],
            "nu": [[c, x] for c, x in enumerate(nu) if x],
        }


class PairSearch:
    """Bounds min V_j − V over distributions with (L_j − L_i)q ≥ ε under which i is optimal."""

    def __init__(self, values: Values, i: int, eps: Fraction) -> None:
        problem, model = values.problem, values.model
        self.values, self.model, self.problem = values, model, problem
        self.i, self.j, self.exact_eps = i, values.j, eps
        self.eps = float(eps / problem.size)  # in units of the model
        self.gap = model.L[self.j] - model.L[i]
        self.rows = model.L - model.L[i]  # those of i and j are implied
        self.root = Node(problem.polytope(i, self.j, eps, values.height), 1 << 2 * model.k + 1)
        self.best_value, self.best_distribution = math.inf, np.zeros(0)

    # --- bounds ---

    def relax(self, node: Node, enough: float) -> float:
        """The bound of a node; vertices that it rests on are evaluated unless it is enough."""
        if not node.vertices:
            return math.inf
        distributions = np.stack([self.values.distribution(x) for x, _, _ in node.vertices])
        while True:
            found = self.model.relaxed(
                self._heights(node), distributions, self.rows, np.zeros(len(self.rows))
            )
            node.relaxation, node.weights = found, found.weights
            if found.bound >= enough or not self._attain(node, found.weights):
                return found.bound

    def farthest(self, node: Node) -> tuple[float, FloatArray] | None:
        """max (L_j − L_i)q over a polytope where the interpolated V_j is at most V, and its q."""
        distributions = np.stack([self.values.distribution(x) for x, _, _ in node.vertices])
        while True:
            found = self.model.farthest(self._heights(node), distributions, self.rows, self.gap)
            if found is None:
                return None
            node.weights = found[1]
            if not self._attain(node, found[1]):
                return found[0], found[1] @ distributions

    def _heights(self, node: Node) -> FloatArray:
        size = self.problem.size
        return np.array([float(w / (sum(x) * size)) for x, _, w in node.vertices])

    def _attain(self, node: Node, weights: FloatArray) -> bool:
        """Evaluate V_j where the weights are; whether it is larger somewhere."""
        changed = False
        for a in np.flatnonzero(weights > TIE).tolist():
            distribution, mask, w = node.vertices[a]
            self.values.attain(distribution, float(w / (sum(distribution) * self.problem.size)))
            node.vertices[a] = distribution, mask, self.values.height(distribution, w)
            changed |= (
                float((node.vertices[a][2] - w) / (sum(distribution) * self.problem.size))
                > TIE / 10
            )
        return changed

    def exact_bound(self) -> Fraction | None:
        """What the leaves prove; None without distributions."""
        found: Fraction | None = None
        waiting = [self.root]
        while waiting:
            one = waiting.pop()
            waiting += one.children
            if not one.children and one.vertices:
                bound = self.problem.least(self.i, one.vertices, one.leaf())
                found = bound if found is None else min(found, bound)
        return found

    # --- from above ---

    def improve(self, q: FloatArray) -> None:
        """From a distribution: its piece of V_j, the best distribution for that, and so on."""
        model, best = self.model, math.inf
        for _ in range(30):
            piece = model.piece(self.j, q)
            value = piece.value - model.optimum(q)[0]
            if value >= best - TIE:
                return
            if self.gap @ q >= self.eps - TIE:
                best = value
                if value < self.best_value:
                    self.best_value, self.best_distribution = value, q
            floors = np.array([self.eps])
            q = model.relaxed(piece.risks, np.eye(model.k), self.gap[None], floors).weights

    def distribution_of(self, node: Node) -> FloatArray:
        distributions = np.stack([self.values.distribution(x) for x, _, _ in node.vertices])
        return np.asarray(node.weights @ distributions)

    # --- the search ---

    def start(self, incumbent: float) -> float:
        """The bound of the whole polytope, and a good distribution if that is not enough."""
        bound = self.relax(self.root, incumbent * (1 - GOAL))
        if bound < incumbent and self.root.vertices:
            self.improve(self.distribution_of(self.root))
        return bound

    def run(self, bound: float, incumbent: float, programs: int) -> None:
        """Cut until the bound reaches the incumbent, or so many linear programs are solved."""
        order = count()
        heap = [(bound, next(order), self.root)]
        while heap and self.model.programs < programs:
            low, _, node = heappop(heap)
            goal = min(incumbent, self.best_value)
            if max(low, TIE) >= goal * (1 - GOAL):
                return
            q = self.distribution_of(node)
            piece = self.model.piece(self.j, q)
            self.values.add_piece(piece)
            if piece.value - self.model.optimum(q)[0] < goal:
                self.improve(q)
            if not self.divide(node, q, piece):
                continue  # V_j is linear between the vertices in use: the bound is what it is
            goal = min(incumbent, self.best_value)
            for child in node.children:
                if child.vertices:
                    below = self.relax(child, goal * (1 - GOAL))
                    heappush(heap, (max(low, below), next(order), child))

    def divide(self, node: Node, q: FloatArray, piece: Piece) -> bool:
        """Cut where the piece at q and that of a vertex in use are equal; whether there is one."""
        if len(node.vertices) > MAX_VERTICES:
            return False
        weights = node.weights
        self._attain(node, weights)
        heights = self._heights(node)
        used = np.flatnonzero(weights > TIE).tolist()
        distributions = [node.vertices[a][0] for a in used]
        above = [
            float(piece.risks @ self.values.distribution(distribution))
            for distribution in distributions
        ]
        missing = [weights[a] * (top - heights[a]) for a, top in zip(used, above, strict=True)]
        for a in np.argsort(missing)[::-1].tolist():
            if missing[a] <= TIE:
                return False
            cut = _normal(piece.risks - self.values.piece_at(distributions[a]))
            signs = [integer_dot(cut, x) for x, _, _ in node.vertices]
            if min(signs) < 0 < max(signs):
                halves = clip(node.vertices, cut, node.bit, self.values.height)
                node.cut = cut
                node.children = [Node(half, 2 * node.bit) for half in halves]
                return True
        return False


def _normal(values: FloatArray) -> Distribution:
    """Short integers in the direction of a vector: simple fractions where they are some."""
    simple = [Fraction(x).limit_denominator(5040) for x in values.tolist()]
    if max(abs(float(a) - b) for a, b in zip(simple, values.tolist(), strict=True)) < 1e-12:
        return tuple(integers(simple)[0])
    rounded = [Fraction(round(x * 2**CUT_BITS)) for x in values.tolist()]
    return tuple(integers(rounded)[0])
