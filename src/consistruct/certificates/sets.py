"""Check a claim about F-beta with its own scores over all set sizes.

L(c, y) = 1 - (1+b^2)|c & y| / (b^2|y| + |c|) for sets of T labels; two empty sets cost 1 - empty.
The claim is lower <= H(eps) <= upper, H the calibration function (see listed.py) of the quadratic
surrogate under the measure that is uniform over set sizes, then over sets. True labels of all sizes
span all scores that are a constant and one number per label for each size of the predicted set:
layers of equal size m are orthogonal, each with a mean and contrasts between labels.

A pair (i, j) is described by the sizes of i & j, i - j, j - i and the rest (`groups`), a set by its
counts in these four (a cell). By symmetry nothing else matters: distributions, scores and
multipliers may be averaged over cells.

* Upper end: a distribution over cells of true labels, and v = scores + expected losses = alpha_m +
  sum_g beta_{m,g} count_g for sets of size m. What the distribution misses of eps is made up by the
  true label of largest gap; where another set would beat j, v is moved by as much as it lacks. H <=
  1/2 E v^2.
* Lower end: weak duality for every pair, as in listed.py: for w, nu >= 0
      H_ij >= (nu eps + h)^2 / 2 |sum_c w_c (F_c - F_j)|^2   if nu eps + h > 0,
      h = min_y [ -sum_c w_c (L_c - L_j) - nu (L_j - L_i) ]_y;  w = e_i, nu = 1 is Theorem 7.
  It is enough that no true label makes j worse than i by eps.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from consistruct.certificates.exact import Refused, number
from consistruct.certificates.statement import Statement, fbeta_statement

Counts = tuple[int, int, int, int]


class SetProblem:
    """Hold T labels, beta and F of two empty sets; i and j are described by four group sizes.

    Labels in one group (of both sets, of i only, of j only, of neither) may be permuted without
    changing the pair, so that averages over such permutations lose nothing: a set counts by how
    many labels it takes from each group, and O(T^4) cells replace 2^T sets.
    """

    def __init__(self, T: int, beta: Any, empty: Any) -> None:
        self.T, self.beta, self.empty = T, number(beta, "beta"), number(empty, "empty")
        if type(T) is not int or T < 1:
            raise Refused(f"T must be a positive integer, got {T!r}")
        if not (self.beta > 0 and 0 < self.empty <= 1):
            raise Refused("beta must be positive, empty in (0, 1]")

    def loss(self, row: Counts, true_label: Counts, groups: Counts) -> Fraction:
        """Return the loss of a set of counts `row`, averaged over true labels of given counts."""
        square = self.beta**2
        weight = square * sum(true_label) + sum(row)
        if weight == 0:
            return 1 - self.empty
        shared = sum(Fraction(a * b, g) for a, b, g in zip(row, true_label, groups) if g)
        return 1 - (1 + square) * shared / weight

    def orbits(self) -> Iterator[Counts]:
        """Yield one pair (i, j) of different sets for each quadruple of group sizes."""
        for a, b, c in product(range(self.T + 1), repeat=3):
            if a + b + c <= self.T and b + c > 0:
                yield a, b, c, self.T - a - b - c

    def squared_norm(self, weights: dict[Counts, Fraction], groups: Counts) -> Fraction:
        """Return |sum_c w_c F_c|^2: layers of measure 1/(T+1), a mean and contrasts each.

        Layers of different set sizes are orthogonal. Within one the squared length is that of the
        mean plus that of the contrasts between labels, T(T-1)/m(T-m) times their sum of squares.
        """
        T, layers = self.T, [Fraction(0)] * (self.T + 1)
        slopes = [[Fraction(0)] * 4 for _ in range(T + 1)]
        for cell, w in weights.items():
            m = sum(cell)
            layers[m] += w
            for g in range(4):
                if groups[g]:
                    slopes[m][g] += w * (Fraction(cell[g], groups[g]) - Fraction(m, T))
        total = sum((x * x for x in layers), Fraction(0))
        for m in range(1, T):
            spread = sum((groups[g] * slopes[m][g] ** 2 for g in range(4)), Fraction(0))
            total += spread * Fraction(T * (T - 1), m * (T - m))
        return (T + 1) * total

    def theorem_7(self, groups: Counts, eps: Fraction) -> Fraction:
        """Return eps^2 / 2 |F_i - F_j|^2, the bound that needs no multipliers."""
        i, j = _pair(groups)
        return eps**2 / (2 * self.squared_norm({i: Fraction(1), j: Fraction(-1)}, groups))

    def dual(self, entry: Any, eps: Fraction) -> Fraction:
        """Return the bound of multipliers w, nu >= 0 for one pair."""
        groups, nu, pairs = entry
        i, j = _pair(groups)
        weights = {cell: Fraction(w) for cell, w in pairs}
        rise = Fraction(nu)
        total = sum(weights.values(), Fraction(0))
        least = min(
            -sum((w * self.loss(c, y, groups) for c, w in weights.items()), Fraction(0))
            + (total - rise) * self.loss(j, y, groups)
            + rise * self.loss(i, y, groups)
            for y in _cells(groups)
        )
        height = rise * eps + least
        if height <= 0:
            return Fraction(0)
        direction = dict(weights)
        direction[j] = direction.get(j, Fraction(0)) - total
        norm = self.squared_norm(direction, groups)
        return height**2 / (2 * norm) if norm else Fraction(0)

    def feasible(self, groups: Counts, eps: Fraction) -> bool:
        """Return whether some true label makes j worse than i by eps."""
        i, j = _pair(groups)
        return any(self.loss(j, y, groups) - self.loss(i, y, groups) >= eps for y in _cells(groups))

    def primal(
        self,
        groups: Counts,
        distribution: Any,
        layers: Any,
        eps: Fraction,
    ) -> Fraction:
        """Return 1/2 E v^2 of the repaired point; refuse where there is no repair.

        Floats found q and v, so both miss their constraints by rounding. They are repaired
        here, by as much as is missing, rather than written down as long fractions.
        """
        i, j = _pair(groups)
        q = {cell: max(Fraction(p), Fraction(0)) for cell, p in distribution}
        mass = sum(q.values(), Fraction(0))
        if mass == 0:
            raise Refused("the distribution is empty")
        q = {cell: p / mass for cell, p in q.items()}
        gaps = {y: self.loss(j, y, groups) - self.loss(i, y, groups) for y in _cells(groups)}
        gap = sum((p * gaps[y] for y, p in q.items()), Fraction(0))
        if gap < eps:  # toward the true label of largest gap
            top = max(gaps, key=lambda y: gaps[y])
            if gaps[top] < eps:
                raise Refused("no true label makes j worse than i by eps")
            move = (eps - gap) / (gaps[top] - gap)
            q = {y: p * (1 - move) for y, p in q.items()}
            q[top] = q.get(top, Fraction(0)) + move
        v = [[Fraction(x) for x in row] for row in layers]

        def value(cell: Counts) -> Fraction:
            row = v[sum(cell)]
            return row[0] + sum((row[g + 1] * cell[g] for g in range(4)), Fraction(0))

        def expected(cell: Counts) -> Fraction:
            return sum((p * self.loss(cell, y, groups) for y, p in q.items()), Fraction(0))

        base = value(j) - expected(j)
        worst = max(value(c) - expected(c) - base for c in _cells(groups))
        if worst > 0:
            # in the layer of j: |c & j| - |j|; -1 elsewhere. j gains at least one on all others
            for m in range(self.T + 1):
                if m != sum(j):
                    v[m][0] -= worst
            v[sum(j)][0] -= worst * sum(j)
            v[sum(j)][1] += worst
            v[sum(j)][3] += worst
        return self._half_mean_square(v, groups)

    def _half_mean_square(self, v: list[list[Fraction]], groups: Counts) -> Fraction:
        """Return 1/2 E v^2: counts of a uniform set of size m are hypergeometric."""
        T, total = self.T, Fraction(0)
        for m, (alpha, *beta) in enumerate(v):
            mean = alpha + sum((b * Fraction(m * g, T) for b, g in zip(beta, groups)), Fraction(0))
            spread = sum((b * b * g for b, g in zip(beta, groups)), Fraction(0))
            common = sum((b * g for b, g in zip(beta, groups)), Fraction(0))
            scale = Fraction(m * (T - m), T * (T - 1)) if T > 1 else Fraction(0)
            total += mean**2 + scale * (spread - common**2 / T)
        return total / (2 * (T + 1))


def _pair(groups: Counts) -> tuple[Counts, Counts]:
    return (groups[0], groups[1], 0, 0), (groups[0], 0, groups[2], 0)


def _cells(groups: Counts) -> list[Counts]:
    return [(a, b, c, d) for a, b, c, d in product(*(range(size + 1) for size in groups))]


def counts(value: Any, groups: Any = None) -> Counts:
    """Return four counts, at most those of the groups."""
    a, b, c, d = value
    found = (a, b, c, d)
    if any(type(x) is not int or x < 0 for x in found):
        raise Refused(f"{value!r} are not four counts")
    if groups is not None and any(x > g for x, g in zip(found, groups)):
        raise Refused(f"counts {value!r} do not fit the groups {groups}")
    return found


def groups_of(value: Any, T: int) -> Counts:
    """Return the sizes of the four groups of a pair of different sets."""
    found = counts(value)
    if sum(found) != T or found[1] + found[2] == 0:
        raise Refused(f"{value!r} are no groups of {T} labels")
    return found


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    T, beta, empty = (document[name] for name in ("T", "beta", "empty"))
    return fbeta_statement(T, beta, empty, list(range(T + 1)))


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    problem = SetProblem(document["T"], document["beta"], document["empty"])
    eps = number(document["eps"], "eps")
    lower, upper = number(document["lower"], "lower"), number(document["upper"], "upper")
    if not 0 < eps <= 1:
        raise Refused("eps must be in (0, 1]")
    T, groups = problem.T, groups_of(document["groups"], problem.T)
    distribution = [
        (counts(cell, groups), number(p, "distribution")) for cell, p in document["cells"]
    ]
    layers = [[number(x, "layers") for x in row] for row in document["layers"]]
    if [len(row) for row in layers] != [5] * (T + 1):
        raise Refused("v needs five numbers for every set size")
    value = problem.primal(groups, distribution, layers, eps)
    if value > upper:
        raise Refused(f"the upper bound is not attained, only {float(value)!r} is")
    given = {}
    for entry in document["multipliers"]:
        pair, nu, weights = entry
        pair, nu = groups_of(pair, T), number(nu, "nu")
        w = [(counts(cell, pair), number(x, "weight")) for cell, x in weights]
        if nu < 0 or any(x < 0 for _, x in w):
            raise Refused("a multiplier is negative")
        given[pair] = pair, nu, w
    for pair in problem.orbits():
        bound = problem.theorem_7(pair, eps)
        if bound < lower and pair in given:
            bound = max(bound, problem.dual(given[pair], eps))
        if bound < lower and problem.feasible(pair, eps):
            raise Refused(f"the pair {pair} is bounded below by {float(bound)!r} only")
