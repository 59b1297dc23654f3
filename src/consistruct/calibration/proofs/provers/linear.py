"""Linear algebra and linear programming over the integers: fraction-free, no rounding."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

__all__ = ["combination_or_direction", "independent_columns", "solve_integers"]

PRIME = 2**61 - 1

Rows = Sequence[Sequence[int]]


def solve_integers(A: Rows, B: Rows) -> list[list[Fraction]] | None:
    """Some X with A X = B, unknowns without a pivot zero.

    None where there is no solution. Bareiss elimination: every division is exact.
    """
    n = len(A[0])
    T = [list(a) + list(b) for a, b in zip(A, B, strict=True)]
    pivots: list[int] = []
    last = 1
    for column in range(n):
        top = len(pivots)
        row = next((r for r in range(top, len(T)) if T[r][column]), None)
        if row is None:
            continue
        T[top], T[row] = T[row], T[top]
        head = T[top]
        p = head[column]
        for r, body in enumerate(T):
            if r != top:
                q = body[column]
                if q:
                    T[r] = [(p * x - q * y) // last for x, y in zip(body, head, strict=True)]
                elif p != last:
                    T[r] = [p * x // last for x in body]
        pivots.append(column)
        last = p
    if any(any(row[n:]) for row in T[len(pivots) :]):
        return None
    X = [[Fraction(0)] * (len(T[0]) - n) for _ in range(n)]
    for r, column in enumerate(pivots):
        X[column] = [Fraction(x, last) for x in T[r][n:]]
    return X


def independent_columns(rows: Rows) -> list[int]:
    """Columns that form a basis of the column space, found modulo a prime.

    They are independent for certain; that no column is missing holds but for an accident of
    probability 2^-50, which would show as a smaller rank than the float one.
    """
    T = [[x % PRIME for x in row] for row in rows]
    kept: list[int] = []
    for column in range(len(T[0])):
        top = len(kept)
        row = next((r for r in range(top, len(T)) if T[r][column]), None)
        if row is None:
            continue
        T[top], T[row] = T[row], T[top]
        inverse = pow(T[top][column], -1, PRIME)
        head = T[top] = [x * inverse % PRIME for x in T[top]]
        for r in range(top + 1, len(T)):
            q = T[r][column]
            if q:
                T[r] = [(x - q * y) % PRIME for x, y in zip(T[r], head, strict=True)]
        kept.append(column)
    return kept


def combination_or_direction(
    rows: Rows,
    strict: Sequence[bool],
) -> tuple[list[Fraction] | None, list[Fraction] | None]:
    """Of two alternatives the one that holds, for vectors a_d (the rows), exactly:

    λ ≥ 0 with Σ λ_d a_d = 0 and Σ over `strict` λ_d = 1, or θ with ⟨a_d, θ⟩ ≤ −1 for the
    strict ones and ≤ 0 for all. Returns (λ, None) or (None, θ). Simplex method with Bland's rule.
    """
    n, width = len(rows), len(rows[0])
    # maximise Σ_strict λ subject to Σ λ_d a_d = 0 (artificial variables) and Σ_strict λ + s = 1
    size = n + 1
    T = [[rows[d][a] for d in range(n)] + [0, 0] for a in range(width)]
    T.append([int(flag) for flag in strict] + [1, 1])
    carry = [[int(r == a) for a in range(width)] for r in range(width + 1)]  # inverse of the basis
    T = [row + extra for row, extra in zip(T, carry, strict=True)]
    # minus the objective, in the same elimination: reduced costs, λ of `strict` are worth one
    cost = [-int(flag) for flag in strict] + [0, 0] + [0] * width
    basis: list[int] = [-1] * width + [n]
    den = 1

    def pivot(r: int, c: int) -> None:
        nonlocal den, cost
        if T[r][c] < 0:
            T[r] = [-x for x in T[r]]
        head, p = T[r], T[r][c]
        for other in range(len(T)):
            if other != r:
                q = T[other][c]
                T[other] = [(p * x - q * y) // den for x, y in zip(T[other], head, strict=True)]
        q = cost[c]
        cost = [(p * x - q * y) // den for x, y in zip(cost, head, strict=True)]
        den = p
        basis[r] = c

    # artificial variables sit at zero: drive them out where a column allows it
    for r in range(width):
        column = next((c for c in range(n) if T[r][c]), None)
        if column is not None:
            pivot(r, column)
    while True:
        column = next((c for c in range(size) if cost[c] < 0), None)
        if column is None:
            break
        rows_in = [r for r in range(len(T)) if T[r][column] > 0 and basis[r] >= 0]
        best = min(rows_in, key=lambda r: (Fraction(T[r][size], T[r][column]), basis[r]))
        pivot(best, column)
    if cost[size] > 0:  # the optimum is one, scaled by den
        found = [Fraction(0)] * n
        for r, variable in enumerate(basis):
            if 0 <= variable < n:
                found[variable] = Fraction(T[r][size], den)
        total = sum((x for x, flag in zip(found, strict, strict=True) if flag), Fraction(0))
        return [x / total for x in found], None
    # dual solution: reduced cost of λ_d is −[strict] + y·a_d (+ the multiplier of the last row)
    y = [Fraction(x, den) for x in cost[size + 1 :]]
    return None, [-x for x in y]
