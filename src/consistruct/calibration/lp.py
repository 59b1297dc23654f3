"""Linear programs through HiGHS, with tight tolerances and one result type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.protocols import FloatArray

__all__ = ["LinearProgram", "minimize"]

Bounds = Sequence[tuple[float | None, float | None]]


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """The optimum, or why there is none."""

    value: float
    x: FloatArray
    feasible: bool
    marginals: FloatArray  # (u,) of A_ub x ≤ b_ub, not positive; empty if infeasible


def minimize(
    cost: FloatArray,  # (n,)
    *,
    A_ub: FloatArray,  # (u, n)
    b_ub: FloatArray,  # (u,)
    A_eq: FloatArray | None = None,  # (e, n)
    b_eq: FloatArray | None = None,  # (e,)
    bounds: Bounds | None = None,  # non-negative variables if not given
    tolerance: float = 1e-10,
) -> LinearProgram:
    """min cost·x s.t. A_ub x ≤ b_ub, A_eq x = b_eq; an infeasible program is a result."""
    result = scipy.optimize.linprog(
        cost,
        A_ub=A_ub,
        b_ub=b_ub,
        A_eq=A_eq,
        b_eq=b_eq,
        bounds=[(0.0, None)] * len(cost) if bounds is None else bounds,
        method="highs",
        options={
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
        },
    )
    if result.status == 0 and result.fun is not None:
        x = np.asarray(result.x, dtype=np.float64)
        return LinearProgram(float(result.fun), x, True, np.asarray(result.ineqlin.marginals))
    if result.status == 2:
        return LinearProgram(np.inf, np.full(len(cost), np.nan), False, np.zeros(0))
    raise RuntimeError(f"a linear program was not solved: {result.message}")


def simplex_row(n: int) -> tuple[FloatArray, FloatArray]:
    """A_eq, b_eq of Σ x = 1."""
    return np.ones((1, n)), np.ones(1)
