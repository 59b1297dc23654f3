"""Check a claim about the hinge or the max-min margin.

The claim: lower <= H(eps) <= upper for the loss matrix L (k x k) and argmax decoding, where
H(eps) = min V_j(q) - V(q) over labels j, i and distributions q with (L q)_i least, (L_j - L_i) q >=
eps; V(q) is the least expected surrogate, V_j(q) the least among scores whose largest entry is j.
* hinge, Phi(f, y) = max_c [L(c, y) + f_c] - f_y: V_j(q) = max <L, pi> over pi >= 0 with column
  sums q and row sums at most q_c for c != j; V(q) the same with all row sums q.
* max-min, Phi(f, y) = max_p [min_c (L p)_c + <f, p>] - f_y: V_j(q) = max min_c (L p)_c over
  distributions p with p_c <= q_c for c != j; V(q) = min_c (L q)_c.
Both are positively homogeneous and concave in q, and V_j >= V. So few lines check that:
* Upper end: one distribution q, scores (mixed predictions) above V_j(q), a coupling below V(q).
* Lower end, for every pair (i, j) that L allows: the polytope {q : (L_j - L_i) q >= eps} is cut by
  hyperplanes (`tree`) into pieces. On a piece with vertices v, V_j is at least the interpolation
  of lower bounds W(v) <= V_j(v), and V is at most a linear function u: the surrogate of any scores.
  So H_ij >= min_v [W(v) - u v - sum_c nu_c (L_c - L_i) v] on that piece, for any nu >= 0.
  W(v) is the value of a point (`points`, by the number of the vertex), or interpolates along the
  edge on which the cut made v. Vertices come from exact clipping, so none is missed.
  What a point leaves over goes to j, whose row (or p_j) has no bound: every small one is valid.
* `symmetries` are permutations of the labels that do not change L; a pair is proved if an image is.
  Labels other than i, j that may be swapped may also be assumed in descending order of q.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import (
    Refused,
    dot,
    ends,
    integer,
    integer_dot,
    integers,
    number,
    pair_and_distribution,
    vector,
)
from consistruct.certificates.statement import NO_MEASURE, Statement, matrix_statement

UNIT = 2**45  # points, potentials and multipliers are integers over it
Distribution = tuple[int, ...]  # a distribution times any positive number
Vertex = tuple[Distribution, int, Fraction]  # q, bits of the constraints that are tight, W


def clip(vertices: list[Vertex], normal: Distribution, bit: int, height: Any) -> list[list[Vertex]]:
    """Return the vertices of a polytope where normal q >= 0 and those where normal q <= 0.

    A cut makes a vertex on every edge that it crosses: between two vertices such that no third one
    has all constraints tight that are tight at both."""
    signs = [integer_dot(normal, x) for x, _, _ in vertices]
    plus = [(x, m if s else m | bit, w) for s, (x, m, w) in zip(signs, vertices) if s >= 0]
    minus = [(x, m if s else m | bit, w) for s, (x, m, w) in zip(signs, vertices) if s <= 0]
    below = [(s, vertex) for s, vertex in zip(signs, vertices) if s < 0]
    masks = [m for _, m, _ in vertices]
    for s, (x, m, w) in zip(signs, vertices):
        for t, (y, o, z) in below if s > 0 else ():
            both = m & o  # an edge has at least as many constraints tight as dimensions less one
            if both.bit_count() < len(x) - 2 or sum(both & other == both for other in masks) > 2:
                continue
            q = [s * b - t * a for a, b in zip(x, y)]
            divisor = math.gcd(*q)
            new = tuple(a // divisor for a in q)
            vertex = (new, both | bit, height(new, (s * z - t * w) / divisor))
            plus.append(vertex)
            minus.append(vertex)
    return [plus, minus]


class Problem:
    """Hold the loss and the surrogate; all losses are integers, after multiplication by `unit`."""

    def __init__(self, surrogate: Any, loss: Any) -> None:
        if surrogate not in ("hinge", "max-min") or not isinstance(loss, (list, tuple)):
            raise Refused("the surrogate must be 'hinge' or 'max-min', and loss a list of rows")
        self.hinge, self.k = surrogate == "hinge", len(loss)
        rows = [vector(row, self.k, "loss") for row in loss]
        self.unit = math.lcm(*(x.denominator for row in rows for x in row))
        self.L = [[int(x * self.unit) for x in row] for row in rows]
        self.columns = list(zip(*self.L))
        self.size = max(abs(x) for row in self.L for x in row) or 1

    def gap(self, c: int, i: int) -> list[int]:
        """L_c - L_i."""
        return [a - b for a, b in zip(self.L[c], self.L[i])]

    def is_symmetry(self, order: list[int]) -> bool:
        """Return whether L stays the same under a permutation of the labels."""
        return [[self.L[c][y] for y in order] for c in order] == self.L

    def below(self, j: int, q: Distribution, point: Any) -> Fraction:
        """Return W(q) of a point: the part of a coupling, or of p, that does not lie on j.

        What a point leaves over goes to j, which has no bound: every small enough point is feasible
        for the maximum V_j(q), so its value is below it.
        """
        mass, full = sum(q), [x * UNIT for x in q]
        rows, columns, value = [0] * self.k, [0] * self.k, 0
        for c, *y, share in point:
            part = integer(share) * mass
            rows[c] += part
            if self.hinge:
                columns[y[0]] += part
                value += part * self.L[c][y[0]]
        if rows[j] or any(a > b for a, b in zip(rows + columns, full + full)):
            raise Refused("a point of the maximum exceeds its bounds")
        if self.hinge:
            left = (b - a for a, b in zip(columns, full))
            return Fraction(value + integer_dot(self.L[j], left), UNIT)
        rows[j] = mass * UNIT - sum(rows)  # not negative: p_c <= q_c for the others
        return Fraction(min(integer_dot(row, rows) for row in self.L), UNIT)

    def risks(self, potential: list[Fraction], j: int | None = None) -> list[Fraction]:
        """Return Phi(f, .) of scores or mixed predictions: above V, or V_j if they predict j."""
        if len(potential) != self.k:
            raise Refused(f"scores must have {self.k} entries")
        if self.hinge:
            if j is not None and max(potential) > potential[j]:
                raise Refused(f"the scores do not predict label {j}")
            best = [max(a + f for a, f in zip(column, potential)) for column in self.columns]
            return [a - f for a, f in zip(best, potential)]
        total = sum(potential, Fraction(0))
        if min(potential) < 0 or not total:
            raise Refused("mixed predictions must be nonnegative and not all zero")
        mixed = [dot(column, potential) / total for column in self.columns]
        return mixed if j is None else [max(x, mixed[j]) for x in mixed]

    def optimum_below(self, q: list[Fraction], coupling: Any) -> Fraction:
        """Return V(q), or the value of a coupling; the rest of it is coupled independently."""
        if not self.hinge:
            return Fraction(min(dot(row, q) for row in self.L))
        rows, columns, value = list(q), list(q), Fraction(0)
        for c, y, share in coupling:
            part = number(share, "coupling")
            rows[c] -= part
            columns[y] -= part
            value += part * self.L[c][y]
            if part < 0 or rows[c] < 0 or columns[y] < 0:
                raise Refused("the coupling is negative or exceeds its sums")
        return value + dot(rows, (dot(row, columns) for row in self.L)) / (sum(rows) or 1)

    def polytope(self, i: int, j: int, eps: Fraction, height: Any) -> list[Vertex]:
        """Return {q : (L_j - L_i) q >= eps}, with labels that may be swapped in descending order.

        Ordering them cuts the polytope by the number of their permutations: with all other labels
        alike, k - 2 factorial.
        """
        k, every = self.k, list(range(self.k))
        units = [tuple(int(c == y) for c in every) for y in every]
        bit = 1 << k  # bit y means q_y = 0
        found = [(x, bit - 1 ^ 1 << y, height(x, None)) for y, x in enumerate(units)]
        found = clip(found, tuple(integers([x - eps for x in self.gap(j, i)])[0]), bit, height)[0]
        others = [c for c in every if c not in (i, j)]
        for place, b in enumerate(others):
            for a in reversed(others[:place]):
                order = [b if c == a else a if c == b else c for c in every]
                if self.is_symmetry(order):
                    bit *= 2
                    normal = tuple((c == a) - (c == b) for c in every)
                    found = clip(found, normal, bit, height)[0]
                    break
        return found

    def least(self, i: int, vertices: list[Vertex], leaf: Any) -> Fraction:
        """Return the bound on a piece, of scores and multipliers nu >= 0 as integers over UNIT."""
        scores = [Fraction(integer(x, -math.inf) * self.size, UNIT) for x in leaf["potential"]]
        plane = self.risks(scores)  # mixed predictions may have any scale
        for c, nu in leaf["nu"]:
            weight = Fraction(integer(nu), UNIT)
            plane = [a + weight * b for a, b in zip(plane, self.gap(c, i))]
        whole, common = integers(plane)
        return min((w - Fraction(integer_dot(whole, x), common)) / sum(x) for x, _, w in vertices)


def check_pair(problem: Problem, proof: Any, eps: Fraction, lower: Fraction) -> None:
    """Refuse unless H_ij(eps) >= lower on every piece of the polytope of a pair."""
    i, j = (integer(c, 0, problem.k - 1) for c in proof["pair"])
    points = {integer(vertex): point for vertex, point in proof["points"]}
    made = 0  # vertices are numbered as they are made: the search numbers them in the same order

    def height(q: Distribution, between: Fraction | None) -> Fraction:
        nonlocal made
        made += 1
        if between is not None and made - 1 not in points:
            return between
        return problem.below(j, q, points.get(made - 1, []))

    first = 1 << 2 * problem.k + 1  # above the bits that `polytope` uses
    waiting = [(problem.polytope(i, j, eps, height), proof["tree"], first)]
    while waiting:
        vertices, node, bit = waiting.pop()
        if vertices and "cut" not in node:
            found = problem.least(i, vertices, node)
            if found < lower:
                raise Refused(f"pair ({i}, {j}) is bounded by {float(found / problem.unit)!r} only")
        elif vertices:
            normal = tuple(integer(x, -math.inf) for x in node["cut"])
            if len(normal) != problem.k:
                raise Refused(f"a cut has {problem.k} entries")
            parts = zip(clip(vertices, normal, bit, height), ("plus", "minus"))
            waiting += [(part, node[side], 2 * bit) for part, side in parts][::-1]


def check_lower(problem: Problem, document: Any, eps: Fraction, lower: Fraction) -> None:
    """Refuse unless every pair that reaches eps is proved, or one of its images is."""
    labels, orders = range(problem.k), document["symmetries"]
    for order in orders:
        if sorted(integer(c) for c in order) != [*labels] or not problem.is_symmetry(order):
            raise Refused("a permutation of the labels changes the loss")
    todo = {(i, j) for i in labels for j in labels if max(problem.gap(j, i)) >= eps}
    for proof in document["pairs"]:
        check_pair(problem, proof, eps, lower)
        waiting = [tuple(proof["pair"])]
        while waiting:  # the orbit: the inverse of a permutation is one of its powers
            i, j = waiting.pop()
            if (i, j) in todo:
                todo.remove((i, j))
                waiting += [(order[i], order[j]) for order in orders]
    if todo:
        raise Refused(f"pair {min(todo)} is not proved")


def check_upper(problem: Problem, document: Any, eps: Fraction, upper: Fraction) -> None:
    """Refuse unless one distribution and scores that predict j show the upper end."""
    _, j, q = pair_and_distribution(document, lambda i, j: problem.gap(j, i), problem.k, eps)
    scores = [x * problem.unit for x in vector(document["scores"], problem.k, "scores")]
    value = dot(problem.risks(scores, j), q) - problem.optimum_below(q, document["coupling"])
    if value > upper:
        raise Refused(f"the point has the value {float(value / problem.unit)!r}, above upper")


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    words = {"hinge": "hinge of Crammer and Singer with the costs as margins"}
    return matrix_statement(
        document,
        ("surrogate", "loss"),
        surrogate=words.get(document["surrogate"], "max-min margin"),
        measure=NO_MEASURE,
    )


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    problem = Problem(document["surrogate"], document["loss"])
    # H of a multiple of L is that multiple of H
    eps, lower, upper = (problem.unit * x for x in ends(document))
    check_upper(problem, document, eps, upper)
    if lower > 0:
        check_lower(problem, document, eps, lower)
