"""One pair problem over the integers: optimality conditions of an active set, and Lemke's method.

    min ½ wᵀKw over w, q ≥ 0   with   Kw + Bq ≥ 0,  Σq = 1,  g·q ≥ ε

is the pair problem with v = −Σ w_c (F̃_c − F̃_j): K = ⟨F̃_a − F̃_j, F̃_b − F̃_j⟩, B = P_c − P_j and
g = L_j − L_i, each multiplied by a common denominator. Then w and ν come out in another unit, the
same for both, and a dual point needs no unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from consistruct.certificates.exact import solve_integers

__all__ = [
    "IntegerPair",
    "Piece",
    "Solution",
    "active_set",
    "best_level",
    "feasible_distribution",
    "full_value",
    "is_small",
    "lemke",
    "trace",
]

LEMKE_LIMIT = 26  # rows of the complementarity problem: about 30 ms
LEMKE_BITS = 6_000  # rows times the length of the data, about the length of pivots

Affine = tuple[Fraction, Fraction]  # value + slope · ε


@dataclass(frozen=True, eq=False)
class IntegerPair:
    """Data as integers; ε in the unit of g."""

    K: list[list[int]]  # (c, c)
    B: list[list[int]]  # (c, m)
    g: list[int]  # (m,)


@dataclass(frozen=True, eq=False)
class Solution:
    """Optimal q, w and ν as affine functions of ε on [low, high], which contains the ε requested.

    ½wᵀKw is the value in the unit of K.
    """

    low: Fraction
    high: Fraction
    q: list[Affine]
    w: list[Affine]
    nu: Affine

    def at(self, eps: Fraction) -> tuple[list[Fraction], list[Fraction], Fraction]:
        """q, w and ν at ε."""

        def value(x: Affine) -> Fraction:
            return x[0] + eps * x[1]

        return [value(x) for x in self.q], [value(x) for x in self.w], value(self.nu)


def active_set(
    pair: IntegerPair, eps: Fraction, S: Sequence[int], W: Sequence[int], tight: bool
) -> Solution | None:
    """A solution with q on S and w on W, if it is optimal at ε; q and w need not be unique."""
    K, B, g = pair.K, pair.B, pair.g
    n_w, n_s = len(W), len(S)
    rows: list[list[int]] = []
    right: list[list[int]] = []
    for a in W:  # (Kw + Bq)_a = 0
        rows.append([K[a][b] for b in W] + [B[a][y] for y in S] + [0, 0])
        right.append([0, 0])
    for y in S:  # −(Bᵀw)_y − λ − ν g_y = 0
        rows.append([-B[a][y] for a in W] + [0] * n_s + [-1, -g[y]])
        right.append([0, 0])
    rows.append([0] * n_w + [1] * n_s + [0, 0])
    right.append([1, 0])
    if tight:
        rows.append([0] * n_w + [g[y] for y in S] + [0, 0])
        right.append([0, 1])
    else:
        rows.append([0] * (n_w + n_s) + [0, 1])
        right.append([0, 0])
    found = solve_integers(rows, right)
    if found is None:
        return None
    X = [(x[0], x[1]) for x in found]
    w: list[Affine] = [(Fraction(0), Fraction(0))] * len(K)
    q: list[Affine] = [(Fraction(0), Fraction(0))] * len(g)
    for a, x in zip(W, X, strict=False):
        w[a] = x
    for y, x in zip(S, X[n_w:], strict=False):
        q[y] = x
    level, nu = X[-2], X[-1]
    # all that must be non-negative, each affine in ε: its range of ε
    signs: list[Affine] = [*X[: n_w + n_s], nu]
    for a in range(len(K)):
        if a not in W:
            signs.append(_sum([(K[a][b], w[b]) for b in W] + [(B[a][y], q[y]) for y in S]))
    for y in range(len(g)):
        if y not in S:
            signs.append(_sum([(-B[a][y], w[a]) for a in W] + [(-1, level), (-g[y], nu)]))
    if not tight:
        reach = _sum([(g[y], q[y]) for y in S])
        signs.append((reach[0], reach[1] - 1))
    low, high = Fraction(0), Fraction(max(g))
    for value, slope in signs:
        if slope > 0:
            low = max(low, -value / slope)
        elif slope < 0:
            high = min(high, -value / slope)
        elif value < 0:
            return None
    return Solution(low, high, q, w, nu) if low <= eps <= high else None


def _sum(terms: Sequence[tuple[int, Affine]]) -> Affine:
    chosen = [(factor, x) for factor, x in terms if factor]
    return (
        sum((factor * x[0] for factor, x in chosen), Fraction(0)),
        sum((factor * x[1] for factor, x in chosen), Fraction(0)),
    )


def is_small(pair: IntegerPair, longest: int = LEMKE_BITS) -> bool:
    """Whether Lemke's method takes milliseconds: few rows, and integers that stay short."""
    n = len(pair.K) + len(pair.g) + 3
    bits = max(abs(x).bit_length() for row in (*pair.K, *pair.B) for x in row)
    return n <= LEMKE_LIMIT and n * bits <= longest


