#!/usr/bin/env python3
"""Check a certificate of the log loss or of sparsemax. Python's standard library alone.

    python divergence.py certificate.json      # exit code 0: proved, 1: refused, 2: unreadable

The claim: lower <= H(eps) <= upper for a loss matrix L (k predictions, m true labels) and one score
per true label. Scores stand for a distribution p of the true label, and the excess of the surrogate
under the distribution q is D(q, p): the divergence sum_y q_y log(q_y / p_y) for the log loss, where
p > 0, and |q - p|^2 / 2 for sparsemax. Label j is predicted where A p <= 0; the rows of A are e_c -
e_j for argmax decoding, L_j - L_c for Bayes decoding, c != j, and equal labels go to the smallest
number. So, with gap = L_j - L_i,

    H(eps) = inf over i, j of H_ij,   H_ij = inf D(q, p)  s.t.  p predicts j,  gap q >= eps.

* Upper end: one p and one q, exactly feasible. Bayes decoding also needs a distribution `inner`
  that predicts j, with ties counted: between it and p there are ones that do, as near p as wanted.
* Lower end, every pair with max gap >= eps, for numbers w >= 0, nu >= 0 and a = w A:
  - sparsemax, any z:  (nu eps + min_y [a - z]_y + min_y [z - nu gap]_y)^2 / 2 |z|^2 where the sum
    is positive, because z (q - p) >= that sum;
  - log loss, any X > 0:  1 - log X + min_y [a_y - exp(nu (gap_y - eps)) / X], because the least
    KL(q, p) over q is at least -log sum_y p_y exp(nu (gap_y - eps)), and -log s >= 1 - log X - s/X;
  - log loss and argmax decoding:  -log max_S mean_S exp(nu (gap - eps)) over sets S that contain j,
    because p with p_j largest mixes uniform distributions on such sets;
  - Bayes decoding, nothing given: gap (q - p) >= eps, so eps^2 / 2 |gap - mean gap|^2 for
    sparsemax; for the log loss the divergence of two distributions on the least and the largest gap
    with means eps and 0 (merging true labels into these two, in shares that keep the gap, lowers
    KL).
* A label j that is never predicted is excluded by w >= 0 with w A >= 0: A p <= 0 makes w A p = 0,
  so j ties with all c that have a weight, one of which comes first; or w A p > 0 for all such p.

Numbers are integers, floats (dyadic rationals) or strings "p/q", all exact. Logarithms and
exponentials are those of `decimal`, correctly rounded to 60 digits and then moved outward by one.
"""

from __future__ import annotations

import decimal
import json
import re
import sys
from fractions import Fraction
from typing import Any

RATIONAL = r"-?(0x[0-9a-f]+|[0-9]+)(/(0x[0-9a-f]+|[0-9]+))?"
LARGEST = 2000  # exponents beyond it bound nothing
IMPOSSIBLE = Fraction(2) ** 2000  # H_ij has no distributions, so no bound is too large
CONTEXT = decimal.Context(prec=60, Emax=10**9, Emin=-(10**9))


class Refused(ValueError):
    """The certificate does not prove its claim."""


def number(value: Any, name: str = "a number") -> Fraction:
    """The exact value of an integer, a finite float or a string "p/q"."""
    try:
        if isinstance(value, str) and re.fullmatch(RATIONAL, value):
            top, _, bottom = value.partition("/")
            return Fraction(int(top, 0), int(bottom or "1", 0))
        if type(value) in (int, float, Fraction):
            return Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise Refused(f"{name} must be a finite number, got {value!r}")


def vector(values: Any, size: int, name: str) -> list[Fraction]:
    """Exact numbers."""
    if not isinstance(values, (list, tuple)) or len(values) != size:
        raise Refused(f"{name} must be a list of {size} numbers")
    return [number(value, name) for value in values]


def integer(value: Any, high: int) -> int:
    """The number of a label."""
    if type(value) is not int or not 0 <= value < high:
        raise Refused(f"an integer from 0 to {high - 1} is needed, got {value!r}")
    return value


def dot(a: Any, b: Any) -> Fraction:
    """The sum of products."""
    return sum((x * y for x, y in zip(a, b)), Fraction(0))


def rounded(x: Fraction, up: bool) -> decimal.Decimal:
    """A decimal of 60 digits at or above x, or at or below it."""
    context = CONTEXT.copy()
    context.rounding = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    return context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))


