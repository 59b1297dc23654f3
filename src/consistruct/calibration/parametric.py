"""The whole curve of a pair, and the minimum over pairs, as exact quadratic pieces.

H_ij is the value of a quadratic program whose right-hand side is affine in ε: where the active sets
stay the same, the minimiser v is affine in ε and H_ij = ½‖v‖² is one quadratic.
"""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np

from consistruct.calibration.lp import Bounds, minimise, simplex_row
from consistruct.calibration.pair_solver import solve_pair
from consistruct.calibration.problem import PairProblem
from consistruct.calibration.structured.closed_forms import Quadratic
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray, IntArray

__all__ = ["lower_envelope", "trace_pair"]

GRAIN = 1e-9  # relative length below which an interval of ε is empty
# what counts as positive in an approximate solution: the likely choices first
SUPPORT_THRESHOLDS = sorted(
    product((1e-6, 1e-8, 1e-4, 1e-5, 1e-7, 1e-3), repeat=2), key=lambda pair: pair[0] != pair[1]
)
GAP = 1e-6  # intervals of ε shorter than this share of the range are left to their neighbours


def trace_pair(pair: PairProblem) -> list[Quadratic]:
    """H_ij on (0, max ε of the pair] as quadratic pieces.

    A solution at one ε gives the active sets, these an affine solution in ε and the interval on
    which it stays optimal. Intervals not covered yet are probed in their middle.
    """
    limit = pair.max_eps
    if limit <= 0:
        return []
    flat = min(_zero_until(pair), limit)
    if flat <= GRAIN * limit:  # rounding of a linear program
        flat = 0.0
    pieces = [Quadratic(0.0, flat, 0.0)] if flat > 0 else []
    found: list[Quadratic] = []
    todo = [(flat, limit)]
    while todo:
        low, high = todo.pop()
        if high - low <= GAP * limit:
            continue
        if len(found) > 500:
            raise ConsistructError("a pair's curve has more than 500 pieces; use interval(eps)")
        piece = _piece_around(pair, low, high)
        start, stop = max(piece.low, low), min(piece.high, high)
        found.append(Quadratic(start, stop, piece.a, piece.b, piece.c))
        todo += [(low, start), (stop, high)]
    return pieces + _joined(found, flat, limit)


def _zero_until(pair: PairProblem) -> float:
    """Largest ε with H_ij(ε) = 0: max gap·q over laws with order_rhs·q ≥ 0."""
    A_eq, b_eq = simplex_row(len(pair.gap))
    found = minimise(
        -pair.gap,
        A_ub=-pair.order_rhs,
        b_ub=np.zeros(len(pair.order_rhs)),
        A_eq=A_eq,
        b_eq=b_eq,
    )
    return -found.value if found.feasible else 0.0


def _piece_around(pair: PairProblem, low: float, high: float) -> Quadratic:
    """The quadratic that H_ij follows at some ε in (low, high), and where it is optimal."""
    # several probes: at a breakpoint the active sets are degenerate
    for share in (0.5, 0.45, 0.62, 0.3, 0.81):
        eps = low + share * (high - low)
        solution = solve_pair(pair, eps)
        assert solution is not None
        largest = float(solution.w.max(initial=0.0))
        # with slack in the gap constraint H_ij does not depend on ε here
        tight = float(pair.gap @ solution.q) - eps <= 1e-7 * pair.max_eps
        for law_threshold, multiplier_threshold in SUPPORT_THRESHOLDS:
            S = np.flatnonzero(solution.q > law_threshold)
            W = np.flatnonzero(solution.w > multiplier_threshold * largest)
            piece = _affine_piece(pair, S, W, tight, eps, high - low) if len(W) else None
            if piece is not None and piece.low <= eps <= piece.high:
                return piece
    raise ConsistructError(
        f"the active sets for ε in ({low:.6g}, {high:.6g}) are degenerate and the curve is not "
        f"resolved exactly there; use interval(eps)"
    )