def lemke(pair: IntegerPair, eps: Fraction) -> Solution:
    """The solution by Lemke's method: lexicographic, hence finite; 0 < ε ≤ max g is assumed.

    Conditions as a complementarity problem z ≥ 0, Mz + r ≥ 0, zᵀ(Mz + r) = 0 in z = (w, q, ν, and
    the two multipliers of Σq ≥ 1 and Σq ≤ 1). The tableau holds integers over one denominator.
    """
    K, B, g = pair.K, pair.B, pair.g
    c, m = len(K), len(g)
    n = c + m + 3
    scale = eps.denominator
    M = [[0] * n for _ in range(n)]
    r = [0] * n
    for a in range(c):
        M[a][:c] = K[a]
        M[a][c : c + m] = B[a]
    for y in range(m):
        M[c + y][:c] = [-B[a][y] for a in range(c)]
        M[c + y][c + m :] = [-g[y], -1, 1]
        M[c + m][c + y], M[c + m + 1][c + y], M[c + m + 2][c + y] = g[y], 1, -1
    r[c + m], r[c + m + 1], r[c + m + 2] = -eps.numerator, -scale, scale
    # columns: slacks 0..n−1, z n..2n−1, the artificial variable 2n, and `scale` times r
    T = [
        [int(a == b) for b in range(n)] + [-x for x in M[a]] + [-1, r[a]]
        for a in range(n)
    ]  # fmt: skip
    basis = list(range(n))
    den = 1

    def pivot(row: int, column: int) -> None:
        nonlocal den
        if T[row][column] < 0:  # the first pivot only
            T[row] = [-x for x in T[row]]
        head, p = T[row], T[row][column]
        for other in range(n):
            if other != row:
                q, body = T[other][column], T[other]
                if q:
                    T[other] = [(p * x - q * y) // den for x, y in zip(body, head, strict=True)]
                elif p != den:
                    T[other] = [p * x // den for x in body]
        den = p

    def ratio(row: int, column: int, number: int) -> Fraction:
        return Fraction(T[row][number], T[row][column])

    row = min(range(n), key=lambda a: [T[a][-1], *T[a][:n]])
    pivot(row, 2 * n)
    out, basis[row] = basis[row], 2 * n
    while out != 2 * n:
        column = out + n if out < n else out - n
        rows = [a for a in range(n) if T[a][column] > 0]
        if not rows:
            raise ArithmeticError("the pair problem is infeasible")
        for number in (2 * n + 1, *range(n)):
            ratios = {a: ratio(a, column, number) for a in rows}
            least = min(ratios.values())
            rows = [a for a in rows if ratios[a] == least]
            if number == 2 * n + 1:  # the artificial variable leaves as soon as it can
                rows = [a for a in rows if basis[a] == 2 * n] or rows
            if len(rows) == 1:
                break
        row = rows[0]
        pivot(row, column)
        out, basis[row] = basis[row], column
    return _read(T, basis, den * scale, eps, c, m, Fraction(max(g)))


def _read(
    T: list[list[int]], basis: list[int], den: int, eps: Fraction, c: int, m: int, high: Fraction
) -> Solution:
    """The basic variables as affine functions of ε, and where all are non-negative."""
    n, low = len(T), Fraction(0)
    scale = eps.denominator
    z: list[Affine] = [(Fraction(0), Fraction(0))] * n
    for row, variable in enumerate(basis):
        # column c + m is that of the slack of g·q − ε: the right-hand side moves by −1 there
        slope = Fraction(-T[row][c + m] * scale, den)
        value = Fraction(T[row][-1], den) - eps * slope
        if slope > 0:
            low = max(low, -value / slope)
        elif slope < 0:
            high = min(high, -value / slope)
        if variable >= n:
            z[variable - n] = value, slope
    return Solution(low, high, z[c : c + m], z[:c], z[c + m])


Piece = tuple[Fraction, Fraction, Fraction, Fraction, Fraction]  # low, high, a, b, c


def piece_of(pair: IntegerPair, found: Solution) -> Piece:
    """½wᵀKw on the range of the solution: a ε² + b ε + c, in the unit of K."""
    support = [a for a, x in enumerate(found.w) if x[0] or x[1]]
    w0 = [found.w[a][0] for a in support]
    w1 = [found.w[a][1] for a in support]

    def product(x: list[Fraction], y: list[Fraction]) -> Fraction:
        return sum(
            (
                p * sum((pair.K[a][b] * r for b, r in zip(support, y, strict=True)), Fraction(0))
                for a, p in zip(support, x, strict=True)
                if p
            ),
            Fraction(0),
        )

    return found.low, found.high, product(w1, w1) / 2, product(w0, w1), product(w0, w0) / 2


def trace(pair: IntegerPair, solve: Callable[[Fraction], Solution]) -> list[Piece]:
    """The curve on (0, max g] as pieces without a gap; `solve` gives the solution at an ε."""
    top = Fraction(max(pair.g))
    todo = [(Fraction(0), top)] if top > 0 else []
    pieces: list[Piece] = []
    tries = 0
    while todo:
        low, high = todo.pop()
        tries += 1
        eps = low + (high - low) * Fraction(1 + tries % 5, 7)
        piece = piece_of(pair, solve(eps))
        start, stop = max(piece[0], low), min(piece[1], high)
        if start < stop:
            pieces.append((start, stop, *piece[2:]))
            todo += [(a, b) for a, b in ((low, start), (stop, high)) if a < b]
        else:  # ε is a breakpoint
            todo.append((low, high))
    return sorted(pieces)


# --- points that are feasible exactly ---


def feasible_distribution(
    q: list[Fraction], gap: list[int], eps: Fraction
) -> list[Fraction] | None:
    """A distribution with gap·q ≥ ε: clipped, normalized, mixed with the label of largest gap."""
    q = [max(x, Fraction(0)) for x in q]
    total = sum(q, Fraction(0))
    top = max(range(len(gap)), key=lambda y: gap[y])
    if total == 0:
        q = [Fraction(int(y == top)) for y in range(len(gap))]
        total = Fraction(1)
    q = [x / total for x in q]
    reach = sum((x * g for x, g in zip(q, gap, strict=True)), Fraction(0))
    if reach < eps:
        if gap[top] < eps:
            return None
        share = (eps - reach) / (gap[top] - reach)
        q = [(1 - share) * x for x in q]
        q[top] += share
    return q


def best_level(expected: list[Fraction], mu: list[Fraction], j: int) -> Fraction:
    """The score t of j that minimizes ½ [μ_j (t + ℓ_j)² + Σ_{c≠j} μ_c (t + ℓ_c)₋²].

    Stationary: t is minus the weighted mean of ℓ_j and of the ℓ_c below −t.
    """
    others = sorted((c for c in range(len(expected)) if c != j), key=lambda c: expected[c])
    weight, total = mu[j], mu[j] * expected[j]
    for c in others:
        if total <= expected[c] * weight:
            break
        weight += mu[c]
        total += mu[c] * expected[c]
    return -total / weight


def full_value(expected: list[Fraction], mu: list[Fraction], j: int, level: Fraction) -> Fraction:
    """½Σ μ_c (f_c + ℓ_c)² at f_j = level, f_c = min(−ℓ_c, level)."""
    short = [(mu[c], level + x) for c, x in enumerate(expected) if c == j or level + x < 0]
    return sum((m * x * x for m, x in short), Fraction(0)) / 2
