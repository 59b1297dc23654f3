"""Clarabel called directly, with the tolerances of this package; its results are never trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
import scipy  # its submodules are imported on use

from consistruct.protocols import FloatArray

__all__ = ["ConicPoint", "solve_conic"]


@dataclass(frozen=True, eq=False)
class ConicPoint:
    """Primal and dual point of min ½xᵀPx + c·x s.t. Ax + s = b, s in the cones."""

    x: FloatArray
    z: FloatArray
    finite: bool


def solve_conic(
    cost: FloatArray,  # (n,)
    blocks: list[tuple[Any, FloatArray, Any]],  # (A rows, b, cone) in order
    quadratic: Any = None,  # (n, n) upper triangle
    tolerance: float = 1e-12,
) -> ConicPoint:
    """The best point found, also where the tolerance was not reached."""
    n = len(cost)
    P = scipy.sparse.csc_matrix((n, n)) if quadratic is None else scipy.sparse.csc_matrix(quadratic)
    A = scipy.sparse.vstack([scipy.sparse.csc_matrix(rows) for rows, _, _ in blocks], format="csc")
    b = np.concatenate([right for _, right, _ in blocks])
    cones: list[Any] = []
    for _, _, cone in blocks:
        cones.extend(cone if isinstance(cone, list) else [cone])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, tolerance)
    solution = clarabel.DefaultSolver(P, cost, A, b, cones, settings).solve()
    x, z = np.asarray(solution.x), np.asarray(solution.z)
    return ConicPoint(x, z, bool(np.isfinite(x).all() and np.isfinite(z).all()))
