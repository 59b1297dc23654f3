"""H of the log loss and of sparsemax by vertices, for a handful of labels: the slow, other way.

The distributions that predict j are a polytope; its vertices are found by trying all sets of tight
constraints, in rational arithmetic. Then

* log loss: min over p, q of KL(q‖p) is max over ν of −log max over vertices v of Σ v_y exp(ν d_y)
  with d = gap − ε, one number to find, to 60 digits;
* sparsemax: the distance between two polytopes is attained inside some face of each: all pairs of
  faces are tried, each a linear system over the rationals.

Nothing here is shared with the package.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import mpmath

__all__ = ["divergence_value", "vertices"]

DIGITS = 60


def solve(rows, right):
    """The solution of a linear system over the rationals; None unless there is exactly one."""
    n = len(rows[0])
    table = [[*row, b] for row, b in zip(rows, right, strict=True)]
    for column in range(n):
        pivot = next((r for r in range(column, len(table)) if table[r][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        head = [x / table[column][column] for x in table[column]]
        table[column] = head
        for r, row in enumerate(table):
            if r != column and row[column]:
                table[r] = [x - row[column] * y for x, y in zip(row, head, strict=True)]
    return None if any(row[-1] for row in table[n:]) else [row[-1] for row in table[:n]]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def vertices(constraints, m):
    """Vertices of {x : Σx = 1, x ≥ 0, row·x ≤ 0 for all rows}."""
    rows = [*constraints, *([Fraction(-(x == y)) for x in range(m)] for y in range(m))]
    found = set()
    for tight in itertools.combinations(rows, m - 1):
        x = solve([[Fraction(1)] * m, *tight], [Fraction(1)] + [Fraction(0)] * (m - 1))
        if x is not None and all(dot(row, x) <= 0 for row in rows):
            found.add(tuple(x))
    return sorted(found)


@cache
def divergence_value(surrogate, decoding, L, eps):
    """H(ε) as a rational (of 60 digits for the log loss); None for +∞."""
    k, m = len(L), len(L[0])
    values = []
    for j in range(k):
        gaps = [[a - b for a, b in zip(L[j], L[c], strict=True)] for c in range(k)]
        order = [
            [Fraction((y == c) - (y == j)) for y in range(m)] if decoding == "argmax" else gaps[c]
            for c in range(k)
        ]
        others = [c for c in range(k) if c != j]
        corners = vertices([order[c] for c in others], m)
        if not corners:
            continue
        center = [sum(x) / len(corners) for x in zip(*corners, strict=True)]
        ties = [c for c in others if c < j and dot(order[c], center) == 0]
        if ties or (surrogate == "log" and min(center) == 0):
            continue  # equal labels go to the smallest number; the log loss needs p > 0
        for i in others:
            if max(gaps[i]) < eps:
                continue
            value = (_log if surrogate == "log" else _squares)(corners, gaps[i], eps, order, others)
            values += [] if value is None else [value]
    return min(values, default=None)


def _log(corners, gap, eps, order, others):
    with mpmath.workdps(DIGITS):
        top = max(gap)
        if eps == top:
            most = max(sum(x for x, d in zip(v, gap, strict=True) if d == top) for v in corners)
            return None if most == 0 else max(_rational(-mpmath.log(_mp(most))), Fraction(0))
        d = [_mp(x - eps) for x in gap]
        points = [[_mp(x) for x in v] for v in corners]
        unit = max(abs(x) for x in d)

        def value(nu):
            tilted = [mpmath.exp(nu * x / unit) for x in d]
            sums = [sum(a * b for a, b in zip(v, tilted, strict=True)) for v in points]
            return -mpmath.log(max(sums))

        low, high = mpmath.mpf(0), mpmath.mpf(1)
        while value(2 * high) > value(high) and high < mpmath.mpf(10) ** 9:
            high *= 2
        if high >= 10**9:
            return None  # no vertex has a true label above ε: the divergence is infinite
        high *= 2
        share = (mpmath.sqrt(5) - 1) / 2
        a, b = high - share * (high - low), low + share * (high - low)
        first, second = value(a), value(b)
        for _ in range(160):  # golden section: the value has twice the digits of ν
            if first < second:
                low, a, first = a, b, second
                b = low + share * (high - low)
                second = value(b)
            else:
                high, b, second = b, a, first
                a = high - share * (high - low)
                first = value(a)
        return max(_rational(max(first, second)), Fraction(0))


def _mp(x):
    return mpmath.mpf(x.numerator) / x.denominator


def _rational(x):
    return Fraction(int(mpmath.floor(x * mpmath.mpf(2) ** 180)), 2**180)


def _squares(corners, gap, eps, order, others):
    """min ½‖q − p‖² by the first-order conditions of every pair of faces."""
    m = len(gap)
    names = range(m)
    best = None
    for of_q in _nonempty(names):
        for of_p in _nonempty(names):
            for tight in itertools.product((False, True), repeat=len(others) + 1):
                rows = [order[c] for c, flag in zip(others, tight[1:], strict=True) if flag]
                found = _face(of_q, of_p, rows, gap if tight[0] else None, eps, m)
                if found is None:
                    continue
                q, p = found
                feasible = min(q) >= 0 and min(p) >= 0 and dot(gap, q) >= eps
                if feasible and all(dot(order[c], p) <= 0 for c in others):
                    value = sum((a - b) ** 2 for a, b in zip(q, p, strict=True)) / 2
                    best = value if best is None else min(best, value)
    return best


def _nonempty(names):
    return [s for n in range(1, len(names) + 1) for s in itertools.combinations(names, n)]


def _face(of_q, of_p, rows, gap, eps, m):
    """The nearest points of two affine sets: q on `of_q` with gap·q = ε, p on `of_p` with ties."""
    n, s = len(of_q), len(of_p)
    width = n + s
    equations = [([Fraction(1)] * n + [Fraction(0)] * s, Fraction(1))]
    equations.append(([Fraction(0)] * n + [Fraction(1)] * s, Fraction(1)))
    if gap is not None:
        equations.append(([gap[y] for y in of_q] + [Fraction(0)] * s, eps))
    equations += [([Fraction(0)] * n + [row[y] for y in of_p], Fraction(0)) for row in rows]
    # stationarity: q − p on both supports equals a combination of the equations
    system, right = [], []
    for place, y in enumerate([*of_q, *of_p]):
        line = [Fraction(0)] * width
        sign = 1 if place < n else -1
        for other, z in enumerate([*of_q, *of_p]):
            if z == y:
                line[other] = Fraction(sign if other < n else -sign)
        system.append(line + [-row[place] for row, _ in equations])
        right.append(Fraction(0))
    for row, b in equations:
        system.append([*row, *([Fraction(0)] * len(equations))])
        right.append(b)
    x = solve(system, right)
    if x is None:
        return None
    q, p = [Fraction(0)] * m, [Fraction(0)] * m
    for place, y in enumerate(of_q):
        q[y] = x[place]
    for place, y in enumerate(of_p):
        p[y] = x[n + place]
    return q, p
