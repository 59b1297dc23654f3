"""Check a claim about the logistic or the square surrogate.

The claim: lower <= k H(eps) <= upper for a loss matrix L (k predictions, m true labels) and one
score per prediction; the label of the largest score is predicted. Under a distribution q of the
true label, label c has the expected loss p_c = (L q)_c, for the logistic surrogate in units of
`largest` and so at most 1. Its score stands for a number s_c of the same range, larger scores for
smaller numbers, and the excess of the surrogate is sum_c D(p_c, s_c) / k:

    logistic:  D(p, s) = p log(p/s) + (1 - p) log((1 - p)/(1 - s)),
    square:    D(p, s) = (p - s)^2 / 2.

    k H(eps) = inf over i, j, q, s of sum_c D(p_c, s_c)  s.t.  s_j <= s_c,  (L_j - L_i) q >= eps.

* Upper end: q and a number t give s_j = t and s_c = max(p_c, t), which predicts j, or others tie.
* Lower end, every pair with max (L_j - L_i) >= eps: a set of labels that contains j, with any
  numbers r_c; t is their mean, and r_c <= t for c != j. D is jointly convex, so it is at least its
  plane at (r_c, t). The slopes in s, multiples of t - r_c, are not negative but for j and sum to
  zero: with s_c >= s_j they add nothing. What is left is linear in q. With slopes g_c in p and
  nu >= 0:

    k H_ij >= sum_c [D(r_c, t) - g_c r_c] + min_y [sum_c g_c L(c, y) + nu (eps - L_j + L_i)]_y,

  where D(r, t) - g r is log((1 - r)/(1 - t)) for the logistic and (t^2 - r^2) / 2 for the square.

Logarithms are rational bounds, rounded outward (`exact.log_up`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import (
    Refused,
    by_pair,
    dot,
    ends,
    exact_text,
    integer,
    log_down,
    log_up,
    matrix,
    number,
    pair_and_distribution,
    vector,
)
from consistruct.certificates.statement import Statement, matrix_statement


class Problem:
    """Hold the loss and the surrogate; expected losses are in units of `largest`."""

    def __init__(self, surrogate: Any, largest: Any, loss: Any) -> None:
        if surrogate not in ("logistic", "square"):
            raise Refused("surrogates are logistic and square")
        self.logistic = surrogate == "logistic"
        self.L = matrix(loss, "loss")
        self.k, self.m = len(self.L), len(self.L[0])
        self.largest = number(largest, "largest")
        if self.largest <= 0:
            raise Refused("largest must be positive")
        if not self.logistic:
            self.largest = Fraction(1)
        if self.logistic and not all(0 <= x <= self.largest for row in self.L for x in row):
            raise Refused("the logistic surrogate needs losses from 0 to largest")
        self.shares = [[x / self.largest for x in row] for row in self.L]

    def gap(self, i: int, j: int) -> list[Fraction]:
        """L_j - L_i."""
        return [a - b for a, b in zip(self.L[j], self.L[i])]

    def inside(self, x: Fraction) -> bool:
        """Return whether D is finite and smooth there."""
        return 0 < x < 1 or not self.logistic

    # --- lower ends ---

    def slope_down(self, r: Fraction, t: Fraction) -> Fraction:
        """Return a number below the derivative of D(p, t) in p at r.

        Losses of the logistic are not negative, so that a smaller slope gives a lower plane.
        """
        if not self.logistic:
            return r - t
        return log_down(r * (1 - t) / (t * (1 - r)))

    def bound(self, i: int, j: int, eps: Fraction, proof: Any) -> Fraction:
        """Return a lower bound on k H_ij from the numbers of a proof."""
        labels = [integer(c, 0, self.k - 1) for c in proof["labels"]]
        points = vector(proof["points"], len(labels), "points")
        if j not in labels or len(set(labels)) < len(labels):
            raise Refused("labels must be distinct and contain j")
        t, nu = sum(points, Fraction(0)) / len(points), number(proof["nu"], "nu")
        if nu < 0 or any(r > t for c, r in zip(labels, points) if c != j):
            raise Refused("nu must not be negative, nor points above their mean but for j")
        if not all(self.inside(r) for r in [t, *points]):
            raise Refused("points must lie strictly between 0 and 1")
        total = Fraction(0)
        planes = [nu * (eps - d) for d in self.gap(i, j)]
        for c, r in zip(labels, points):
            total += log_down((1 - r) / (1 - t)) if self.logistic else (t**2 - r**2) / 2
            slope = self.slope_down(r, t)
            planes = [x + slope * y for x, y in zip(planes, self.shares[c])]
        return total + min(planes)

    def plain_bound(self, eps: Fraction) -> Fraction:
        """Return the bound that every pair has.

        D is at least 2 (p - s)^2 (Pinsker) or half of (p - s)^2, and p_j - p_i >= eps has to be
        bridged by s_j <= s_i: least where both move halfway.
        """
        share = eps / self.largest
        return share**2 if self.logistic else share**2 / 4

    # --- the upper end ---

    def divergence(self, p: Fraction, s: Fraction) -> Fraction:
        """Return D(p, s), rounded up; 0 log 0 counts nothing."""
        if not self.logistic:
            return (p - s) ** 2 / 2
        parts = ((p, s), (1 - p, 1 - s))
        if any(a and not b for a, b in parts):
            raise Refused("the divergence is infinite")
        return sum((a * log_up(a / b) for a, b in parts if a), Fraction(0))

    def excess(self, j: int, q: list[Fraction], t: Fraction) -> Fraction:
        """Return k times the excess at scores that predict j, rounded up."""
        if self.logistic and not 0 <= t <= 1:
            raise Refused("threshold must lie between 0 and 1")
        p = [dot(row, q) for row in self.shares]
        raised = [t if c == j else max(x, t) for c, x in enumerate(p)]
        return sum((self.divergence(x, s) for x, s in zip(p, raised)), Fraction(0))


def check_upper(problem: Problem, document: Any, eps: Fraction, upper: Fraction) -> None:
    """Refuse unless a distribution and scores that predict j show the upper end."""
    _, j, q = pair_and_distribution(document, problem.gap, problem.k, eps)
    value = problem.excess(j, q, number(document["threshold"], "threshold"))
    if value > upper:
        raise Refused(f"the point has the value {float(value)!r}, above upper")


def check_lower(problem: Problem, document: Any, eps: Fraction, lower: Fraction) -> None:
    """Refuse unless every pair that reaches eps is bounded."""
    proofs = by_pair(document["pairs"], problem.k)
    for j in range(problem.k):
        for i in range(problem.k):
            if max(problem.gap(i, j)) < eps:
                continue
            found = problem.plain_bound(eps)
            if found < lower and (i, j) in proofs:
                found = problem.bound(i, j, eps, proofs[i, j])
            if found < lower:
                raise Refused(f"pair ({i}, {j}) is bounded by {float(found)!r} only")


def scale(document: dict[str, Any]) -> Fraction:
    """Return what lower and upper are multiplied by to be bounds on H."""
    return Fraction(1, len(document["loss"]))


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    largest = exact_text(number(document["largest"], "largest"))
    return matrix_statement(
        document,
        ("surrogate", "largest", "loss"),
        surrogate=f"{document['surrogate']} for losses up to {largest}",
    )


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    problem = Problem(document["surrogate"], document["largest"], document["loss"])
    eps, lower, upper = ends(document)
    check_upper(problem, document, eps, upper)
    if lower > 0:
        check_lower(problem, document, eps, lower)
