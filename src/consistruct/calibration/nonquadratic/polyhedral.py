"""Hinge surrogates: a concave function over laws, minimised by splitting simplices.

For fixed q the surrogate is polyhedral in the scores. Let V(q) be its minimum and V_j(q) that among
scores that predict j; both are concave in q, and

    H_ij(ε) = min V_j(q) − V(q)   over laws q with (L_j − L_i)q ≥ ε.

On a simplex of laws with corners v, V_j is at least the interpolation of its values at the corners
(it is concave), and V(q) is at most the surrogate of any one score vector g. So for any g and ν ≥ 0

    H_ij(ε) ≥ νε + min_v [V_j(v) − Φ_v(g) − ν(L_j − L_i)v]   over that simplex,

and the best g, ν are a linear program whose multipliers λ name a law Σ λ_v v. Where the bound is
too low the simplex is split at that law. V_j is linear on finitely many pieces, so the bound
becomes exact; corners and values are kept for all pairs of the same j. Splitting at the kinks of
V_j along edges finds the largest (L_j − L_i)q with V_j(q) = V(q): the consistency level.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.nonquadratic.pairs import (
    PairSolver,
    Witness,
    without_repeats,
)
from consistruct.calibration.nonquadratic.simplices import (
    TIE,
    Corner,
    Corners,
    Node,
    PolyhedralProof,
    replaced,
)
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray, IntArray

__all__ = ["PolyhedralSolver", "linear_program"]

GOAL = 1e-8  # relative width at which a pair is settled
MAX_NODES = 600  # simplices per pair; what is open then keeps its bound
CHEAP_LEVEL = 4  # labels up to which the consistency level comes first
LEVEL_NODES = 1000  # simplices for the consistency level, all pairs together


class PolyhedralSolver(PairSolver, ABC):
    """Needs: V_j at a law with its two proofs, V at a law, and the rows of the linear program."""

    def __init__(self, L: FloatArray) -> None:
        super().__init__(L)
        self.scale = max(1.0, float(np.abs(L).max()))
        self._corners: dict[int, list[Corner]] = {}
        self._optima: dict[bytes, FloatArray] = {}

    # --- what a surrogate gives ---

    @abstractmethod
    def solve_corner(self, j: int, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points that show V_j(q) from below and from above."""

    @abstractmethod
    def value_below(self, j: int, q: FloatArray, point: FloatArray) -> float:
        """What the first shows, in plain arithmetic; −inf if it is not feasible."""

    @abstractmethod
    def value_above(self, j: int, q: FloatArray, point: FloatArray) -> float:
        """What the second shows; +inf if it does not predict j."""

    @abstractmethod
    def solve_optimum(self, q: FloatArray) -> FloatArray:
        """A point that shows V(q) from below."""

    @abstractmethod
    def optimum_below(self, q: FloatArray, point: FloatArray) -> float:
        """What it shows."""

    @abstractmethod
    def potential_rows(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """For potentials x with Φ(x, ·) = R x: R (m, n), G (g, n), h (g,) and s (n,).

        Admissible at scale μ: G x + h μ ≤ 0, and s·x = μ unless s is zero.
        """

    @abstractmethod
    def risks(self, potential: FloatArray) -> FloatArray:
        """Φ(g, y) of all truths, (m,), for a potential as the linear program has it."""

    # --- corners ---

    def corners(self, j: int) -> list[Corner]:
        if j not in self._corners:
            self._corners[j] = []
            for law in np.eye(self.L.shape[1]):
                self._add_corner(j, law)
        return self._corners[j]

    def _add_corner(self, j: int, law: FloatArray) -> int:
        below, above = self.solve_corner(j, law)
        lower = self.value_below(j, law, below) - 1e-14 * self.scale
        corner = Corner(law, below, above, lower, self.value_above(j, law, above))
        self._corners[j].append(corner)
        return len(self._corners[j]) - 1

    def optimum(self, q: FloatArray) -> FloatArray:
        key = q.tobytes()
        if key not in self._optima:
            self._optima[key] = self.solve_optimum(q)
        return self._optima[key]

    def excess(self, j: int, corner: Corner) -> float:
        """V_j − V at a corner, from above."""
        return corner.upper - self.optimum_below(corner.law, self.optimum(corner.law))

    def whole(self, i: int, j: int) -> Corners:
        """The simplex of all laws that need be looked at, by its corners.

        Labels with the same row and the same column are twins: neither V nor V_j changes when the
        probability of one moves to the other (couplings and laws p move along), so one of them is
        enough, and of the twins of i and j these two.
        """
        found = {int(number): label for label, number in reversed([*enumerate(self._twins)])}
        found[int(self._twins[i])] = i
        found[int(self._twins[j])] = j
        return tuple(sorted(found.values()))

    @cached_property
    def _twins(self) -> IntArray:
        """Number of the first label with the same row and column, (k,)."""
        both = np.hstack([self.L, self.L.T])
        return np.array([int(np.argmax((both == row).all(axis=1))) for row in both])

    # --- bounds ---

    def bound(self, node: Node, j: int, gap: FloatArray, eps: float) -> float:
        """νε + min_v [V_j(v) − Φ_v(g) − ν gap·v]; +inf where no law of the simplex reaches ε."""
        corners = [self._corners[j][c] for c in node.corners]
        laws = np.stack([corner.law for corner in corners])
        values = np.array(
            [self.value_below(j, c.law, c.below) - 1e-14 * self.scale for c in corners]
        )
        if (laws @ gap).max() < eps - TIE * self.scale:
            return math.inf
        nu = max(node.nu, 0.0)
        planes = values - laws @ self.risks(node.potential) - nu * (laws @ gap - eps)
        size = self.scale + float(np.abs(self.risks(node.potential)).max()) + nu * self.scale
        return float(planes.min()) - 1e-14 * size

    def _node(self, j: int, gap: FloatArray, eps: float, corners: Corners) -> Node:
        """The best potential and multiplier for a simplex: one linear program."""
        known = [self._corners[j][c] for c in corners]
        laws = np.stack([corner.law for corner in known])
        m = len(corners)
        if (laws @ gap).max() < eps - TIE * self.scale:
            return Node(corners, self._zero, 0.0, math.inf, np.zeros(m))
        R, G, h, s = self._rows
        n = R.shape[1]
        # variables x, ν, t: max νε + t with t below the planes of all corners
        planes = np.hstack([laws @ R, (laws @ gap)[:, None], np.ones((m, 1))])
        extra = np.hstack([G, np.zeros((len(G), 2))])
        found = linear_program(
            np.concatenate([np.zeros(n), [-eps, -1.0]]),
            np.vstack([planes, extra]),
            np.concatenate([[corner.lower for corner in known], -h]),
            np.append(s, [0.0, 0.0])[None] if s.any() else None,
            np.ones(1) if s.any() else None,
            [*self._ranges, (0.0, None), (None, None)],
        )
        weights = np.maximum(-found.ineqlin.marginals[:m], 0.0)
        weights = weights / weights.sum()
        node = Node(corners, found.x[:n], max(float(found.x[n]), 0.0), 0.0, weights)
        node.bound = self.bound(node, j, gap, eps)
        return node

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return self.potential_rows()

    @property
    def _zero(self) -> FloatArray:
        return np.zeros(self._rows[0].shape[1])

    @property
    @abstractmethod
    def _ranges(self) -> list[tuple[float | None, float | None]]:
        """Bounds of the potential's entries."""

    # --- the search ---

    def solve(self, i: int, j: int, eps: float, incumbent: float) -> PolyhedralProof:
        gap = self.L[j] - self.L[i]
        corners = self.corners(j)
        root = self._node(j, gap, eps, self.whole(i, j))
        best = min(
            (c for c in corners if gap @ c.law >= eps - TIE * self.scale),
            key=lambda c: self.excess(j, c),
        )
        order = count()
        heap = [(root.bound, next(order), root)]
        nodes = 1
        while heap and nodes < MAX_NODES:
            upper = self.excess(j, best)
            bound, _, node = heap[0]
            if bound >= min(upper, incumbent) * (1 - GOAL) - 1e-12 * self.scale:
                break
            heappop(heap)
            if node.weights.max() > 1 - TIE:
                continue  # the law is a corner: the bound is what it is, up to rounding
            at = self._split_law(j, node)
            corner = corners[at]
            if gap @ corner.law >= eps - TIE * self.scale and self.excess(j, corner) < upper:
                best = corner
            node.at = at
            for where in np.flatnonzero(node.weights > 0).tolist():
                child = self._node(j, gap, eps, replaced(node.corners, where, at))
                node.children[where] = child
                heappush(heap, (child.bound, next(order), child))
                nodes += 1
        return PolyhedralProof(self, (i, j), eps, best, self.optimum(best.law), root)

    def _split_law(self, j: int, node: Node) -> int:
        """The law of a node's λ as a new corner."""
        corners = self._corners[j]
        laws = np.stack([corners[c].law for c in node.corners])
        node.weights[node.weights < 1e-12] = 0.0
        node.weights /= node.weights.sum()
        law = np.maximum(node.weights @ laws, 0.0)
        return self._add_corner(j, law / law.sum())

    # --- the consistency level ---

    @cached_property
    def witness(self) -> Witness:
        """sup{ε : H = 0}: the largest (L_j − L_i)q with V_j(q) = V(q).

        Where `LEVEL_NODES` simplices do not settle it, the largest found and a bound on the rest.
        """
        best = Witness(0.0, None, None)
        nodes = 0
        pairs = [(int(i), int(j)) for i, j in np.argwhere(self.limits > TIE)]
        pairs.sort(key=lambda pair: -self.limits[pair])
        for done, (i, j) in enumerate(pairs):
            gap = self.L[j] - self.L[i]
            corners = self.corners(j)
            for corner in corners:
                best = self._better(best, i, j, corner, gap)
            waiting = [(self.whole(i, j), float(self.limits[i, j]))]
            while waiting:
                simplex, _ = waiting.pop()
                bound, weights = self._level_bound(j, gap, simplex)
                nodes += 1
                if bound <= best.level + TIE * self.scale or weights.max() > 1 - TIE:
                    continue
                if nodes > LEVEL_NODES:
                    others = [float(self.limits[pair]) for pair in pairs[done + 1 :]]
                    top = max([bound, *(known for _, known in waiting), *others, best.level])
                    why = f"not settled by {LEVEL_NODES} simplices of distributions"
                    return Witness(best.level, best.pair, best.law, top, why)
                kink = self._kink(j, simplex, weights)
                at = self._split_law(
                    j, Node(simplex, self._zero, 0.0, 0.0, weights if kink is None else kink)
                )
                best = self._better(best, i, j, corners[at], gap)
                if kink is None and bound <= best.level + 10 * TIE * self.scale:
                    continue  # V_j is linear between the corners in use: the bound is attained
                waiting += [
                    (replaced(simplex, where, at), bound)
                    for where in np.flatnonzero(weights if kink is None else kink).tolist()
                ]
        return best

    def _kink(self, j: int, simplex: Corners, weights: FloatArray) -> FloatArray | None:
        """λ of the kink of V_j along the most bent edge between corners that λ uses."""
        used = np.flatnonzero(weights > TIE).tolist()
        known = [self._corners[j][c] for c in simplex]
        values = {
            (a, b): self.value_above(j, known[a].law, known[b].above) for a in used for b in used
        }
        best, found = TIE * self.scale, None
        for a in used:
            for b in used:
                if a >= b:
                    continue
                # along the edge V_j is below the lines of both scores, which cross at t
                rise_a = values[a, b] - values[a, a]
                rise_b = values[b, a] - values[b, b]
                if min(rise_a, rise_b) <= TIE * self.scale:
                    continue
                t = rise_a / (rise_a + rise_b)
                bend = rise_b * t
                if bend > best:
                    best, found = bend, np.zeros(len(simplex))
                    found[a], found[b] = 1 - t, t
        return found

    def _better(self, best: Witness, i: int, j: int, corner: Corner, gap: FloatArray) -> Witness:
        level = float(gap @ corner.law)
        if level <= best.level + TIE * self.scale or self.excess(j, corner) > TIE * self.scale:
            return best
        return Witness(level, (i, j), corner.law)

    def _level_bound(self, j: int, gap: FloatArray, simplex: Corners) -> tuple[float, FloatArray]:
        """max gap·q over a simplex where the interpolated V_j is at most V, from above; its λ."""
        known = [self._corners[j][c] for c in simplex]
        laws = np.stack([corner.law for corner in known])
        values = np.array([corner.lower for corner in known])
        R, G, h, s = self._rows
        m, n = len(simplex), R.shape[1]
        # variables x, μ, t: min t with t ≥ gap·v − μ V_j(v) + v·R x at all corners
        planes = np.hstack([laws @ R, -values[:, None], -np.ones((m, 1))])
        extra = np.hstack([G, h[:, None], np.zeros((len(G), 1))])
        found = linear_program(
            np.concatenate([np.zeros(n + 1), [1.0]]),
            np.vstack([planes, extra]),
            np.concatenate([-(laws @ gap), np.zeros(len(G))]),
            np.concatenate([s, [-1.0, 0.0]])[None] if s.any() else None,
            np.zeros(1) if s.any() else None,
            [*self._ranges, (0.0, None), (None, None)],
            unbounded=True,
        )
        if found is None:  # no law of the simplex has V_j = V
            return -math.inf, np.ones(1)
        weights = np.maximum(-found.ineqlin.marginals[:m], 0.0)
        return float(found.fun), weights / weights.sum()

    @property
    def level_is_cheap(self) -> bool:
        return len(self.L) <= CHEAP_LEVEL

    @cached_property
    def limits(self) -> FloatArray:
        """As for all pairs, but −inf for pairs that a swap of labels turns into an earlier one."""
        return without_repeats(super().limits, self.L)


def linear_program(
    cost: FloatArray,
    A_ub: FloatArray,
    b_ub: FloatArray,
    A_eq: FloatArray | None,
    b_eq: FloatArray | None,
    bounds: list[tuple[float | None, float | None]] | None = None,
    *,
    unbounded: bool = False,
) -> Any:
    """The solution; None for an unbounded program, where that is an answer."""
    solve: Any = scipy.optimize.linprog
    found = solve(
        cost,
        A_ub=A_ub,
        b_ub=b_ub,
        A_eq=A_eq,
        b_eq=b_eq,
        bounds=[(0.0, None)] * len(cost) if bounds is None else bounds,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if unbounded and found.status in (3, 4):
        return None
    if found.status != 0 or found.x is None:
        raise ConsistructError(f"a linear program was not solved: {found.message}")
    return found
