"""Hinge surrogates: finitely many linear programs per pair.

For fixed q the surrogate is polyhedral in the scores, so its constrained minimum is at one of
finitely many vertices that do not depend on q; for a fixed vertex the excess is the value of a
linear program in q. H_ij(ε) is the least of these values, and each has a dual point. Small k only.

* hinge (Crammer–Singer, structured SVM with margin rescaling),
  Φ(f, y) = max_c [L(c, y) + f_c] − f_y.
  At scores f the excess is min ⟨slack, π⟩ over couplings π of q with itself (rows and columns of π
  sum to q), slack_cy = max_d [L(d, y) + f_d] − L(c, y) − f_c ≥ 0. Vertices: f_j = 0 ≥ f_c, and the
  ties L(c, y) + f_c = L(d, y) + f_d at the maximum, with f_c = f_j, connect all labels.
* max-min margin, Φ(v, y) = max_p [min_c (Lp)_c + ⟨v, p⟩] − v_y: the excess is, over mixed
  predictions α, min Σ_y q_y max((αᵀL)_y, (αᵀL)_j) − min_c (Lq)_c. Vertices: α on s labels with
  s − 1 of the ties (αᵀL)_y = (αᵀL)_j.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from consistruct.calibration.lp import minimise
from consistruct.calibration.nonquadratic.pairs import PairProof, PairSolver, Witness
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["HingeSolver", "MaxMinSolver", "PolyhedralSolver"]

VERTEX_LIMIT = 200_000  # candidates that are looked at per label
TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Line:
    """H_ij at one vertex is at least νε + m, for every ε; from one dual point."""

    nu: float
    dual: FloatArray
    m: float

    def at(self, eps: float) -> float:
        return self.nu * eps + self.m


@dataclass(eq=False)
class PolyhedralProof(PairProof):
    """A point of one linear program from above, a line for every vertex from below."""

    solver: PolyhedralSolver
    pair: tuple[int, int]
    eps: float
    vertex: FloatArray
    point: FloatArray  # variables of the linear program
    lines: list[Line]  # one per vertex of j

    def __post_init__(self) -> None:
        self.law = self.solver.law(self.point)
        self.lower, self.upper = self.recompute()

    def recompute(self) -> tuple[float, float]:
        i, j = self.pair
        gap = self.solver.L[j] - self.solver.L[i]
        vertices = self.solver.vertices(j)
        assert len(vertices) == len(self.lines)
        lower = min(
            self.solver.line(vertex, j, gap, line.nu, line.dual).at(self.eps)
            for vertex, line in zip(vertices, self.lines, strict=True)
        )
        return max(lower, 0.0), self.solver.excess(self.vertex, j, self.point, gap, self.eps)


class PolyhedralSolver(PairSolver, ABC):
    """Needs: `vertices`, the linear program at a vertex, and its primal and dual values."""

    def __init__(self, L: FloatArray) -> None:
        super().__init__(L)
        self._lines: dict[tuple[int, int, int], list[Line]] = {}

    @abstractmethod
    def vertices(self, j: int) -> list[FloatArray]:
        """Where the surrogate can be least among scores that predict j."""

    @abstractmethod
    def law(self, x: FloatArray) -> FloatArray:
        """The law q within a point of the linear program."""

    @abstractmethod
    def program(self, vertex: FloatArray, j: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Cost (n,), equalities A (e, n) whose last row sums q to one, inequalities G x ≤ 0."""

    @abstractmethod
    def line(
        self, vertex: FloatArray, j: int, gap: FloatArray, nu: float, dual: FloatArray
    ) -> Line:
        """A dual point evaluated in plain arithmetic."""

    @abstractmethod
    def dual_from(self, equalities: FloatArray, inequalities: FloatArray) -> FloatArray:
        """The part of the solver's multipliers that `line` needs."""

    @abstractmethod
    def excess(
        self, vertex: FloatArray, j: int, x: FloatArray, gap: FloatArray, eps: float
    ) -> float:
        """The surrogate's excess at a point, +inf if it is not feasible."""

    def solve(self, i: int, j: int, eps: float, incumbent: float) -> PolyhedralProof:
        gap = self.L[j] - self.L[i]
        best, point, where, lines = math.inf, None, 0, []
        vertices = self.vertices(j)
        for number, vertex in enumerate(vertices):
            known = self._lines.setdefault((i, j, number), [])
            line = max(known, key=lambda one: one.at(eps), default=None)
            if line is None or point is None or line.at(eps) < min(best, incumbent):
                x, line = self._solve_vertex(vertex, j, gap, eps)
                known.append(line)
                value = self.excess(vertex, j, x, gap, eps)
                if value < best or point is None:
                    best, point, where = value, x, number
            lines.append(line)
        assert point is not None
        return PolyhedralProof(self, (i, j), eps, vertices[where], point, lines)

    def _solve_vertex(
        self, vertex: FloatArray, j: int, gap: FloatArray, eps: float
    ) -> tuple[FloatArray, Line]:
        from scipy.optimize import linprog

        cost, A, G = self.program(vertex, j)
        spread = self._spread(gap, len(cost))
        result = linprog(
            cost,
            A_ub=np.vstack([G, -spread]) if len(G) else -spread[None],
            b_ub=np.append(np.zeros(len(G)), -eps),
            A_eq=A,
            b_eq=np.append(np.zeros(len(A) - 1), 1.0),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status != 0 or result.x is None:
            raise ConsistructError(f"a linear program was not solved: {result.message}")
        nu = max(-float(result.ineqlin.marginals[-1]), 0.0)
        dual = self.dual_from(result.eqlin.marginals, -result.ineqlin.marginals[:-1])
        x = np.asarray(result.x, dtype=np.float64)
        return x, self.line(vertex, j, gap, nu, dual)

    def _spread(self, gap: FloatArray, n: int) -> FloatArray:
        """gap·q as a function of the variables."""
        return np.array([gap @ self.law_of_unit(number) for number in range(n)])

    @abstractmethod
    def law_of_unit(self, number: int) -> FloatArray:
        """The law part of a unit vector of the variables."""

    @cached_property
    def witness(self) -> Witness:
        """sup{ε : H = 0}: max (L_j − L_i)q over points of zero excess, one program per vertex."""
        best = Witness(0.0, None, None)
        for j in range(len(self.L)):
            for vertex in self.vertices(j):
                cost, A, G = self.program(vertex, j)
                for i in range(len(self.L)):
                    if self.limits[i, j] <= best.level + TIE:
                        continue
                    gap = self.L[j] - self.L[i]
                    found = minimise(
                        -self._spread(gap, len(cost)),
                        A_ub=np.vstack([G, cost[None]]) if len(G) else cost[None],
                        b_ub=np.zeros(len(G) + 1),
                        A_eq=A,
                        b_eq=np.append(np.zeros(len(A) - 1), 1.0),
                    )
                    if not found.feasible or -found.value <= best.level + TIE:
                        continue
                    q = self.law(found.x)
                    level = float(gap @ q)
                    if self.excess(vertex, j, found.x, gap, level) <= TIE * max(1.0, self.L.max()):
                        best = Witness(level, (i, j), q)
        return best


class HingeSolver(PolyhedralSolver):
    """Crammer–Singer and the structured hinge with margin rescaling; argmax decoding."""

    name = "linear programs over vertices, hinge"

    def __init__(self, L: FloatArray) -> None:
        super().__init__(L)
        self._vertices: dict[int, list[FloatArray]] = {}

    def vertices(self, j: int) -> list[FloatArray]:
        if j not in self._vertices:
            self._vertices[j] = self._find_vertices(j)
        return self._vertices[j]

    def _find_vertices(self, j: int) -> list[FloatArray]:
        """Grow spanning trees of ties from f_j = 0; keep what really ties all labels."""
        k = len(self.L)
        scale = max(1.0, float(self.L.max()))
        partial: dict[tuple[float, ...], FloatArray] = {}
        start = np.full(k, np.nan)
        start[j] = 0.0
        layer = {_key(start, scale): start}
        for _ in range(k - 1):
            partial = {}
            for f in layer.values():
                reached = np.flatnonzero(~np.isnan(f))
                for c in np.flatnonzero(np.isnan(f)).tolist():
                    ties = (f[reached, None] + self.L[reached] - self.L[c]).ravel()
                    for value in np.unique(np.append(ties[ties <= TIE * scale], 0.0)):
                        grown = f.copy()
                        grown[c] = min(float(value), 0.0)
                        partial[_key(grown, scale)] = grown
                if len(partial) > VERTEX_LIMIT:
                    raise ConsistructError(
                        f"the hinge over {k} labels has more than {VERTEX_LIMIT} candidate vertices"
                    )
            layer = partial
        return [f for f in layer.values() if self._is_vertex(f, j, scale)]

    def _is_vertex(self, f: FloatArray, j: int, scale: float) -> bool:
        raised = self.L + f[:, None]
        top = raised >= raised.max(axis=0) - TIE * scale  # (k, m)
        group = np.arange(len(f))
        for tied in [*top.T, f >= -TIE * scale]:
            members = np.unique(group[tied])
            group[np.isin(group, members)] = members[0]
        return len(np.unique(group)) == 1

    def _slack(self, f: FloatArray) -> FloatArray:
        raised = self.L + f[:, None]
        return np.asarray(raised.max(axis=0) - raised)

    def law(self, x: FloatArray) -> FloatArray:
        k = len(self.L)
        return np.asarray(np.maximum(x, 0.0).reshape(k, k).sum(axis=0))

    def law_of_unit(self, number: int) -> FloatArray:
        unit = np.zeros(len(self.L))
        unit[number % len(self.L)] = 1.0
        return unit

    def program(self, vertex: FloatArray, j: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        k = len(self.L)
        rows, columns = np.divmod(np.arange(k * k), k)
        circulation = (rows == np.arange(k)[:, None]).astype(float) - (
            columns == np.arange(k)[:, None]
        )
        A = np.vstack([circulation, np.ones(k * k)])
        return self._slack(vertex).ravel(), A, np.zeros((0, k * k))

    def dual_from(self, equalities: FloatArray, inequalities: FloatArray) -> FloatArray:
        return np.asarray(-equalities[:-1])

    def line(
        self, vertex: FloatArray, j: int, gap: FloatArray, nu: float, dual: FloatArray
    ) -> Line:
        """⟨slack, π⟩ = Σ π_cy [slack_cy + x_c − x_y], for equal margins: ≥ νε + least cost."""
        reduced = self._slack(vertex) + dual[:, None] - dual - nu * gap
        size = float(np.abs(dual).max() + nu * np.abs(gap).max() + self.L.max())
        return Line(nu, dual, float(reduced.min()) - 1e-15 * size)

    def excess(
        self, vertex: FloatArray, j: int, x: FloatArray, gap: FloatArray, eps: float
    ) -> float:
        """Φ_q(f) − ⟨L, π⟩ ≥ excess, by definition of both; the coupling is checked."""
        k = len(self.L)
        coupling = np.maximum(x, 0.0).reshape(k, k)
        q = coupling.sum(axis=0)
        scale = max(1.0, float(self.L.max()))
        margins = np.abs(coupling.sum(axis=1) - q).max()
        if margins > TIE or abs(q.sum() - 1) > TIE or gap @ q < eps - TIE * scale:
            return math.inf
        if (vertex > vertex[j] + TIE * scale).any():
            return math.inf
        surrogate = float(q @ ((self.L + vertex[:, None]).max(axis=0) - vertex))
        return max(surrogate - float((self.L * coupling).sum()), 0.0)


class MaxMinSolver(PolyhedralSolver):
    """Max-min margin; argmax decoding. Variables of a program: (q, r) with r ≤ (Lq)_c."""

    name = "linear programs over vertices, max-min margin"

    def vertices(self, j: int) -> list[FloatArray]:
        k, m = self.L.shape
        ties = np.delete(self.L - self.L[:, [j]], j, axis=1)  # (k, m − 1)
        found: dict[tuple[float, ...], FloatArray] = {}
        for size in range(1, k + 1):
            if math.comb(k, size) * math.comb(m - 1, size - 1) > VERTEX_LIMIT:
                raise ConsistructError(f"too many vertices over {k} labels")
            for labels in combinations(range(k), size):
                for chosen in combinations(range(m - 1), size - 1):
                    system = np.vstack([np.ones(size), ties[np.ix_(labels, chosen)].T])
                    if np.linalg.matrix_rank(system) < size:
                        continue
                    alpha = np.zeros(k)
                    alpha[list(labels)] = np.linalg.solve(system, np.eye(size)[0])
                    if (alpha >= -TIE).all():
                        alpha = np.maximum(alpha, 0.0) / np.maximum(alpha, 0.0).sum()
                        found.setdefault(_key(alpha, 1.0), alpha)
        return list(found.values())

    def _heights(self, alpha: FloatArray, j: int) -> FloatArray:
        z = alpha @ self.L
        return np.maximum(z, z[j])

    def law(self, x: FloatArray) -> FloatArray:
        return np.maximum(x[:-1], 0.0)

    def law_of_unit(self, number: int) -> FloatArray:
        unit = np.zeros(self.L.shape[1])
        if number < len(unit):
            unit[number] = 1.0
        return unit

    def program(self, vertex: FloatArray, j: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        cost = np.append(self._heights(vertex, j), -1.0)
        A = np.append(np.ones(self.L.shape[1]), 0.0)[None]
        return cost, A, np.column_stack([-self.L, np.ones(len(self.L))])

    def dual_from(self, equalities: FloatArray, inequalities: FloatArray) -> FloatArray:
        kappa = np.maximum(inequalities, 0.0)
        total = kappa.sum()
        return kappa / total if total > 0 else np.full(len(kappa), 1 / len(kappa))

    def line(
        self, vertex: FloatArray, j: int, gap: FloatArray, nu: float, dual: FloatArray
    ) -> Line:
        """min_c (Lq)_c ≤ κᵀLq for every law κ of predictions."""
        reduced = self._heights(vertex, j) - dual @ self.L - nu * gap
        size = float(nu * np.abs(gap).max() + 2 * self.L.max())
        return Line(nu, dual, float(reduced.min()) - 1e-15 * size)

    def excess(
        self, vertex: FloatArray, j: int, x: FloatArray, gap: FloatArray, eps: float
    ) -> float:
        q = self.law(x)
        scale = max(1.0, float(self.L.max()))
        if abs(q.sum() - 1) > TIE or gap @ q < eps - TIE * scale:
            return math.inf
        return max(float(self._heights(vertex, j) @ q) - float((self.L @ q).min()), 0.0)


def _key(values: FloatArray, scale: float) -> tuple[float, ...]:
    return tuple((np.round(values / scale, 9) + 0.0).tolist())
