"""Trees of simplices of laws: what proves a value of a polyhedral surrogate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from consistruct.calibration.nonquadratic.pairs import PairProof
from consistruct.protocols import FloatArray

__all__ = ["TIE", "Corner", "Corners", "Node", "PolyhedralProof", "Simplices", "replaced"]

TIE = 1e-9

Corners = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Corner:
    """A law with bounds on V_j there, each with the point that shows it."""

    law: FloatArray  # (m,)
    below: FloatArray  # a point of the maximum that V_j is: V_j ≥ its value
    above: FloatArray  # scores (or mixed predictions) that predict j: V_j ≤ their surrogate
    lower: float
    upper: float


@dataclass(eq=False)
class Node:
    """A simplex: split at a law, or bounded by a potential and a multiplier."""

    corners: Corners
    potential: FloatArray
    nu: float
    bound: float
    weights: FloatArray  # (m,) λ of the law that it would be split at
    children: dict[int, Node] = field(default_factory=dict)  # by the corner that is replaced
    at: int = -1  # corner that replaces them


class Simplices(Protocol):
    """What a proof asks of its solver, all in plain arithmetic."""

    L: FloatArray
    scale: float

    def corners(self, j: int) -> list[Corner]: ...

    def whole(self, i: int, j: int) -> Corners: ...

    def bound(self, node: Node, j: int, gap: FloatArray, eps: float) -> float: ...

    def value_above(self, j: int, q: FloatArray, point: FloatArray) -> float: ...

    def optimum_below(self, q: FloatArray, point: FloatArray) -> float: ...


@dataclass(eq=False)
class PolyhedralProof(PairProof):
    """A law with scores and a coupling from above, a tree of simplices from below."""

    solver: Simplices
    pair: tuple[int, int]
    eps: float
    best: Corner
    coupling: FloatArray  # shows V(q) ≥ its value
    root: Node

    def __post_init__(self) -> None:
        self.law = self.best.law
        self.lower, self.upper = self.recompute()

    def recompute(self) -> tuple[float, float]:
        i, j = self.pair
        solver = self.solver
        gap = solver.L[j] - solver.L[i]
        corners = solver.corners(j)
        if self.root.corners != solver.whole(i, j):
            return 0.0, math.inf
        lower, waiting = math.inf, [self.root]
        while waiting:
            node = waiting.pop()
            if node.children:
                if not _splits(node, corners):
                    return 0.0, math.inf
                waiting.extend(node.children.values())
            else:
                lower = min(lower, solver.bound(node, j, gap, self.eps))
        law, scale = self.law, solver.scale
        upper = math.inf
        if abs(law.sum() - 1) <= TIE and (law >= 0).all() and gap @ law >= self.eps - TIE * scale:
            attained = solver.value_above(j, law, self.best.above)
            upper = max(attained - solver.optimum_below(law, self.coupling), 0.0)
        return max(lower, 0.0), upper


def _splits(node: Node, corners: list[Corner]) -> bool:
    """Whether the children cover the node: its split law is their mixture, all of it covered."""
    laws = np.stack([corners[c].law for c in node.corners])
    weights = node.weights
    if (weights < 0).any() or abs(weights.sum() - 1) > TIE:
        return False
    if np.abs(weights @ laws - corners[node.at].law).max() > TIE:
        return False
    used = set(np.flatnonzero(weights > 0).tolist())
    if not used <= set(node.children):
        return False
    return all(
        child.corners == replaced(node.corners, where, node.at)
        for where, child in node.children.items()
    )


def replaced(corners: Corners, where: int, value: int) -> Corners:
    """The corners with one of them exchanged."""
    return (*corners[:where], value, *corners[where + 1 :])
