"""One pair at one ε: Clarabel for the active sets, then exact projections for both bounds."""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.problem.listed import PairProblem
from consistruct.calibration.problem.pair_bounds import (
    ROUNDING,
    Line,
    best_gap_multiplier,
    dual_line,
    primal_value,
)
from consistruct.protocols import FloatArray

__all__ = ["PairSolution", "solve_pair"]


@dataclass(frozen=True, eq=False)
class PairSolution:
    """Certified bounds on H_ij(ε) with the points that prove them."""

    eps: float
    lower: float
    upper: float
    q: FloatArray  # (m,)
    v: FloatArray  # (r,)
    w: FloatArray  # (c,)
    line: Line

    @property
    def relative_width(self) -> float:
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0


def solve_pair(pair: PairProblem, eps: float, *, polish: bool = True) -> PairSolution | None:
    """Solve H_ij(ε); None where the pair is infeasible, i.e. ε > max_y (L_j − L_i)_y.

    `polish` spends some effort on the last digits where they are missing.
    """
    limit = pair.max_eps
    if eps > limit:
        return None
    # At ε = max there is no interior point: only the true labels of largest gap remain.
    tight = eps >= limit * (1 - 1e-12)
    columns = np.flatnonzero(pair.gap >= limit * (1 - 1e-12)) if tight else None
    v, q, w, nu = _conic(pair, eps, columns)
    best = _certify(pair, eps, v, q, w, nu)
    if polish and best.relative_width > 1e-9:
        polished = _active_set_polish(pair, eps, best, columns)
        best = _tighter(best, polished)
    return best


