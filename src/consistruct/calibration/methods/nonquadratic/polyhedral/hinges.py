"""Hinge and max-min margin: the linear programs of each, in floats.

* hinge (Crammer–Singer, structured SVM), Φ(f, y) = max_c [L(c, y) + f_c] − f_y:
  V_j(q) = max ⟨L, π⟩ over couplings π ≥ 0 with column sums q and row sums at most q_c for c ≠ j;
  V(q) the same with row sums q.
* max-min margin, Φ(v, y) = max_p [min_c (Lp)_c + ⟨v, p⟩] − v_y: V_j(q) = max min_c (Lp)_c over
  distributions p with p_c ≤ q_c for c ≠ j; V(q) = min_c (Lq)_c.

V_j(q) = min_f r(f)·q over finitely many scores f that predict j: r(f) is a piece of V_j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["Hinge", "MaxMin", "Piece", "Polyhedral", "Relaxation"]

MAX_PIVOTS = 2000  # of a linear program: few need a hundred
SETTINGS = (
    ("highs", 1e-10, True), ("highs", 1e-10, False), ("highs", 1e-8, True),
    ("highs-ds", 1e-7, False), ("highs-ipm", 1e-7, True),
)  # fmt: skip
SLACK_COST = 1e4  # of distributions under which i is not optimal: keeps the programs feasible


@dataclass(frozen=True, eq=False)
class Piece:
    """V_j at one distribution from both sides."""

    value: float
    point: FloatArray  # the coupling (k, k) or the distribution p (k,) of the maximum
    scores: FloatArray  # (k,) scores, or mixed predictions, of the minimum
    risks: FloatArray  # (k,) r: V_j(q) ≤ r·q for all q


@dataclass(frozen=True, eq=False)
class Relaxation:
    """min Σ λ_v W_v − V(Σ λ_v v) over weights λ of vertices v, with its multipliers."""

    bound: float
    weights: FloatArray  # (n,) λ
    potential: FloatArray  # (k,) scores, or mixed predictions, that bound V from above
    nu: FloatArray  # (rows,) multipliers of rows·q ≥ 0


class Polyhedral(ABC):
    """A surrogate that is polyhedral in the scores; L is scaled to entries of order one."""

    surrogate: ClassVar[Literal["hinge", "max-min"]]

    def __init__(self, L: FloatArray) -> None:
        self.L = L
        self.k = len(L)
        self.programs = 0  # linear programs solved so far

    @abstractmethod
    def piece(self, j: int, q: FloatArray) -> Piece:
        """V_j at a distribution."""

    @abstractmethod
    def optimum(self, q: FloatArray) -> tuple[float, FloatArray]:
        """V at a distribution, and the coupling that shows it from below."""

    @abstractmethod
    def _optimum_rows(
        self, distributions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """−V(Σ λ_v v) as a minimum over more variables z: costs of z, their lower bounds, and rows
        of inequalities and of equations over (λ, z) with right-hand sides zero."""

    @abstractmethod
    def _potential(self, inequalities: FloatArray, equations: FloatArray) -> FloatArray:
        """The potential from the multipliers of these rows."""

    def _solve(self, *data: Any) -> Any:
        self.programs += 1
        return linear_program(*data)

    def relaxed(
        self,
        values: FloatArray,  # (n,) W
        distributions: FloatArray,  # (n, k)
        rows: FloatArray,  # (m, k)
        floors: FloatArray,  # (m,) rows·q ≥ floors
    ) -> Relaxation:
        """The convex minimum of an interpolated V_j less V; violated rows cost `SLACK_COST`."""
        n, m = len(values), len(rows)
        costs, lows, unequal, equal = self._optimum_rows(distributions)
        z = len(costs)
        bounded = np.hstack([-(rows @ distributions.T), np.zeros((m, z)), -np.eye(m)])
        found = self._solve(
            np.concatenate([values, costs, np.full(m, SLACK_COST)]),
            np.vstack([np.hstack([unequal, np.zeros((len(unequal), m))]), bounded]),
            np.concatenate([np.zeros(len(unequal)), -floors]),
            np.vstack([np.hstack([equal, np.zeros((len(equal), m))]), _total(n, z + m)]),
            np.append(np.zeros(len(equal)), 1.0),
            np.concatenate([np.zeros(n), lows, np.zeros(m)]),
        )
        assert found is not None
        marginals = found.ineqlin.marginals
        potential = self._potential(marginals[: len(unequal)], found.eqlin.marginals[:-1])
        weights = np.maximum(found.x[:n], 0.0)
        nu = np.maximum(-marginals[len(unequal) :], 0.0)
        return Relaxation(float(found.fun), weights / weights.sum(), potential, nu)

    def farthest(
        self, values: FloatArray, distributions: FloatArray, rows: FloatArray, gap: FloatArray
    ) -> tuple[float, FloatArray] | None:
        """max gap·q over distributions with interpolated V_j ≤ V and rows·q ≥ 0; None: no such."""
        n, m = len(values), len(rows)
        costs, lows, unequal, equal = self._optimum_rows(distributions)
        z = len(costs)
        found = self._solve(
            np.concatenate([-(distributions @ gap), np.zeros(z)]),
            np.vstack(
                [
                    unequal,
                    np.hstack([-(rows @ distributions.T), np.zeros((m, z))]),
                    np.append(values, costs)[None],
                ]
            ),
            np.zeros(len(unequal) + m + 1),
            np.vstack([equal, _total(n, z)]),
            np.append(np.zeros(len(equal)), 1.0),
            np.concatenate([np.zeros(n), lows]),
        )
        if found is None:
            return None
        weights = np.maximum(found.x[:n], 0.0)
        return -float(found.fun), weights / weights.sum()


class Hinge(Polyhedral):
    """Crammer–Singer and the structured hinge with margin rescaling; argmax decoding."""

    surrogate = "hinge"

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Row and column sums of a coupling, (k, k²) each."""
        rows, columns = np.divmod(np.arange(self.k**2), self.k)
        every = np.arange(self.k)[:, None]
        return (rows == every).astype(np.float64), (columns == every).astype(np.float64)

    def risks(self, scores: FloatArray) -> FloatArray:
        return np.asarray((self.L + scores[:, None]).max(axis=0) - scores)

    def piece(self, j: int, q: FloatArray) -> Piece:
        rows, columns = self._sums
        others = np.delete(np.arange(self.k), j)
        found = self._solve(-self.L.ravel(), rows[others], q[others], columns, q)
        assert found is not None
        scores = np.zeros(self.k)
        scores[others] = np.minimum(found.ineqlin.marginals, 0.0)
        coupling = np.maximum(found.x, 0.0).reshape(self.L.shape)
        return Piece(-float(found.fun), coupling, scores, self.risks(scores))

    def optimum(self, q: FloatArray) -> tuple[float, FloatArray]:
        rows, columns = self._sums
        none = np.zeros((0, self.k**2))
        sums = np.vstack([rows[1:], columns])  # one sum follows from the others
        found = self._solve(-self.L.ravel(), none, np.zeros(0), sums, np.concatenate([q[1:], q]))
        assert found is not None
        return -float(found.fun), np.maximum(found.x, 0.0).reshape(self.L.shape)

    def _optimum_rows(
        self, distributions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        rows, columns = self._sums
        equal = np.vstack(
            [np.hstack([-distributions.T, rows])[1:], np.hstack([-distributions.T, columns])]
        )
        none = np.zeros((0, equal.shape[1]))
        return -self.L.ravel(), np.zeros(self.k**2), none, equal

    def _potential(self, inequalities: FloatArray, equations: FloatArray) -> FloatArray:
        # reduced costs of the coupling: the multipliers a, b have −b_y ≥ L(c, y) + a_c
        return np.append(0.0, equations[: self.k - 1])


class MaxMin(Polyhedral):
    """Max-min margin; argmax decoding."""

    surrogate = "max-min"

    def piece(self, j: int, q: FloatArray) -> Piece:
        k = self.k
        # variables (p, r): max r with r ≤ (Lp)_c and p_c ≤ q_c for c ≠ j
        bounds = np.append(q, np.inf)
        bounds[j] = np.inf
        found = self._solve(
            np.append(np.zeros(k), -1.0),
            np.column_stack([-self.L, np.ones(k)]),
            np.zeros(k),
            np.append(np.ones(k), 0.0)[None],
            np.ones(1),
            np.append(np.zeros(k), -np.inf),
            bounds,
        )
        assert found is not None
        mixed = np.maximum(-found.ineqlin.marginals, 0.0)
        mixed = mixed / mixed.sum()
        z = mixed @ self.L
        return Piece(-float(found.fun), np.maximum(found.x[:k], 0.0), mixed, np.maximum(z, z[j]))

    def optimum(self, q: FloatArray) -> tuple[float, FloatArray]:
        return float((self.L @ q).min()), np.zeros((self.k, self.k))

    def _optimum_rows(
        self, distributions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        # −V(q) = min t with t ≥ −(Lq)_c
        unequal = np.column_stack([-(self.L @ distributions.T), -np.ones(self.k)])
        return np.ones(1), np.full(1, -np.inf), unequal, np.zeros((0, len(distributions) + 1))

    def _potential(self, inequalities: FloatArray, equations: FloatArray) -> FloatArray:
        return np.maximum(-inequalities, 0.0)


def _total(n: int, others: int) -> FloatArray:
    """The row of Σλ."""
    return np.append(np.ones(n), np.zeros(others))[None]


def linear_program(
    cost: FloatArray,
    A_ub: FloatArray,
    b_ub: FloatArray,
    A_eq: FloatArray,
    b_eq: FloatArray,
    lows: FloatArray | None = None,
    highs: FloatArray | None = None,
) -> Any:
    """The solution; None for an infeasible program."""
    solve: Any = scipy.optimize.linprog
    bounds = np.zeros((len(cost), 2))
    bounds[:, 0] = 0.0 if lows is None else lows
    bounds[:, 1] = np.inf if highs is None else highs
    message = ""
    # on some degenerate programs HiGHS gives up, or cycles, at the strictest tolerance
    for method, tolerance, presolve in SETTINGS:
        found = solve(
            cost,
            A_ub=A_ub,
            b_ub=b_ub,
            A_eq=A_eq,
            b_eq=b_eq,
            bounds=bounds,
            method=method,
            options={
                "maxiter": MAX_PIVOTS,
                "primal_feasibility_tolerance": tolerance,
                "dual_feasibility_tolerance": tolerance,
                "presolve": presolve,
            },
        )
        if found.status == 0 and found.x is not None:
            return found
        if found.status == 2:
            return None
        message = found.message
    raise ConsistructError(f"a linear program was not solved: {message}")
