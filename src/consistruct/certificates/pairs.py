"""Check a claim about orders that are scored pair by pair.

The claim: lower <= H(eps) <= upper, H the calibration function (see listed.py) of the quadratic
surrogate under the uniform measure on all n! orders, n at most 14. A loss is a constant of the
true label y plus <F_c, u_y>, with the scores F of its own:

  signs      F = (1, [i before j] - 1/2 for i < j), u = (0, -[y wants i first] + [y wants j first])
             divided by the number of pairs; those on which y wishes nothing are counted or not
             (Kendall's distance; pairwise disagreement with more than two grades)
  precision  F = 1/max(position of i, of j) for i <= j, u = -y_i y_j/|y| (average precision)

Upper end: any distribution q of true labels and parameters theta with <F_j - F_i, Uq> >= eps and
<F_j, theta> the largest of all orders prove H(eps) <= 1/2 E <F_c, theta + Uq>^2. The largest score
is that of the best order of every subset of the items, the mean square is in closed form (moments
of up to four items). Lower end: H(eps) >= eps^2 / 2 D (Theorem 7; the loss is linear in the
scores), D the largest squared distance of two F_c in the metric in which parameters have the
squared length E <F_c, theta>^2. All orders are alike, so |F_c|^2 is the rank, one of it for the
constant: every order can be predicted, and D = 2 (rank - the least <F_a, F_b>) for any one order a.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import Refused, dot
from consistruct.certificates.orders import grades, positions, size_of
from consistruct.certificates.statement import Statement, order_words
from consistruct.certificates.theorem7 import verify_by_theorem7

MOST_ITEMS = 14  # 2^n subsets


class Pairs:
    """Score one number per pair of items: which comes first, or the later position of the two.

    The reference measure is uniform on all orders, whose moments are those of a few items: the
    position of one item, of two, of up to four.
    """

    def __init__(self, loss: dict[str, Any]) -> None:
        if loss["name"] not in ("signs", "precision"):
            raise Refused(f"a loss {loss['name']!r} on pairs is not known")
        n = self.n = size_of(loss)
        if n > MOST_ITEMS:
            raise Refused(f"orders of more than {MOST_ITEMS} items are not compared here")
        self.signs, self.loss = loss["name"] == "signs", loss
        self.pairs = [(i, j) for i in range(n) for j in range(i + int(self.signs), n)]
        self.width = len(self.pairs) + int(self.signs)
        known = loss.get("true_labels") in ("orders", "grades", "ranks")
        if self.signs and not (known and loss["ties"] in ("count", "exclude")):
            raise Refused("true labels must be orders, grades or ranks; ties 'count' or 'exclude'")
        if self.signs and loss["true_labels"] != "orders" and type(loss["grades"]) is not int:
            raise Refused("the number of grades must be an integer")

    def features(self, order: Any) -> list[Fraction]:
        place = positions(order, self.n)
        if self.signs:
            half = [Fraction(1 if place[i] < place[j] else -1, 2) for i, j in self.pairs]
            return [Fraction(1), *half]
        return [Fraction(1, 1 + max(place[i], place[j])) for i, j in self.pairs]

    def target(self, true_label: Any) -> list[Fraction]:
        if not self.signs:
            relevant = sum(grades(true_label, self.n, 2))
            return [Fraction(-true_label[i] * true_label[j], relevant or 1) for i, j in self.pairs]
        kind = self.loss["true_labels"]
        most = self.loss.get("grades")  # how many there are
        worth = (
            positions(true_label, self.n) if kind == "orders" else grades(true_label, self.n, most)
        )
        better = -1 if kind == "grades" else 1
        sign = [better * ((worth[i] > worth[j]) - (worth[i] < worth[j])) for i, j in self.pairs]
        counted = len(sign) if self.loss["ties"] == "count" else sum(map(abs, sign))
        return [Fraction(0), *(Fraction(x, counted or 1) for x in sign)]

    def largest(self, theta: list[Fraction]) -> Fraction:
        """Return the largest score, by the best order of every subset of the items.

        The score of a subset that stands before all other items does not depend on theirs, so that
        2^n subsets replace n! orders. Numbers are integers: halves for signs, and shares of
        1, .., n for later positions, are multiplied away.
        """
        n = self.n  # over the integers: halves, and shares of 1, .., n
        scale = math.lcm(*(x.denominator for x in theta)) * 2 * math.lcm(*range(1, n + 1))
        entry = [int(x * scale) for x in theta[int(self.signs) :]]
        add = [[0] * n for _ in range(n)]  # what j standing before i adds
        for (i, j), x in zip(self.pairs, entry):
            add[i][j] = -x // 2 if self.signs else x
            add[j][i] = x // 2 if self.signs else x
        # sums[i][chosen]: what item i gains from the chosen ones before it, built bit by bit
        best: list[Any] = [None] * 2**n
        best[0] = 0
        sums = [[0] * 2**n for _ in range(n)]
        for chosen in range(2**n):
            low = chosen & -chosen
            place = chosen.bit_count() + 1
            for i in range(n):
                if chosen:
                    sums[i][chosen] = sums[i][chosen ^ low] + add[i][low.bit_length() - 1]
                if not chosen >> i & 1:
                    gain = sums[i][chosen] + (0 if self.signs else add[i][i])
                    value = best[chosen] + (gain if self.signs else gain // place)
                    after = chosen | 1 << i
                    if best[after] is None or value > best[after]:
                        best[after] = value
        return Fraction(best[-1], scale) + (theta[0] if self.signs else 0)

    def mean_square(self, theta: list[Fraction]) -> Fraction:
        n = self.n
        if self.signs:  # a pair has 1/4, two that share an item 1/12 or -1/12, others nothing
            items = [Fraction(0)] * n
            for (i, j), wish in zip(self.pairs, theta[1:]):
                items[i] += wish
                items[j] -= wish
            return theta[0] ** 2 + (dot(theta[1:], theta[1:]) + dot(items, items)) / 12
        # E <F, theta>^2 expanded by how many items two index pairs have in common; each moment
        # multiplies a symmetric function of the entries, which sums of rows give in O(n^2)
        alone, mixed, both = self.moments()
        x, y = self.split(theta)
        at = [sum(row, Fraction(0)) for row in y]
        X, Y, S = sum(x), sum(at) / 2, sum(dot(row, row) for row in y) / 2
        return (
            (alone[0] - alone[1]) * dot(x, x) + alone[1] * X**2
            + 2 * ((mixed[0] - mixed[1]) * dot(x, at) + mixed[1] * X * Y)
            + both[0] * S + both[1] * (dot(at, at) - 2 * S) + both[2] * (Y**2 - dot(at, at) + S)
        )  # fmt: skip

    def split(self, theta: list[Fraction]) -> tuple[list[Fraction], list[list[Fraction]]]:
        """Return entries of items (n,), and of pairs, symmetric (n, n) with a zero diagonal."""
        y = [[Fraction(0)] * self.n for _ in range(self.n)]
        for (i, j), value in zip(self.pairs, theta):
            y[i][j] = y[j][i] = value if i != j else Fraction(0)
        return [value for (i, j), value in zip(self.pairs, theta) if i == j], y

    def moments(self) -> Any:
        """E e(i,i) e(k,k), E e(i,i) e(k,l), E e(i,j) e(k,l) for e = 1/max, most in common first."""
        n = self.n
        e = [[Fraction(1, max(p, q)) for q in range(1, n + 1)] for p in range(1, n + 1)]
        # sums over distinct positions: of all tuples, less those in which two of them coincide
        row = [sum(e[p]) - e[p][p] for p in range(n)]
        own, square = [e[p][p] for p in range(n)], sum(dot(x, x) for x in e)
        square -= dot(own, own)
        shared, total = dot(row, row) - square, sum(row)

        def mean(value: Fraction, distinct: int) -> Fraction:
            return value / math.perm(n, distinct) if n >= distinct else Fraction(0)

        alone = mean(dot(own, own), 1), mean(sum(own) ** 2 - dot(own, own), 2)
        mixed = mean(dot(own, row), 2), mean(sum(own) * total - 2 * dot(own, row), 3)
        both = mean(square, 2), mean(shared, 3), mean(total**2 - 4 * shared - 2 * square, 4)
        return alone, mixed, both

    def apply(self, theta: list[Fraction]) -> list[Fraction]:
        """Return E F_c <F_c, theta> for the scores 1/max: the Gram operator."""
        (a0, a1), (b0, b1), (c0, c1, c2) = self.moments()
        x, y = self.split(theta)
        at = [sum(row, Fraction(0)) for row in y]
        X, Y = sum(x), sum(at) / 2
        return [
            a0 * x[i] + a1 * (X - x[i]) + b0 * at[i] + b1 * (Y - at[i])
            if i == j
            else b0 * (x[i] + x[j]) + b1 * (X - x[i] - x[j]) + (c0 - 2 * c1 + c2) * y[i][j]
            + c1 * (at[i] + at[j]) + c2 * (Y - at[i] - at[j])
            for i, j in self.pairs
        ]  # fmt: skip

    def diameter(self, eps: Fraction) -> Fraction:
        n = self.n  # with signs: the reverse order is opposite throughout
        if self.signs or n < 4:
            return Fraction(2 * n * (n - 1) if self.signs else 2 * n * (n + 1) - 8)
        # x with E F_c <F_c, x> = F_a for one order a, in turn for totals, items and pairs; then
        # <F_a, F_b> = <F_b, x>, least for the order that is best under -x
        (a0, a1), (b0, b1), (c0, c1, c2) = self.moments()
        f = self.features(list(range(n)))
        items, matrix = self.split(f)
        sums = [sum(row) for row in matrix]
        X = sum(items) / (a0 + (n - 1) * a1)  # and no pairs: one of two dependent equations
        u = [value - sum(items) / n for value in items]
        v = [value - sum(sums) / n for value in sums]
        p, q, r = a0 - a1, b0 - b1, c0 + (n - 4) * c1 - (n - 3) * c2
        det = p * r - (n - 2) * q * q
        x = [X / n + (r * g - q * h) / det for g, h in zip(u, v)]
        at = [(p * h - (n - 2) * q * g) / det for g, h in zip(u, v)]
        theta = [
            x[i] if i == j else (value - b0 * (x[i] + x[j]) - b1 * (X - x[i] - x[j])
            - (c1 - c2) * (at[i] + at[j])) / (c0 - 2 * c1 + c2)
            for (i, j), value in zip(self.pairs, f)
        ]  # fmt: skip
        if self.apply(theta) != f:
            raise Refused("the scores of an order are not in the span")
        return 2 * (dot(f, theta) + self.largest([-value for value in theta]))


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    return Statement(
        loss=order_words(document["loss"]),
        scores="one free score per pair of items",
        measure="uniform on the orders",
        data={"loss": document["loss"]},
    )


def space_of(document: dict[str, Any]) -> Pairs:
    """Return the scores of the loss of a document."""
    return Pairs(document["loss"])


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    verify_by_theorem7(document, space_of(document))
