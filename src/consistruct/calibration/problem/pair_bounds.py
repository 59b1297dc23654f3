"""Bounds on H_ij in floats, for the search: a primal point from above, multipliers from below.

They say which pairs matter; what is claimed in the end is proved in `exact` and `proofs`.

For any w ≥ 0 on the order constraints and ν ≥ 0 on the gap constraint, weak duality and the
best scaling of (w, ν) give, for *every* ε,

    √(2 H_ij(ε)) ≥ (ν ε + m) / ‖Σ_c w_c (F̃_c − F̃_j)‖,
    m = min_y [ −Σ_c w_c (P_c − P_j) − ν (L_j − L_i) ]_y,

so a dual point needs no repair and is a line in √H. Bounds are rounded outwards by a multiple of
the machine precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from consistruct.calibration.problem.listed import PairProblem
from consistruct.protocols import FloatArray

__all__ = ["Line", "best_gap_multiplier", "dual_line", "primal_value"]

ROUNDING = 64 * float(np.finfo(np.float64).eps)
FEASIBILITY = 1e-12  # allowed violation of an order constraint, relative to the scale of the loss


@dataclass(frozen=True)
class Line:
    """√(2H_ij(ε)) ≥ slope·ε + intercept, from one dual point; norm 0 certifies infeasibility."""

    nu: float
    m: float
    norm: float

    def lower(self, eps: float) -> float:
        """The certified lower bound on H_ij(ε)."""
        height = self.nu * eps + self.m
        if height <= 0:
            return 0.0
        if self.norm == 0:
            return math.inf
        return 0.5 * (height / self.norm) ** 2 * (1 - ROUNDING)


def dual_line(pair: PairProblem, w: FloatArray, nu: float) -> Line:
    """Evaluate multipliers w (c,) ≥ 0 and ν ≥ 0 in plain arithmetic; negative ones are cut to 0."""
    w = np.maximum(w, 0.0)
    nu = max(float(nu), 0.0)
    support = np.flatnonzero(w)
    rhs = pair.order_rhs[support]
    reduced = -(w[support] @ rhs) - nu * pair.gap
    size = w[support] @ np.abs(rhs) + nu * np.abs(pair.gap)
    m = float((reduced - ROUNDING * size).min())
    direction = w[support] @ pair.order[support]
    # where the sum cancels, its rounding error is relative to the terms
    spread = w[support] @ np.abs(pair.order[support])
    norm = float(np.linalg.norm(direction)) + ROUNDING * float(np.linalg.norm(spread))
    return Line(nu, m, norm)


def best_gap_multiplier(pair: PairProblem, w: FloatArray, eps: float) -> float:
    """ν ≥ 0 that maximizes νε + min_y [γ_y − ν gap_y], γ = −w·order_rhs: a two-variable LP.

    It is the slope at ε of the lower convex hull of the points (gap_y, γ_y).
    """
    gamma = -(w @ pair.order_rhs)
    return hull_slope(pair.gap, gamma, eps)


def hull_slope(x: FloatArray, z: FloatArray, at: float) -> float:
    """Slope ν ≥ 0 at `at` of the largest convex non-decreasing function below the points (x, z).

    At the right end, and where x hardly varies, the steepest finite slope that supports the
    lowest rightmost point.
    """
    order = np.lexsort((z, x))
    hull: list[tuple[float, float]] = []
    for a, b in zip(x[order].tolist(), z[order].tolist(), strict=True):
        if hull and a == hull[-1][0]:
            continue
        while len(hull) >= 2:
            (x0, z0), (x1, z1) = hull[-2], hull[-1]
            if (z1 - z0) * (a - x0) >= (b - z0) * (x1 - x0):
                hull.pop()
            else:
                break
        hull.append((a, b))
    slope = 0.0
    for (x0, z0), (x1, z1) in pairwise(hull):
        slope = max((z1 - z0) / (x1 - x0), 0.0)
        if at < x1:
            return slope
    return slope


def primal_value(pair: PairProblem, v: FloatArray, q: FloatArray, eps: float) -> float:
    """½‖v‖² if (v, q) is feasible within rounding, +inf otherwise."""
    scale = max(float(np.abs(pair.order_rhs).max(initial=0.0)), float(np.abs(pair.gap).max()))
    feasible = (
        (q >= 0).all()
        and abs(float(q.sum()) - 1.0) <= ROUNDING
        and float(pair.gap @ q) >= eps - ROUNDING * scale
        and bool((pair.order @ v <= pair.order_rhs @ q + FEASIBILITY * scale).all())
    )
    return 0.5 * float(v @ v) * (1 + ROUNDING) if feasible else math.inf