def _conic(
    pair: PairProblem, eps: float, columns: np.ndarray | None
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Primal point (v, q) and multipliers (w, ν) from the interior-point solver."""
    gap = pair.gap if columns is None else pair.gap[columns]
    rhs = pair.order_rhs if columns is None else pair.order_rhs[:, columns]
    n_order, r = pair.order.shape
    m = len(gap)
    has_gap = columns is None
    # ½‖v‖²: ones on the diagonal of the first r columns
    starts = np.minimum(np.arange(r + m + 1), r)
    P = scipy.sparse.csc_array((np.ones(r), np.arange(r), starts), shape=(r + m, r + m))
    b = np.zeros(1 + n_order + m + int(has_gap))
    b[0] = 1.0
    if has_gap:
        b[-1] = -eps
    cones = [
        clarabel.ZeroConeT(1),
        clarabel.NonnegativeConeT(n_order + m + int(has_gap)),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, 1e-11)
    solver = clarabel.DefaultSolver(
        P,
        np.zeros(r + m),
        _constraints(pair.order, rhs, gap if has_gap else None),
        b,
        cones,
        settings,
    )
    solution = solver.solve()
    x, z = np.asarray(solution.x), np.asarray(solution.z)
    q = np.zeros(len(pair.gap))
    q[slice(None) if columns is None else columns] = x[r:]
    return x[:r], q, z[1 : 1 + n_order], float(z[-1]) if has_gap else 0.0


def _constraints(
    order: FloatArray,  # (c, r)
    rhs: FloatArray,  # (c, m)
    gap: FloatArray | None,  # (m,)
) -> scipy.sparse.csc_array:
    """Rows Σq, order·v − rhs·q, −q and −gap·q, written column by column.

    SciPy's hstack and vstack would take longer than the solver.
    """
    (n_order, r), m = order.shape, rhs.shape[1]
    n_rows = 1 + n_order + m + (gap is not None)
    inner = 1 + np.arange(n_order)
    entries = [np.ones((1, m)), -rhs, -np.ones((1, m))]
    places = [np.zeros((1, m), dtype=np.int64), np.repeat(inner[:, None], m, axis=1)]
    places.append(1 + n_order + np.arange(m)[None])
    if gap is not None:
        entries.append(-gap[None])
        places.append(np.full((1, m), n_rows - 1))
    per_column = len(np.concatenate(places))
    data = np.concatenate([order.T.ravel(), np.concatenate(entries).T.ravel()])
    rows = np.concatenate([np.tile(inner, r), np.concatenate(places).T.ravel()])
    starts = np.concatenate([np.arange(r) * n_order, r * n_order + np.arange(m + 1) * per_column])
    found = scipy.sparse.csc_array((data, rows, starts), shape=(n_rows, r + m))
    found.eliminate_zeros()
    return found


def _certify(
    pair: PairProblem, eps: float, v: FloatArray, q: FloatArray, w: FloatArray, nu: float
) -> PairSolution:
    """Repair the points and evaluate both bounds; keep the best of several dual points."""
    q = _feasible_distribution(pair, q, eps)
    projected, w_exact = _project(pair, q, v)
    # non-negative least squares may stop early on degenerate faces: the given point competes
    scaled = _stretched(pair, v, pair.order_rhs @ q)
    upper, v = min(
        ((primal_value(pair, point, q, eps), point) for point in (projected, scaled)),
        key=lambda pair_of: pair_of[0],
    )
    candidates = [w_exact, np.maximum(w, 0.0)]
    chosen_w, chosen_line = candidates[0], Line(0.0, 0.0, 1.0)
    for multipliers in candidates:
        for slope in {best_gap_multiplier(pair, multipliers, eps), max(nu, 0.0)}:
            line = dual_line(pair, multipliers, slope)
            if line.lower(eps) >= chosen_line.lower(eps):
                chosen_w, chosen_line = multipliers, line
    return PairSolution(eps, chosen_line.lower(eps), upper, q, v, chosen_w, chosen_line)


def _feasible_distribution(pair: PairProblem, q: FloatArray, eps: float) -> FloatArray:
    """A distribution with gap·q ≥ ε: cut, normalize, move toward the true label of largest gap."""
    q = np.where(q > 1e-14, q, 0.0)
    total = q.sum()
    q = q / total if total > 0 else np.full(len(q), 1.0 / len(q))
    short = eps - float(pair.gap @ q)
    # at ε = max every true label of largest gap will do: a rounding error must not move the
    # distribution
    if short > ROUNDING / 4 * float(np.abs(pair.gap).max()):
        top = int(pair.gap.argmax())
        room = pair.max_eps - float(pair.gap @ q)
        move = min(1.0, short / room) if room > 0 else 1.0
        q = (1 - move) * q
        q[top] += move
        q /= q.sum()
    return q


def _project(pair: PairProblem, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For fixed q, min ½‖v‖² s.t. order·v ≤ b with b = order_rhs·q: the point and its multipliers.

    Least-distance programming: u ≥ 0 minimizes ‖[−orderᵀ; −bᵀ]u − (0, …, 0, 1)‖; with residual ρ
    the solution is −ρ_first/ρ_last and the multipliers are −u/ρ_last. Where non-negative least
    squares fails the given `v` is kept, and the bounds say how good it is.
    """
    b = pair.order_rhs @ q
    if (b >= 0).all():
        return np.zeros(pair.order.shape[1]), np.zeros(len(b))
    # constraints −order·v ≥ −b: G v ≥ h with G = −order, h = −b
    stacked = np.vstack([-pair.order.T, -b[None]])
    goal = np.zeros(len(stacked))
    goal[-1] = 1.0
    try:
        u, _ = scipy.optimize.nnls(stacked, goal, maxiter=30 * stacked.shape[1])
    except RuntimeError:
        return v, np.zeros(len(b))
    residual = stacked @ u - goal
    if residual[-1] >= 0:
        return v, np.zeros(len(b))
    projected = -residual[:-1] / residual[-1]
    w = u / -residual[-1]
    return _stretched(pair, projected, b), w


def _stretched(pair: PairProblem, v: FloatArray, b: FloatArray) -> FloatArray:
    """Push rounding errors out of the cone: a larger v only helps constraints with b < 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(b < 0, b / (pair.order @ v), 1.0)
    worst = float(np.max(np.where(np.isfinite(ratio), ratio, 1.0), initial=1.0))
    return v * worst if 1.0 < worst < 1.0 + 1e-6 else v


def _active_set_polish(
    pair: PairProblem, eps: float, start: PairSolution, columns: np.ndarray | None
) -> PairSolution:
    """Solve the KKT equations of the active sets that the approximate solution suggests."""
    best = start
    for threshold in (1e-5, 1e-7):
        S = np.flatnonzero(start.q > threshold)
        W = np.flatnonzero(start.w > threshold * max(1e-300, float(start.w.max(initial=0.0))))
        if len(S) == 0 or len(W) == 0:
            continue
        A, B = pair.order[W], pair.order_rhs[np.ix_(W, S)]
        n_w, n_s = len(W), len(S)
        with_gap = columns is None
        size = n_w + n_s + 1 + int(with_gap)
        K = np.zeros((size, size))
        rhs = np.zeros(size)
        K[:n_w, :n_w] = -A @ A.T
        K[:n_w, n_w : n_w + n_s] = -B
        K[n_w : n_w + n_s, :n_w] = -B.T
        K[n_w : n_w + n_s, n_w + n_s] = 1.0
        K[n_w + n_s, n_w : n_w + n_s] = 1.0
        rhs[n_w + n_s] = 1.0
        if with_gap:
            K[n_w : n_w + n_s, -1] = -pair.gap[S]
            K[-1, n_w : n_w + n_s] = -pair.gap[S]
            rhs[-1] = -eps
        x = np.linalg.lstsq(K, rhs, rcond=None)[0]
        w, q = np.zeros(len(pair.order)), np.zeros(len(pair.gap))
        w[W], q[S] = x[:n_w], x[n_w : n_w + n_s]
        candidate = _certify(pair, eps, -(w @ pair.order), q, w, float(x[-1]) if with_gap else 0.0)
        best = _tighter(best, candidate)
    return best


def _tighter(one: PairSolution, other: PairSolution) -> PairSolution:
    """Best upper point of one and best lower point of the other."""
    primal = one if one.upper <= other.upper else other
    dual = one if one.lower >= other.lower else other
    return PairSolution(one.eps, dual.lower, primal.upper, primal.q, primal.v, dual.w, dual.line)
