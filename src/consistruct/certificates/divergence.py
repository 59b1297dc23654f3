"""Check a claim about the log loss or sparsemax.

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

Logarithms and exponentials are rational bounds, rounded outward (`exact.log_up`, `exact.exp_up`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import (
    Refused,
    by_pair,
    distribution,
    dot,
    ends,
    exp_up,
    integer,
    log_down,
    log_up,
    matrix,
    number,
    pair_and_distribution,
    vector,
)
from consistruct.certificates.statement import NO_MEASURE, Statement, matrix_statement

IMPOSSIBLE = Fraction(2) ** 2000  # of pairs without any distributions: no bound is too large


class Problem:
    """Hold the loss, the surrogate (`log` or sparsemax) and the decoding (`argmax` or Bayes)."""

    def __init__(self, surrogate: Any, decoding: Any, loss: Any) -> None:
        if surrogate not in ("log", "sparsemax") or decoding not in ("argmax", "bayes"):
            raise Refused("surrogates are log and sparsemax, decodings argmax and bayes")
        self.log, self.argmax = surrogate == "log", decoding == "argmax"
        self.L = matrix(loss, "loss")
        self.k, self.m = len(self.L), len(self.L[0])
        if self.argmax and self.k != self.m:
            raise Refused("argmax decoding needs true labels that name predictions")

    def gap(self, i: int, j: int) -> list[Fraction]:
        """L_j - L_i."""
        return [a - b for a, b in zip(self.L[j], self.L[i])]

    def row(self, c: int, j: int) -> list[Fraction]:
        """Return the row of A that compares c with j."""
        if self.argmax:
            return [Fraction((y == c) - (y == j)) for y in range(self.m)]
        return self.gap(c, j)

    def combined(self, weights: Any, j: int) -> tuple[list[int], list[Fraction]]:
        """Return the labels with a weight, and w A, from [label, weight] pairs; no w < 0."""
        used, a = [], [Fraction(0)] * self.m
        for c, share in weights:
            weight = number(share, "w")
            if weight < 0 or integer(c, 0, self.k - 1) == j:
                raise Refused("w must not be negative, nor compare a label with itself")
            if weight:
                used.append(c)
                a = [x + weight * r for x, r in zip(a, self.row(c, j))]
        return used, a

    # --- lower ends ---

    def bounded(self, i: int, j: int, eps: Fraction, proof: Any) -> Fraction:
        """Return the better of the bounds on H_ij with and without the numbers of a proof."""
        found = self.plain_bound(i, j, eps)
        return found if proof is None else max(found, self.bound(i, j, eps, proof))

    def bound(self, i: int, j: int, eps: Fraction, proof: Any) -> Fraction:
        """Return a lower bound on H_ij from the numbers of a proof."""
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
        """Return -log of the largest mean over a set that contains j, rounded down.

        The largest mean is attained by j and the largest of the others, for some number of them.
        """
        total, best = tilted[j], tilted[j]
        others = sorted((x for y, x in enumerate(tilted) if y != j), reverse=True)
        for size, x in enumerate(others, 2):
            total += x
            best = max(best, total / size)
        return -log_up(best)

    def plain_bound(self, i: int, j: int, eps: Fraction) -> Fraction:
        """Return the bound by the gap alone; without limit where the pair is impossible."""
        gap = self.gap(i, j)
        if self.argmax:
            return Fraction(0)
        if not self.log:
            mean = sum(gap, Fraction(0)) / self.m
            square = sum((x - mean) ** 2 for x in gap)
            return eps**2 / (2 * square) if square else IMPOSSIBLE
        # merge all true labels into two with the least and the largest gap: the divergence of two
        # distributions on these, with means eps and 0, is at most theirs
        low, high = min(min(gap), Fraction(0)), max(gap)
        q, p = (eps - low) / (high - low), -low / (high - low)
        if p == 0:
            return IMPOSSIBLE  # gap p <= 0 would keep p, and so q, where the gap is 0
        rest = (1 - q) * log_down((1 - q) / (1 - p)) if q < 1 else Fraction(0)
        return q * log_down(q / p) + rest

    def excludes(self, j: int, weights: Any) -> bool:
        """Return whether w shows that label j is never predicted."""
        used, a = self.combined(weights, j)
        somewhere = max(a) if self.log else min(a)  # the log loss has p > 0 everywhere
        return min(a) >= 0 and (somewhere > 0 or any(c < j for c in used))

    # --- the upper end ---

    def divergence(self, q: list[Fraction], p: list[Fraction]) -> Fraction:
        """Return D(q, p), rounded up."""
        if not self.log:
            return sum(((x - y) ** 2 for x, y in zip(q, p)), Fraction(0)) / 2
        if any(x and not y for x, y in zip(q, p)):
            raise Refused("the divergence is infinite")
        return sum((x * log_up(x / y) for x, y in zip(q, p) if x), Fraction(0))


def check_upper(problem: Problem, document: Any, eps: Fraction, upper: Fraction) -> None:
    """Refuse unless q, and p that predicts j though i is better by eps under q, show the end."""
    _, j, q = pair_and_distribution(document, problem.gap, problem.k, eps)
    p = distribution(document["estimate"], problem.m, "estimate")
    others = [c for c in range(problem.k) if c != j]
    if any(dot(problem.row(c, j), p) > 0 for c in others):
        raise Refused(f"the estimate does not predict label {j}")
    if not problem.argmax:
        # p itself may tie with others on the boundary; points between it and `inner` do not
        inner = distribution(document["inner"], problem.m, "inner")
        sums = [dot(problem.row(c, j), inner) for c in others]
        if any(x > 0 or (x == 0 and c < j) for c, x in zip(others, sums)):
            raise Refused(f"the inner distribution does not predict label {j}")
        if problem.log and min(inner) == 0:
            raise Refused("the log loss has no scores for a probability of zero")
    if problem.divergence(q, p) > upper:
        raise Refused(f"the point has the value {float(problem.divergence(q, p))!r}, above upper")


def check_lower(problem: Problem, document: Any, eps: Fraction, lower: Fraction) -> None:
    """Refuse unless every pair that reaches eps is bounded, or its label never predicted."""
    excluded = set()
    for item in document["excluded"]:
        j = integer(item["label"], 0, problem.k - 1)
        if not problem.excludes(j, item["w"]):
            raise Refused(f"label {j} may be predicted")
        excluded.add(j)
    proofs = by_pair(document["pairs"], problem.k)
    for j in range(problem.k):
        for i in range(problem.k):
            if j in excluded or max(problem.gap(i, j)) < eps:
                continue
            found = problem.bounded(i, j, eps, proofs.get((i, j)))
            if found < lower:
                raise Refused(f"pair ({i}, {j}) is bounded by {float(found)!r} only")


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    decoding = {"argmax": "argmax decoding", "bayes": "decoding by the least expected loss"}
    return matrix_statement(
        document,
        ("surrogate", "decoding", "loss"),
        scores=f"one free score per true label, {decoding[document['decoding']]}",
        surrogate=f"{document['surrogate']} loss",
        measure=NO_MEASURE,
    )


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    problem = Problem(document["surrogate"], document["decoding"], document["loss"])
    eps, lower, upper = ends(document)
    check_upper(problem, document, eps, upper)
    if lower > 0:
        check_lower(problem, document, eps, lower)
