"""The definition of H solved in rational arithmetic; nothing of the package in it.

Every pair (i, j) of predictable labels is a convex quadratic program. A principal-pivoting solver
finds its solution over the fractions, and what it finds is trusted only after primal and dual have
been evaluated: a feasible point and multipliers with the same value.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

__all__ = ["calibration_value", "predictable", "projection"]

ZERO, ONE = Fraction(0), Fraction(1)


def dot(x, y):
    return sum((a * b for a, b in zip(x, y, strict=True)), ZERO)


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def gauss(rows, right):
    """Some solution of a consistent system with several right-hand sides, None otherwise."""
    n = len(rows[0])
    table = [list(a) + list(b) for a, b in zip(rows, right, strict=True)]
    where: list[int] = []
    for column in range(n):
        row = next((r for r in range(len(where), len(table)) if table[r][column]), None)
        if row is None:
            continue
        top = len(where)
        table[top], table[row] = table[row], table[top]
        table[top] = [x / table[top][column] for x in table[top]]
        for r in range(len(table)):
            if r != top and table[r][column]:
                factor = table[r][column]
                table[r] = [x - factor * y for x, y in zip(table[r], table[top], strict=True)]
        where.append(column)
    if any(any(row[n:]) for row in table[len(where) :]):
        return None
    found = [[ZERO] * (len(table[0]) - n) for _ in range(n)]
    for row, column in enumerate(where):
        found[column] = table[row][n:]
    return found


def predictable(F):
    """Labels that win for some θ, ties to the smallest index: c does not iff it is a mixture of
    others one of which comes earlier. By Carathéodory mixtures of at most rank + 1 labels do."""
    k, r = len(F), len(F[0])
    found = []
    for c in range(k):
        others = [d for d in range(k) if d != c]
        if not any(
            _mixes([F[d] for d in chosen], F[c], [d < c for d in chosen])
            for size in range(1, min(k - 1, r + 1) + 1)
            for chosen in itertools.combinations(others, size)
            if any(d < c for d in chosen)
        ):
            found.append(c)
    return found


def _mixes(rows, target, earlier):
    """Whether the only mixture of affinely independent rows that gives the target has λ > 0."""
    system = [*columns(rows), [ONE] * len(rows)]
    shares = gauss(system, [[x] for x in [*target, ONE]])
    if shares is None:
        return False
    values = [x[0] for x in shares]
    return all(x > 0 for x in values) and any(earlier)


def projection(L, F, mu):
    """K = F (FᵀMF)⁺ Fᵀ and P = K M L."""
    k = len(L)
    if F is None:
        K = [[1 / mu[a] if a == b else ZERO for b in range(k)] for a in range(k)]
    else:
        by_column = columns(F)
        gram = [
            [sum((m * a * b for m, a, b in zip(mu, x, y, strict=True)), ZERO) for y in by_column]
            for x in by_column
        ]
        X = gauss(gram, by_column)
        K = [[dot(row, column) for column in columns(X)] for row in F]
    by_true_label = columns(L)
    P = [
        [sum((K[a][c] * mu[c] * y[c] for c in range(k)), ZERO) for y in by_true_label]
        for a in range(k)
    ]
    return K, P


def calibration_value(L, F, mu, eps):
    """H(ε) as a fraction, None for +∞. L, F (or None) and μ are lists of fractions."""
    K, P = projection(L, F, mu)
    rows = range(len(L)) if F is None else predictable(F)
    best = None
    pairs = [(i, j) for i in rows for j in rows if i != j]
    todo = []
    for i, j in pairs:
        gap = [b - a for a, b in zip(L[i], L[j], strict=True)]
        if max(gap) < eps:
            continue
        B = [[x - y for x, y in zip(P[c], P[j], strict=True)] for c in rows if c != j]
        D = [
            [K[a][b] - K[a][j] - K[j][b] + K[j][j] for b in rows if b != j] for a in rows if a != j
        ]
        at = [c for c in rows if c != j].index(i)
        unit = [ONE if a == at else ZERO for a in range(len(B))]
        todo.append((dual_value(B, D, gap, eps, unit, ONE), i, j, B, D, gap))
    for known, _, _, B, D, gap in sorted(todo, key=lambda entry: entry[:3]):
        if best is not None and known >= best:
            continue
        q, w, nu = complementary(B, D, gap, eps)
        value = primal_value(B, D, gap, eps, q, w)
        lower = dual_value(B, D, gap, eps, w, nu)
        assert value == lower, "the reference is not optimal, so nothing is compared"
        best = value if best is None else min(best, value)
    return best


def dual_value(B, D, gap, eps, w, nu):
    """Weak duality: (νε + m)₊²/2wᵀDw."""
    height = nu * eps + min(
        -sum((x * row[y] for x, row in zip(w, B, strict=True)), ZERO) - nu * gap[y]
        for y in range(len(gap))
    )
    if height <= 0:
        return ZERO
    norm = sum((x * dot(row, w) for x, row in zip(w, D, strict=True)), ZERO)
    assert norm > 0
    return height**2 / (2 * norm)


def primal_value(B, D, gap, eps, q, w):
    """½wᵀDw if q is a distribution with gap·q ≥ ε and Dw + Bq ≥ 0."""
    assert all(x >= 0 for x in q)
    assert sum(q) == 1
    assert dot(gap, q) >= eps
    for row, kernel in zip(B, D, strict=True):
        assert dot(row, q) + dot(kernel, w) >= 0
    return sum((x * dot(row, w) for x, row in zip(w, D, strict=True)), ZERO) / 2


def complementary(B, D, gap, eps):
    """Lemke's method in fractions on the optimality conditions in (w, q, ν, λ⁺, λ⁻)."""
    c, m = len(B), len(gap)
    n = c + m + 3
    M = [[ZERO] * n for _ in range(n)]
    for a in range(c):
        M[a][:c] = D[a]
        M[a][c : c + m] = B[a]
    for y in range(m):
        M[c + y] = [-B[a][y] for a in range(c)] + [ZERO] * m + [-gap[y], -ONE, ONE]
        M[c + m][c + y], M[c + m + 1][c + y], M[c + m + 2][c + y] = gap[y], ONE, -ONE
    right = [ZERO] * (c + m) + [-eps, -ONE, ONE]
    table = [
        [ONE if a == b else ZERO for b in range(n)] + [-x for x in M[a]] + [-ONE, right[a]]
        for a in range(n)
    ]
    basis = list(range(n))
    row = min(range(n), key=lambda a: [table[a][-1], *table[a][:n]])
    column = 2 * n
    while True:
        head = table[row] = [x / table[row][column] for x in table[row]]
        for other in range(n):
            factor = table[other][column]
            if other != row and factor:
                table[other] = [x - factor * y for x, y in zip(table[other], head, strict=True)]
        left, basis[row] = basis[row], column
        if left == 2 * n:
            break
        column = (left + n) if left < n else (left - n)
        rows = [a for a in range(n) if table[a][column] > 0]
        ratios = {a: table[a][-1] / table[a][column] for a in rows}
        rows = [a for a in rows if ratios[a] == min(ratios.values())]
        rows = [a for a in rows if basis[a] == 2 * n] or rows
        row = min(rows, key=lambda a: [x / table[a][column] for x in table[a][:n]])
    z = [ZERO] * (2 * n + 1)
    for a in range(n):
        z[basis[a]] = table[a][-1]
    z = z[n:]
    return z[c : c + m], z[:c], z[c + m]
