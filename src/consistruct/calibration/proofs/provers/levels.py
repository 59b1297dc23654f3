"""The consistency level of listed problems between two rationals.

H vanishes iff the best scores −Pq themselves make j win: the level is the largest (L_j − L_i)q over
pairs and distributions with (P_c − P_j)q ≥ 0 for all c. Floats solve the linear programs. From
below, the distribution of their active set is solved exactly and must be feasible; from above, any
multipliers μ ≥ 0 prove (L_j − L_i)q ≤ max_y [L_j − L_i + Σ_c μ_c (P_c − P_j)]_y.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from consistruct.calibration.lp import minimize, simplex_row
from consistruct.certificates.exact import solve_integers
from consistruct.certificates.listed import Problem
from consistruct.protocols import FloatArray

__all__ = ["Level", "exact_level", "residual"]

SHARES = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2))  # μ of i alone
ACTIVE = 1e-9  # probabilities and slacks below this are zero in floats


@dataclass(frozen=True, eq=False)
class Level:
    """lower ≤ sup{ε : H(ε) = 0} ≤ upper; the pair and distribution that attain the lower end."""

    lower: Fraction
    upper: Fraction
    pair: tuple[int, int] | None = None
    distribution: tuple[Fraction, ...] | None = None


def exact_level(problem: Problem, rows: list[int]) -> Level:
    """Over the pairs of predictable labels `rows`."""
    if problem.full or len(rows) < 2:
        return Level(Fraction(0), Fraction(0))
    L = np.array([problem.loss[c] for c in rows], dtype=object)
    P = np.array([problem.projected[c] for c in rows], dtype=object)
    if (L == P).all():
        return Level(Fraction(0), Fraction(0))  # the scores express the loss
    best, upper = Level(Fraction(0), Fraction(0)), Fraction(0)
    loss, projected = _floats(L, P)
    # the pairs with most to lose first: the rest is decided by their limits
    for limit, i, j in sorted(_limits(L, P), reverse=True):
        if limit <= max(best.lower, upper):
            break
        found = _pair(L, P, loss, projected, i, j)
        upper = max(upper, min(limit, found.upper))
        if found.lower > best.lower:
            best = Level(found.lower, found.lower, (rows[i], rows[j]), found.distribution)
    unit = problem.unit
    return Level(best.lower / unit, max(best.lower, upper) / unit, best.pair, best.distribution)


def residual(problem: Problem, rows: list[int]) -> Fraction:
    """Return how far (L_j − L_i)_y and (P_j − P_i)_y are apart at most: no level is above that.

    Where j wins under the best scores, (P_j − P_i)q ≤ 0.
    """
    rest = [
        [a - b for a, b in zip(problem.loss[c], problem.projected[c], strict=True)] for c in rows
    ]
    spreads = (max(column) - min(column) for column in zip(*rest, strict=True))
    return Fraction(max(spreads, default=0), problem.unit)


def _limits(L: np.ndarray, P: np.ndarray) -> list[tuple[Fraction, int, int]]:
    """(bound, i, j) for every pair, from multipliers of i alone."""
    best: dict[tuple[int, int], Fraction] = {}
    for share in SHARES:
        mixed = share.denominator * L - share.numerator * P
        for i, row in enumerate(mixed):
            for j, top in enumerate((mixed - row).max(axis=1).tolist()):
                bound = Fraction(top, share.denominator)
                if i != j and bound < best.get((i, j), bound + 1):
                    best[i, j] = bound
    return [(bound, i, j) for (i, j), bound in best.items()]


def _pair(
    L: np.ndarray, P: np.ndarray, loss: FloatArray, projected: FloatArray, i: int, j: int
) -> Level:
    """Both ends for one pair, in the unit of the integers."""
    others = [c for c in range(len(L)) if c != j]
    order = projected[j] - projected[others]  # ≤ 0 where j wins
    A_eq, b_eq = simplex_row(L.shape[1])
    found = minimize(loss[i] - loss[j], A_ub=order, b_ub=np.zeros(len(order)), A_eq=A_eq, b_eq=b_eq)
    gap = [int(x) for x in L[j] - L[i]]
    rows = {c: [int(x) for x in P[c] - P[j]] for c in others}
    if not found.feasible:
        high = Fraction(0) if _cannot_win(order, others, rows) else Fraction(max(gap))
        return Level(Fraction(0), high)
    mu = {c: Fraction(float(x)) for c, x in zip(others, -found.marginals, strict=True) if x > 0}
    top = max(
        g + sum((x * rows[c][y] for c, x in mu.items()), Fraction(0)) for y, g in enumerate(gap)
    )
    distribution = _distribution(found.x, found.x @ order.T, rows, others, list(mu))
    if distribution is None:
        return Level(Fraction(0), max(top, Fraction(0)))
    value = sum((x * g for x, g in zip(distribution, gap, strict=True)), Fraction(0))
    return Level(value, max(top, value), (i, j), tuple(distribution))


def _distribution(
    x: FloatArray, slack: FloatArray, rows: dict[int, list[int]], others: list[int], used: list[int]
) -> list[Fraction] | None:
    """The distribution of the active set, if it exactly lets j win."""
    support = np.flatnonzero(x > ACTIVE).tolist()
    scale = max(1.0, float(np.abs(slack).max(initial=0.0)))
    nearly = [c for c, s in zip(others, slack.tolist(), strict=True) if s > -ACTIVE * scale]
    for tight in (nearly, used):
        A = [[1] * len(support), *([rows[c][y] for y in support] for c in tight)]
        found = solve_integers(A, [[1], *([0] for _ in tight)])
        if found is None or any(row[0] < 0 for row in found):
            continue
        distribution = [Fraction(0)] * len(x)
        for y, row in zip(support, found, strict=True):
            distribution[y] = row[0]
        if all(
            sum(q * r for q, r in zip(distribution, rows[c], strict=True) if q) >= 0 for c in others
        ):
            return distribution
    return None


def _cannot_win(order: FloatArray, others: list[int], rows: dict[int, list[int]]) -> bool:
    """Whether multipliers prove that j never wins: Σ μ_c (P_c − P_j) < 0 for every true label."""
    m = order.shape[1]
    found = minimize(  # the least violation t of (P_j − P_c)q ≤ t
        np.append(np.zeros(m), 1.0),
        A_ub=np.column_stack([order, -np.ones(len(order))]),
        b_ub=np.zeros(len(order)),
        A_eq=np.append(np.ones(m), 0.0)[None],
        b_eq=np.ones(1),
        bounds=[(0.0, None)] * m + [(None, None)],
    )
    mu = {c: Fraction(float(x)) for c, x in zip(others, -found.marginals, strict=True) if x > 0}
    return all(sum((x * rows[c][y] for c, x in mu.items()), Fraction(0)) < 0 for y in range(m))


def _floats(*tables: np.ndarray) -> tuple[FloatArray, ...]:
    """Integers on one scale of order one; only guesses come from them."""
    largest = max(1, *(int(np.abs(rows).max()) for rows in tables))
    return tuple(np.array([[x / largest for x in row] for row in rows.tolist()]) for rows in tables)
