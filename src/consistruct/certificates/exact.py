"""Exact numbers: reading, vectors, linear algebra, bounds on logarithms, numbers as text.

Everything a certificate says is a rational number: integers, floats (dyadic rationals) and strings
"p/q" are all exact, so no check has a tolerance. Sums of many fractions are taken over integers
with one denominator, because `fractions` reduces every intermediate result, which is slow. Nothing
here needs more than Python's standard library.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

__all__ = [
    "RATIONAL",
    "Refused",
    "by_pair",
    "combination_or_direction",
    "decimal_text",
    "distribution",
    "dot",
    "ends",
    "exact_text",
    "exp_up",
    "fraction_text",
    "independent_columns",
    "integer",
    "integer_columns",
    "integer_dot",
    "integer_rows",
    "integers",
    "label_pair",
    "log_down",
    "log_up",
    "matrix",
    "number",
    "pair_and_distribution",
    "product",
    "projection_kernel",
    "solve_integers",
    "vector",
]

RATIONAL = r"-?(0x[0-9a-f]+|[0-9]+)(/(0x[0-9a-f]+|[0-9]+))?"
# ranks are decided modulo this prime, the largest Mersenne prime within a machine word
PRIME = 2**61 - 1
DECIMAL_BITS = 600  # longer integers are written in hexadecimal, which Python reads at any length
DIGITS = 17  # of a decimal: what a float needs
PLAIN = range(-6, 17)  # exponents of decimals that are written without one
# Logarithms and exponentials: `decimal` rounds them correctly to 60 digits, far beyond the 17 of
# the floats that search for a proof, and the next decimal outward is a bound.
CONTEXT = Context(prec=60, Emax=10**9, Emin=-(10**9))
LARGEST_EXPONENT = 2000  # exp of more bounds nothing and would have thousands of digits


class Refused(ValueError):
    """Say why a certificate does not prove its claim."""


# --- what a document holds ------------------------------------------------------------------------


def number(value: Any, name: str = "a number") -> Fraction:
    """Return the exact value of an integer, a finite float or a string "p/q".

    >>> number(0.5), number("-0x10/3"), number(7)
    (Fraction(1, 2), Fraction(-16, 3), Fraction(7, 1))
    """
    try:
        if isinstance(value, str) and re.fullmatch(RATIONAL, value):
            top, _, bottom = value.partition("/")
            return Fraction(int(top, 0), int(bottom or "1", 0))
        if type(value) in (int, float, Fraction):  # neither bool nor what behaves like a number
            return Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise Refused(f"{name} must be a finite number, got {value!r}")


def vector(values: Any, size: int, name: str) -> list[Fraction]:
    """Return so many exact numbers."""
    if not isinstance(values, (list, tuple)) or len(values) != size:
        raise Refused(f"{name} must be a list of {size} numbers")
    return [number(value, name) for value in values]


def matrix(rows: Any, name: str) -> list[list[Fraction]]:
    """Return rows of exact numbers, all of the same length and none of them empty."""
    good = isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], (list, tuple))
    if not good or not rows[0]:
        raise Refused(f"{name} must be a list of rows")
    return [vector(row, len(rows[0]), name) for row in rows]


def integer(value: Any, low: float = 0, high: float = math.inf) -> int:
    """Return an integer of a range: a count, or the number of a label."""
    if type(value) is not int or not low <= value <= high:
        raise Refused(f"an integer from {low} to {high} is needed, got {value!r}")
    return value


def label_pair(pair: Any, k: int) -> tuple[int, int]:
    """Return two different labels of k."""
    i, j = (integer(c, 0, k - 1) for c in pair)
    if i == j:
        raise Refused(f"({i}, {j}) is not a pair of labels")
    return i, j


def distribution(values: Any, size: int, name: str = "distribution") -> list[Fraction]:
    """Return weights divided by their sum: floats that a search found need not sum to one."""
    weights = vector(values, size, name)
    total = sum(weights)
    if min(weights, default=Fraction(-1)) < 0 or not total:
        raise Refused(f"{name} has negative weights or only zeros")
    return [x / total for x in weights]


def ends(document: dict[str, Any]) -> tuple[Fraction, Fraction, Fraction]:
    """Return ε > 0 and the two ends of the interval that is claimed."""
    eps, lower, upper = (number(document[name], name) for name in ("eps", "lower", "upper"))
    if eps <= 0:
        raise Refused("eps must be positive")
    return eps, lower, upper


def pair_and_distribution(
    document: dict[str, Any], gap: Callable[[int, int], list[Any]], k: int, eps: Fraction
) -> tuple[int, int, list[Fraction]]:
    """Return i, j and q of the upper end: j is worse than i by ε in expectation, or it is refused.

    `gap(i, j)` is L_j − L_i, one number for each true label.
    """
    i, j = label_pair(document["pair"], k)
    rise = gap(i, j)
    q = distribution(document["distribution"], len(rise))
    if dot(rise, q) < eps:
        raise Refused(f"label {j} is not worse than {i} by eps under this distribution")
    return i, j, q


def by_pair(proofs: Iterable[Any], k: int) -> dict[tuple[int, int], Any]:
    """Return what a document says of each pair of k labels, by the pair."""
    return {label_pair(proof["pair"], k): proof for proof in proofs}


# --- vectors and matrices -------------------------------------------------------------------------


def dot(a: Iterable[Any], b: Iterable[Any]) -> Fraction:
    """Return the sum of products; zeros are common and cost nothing."""
    return sum((x * y for x, y in zip(a, b) if x and y), Fraction(0))


def integer_dot(a: Iterable[int], b: Iterable[int]) -> int:
    """Return the sum of products of integers: an integer, much faster than `dot`."""
    return sum(x * y for x, y in zip(a, b))


def integers(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """Return rationals as integers over their least common denominator.

    >>> integers([Fraction(1, 2), Fraction(2, 3)])
    ([3, 4], 6)
    """
    unit = math.lcm(*(x.denominator for x in values))
    return [x.numerator * (unit // x.denominator) for x in values], unit


def integer_rows(rows: Sequence[Sequence[Fraction]]) -> tuple[list[list[int]], int]:
    """Return rows of rationals as integers over one common denominator."""
    unit = math.lcm(*{x.denominator for row in rows for x in row})
    return [[x.numerator * (unit // x.denominator) for x in row] for row in rows], unit


def product(A: Any, B: Any) -> list[list[Fraction]]:
    """Return A Bᵀ, summed as integers."""
    (left, d), (right, e) = integer_rows(A), integer_rows(B)
    return [[Fraction(sum(x * y for x, y in zip(a, b)), d * e) for b in right] for a in left]


Rows = Sequence[Sequence[int]]


def integer_columns(rows: Iterable[Iterable[float | Fraction]]) -> list[list[int]]:
    """Return the rows with every column times a number that makes it whole: the same span.

    A unit for each column keeps the integers short where columns differ in magnitude.

    >>> integer_columns([[0.5, 1e300], [0.25, 0.0]])
    [[2, 1], [1, 0]]
    """
    columns = []
    for column in zip(*rows, strict=True):
        exact = [Fraction(x) for x in column]
        unit = math.lcm(*(x.denominator for x in exact))
        whole = [x.numerator * (unit // x.denominator) for x in exact]
        common = math.gcd(*whole) or 1
        columns.append([x // common for x in whole])
    return [list(row) for row in zip(*columns, strict=True)]


def projection_kernel(rows: Rows, weights: Sequence[Fraction]) -> list[list[Fraction]]:
    """Return K = F (FᵀMF)⁻¹ Fᵀ for independent columns F and M = diag(weights).

    M½ K M½ projects on the span of M½ F, whatever basis of it the columns are.
    """
    common = math.lcm(*(x.denominator for x in weights))
    whole = [int(x * common) for x in weights]
    columns = list(zip(*rows, strict=True))
    gram = [
        [sum(w * x * y for w, x, y in zip(whole, a, b, strict=True)) for b in columns]
        for a in columns
    ]
    X = solve_integers(gram, columns)
    if X is None:
        raise ValueError("projection_kernel takes independent columns")
    return [
        [
            common * sum((a * x for a, x in zip(row, one, strict=True)), Fraction(0))
            for one in zip(*X, strict=True)
        ]
        for row in rows
    ]


def solve_integers(A: Rows, B: Rows) -> list[list[Fraction]] | None:
    """Return some X with A X = B, unknowns without a pivot zero; None where there is none.

    Bareiss elimination: every division is exact, because each entry is a minor of the matrix, and
    so no entry grows beyond Hadamard's bound. Fractions would be reduced at every step.
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
                # rows below and above, so that no back substitution is needed; a row without this
                # unknown is only scaled along, to keep the common divisor `last`
                if q:
                    T[r] = [(p * x - q * y) // last for x, y in zip(body, head, strict=True)]
                elif p != last:
                    T[r] = [p * x // last for x in body]
        pivots.append(column)
        last = p
    # what is left has no unknowns: 0 = something else is a contradiction
    if any(any(row[n:]) for row in T[len(pivots) :]):
        return None
    X = [[Fraction(0)] * (len(T[0]) - n) for _ in range(n)]
    for r, column in enumerate(pivots):
        X[column] = [Fraction(x, last) for x in T[r][n:]]
    return X


def independent_columns(rows: Rows) -> list[int]:
    """Return columns that form a basis of the column space, found modulo a prime.

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
    """Return which of two alternatives holds for vectors a_d (the rows), exactly.

    λ ≥ 0 with Σ λ_d a_d = 0 and Σ over `strict` λ_d = 1, or θ with ⟨a_d, θ⟩ ≤ −1 for the
    strict ones and ≤ 0 for all: (λ, None) or (None, θ). This is Farkas' lemma; a label of F loses
    every tie, or some θ lets it win. Simplex method with Bland's rule, which cannot cycle.
    """
    n, width = len(rows), len(rows[0])
    # maximize Σ_strict λ subject to Σ λ_d a_d = 0 (artificial variables) and Σ_strict λ + s = 1
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
        basis[r] = c  # all other entries keep the one denominator `den`, as in Bareiss' method

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


# --- logarithms and exponentials ------------------------------------------------------------------


def _rounded(x: Fraction, rounding: str) -> Decimal:
    """Return a decimal of 60 digits at or above x, or at or below it."""
    context = CONTEXT.copy()
    context.rounding = rounding
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


def log_up(x: Fraction) -> Fraction:
    """Return a rational above log x for x > 0; log 1 is zero exactly.

    Two roundings, each outward: of x to a decimal, and of its logarithm to the next decimal above.

    >>> log_down(Fraction(2)) < log_up(Fraction(2)) < log_down(Fraction(2)) + Fraction(1, 10**50)
    True
    """
    if x == 1:
        return Fraction(0)
    return Fraction(CONTEXT.next_plus(CONTEXT.ln(_rounded(x, ROUND_CEILING))))


def log_down(x: Fraction) -> Fraction:
    """Return a rational below log x for x > 0: minus a bound above log 1/x."""
    return -log_up(1 / x)


def exp_up(x: Fraction) -> Fraction:
    """Return a rational above exp x; exponents that are too large to bound anything are refused."""
    if x > LARGEST_EXPONENT:
        raise Refused("an exponent is too large to bound anything")
    above = _rounded(max(x, Fraction(-LARGEST_EXPONENT)), ROUND_CEILING)
    return Fraction(CONTEXT.next_plus(CONTEXT.exp(above)))


# --- numbers as text, never rounded into a falsehood --------------------------------------------


def fraction_text(x: Fraction) -> str:
    """Return "p" or "p/q".

    >>> fraction_text(Fraction(3, 2)), fraction_text(Fraction(-4))
    ('3/2', '-4')
    """
    # decimal digits of such numbers take quadratic time, and Python refuses to read them back
    long = max(x.numerator.bit_length(), x.denominator.bit_length()) > DECIMAL_BITS
    if long:
        return f"{x.numerator:#x}/{x.denominator:#x}"
    return str(x)


def exact_text(x: Fraction) -> str:
    """Return the exact fraction, with a decimal beside it that is marked where it is rounded.

    >>> exact_text(Fraction(3, 2)), exact_text(Fraction(2)), exact_text(Fraction(1, 3))
    ('3/2 (= 1.5)', '2', '1/3 (≈ 0.33333333333333333)')
    >>> exact_text(2 + Fraction(1, 10**18))
    '2000000000000000001/1000000000000000000 (≈ 2 + 1e-18)'
    """
    exact = fraction_text(x)
    if x.denominator == 1 and "/" not in exact:
        return exact
    rounded = _decimal(x, ROUND_HALF_EVEN)
    rest = x - Fraction(rounded)
    if rest == 0:
        return f"{exact} (= {_shown(rounded)})"
    whole = Fraction(round(x))
    # an integer that only the rest of it tells from another number is shown with this rest
    if rounded == rounded.to_integral_value() and whole == Fraction(rounded):
        sign = "+" if rest > 0 else "−"
        small = _shown(_decimal(abs(rest), ROUND_HALF_EVEN, 3))
        return f"{exact} (≈ {_shown(rounded)} {sign} {small})"
    if _is_float(x):
        return f"{exact} (≈ {float(x)!r})"
    return f"{exact} (≈ {_shown(rounded)})"


def _is_float(x: Fraction) -> bool:
    """Return whether a normal float is exactly x."""
    bits = max(x.numerator.bit_length(), x.denominator.bit_length())
    return bits < 1000 and Fraction(float(x)) == x


def decimal_text(x: Fraction, *, up: bool) -> str:
    """Return a decimal of at most 17 digits that is at most x, or at least x.

    >>> decimal_text(Fraction(1, 3), up=False), decimal_text(Fraction(1, 3), up=True)
    ('0.33333333333333333', '0.33333333333333334')
    """
    return _shown(_decimal(x, ROUND_CEILING if up else ROUND_FLOOR))


def _decimal(x: Fraction, rounding: str, digits: int = DIGITS) -> Decimal:
    context = Context(prec=digits, rounding=rounding, Emin=-(10**17), Emax=10**17)
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


def _shown(value: Decimal) -> str:
    if value == 0:
        return "0"
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    exponent = value.adjusted()
    if exponent in PLAIN:
        # all digits before the point are kept, zeros that were stripped included
        if exponent < 0:
            shown = f"0.{'0' * (-exponent - 1)}{text}"
        else:
            text = text.ljust(exponent + 1, "0")
            shown = f"{text[: exponent + 1]}.{text[exponent + 1 :]}".rstrip(".")
    else:
        shown = f"{text[0]}.{text[1:]}".rstrip(".") + f"e{exponent}"
    return f"-{shown}" if sign else shown