def _affine_piece(
    pair: PairProblem, S: IntArray, W: IntArray, tight: bool, centre: float, unit: float
) -> Quadratic | None:
    """Solve the optimality conditions with supports S (truths) and W (order constraints).

    In the variable t with ε = centre + unit·t, which keeps steep and narrow pieces well scaled.
    """
    A, B, gap = pair.order[W], pair.order_rhs[np.ix_(W, S)], pair.gap[S]
    n_w, n_s = len(W), len(S)
    K = np.zeros((n_w + n_s + 2, n_w + n_s + 2))
    K[:n_w, :n_w] = -A @ A.T  # active order constraints: −AAᵀw = Bq
    K[:n_w, n_w : n_w + n_s] = -B
    K[n_w : n_w + n_s, :n_w] = -B.T  # reduced costs vanish on S
    K[n_w : n_w + n_s, -2] = 1.0
    K[-2, n_w : n_w + n_s] = 1.0
    rhs = np.zeros((len(K), 2))
    rhs[-2, 0] = 1.0
    if tight:
        K[n_w : n_w + n_s, -1] = -gap
        K[-1, n_w : n_w + n_s] = -gap
        rhs[-1] = -centre, -unit
    x = np.linalg.lstsq(K, rhs, rcond=1e-13)[0]  # column 0 + t · column 1
    if np.abs(K @ x - rhs).max() > 1e-10 * max(1.0, float(np.abs(x).max())):
        return None
    v = -(A.T @ x[:n_w])  # (r, 2): the minimiser is v0 + t v1, unique although q and w may not be
    low, high = _optimal_range(pair, S, W, v, tight, centre, unit)
    if low > high:
        return None
    v1 = v[:, 1] / unit
    v0 = v[:, 0] - centre * v1
    return Quadratic(low, high, 0.5 * float(v1 @ v1), float(v0 @ v1), 0.5 * float(v0 @ v0))


def _optimal_range(
    pair: PairProblem,
    S: IntArray,
    W: IntArray,
    v: FloatArray,
    tight: bool,
    centre: float,
    unit: float,
) -> tuple[float, float]:
    """The ε for which v0 + t v1 is optimal with supports within S and W.

    Law and multipliers need not be unique, so their existence is a linear program in which t is
    a variable: once for q (feasible, tight on W), once for (w, ν, λ) (reduced costs ≥ 0, 0 on S).
    """
    n_s, n_w, r = len(S), len(W), len(v)
    rest = np.setdiff1d(np.arange(len(pair.order)), W)
    order_v = pair.order @ v  # (c, 2)
    rhs = pair.order_rhs[:, S]
    in_range = (-centre / unit, (pair.max_eps - centre) / unit)
    # variables (q_S, t)
    gap_row = np.append(pair.gap[S], -unit)[None]
    primal = _range_of_last(
        A_eq=np.vstack(
            [
                np.append(np.ones(n_s), 0.0),
                np.column_stack([rhs[W], -order_v[W, 1]]),
                gap_row if tight else gap_row[:0],
            ]
        ),
        b_eq=np.concatenate([[1.0], order_v[W, 0], [centre] * tight]),
        A_ub=np.vstack([np.column_stack([-rhs[rest], order_v[rest, 1]]), -gap_row]),
        b_ub=np.append(-order_v[rest, 0], -centre),
        bounds=[(0.0, None)] * n_s + [in_range],
    )
    # variables (w_W, ν, λ, t); reduced cost −w·rhs − ν gap − λ
    cost = np.column_stack(
        [-pair.order_rhs[W].T, -pair.gap, -np.ones(len(pair.gap)), np.zeros(len(pair.gap))]
    )
    outside = np.setdiff1d(np.arange(len(pair.gap)), S)
    dual = _range_of_last(
        A_eq=np.vstack([np.column_stack([-pair.order[W].T, np.zeros((r, 2)), -v[:, 1]]), cost[S]]),
        b_eq=np.concatenate([v[:, 0], np.zeros(n_s)]),
        A_ub=-cost[outside],
        b_ub=np.zeros(len(outside)),
        bounds=[(0.0, None)] * n_w + [(0.0, None if tight else 0.0), (None, None), in_range],
    )
    low, high = max(primal[0], dual[0]), min(primal[1], dual[1])
    return centre + unit * low, centre + unit * high


