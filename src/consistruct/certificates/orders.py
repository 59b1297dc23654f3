"""Check a claim about orders of n items that are never listed, scored by item or by place.

The claim: lower <= H(eps) <= upper, H the calibration function (see listed.py) of the quadratic
surrogate under the uniform measure on all n! orders. A loss is a constant of the true label y plus
<F_c, u_y>, with the scores F of its own:

  gains      F = the discount of each item's position, u = -gain(y)/normalizer, where the normalizer
             is what the best order attains, or a number (NDCG, precision at q, rank utility)
  pairwise   two grades: discount n, n-1, .., 1 and u = -y/(number of pairs that differ)
  rho        the same scores, u = -2 (n - position in y) / (n(n^2-1)/3)
  matching   F = permutation matrix [label[i] = j], u = -(that of y)/n
  footrule   the same scores, u = |place - place in y| / floor(n^2/2)

Upper end: any distribution q of true labels and parameters theta with <F_j - F_i, Uq> >= eps and
<F_j, theta> the largest of all orders prove H(eps) <= 1/2 E <F_c, theta + Uq>^2. The largest score
is found exactly (sorting, assignment), the mean square is in closed form. Lower end: H(eps) >=
eps^2 / 2 D (Theorem 7; the loss is linear in the scores), D the largest squared distance of two F_c
in the metric in which parameters have the squared length E <F_c, theta>^2. All orders are alike, so
every distinct F_c lies on one sphere and can be predicted.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import Refused, dot, number, vector
from consistruct.certificates.statement import Statement, order_words
from consistruct.certificates.theorem7 import verify_by_theorem7


def grades(values: Any, n: int, most: int | None = None) -> list[int]:
    """Return n whole numbers from 0, below `most`; anything else is no true label."""
    if not isinstance(values, (list, tuple)) or len(values) != n:
        raise Refused(f"a true label must have {n} entries")
    if any(type(x) is not int or x < 0 or (most is not None and x >= most) for x in values):
        raise Refused(f"{values!r} are not grades of {n} items")
    return list(values)


def positions(order: Any, n: int) -> list[int]:
    """Return where each item stands, from 0, of an order that lists every item once."""
    if sorted(grades(order, n)) != list(range(n)):
        raise Refused(f"{order!r} is not an order of {n} items")
    return [order.index(item) for item in range(n)]


class Positions:
    """Score one number per item, weighted by the discount of its position: F_c = discounts.

    E over all orders makes every item equally likely at every position, so that only the mean and
    the variance of the discounts enter the mean square.
    """

    def __init__(self, loss: dict[str, Any]) -> None:
        self.loss, self.kind = loss, loss["name"]
        if self.kind == "gains":
            self.discount = vector(loss["discount"], len(loss["discount"]), "discount")
            self.gains = vector(loss["gains"], len(loss["gains"]), "gains")
            if len(self.discount) < 2 or min([*self.gains, *self.discount]) < 0:
                raise Refused("needs two items, gains and discounts that are not negative")
            self.normalizer = loss["normalizer"]
            if self.normalizer is not None:
                self.normalizer = number(self.normalizer, "normalizer")
                if self.normalizer <= 0:
                    raise Refused("the normalizer must be positive")
        else:
            self.discount = [Fraction(x) for x in range(size_of(loss), 0, -1)]
        self.n = self.width = len(self.discount)
        # `largest` sorts, and `diameter` reverses: both need positions from best to worst
        if any(a < b for a, b in zip(self.discount, self.discount[1:])):
            raise Refused("the discount must not rise")
        # all discounts alike would make every score constant, and D zero
        self.mean = sum(self.discount, Fraction(0)) / self.n
        # n times the variance
        self.spread = sum(((x - self.mean) ** 2 for x in self.discount), Fraction(0))
        if not self.spread:
            raise Refused("all positions count alike")

    def features(self, order: Any) -> list[Fraction]:
        return [self.discount[place] for place in positions(order, self.n)]

    def target(self, true_label: Any) -> list[Fraction]:
        n = self.n
        if self.kind == "rho":
            scale = Fraction(n * (n * n - 1), 3)
            return [-2 * (n - place) / scale for place in positions(true_label, n)]
        if self.kind == "pairwise":
            relevant = sum(grades(true_label, n, 2))
            pairs = relevant * (n - relevant)
            return [Fraction(-y, pairs or 1) if pairs else Fraction(0) for y in true_label]
        gain = [self.gains[y] for y in grades(true_label, n, len(self.gains))]
        if not any(gain):
            return gain
        # by the rearrangement inequality the best order puts the largest gains first
        ideal = self.normalizer or dot(sorted(gain, reverse=True), self.discount)
        return [-x / ideal for x in gain]

    def largest(self, theta: list[Fraction]) -> Fraction:
        # the rearrangement inequality: the largest sum pairs large scores with large discounts
        return dot(sorted(theta, reverse=True), self.discount)

    def mean_square(self, theta: list[Fraction]) -> Fraction:
        mean = sum(theta, Fraction(0)) / self.n  # two items have covariance -variance/(n-1)
        spread = sum(((x - mean) ** 2 for x in theta), Fraction(0))
        return (self.n * mean * self.mean) ** 2 + spread * self.spread / (self.n - 1)

    def diameter(self, eps: Fraction) -> Fraction:
        """Return the distance of an order and its reverse, by the rearrangement inequality."""
        apart = dot(self.discount, self.discount) - dot(self.discount, self.discount[::-1])
        return 2 * apart * (self.n - 1) / self.spread


class Matchings:
    """Score one number per row and column of a permutation matrix.

    Constant rows and columns of theta move all scores alike, so the mean square is that of the
    doubly centered matrix over n - 1, and the mean of all entries apart.
    """

    def __init__(self, loss: dict[str, Any]) -> None:
        self.n, self.kind = size_of(loss), loss["name"]
        self.width = self.n**2

    def features(self, label: Any) -> list[Fraction]:
        positions(label, self.n)
        return [Fraction(int(chosen == j)) for chosen in label for j in range(self.n)]

    def target(self, true_label: Any) -> list[Fraction]:
        if self.kind == "matching":
            return [-x / self.n for x in self.features(true_label)]
        place, scale = positions(true_label, self.n), self.n**2 // 2
        return [Fraction(abs(p - place[j]), scale) for p in range(self.n) for j in range(self.n)]

    def largest(self, theta: list[Fraction]) -> Fraction:
        """Solve the assignment problem by shortest augmenting paths over the integers.

        The method needs no trust: the dual potentials that it ends with are checked below.
        """
        n, unit = self.n, math.lcm(*(x.denominator for x in theta))
        cost = [[int(-theta[i * n + j] * unit) for j in range(n)] for i in range(n)]
        rows, columns, partner = [0] * (n + 1), [0] * (n + 1), [n] * (n + 1)
        largest = 4 * n * (1 + max(abs(x) for row in cost for x in row))  # above any slack
        for row in range(n):
            partner[n], at, via = row, n, [n] * n
            seen, slack = [False] * (n + 1), [largest] * n
            while partner[at] != n:
                seen[at], i = True, partner[at]
                for j in range(n):
                    gap = cost[i][j] - rows[i] - columns[j]
                    if not seen[j] and gap < slack[j]:
                        slack[j], via[j] = gap, at
                free = [j for j in range(n) if not seen[j]]
                nearest = min(free, key=lambda j: slack[j])
                delta = slack[nearest]
                for j in range(n + 1):
                    if seen[j]:
                        rows[partner[j]] += delta
                        columns[j] -= delta
                    elif j < n:
                        slack[j] -= delta
                at = nearest
            while at != n:
                partner[at], at = partner[via[at]], via[at]
        # any potentials with rows + columns <= cost prove it; no matching is cheaper than this
        if any(rows[i] + columns[j] > cost[i][j] for i in range(n) for j in range(n)):
            raise Refused("no potentials were found")
        return Fraction(-sum(rows[:n]) - sum(columns[:n]), unit)

    def mean_square(self, theta: list[Fraction]) -> Fraction:
        n = self.n
        row = [sum(theta[i * n : i * n + n], Fraction(0)) / n for i in range(n)]
        column = [sum(theta[j::n], Fraction(0)) / n for j in range(n)]
        mean = sum(row, Fraction(0)) / n
        rest = [theta[i * n + j] - row[i] - column[j] + mean for i in range(n) for j in range(n)]
        return (n * mean) ** 2 + dot(rest, rest) / (n - 1)

    def diameter(self, eps: Fraction) -> Fraction:
        """Return 2 (rank - least <F_a, F_b>).

        <F_a, F_b> = 1 + (n-1)(agreements - 1), and two permutations may agree nowhere.
        """
        return Fraction(2 * self.n * (self.n - 1))


def size_of(loss: dict[str, Any]) -> int:
    """Return the number of items: one item has one order, and nothing to learn."""
    if type(loss["n"]) is not int or loss["n"] < 2:
        raise Refused("n must be an integer of at least 2")
    return int(loss["n"])


KINDS: dict[str, Any] = {
    "gains": Positions, "pairwise": Positions, "rho": Positions, "matching": Matchings,
    "footrule": Matchings,
}  # fmt: skip


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    loss = document["loss"]
    by_place = KINDS.get(loss["name"]) is Matchings
    return Statement(
        loss=order_words(loss),
        scores="one free score per item and place" if by_place else "one free score per item",
        measure="uniform on the orders",
        data={"loss": loss},
    )


def space_of(document: dict[str, Any]) -> Positions | Matchings:
    """Return the scores of the loss of a document."""
    loss = document["loss"]
    if loss["name"] not in KINDS:
        raise Refused(f"a loss {loss['name']!r} on orders is not known")
    return KINDS[loss["name"]](loss)


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    verify_by_theorem7(document, space_of(document))
