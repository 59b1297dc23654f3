"""Check a claim about the F-beta loss of label sets that are never listed.

L(c, y) = 1 - (1+b^2)|c & y| / (b^2|y| + |c|) for sets c, y of T
labels; two empty sets cost 1 - empty. True labels have the sizes given. The claim is lower <=
H(eps) <= upper, H the calibration function (see listed.py) of the quadratic surrogate under the
measure that is uniform over set sizes, then over sets. Scores, with m = |c| and w(m, s) =
(1+b^2)/(b^2 s + m):

    F_c = ( [t in c] w(m, s) for true sizes s in 1..T-1 and labels t;  m w(m, T) if T is a size;
            [c empty] if 0 is a size;  1 ),      L = 1 + <F_c, u_y>,  u_y = -(its own columns).

Upper end: any distribution q of true labels and parameters theta with <F_j - F_i, Uq> >= eps and
<F_j, theta> the largest of all sets prove H(eps) <= 1/2 E <F_c, theta + Uq>^2. Among the sets of
one size a score is a sum over members, so the largest is found by sorting, and the counts are
hypergeometric.

Lower end: H(eps) >= eps^2 / 2 D (Theorem 7), D the largest squared distance of two F_c in the
metric in which parameters have the squared length E <F_c, theta>^2. With few sizes it is computed
(F_c . F_d = (|c & d| - mm'/T) a(m, m') + b(m, m') is linear in the overlap; rounded up), otherwise
that of scores that are free in every (set size, label) is used, of which these are a part.
+1 on the members of a set and very negative elsewhere makes that set win, so that all sets can be
predicted as soon as some true label has a size in 1..T-1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import Refused, dot, integers, number
from consistruct.certificates.statement import Statement, fbeta_statement
from consistruct.certificates.theorem7 import verify_by_theorem7

EXACT_SIZES, EXACT_LABELS = 8, 300  # up to so many D is computed; beyond, it is bounded
# Gram matrices are rounded down to multiples of 1/GRID, so that their inverses stay short; `Kernel`
# accounts for what that loses
GRID = 2**400


class Sets:
    """Score label sets by size: T labels, beta, the sizes of true sets, F of two empty sets.

    The parameters are one number per true size strictly between 0 and T and label, then what
    depends on the size of the predicted set alone.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        T = self.T = document["T"]
        self.sizes = list(document["sizes"])
        if type(T) is not int or T < 2 or any(type(s) is not int for s in self.sizes):
            raise Refused("T must be an integer of at least 2, sizes a list of integers")
        if self.sizes != sorted(set(self.sizes)) or not all(0 <= s <= T for s in self.sizes):
            raise Refused("sizes must rise from 0 to T at most")
        self.square = number(document["beta"], "beta") ** 2
        self.empty = number(document["empty"], "empty")
        if not self.square > 0 or not 0 <= self.empty <= 1:
            raise Refused("beta must be positive, empty in [0, 1]")
        self.blocks = [s for s in self.sizes if 0 < s < T]
        # every set must be able to win, which the argument above shows for such sizes only
        if not self.blocks:
            raise Refused("no true label has a size between 0 and T")
        # columns that depend on the size of the set alone
        self.extra = [s for s in self.sizes if s == T] + ([0] if self.has_empty else [])
        self.width = len(self.blocks) * T + len(self.extra) + 1

    @property
    def has_empty(self) -> bool:
        """Whether [c empty] is a column: not where two empty sets are worth nothing."""
        return bool(self.sizes and self.sizes[0] == 0 and self.empty)

    def weight(self, m: int, s: int) -> Fraction:
        return (1 + self.square) / (self.square * s + m)

    def common(self, m: int) -> list[Fraction]:
        """The columns behind those of labels, for a set of size m."""
        return [
            *(m * self.weight(m, s) if s else Fraction(int(m == 0)) for s in self.extra),
            Fraction(1),
        ]

    def members(self, label: Any) -> list[int]:
        good = isinstance(label, (list, tuple)) and len(label) == self.T
        if not good or any(type(x) is not int or x not in (0, 1) for x in label):
            raise Refused(f"{label!r} is not a set of {self.T} labels")
        return list(label)

    def features(self, label: Any) -> list[Fraction]:
        c = self.members(label)
        m = sum(c)
        inside = [self.weight(m, s) if x else Fraction(0) for s in self.blocks for x in c]
        return inside + self.common(m)

    def target(self, true_label: Any) -> list[Fraction]:
        y = self.members(true_label)
        s, row = sum(y), [Fraction(0)] * self.width
        if s not in self.sizes:
            raise Refused(f"no true label has the size {s}")
        if s in self.blocks:
            start = self.blocks.index(s) * self.T
            row[start : start + self.T] = [Fraction(-x) for x in y]
        elif s in self.extra:
            column = len(self.blocks) * self.T + self.extra.index(s)
            row[column] = Fraction(-1) if s else -self.empty
        return row

    def layers(self, theta: list[Fraction]) -> Any:
        """Yield (m, constant, scores of the labels, unit) for every set size m.

        Among the sets of one size a score is a constant plus a sum over members. Scores of labels
        are integers over `unit`: T + 1 sizes times T labels of fractions would be slow.
        """
        T, B = self.T, len(self.blocks)
        unit = math.lcm(*(x.denominator for x in theta))
        whole = [x.numerator * (unit // x.denominator) for x in theta]
        columns = list(zip(*(whole[b * T : b * T + T] for b in range(B))))
        for m in range(T + 1):
            w = [self.weight(m, s) for s in self.blocks]
            scale = math.lcm(*(x.denominator for x in w))
            times = [x.numerator * (scale // x.denominator) for x in w]
            labels = [sum(a * b for a, b in zip(times, column)) for column in columns]
            yield m, dot(self.common(m), theta[B * T :]), labels, scale * unit

    def largest(self, theta: list[Fraction]) -> Fraction:
        # the best set of size m has the m best labels
        return max(
            constant + Fraction(sum(sorted(labels, reverse=True)[:m]), unit)
            for m, constant, labels, unit in self.layers(theta)
        )

    def mean_square(self, theta: list[Fraction]) -> Fraction:
        T, total = self.T, Fraction(0)
        for m, constant, labels, unit in self.layers(theta):
            # a uniform set of m of T labels: inclusions have variance m(T-m)/T^2 and are
            # negatively correlated, which gives this multiple of the variance between labels
            whole, squares = sum(labels), sum(x * x for x in labels)
            spread = Fraction(m * (T - m), T * (T - 1)) * Fraction(squares * T - whole**2, T)
            total += (constant + Fraction(m * whole, T * unit)) ** 2 + spread / unit**2
        return total / (T + 1)

    def diameter(self, eps: Fraction) -> Fraction:
        T = self.T
        if len(self.blocks) > min(EXACT_SIZES, T - 2) or T > EXACT_LABELS:
            # layers of measure 1/(T+1); T dimensions each, one for the empty and the full set
            dimensions = sorted(T if 0 < m < T else 1 for m in range(T + 1))[-2:]
            apart = Fraction((T + 1) * sum(dimensions))
            return max(apart, Fraction(2 * (T * T - 1) * T, T - T // 2))
        # F_c . F_d splits into an overlap part and a part of the sizes alone, each with the inverse
        # of a Gram matrix of as many rows as there are true sizes
        own = [[self.weight(m, s) for s in self.blocks] for m in range(T + 1)]
        both = [[*(m * x for x in own[m]), *self.common(m)] for m in range(T + 1)]
        spread = [Fraction(m * (T - m), T * (T - 1) * (T + 1)) for m in range(T + 1)]
        a = Kernel(own, spread)
        b = Kernel(both, [Fraction(1, T + 1)] * (T + 1))
        found = 0.0
        for m in range(T + 1):
            for n in range(m + 1):
                common = b.form(m, n, 1, 1, 1)
                # linear in the overlap, so one of its two ends is the farthest
                for overlap in {max(m + n - T, 0), n if m != n else max(m - 1, 2 * m - T, 0)}:
                    inside = a.form(m, n, m * (T - m), n * (T - n), overlap * T - m * n) / T
                    found = max(found, inside + common)
        return Fraction(found) * (1 + Fraction(1, 2**50))  # four roundings to nearest


class Kernel:
    """Bound R (R' W R)^-1 R' from above: R' W R is rounded down to a positive definite matrix.

    A smaller positive definite matrix has a larger inverse, so that distances come out too large
    and the lower end of the claim too small, never the other way.
    """

    def __init__(self, rows: list[list[Fraction]], weights: list[Fraction]) -> None:
        size = len(rows[0])
        gram = [
            [
                sum(math.floor(w * r[a] * r[b] * GRID) for w, r in zip(weights, rows))
                for b in range(size)
            ]
            for a in range(size)
        ]
        # what was rounded off has entries in [0, len(rows)], so its norm is at most size times that
        table = [[Fraction(x) for x in row] + [Fraction(0)] * size for row in gram]
        for a in range(size):
            table[a][a] -= len(rows) * size
            table[a][size + a] = Fraction(GRID)
        for a in range(size):
            if table[a][a] <= 0:
                raise Refused("the Gram matrix is not positive definite")
            table[a] = [x / table[a][a] for x in table[a]]
            for r in range(size):
                if r != a:
                    table[r] = [x - table[r][a] * y for x, y in zip(table[r], table[a])]
        flat, self.unit = integers([x for row in table for x in row[size:]])
        inverse = [flat[a * size : a * size + size] for a in range(size)]
        self.rows, self.units = zip(*(integers(row) for row in rows))
        self.solved = [[sum(a * b for a, b in zip(x, row)) for x in inverse] for row in self.rows]

    def product(self, m: int, n: int) -> int:
        return sum(a * b for a, b in zip(self.rows[m], self.solved[n]))

    def form(self, m: int, n: int, first: int, second: int, both: int) -> float:
        """first K_mm + second K_nn - 2 both K_mn; division of integers rounds to nearest."""
        d, e = self.units[m], self.units[n]
        value = first * self.product(m, m) * e * e + second * self.product(n, n) * d * d
        return (value - 2 * both * self.product(m, n) * d * e) / (self.unit * d * d * e * e)


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    return fbeta_statement(*(document[name] for name in ("T", "beta", "empty", "sizes")))


space_of = Sets  # the scores of a document


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    verify_by_theorem7(document, Sets(document))