def exp_up(x: Fraction) -> Fraction:
    """Above exp(x)."""
    if x > LARGEST:
        raise Refused("an exponent is too large to bound anything")
    return Fraction(CONTEXT.next_plus(CONTEXT.exp(rounded(max(x, Fraction(-LARGEST)), True))))


def log_up(x: Fraction) -> Fraction:
    """Above log(x), x > 0; log(1) is zero."""
    if x == 1:
        return Fraction(0)
    return Fraction(CONTEXT.next_plus(CONTEXT.ln(rounded(x, True))))


def log_down(x: Fraction) -> Fraction:
    """Below log(x), x > 0."""
    return -log_up(1 / x)


class Problem:
    """The loss, the surrogate and the decoding."""

    def __init__(self, surrogate: Any, decoding: Any, loss: Any) -> None:
        if surrogate not in ("log", "sparsemax") or decoding not in ("argmax", "bayes"):
            raise Refused("surrogates are log and sparsemax, decodings argmax and bayes")
        if (
            not isinstance(loss, (list, tuple))
            or not loss
            or not isinstance(loss[0], (list, tuple))
        ):
            raise Refused("loss must be a list of rows")
        self.log, self.argmax = surrogate == "log", decoding == "argmax"
        self.k, self.m = len(loss), len(loss[0])
        self.L = [vector(row, self.m, "loss") for row in loss]
        if self.argmax and self.k != self.m:
            raise Refused("argmax decoding needs true labels that name predictions")

    def gap(self, i: int, j: int) -> list[Fraction]:
        """L_j - L_i."""
        return [a - b for a, b in zip(self.L[j], self.L[i])]

    def row(self, c: int, j: int) -> list[Fraction]:
        """The row of A that compares c with j."""
        if self.argmax:
            return [Fraction((y == c) - (y == j)) for y in range(self.m)]
        return self.gap(c, j)

    def combined(self, weights: Any, j: int) -> tuple[list[int], list[Fraction]]:
        """The labels with a weight, and w A, from [label, weight] pairs with weights >= 0."""
        used, a = [], [Fraction(0)] * self.m
        for c, share in weights:
            weight = number(share, "w")
            if weight < 0 or integer(c, self.k) == j:
                raise Refused("w must not be negative, nor compare a label with itself")
            if weight:
                used.append(c)
                a = [x + weight * r for x, r in zip(a, self.row(c, j))]
        return used, a

    # --- lower ends ---

    def bounded(self, i: int, j: int, eps: Fraction, proof: Any) -> Fraction:
        """The better of the bounds on H_ij with and without the numbers of a proof."""
        found = self.plain_bound(i, j, eps)
        return found if proof is None else max(found, self.bound(i, j, eps, proof))

    def bound(self, i: int, j: int, eps: Fraction, proof: Any) -> Fraction:
        """A lower bound on H_ij from the numbers of a proof."""
        gap, nu = self.gap(i, j), number(proof["nu"], "nu")
        if nu < 0:
            raise Refused("nu must not be negative")
        if self.log and self.argmax:
            return self.by_sets(j, [exp_up(nu * (x - eps)) for x in gap])
        a = self.combined(proof["w"], j)[1]
        if self.log:
            X = number(proof["X"], "X")
            if X <= 0:
                raise Refused("X must be positive")
            least = min(x - exp_up(nu * (d - eps)) / X for x, d in zip(a, gap))
            return 1 - log_up(X) + least
        z = vector(proof["z"], self.m, "z")
        height = nu * eps + min(x - b for x, b in zip(a, z))
        height += min(b - nu * d for b, d in zip(z, gap))
        return height**2 / (2 * dot(z, z)) if height > 0 and any(z) else Fraction(0)

    def by_sets(self, j: int, tilted: list[Fraction]) -> Fraction:
        """-log of the largest mean over a set that contains j."""
        total, best = tilted[j], tilted[j]
        others = sorted((x for y, x in enumerate(tilted) if y != j), reverse=True)
        for size, x in enumerate(others, 2):
            total += x
            best = max(best, total / size)
        return -log_up(best)

    def plain_bound(self, i: int, j: int, eps: Fraction) -> Fraction:
        """The bound by the gap alone; without limit where the pair is impossible."""
        gap = self.gap(i, j)
        if self.argmax:
            return Fraction(0)
        if not self.log:
            mean = sum(gap, Fraction(0)) / self.m
            square = sum((x - mean) ** 2 for x in gap)
            return eps**2 / (2 * square) if square else IMPOSSIBLE
        low, high = min(min(gap), Fraction(0)), max(gap)
        q, p = (eps - low) / (high - low), -low / (high - low)
        if p == 0:
            return IMPOSSIBLE  # gap p <= 0 would keep p, and so q, where the gap is 0
        rest = (1 - q) * log_down((1 - q) / (1 - p)) if q < 1 else Fraction(0)
        return q * log_down(q / p) + rest

    def excludes(self, j: int, weights: Any) -> bool:
        """Whether w shows that label j is never predicted."""
        used, a = self.combined(weights, j)
        somewhere = max(a) if self.log else min(a)  # the log loss has p > 0 everywhere
        return min(a) >= 0 and (somewhere > 0 or any(c < j for c in used))

    # --- the upper end ---

    def distribution(self, values: Any, name: str) -> list[Fraction]:
        """Weights as probabilities."""
        weights = vector(values, self.m, name)
        if min(weights) < 0 or not any(weights):
            raise Refused(f"{name} is not a probability distribution")
        return [x / sum(weights) for x in weights]

    def divergence(self, q: list[Fraction], p: list[Fraction]) -> Fraction:
        """D(q, p), rounded up."""
        if not self.log:
            return sum(((x - y) ** 2 for x, y in zip(q, p)), Fraction(0)) / 2
        if any(x and not y for x, y in zip(q, p)):
            raise Refused("the divergence is infinite")
        return sum((x * log_up(x / y) for x, y in zip(q, p) if x), Fraction(0))