def _range_of_last(
    *,
    A_eq: FloatArray,
    b_eq: FloatArray,
    A_ub: FloatArray,
    b_ub: FloatArray,
    bounds: Bounds,
) -> tuple[float, float]:
    """Smallest and largest value of the last variable over a polyhedron; (inf, −inf) if empty."""
    ends = []
    for sign in (1.0, -1.0):
        goal = np.zeros(A_eq.shape[1])
        goal[-1] = sign
        # the equations hold data that were solved for, so they are met only up to rounding
        found = minimise(
            goal, A_ub=A_ub, b_ub=b_ub, A_eq=A_eq, b_eq=b_eq, bounds=bounds, tolerance=1e-8
        )
        if not found.feasible:
            return math.inf, -math.inf
        ends.append(sign * found.value)
    return ends[0], ends[1]


def _joined(pieces: list[Quadratic], low: float, high: float) -> list[Quadratic]:
    """Sort, close gaps below the grain, and merge neighbours that are the same quadratic."""
    ordered = sorted(pieces, key=lambda piece: piece.low)
    result: list[Quadratic] = []
    for piece in ordered:
        start = result[-1].high if result else low
        if result and _alike(result[-1], piece):
            last = result.pop()
            result.append(Quadratic(last.low, piece.high, last.a, last.b, last.c))
        else:
            result.append(Quadratic(start, piece.high, piece.a, piece.b, piece.c))
    if result:
        last = result.pop()
        result.append(Quadratic(last.low, high, last.a, last.b, last.c))
    return result


def _alike(one: Quadratic, other: Quadratic) -> bool:
    """Equal up to rounding: compared at the far end, where all three terms have one unit."""
    far = max(one.high, other.high)
    powers = far**2, far, 1.0
    pairs = zip((one.a, one.b, one.c), (other.a, other.b, other.c), powers, strict=True)
    terms = [(abs(x - y) * power, max(abs(x), abs(y)) * power) for x, y, power in pairs]
    return sum(gap for gap, _ in terms) <= 1e-9 * max(size for _, size in terms)


def lower_envelope(curves: list[list[Quadratic]]) -> tuple[Quadratic, ...]:
    """The minimum of several piecewise quadratic curves, each +inf beyond its end."""
    pieces = [piece for curve in curves for piece in curve]
    if not pieces:
        return ()
    edges = sorted({edge for piece in pieces for edge in (piece.low, piece.high)})
    result: list[Quadratic] = []
    for low, high in pairwise(edges):
        if high - low <= GAP * edges[-1]:
            continue
        active = _distinct([piece for piece in pieces if piece.low <= low and piece.high >= high])
        if not active:
            continue
        cuts = sorted({low, high, *_crossings(active, low, high)})
        for start, stop in pairwise(cuts):
            middle = 0.5 * (start + stop)
            best = min(active, key=lambda piece: piece(middle))
            result.append(Quadratic(start, stop, best.a, best.b, best.c))
    return tuple(_joined(result, result[0].low, result[-1].high)) if result else ()


def _distinct(pieces: list[Quadratic]) -> list[Quadratic]:
    kept: list[Quadratic] = []
    for piece in pieces:
        if not any(_alike(piece, other) for other in kept):
            kept.append(piece)
    return kept


def _crossings(pieces: list[Quadratic], low: float, high: float) -> list[float]:
    found = []
    for first, one in enumerate(pieces):
        for other in pieces[first + 1 :]:
            a, b, c = one.a - other.a, one.b - other.b, one.c - other.c
            if abs(a) < 1e-15:
                roots = [-c / b] if b else []
            else:
                square = b * b - 4 * a * c
                roots = []
                if square >= 0:
                    root = math.sqrt(square)
                    roots = [(-b - root) / (2 * a), (-b + root) / (2 * a)]
            found += [root for root in roots if low + GAP * high < root < high * (1 - GAP)]
    return found
