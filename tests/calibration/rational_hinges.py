"""H of the hinge and the max-min margin for two or three labels, in rational arithmetic.

Nothing of the package in it. V_j(q) = min over scores f with f_j largest of the surrogate, which is
piecewise linear in f: the minimum is at a point where enough pieces meet, and all these points are
listed. V_j − V has its minimum over a polygon of distributions at a point where two lines meet: a
kink of V, an edge of the simplex, or (L_j − L_i)q = ε; all these points are listed, too.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

from tests.calibration.rational import dot, gauss

__all__ = ["hinge_value"]


def _points(planes, size):
    """Points of R^size in which as many of the planes (normal, right-hand side) meet."""
    found = set()
    for chosen in itertools.combinations(sorted(set(planes)), size):
        rows = [list(normal) for normal, _ in chosen]
        point = gauss(rows, [[right] for _, right in chosen])
        if point is not None and len(_independent(rows)) == size:
            found.add(tuple(x[0] for x in point))
    return found


def _independent(rows):
    """Rows that are not combinations of earlier ones."""
    kept: list[list[Fraction]] = []
    for row in rows:
        columns = [list(column) for column in zip(*kept, strict=True)] or [[] for _ in row]
        spanned = gauss(columns, [[x] for x in row]) is not None if kept else not any(row)
        if not spanned:
            kept.append(row)
    return kept


def _unit(c, k):
    return tuple(Fraction(int(c == d)) for d in range(k))


def _difference(c, d, k):
    return tuple(a - b for a, b in zip(_unit(c, k), _unit(d, k), strict=True))


def _hinge_pieces(L, j):
    """Vectors r(f) with V_j(q) = min r·q; V without j."""
    k = len(L)
    planes = [
        (_difference(c, d, k), L[d][y] - L[c][y])
        for c, d in itertools.combinations(range(k), 2)
        for y in range(k)
    ]
    planes += [(_difference(c, j, k), Fraction(0)) for c in range(k) if j is not None and c != j]
    # scores may be shifted: one of them is zero
    pinned = [(normal[1:], right) for normal, right in planes]
    found = set()
    for rest in _points(pinned, k - 1):
        f = (Fraction(0), *rest)
        if j is None or max(f) == f[j]:
            best = [max(L[c][y] + f[c] for c in range(k)) for y in range(k)]
            found.add(tuple(a - b for a, b in zip(best, f, strict=True)))
    return found


def _max_min_pieces(L, j):
    k = len(L)
    columns = list(zip(*L, strict=True))
    if j is None:
        return {tuple(row) for row in L}
    planes = [(_unit(c, k), Fraction(0)) for c in range(k)]
    planes += [
        (tuple(a - b for a, b in zip(columns[y], columns[j], strict=True)), Fraction(0))
        for y in range(k)
        if y != j
    ]
    total = ((Fraction(1),) * k, Fraction(1))
    found = set()
    for chosen in itertools.combinations(sorted(set(planes)), k - 1):
        for kappa in _points([*chosen, total], k):
            if min(kappa) >= 0:
                z = [dot(column, kappa) for column in columns]
                found.add(tuple(max(x, z[j]) for x in z))
    return found


def _least(pieces):
    """Without the pieces that are nowhere below another one."""
    return [
        r
        for r in pieces
        if not any(s != r and all(a <= b for a, b in zip(s, r, strict=True)) for s in pieces)
    ]


@cache
def hinge_value(surrogate, L, eps):
    """H(ε) as a fraction, None for +∞; L is a tuple of tuples of fractions, at most 3 x 3."""
    k = len(L)
    pieces = _hinge_pieces if surrogate == "hinge" else _max_min_pieces
    below = _least(pieces(L, None))
    lines = {tuple(a - b for a, b in zip(r, s, strict=True)) for r in below for s in below}
    lines |= {_unit(c, k) for c in range(k)}
    total = ((Fraction(1),) * k, Fraction(1))
    best = None
    for j in range(k):
        above = _least(pieces(L, j))
        for i in range(k):
            gap = tuple(a - b for a, b in zip(L[j], L[i], strict=True))
            if max(gap) < eps:
                continue
            planes = [(line, Fraction(0)) for line in lines if any(line)] + [(gap, eps)]
            for chosen in itertools.combinations(sorted(set(planes)), k - 1):
                for q in _points([*chosen, total], k):
                    if min(q) >= 0 and dot(gap, q) >= eps:
                        value = min(dot(r, q) for r in above) - min(dot(s, q) for s in below)
                        best = value if best is None else min(best, value)
    return best