def check_upper(problem: Problem, document: Any, eps: Fraction, upper: Fraction) -> None:
    """A distribution q, and p that predicts j though i is better by eps under q."""
    i, j = (integer(c, problem.k) for c in document["pair"])
    q = problem.distribution(document["distribution"], "distribution")
    p = problem.distribution(document["estimate"], "estimate")
    if dot(problem.gap(i, j), q) < eps:
        raise Refused(f"label {j} is not worse than {i} by eps under this distribution")
    others = [c for c in range(problem.k) if c != j]
    if any(dot(problem.row(c, j), p) > 0 for c in others):
        raise Refused(f"the estimate does not predict label {j}")
    if not problem.argmax:
        inner = problem.distribution(document["inner"], "inner")
        sums = [dot(problem.row(c, j), inner) for c in others]
        if any(x > 0 or (x == 0 and c < j) for c, x in zip(others, sums)):
            raise Refused(f"the inner distribution does not predict label {j}")
        if problem.log and min(inner) == 0:
            raise Refused("the log loss has no scores for a probability of zero")
    if problem.divergence(q, p) > upper:
        raise Refused(f"the point has the value {float(problem.divergence(q, p))!r}, above upper")


def check_lower(problem: Problem, document: Any, eps: Fraction, lower: Fraction) -> None:
    """Every pair that reaches eps is bounded, or its label is never predicted."""
    excluded = set()
    for item in document["excluded"]:
        j = integer(item["label"], problem.k)
        if not problem.excludes(j, item["w"]):
            raise Refused(f"label {j} may be predicted")
        excluded.add(j)
    proofs = {}
    for proof in document["pairs"]:
        i, j = (integer(c, problem.k) for c in proof["pair"])
        proofs[i, j] = proof
    for j in range(problem.k):
        for i in range(problem.k):
            if j in excluded or max(problem.gap(i, j)) < eps:
                continue
            found = problem.bounded(i, j, eps, proofs.get((i, j)))
            if found < lower:
                raise Refused(f"pair ({i}, {j}) is bounded by {float(found)!r} only")


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    if document["kind"] != "divergence":
        raise Refused("its kind is not 'divergence'")
    problem = Problem(document["surrogate"], document["decoding"], document["loss"])
    eps, lower, upper = (number(document[name], name) for name in ("eps", "lower", "upper"))
    if eps <= 0:
        raise Refused("eps must be positive")
    check_upper(problem, document, eps, upper)
    if lower > 0:
        check_lower(problem, document, eps, lower)


def main(path: str) -> int:
    """Read a certificate, print the verdict, return the exit code."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as reason:
        print(f"unreadable: {reason}")
        return 2
    try:
        verify(document)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as reason:
        print(f"refused: {reason}")
        return 1
    print("proved")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else print(__doc__) or 2)
