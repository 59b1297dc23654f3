"""Check a claim about the linear-regret surrogate.

The claim: lower <= H(eps) <= upper for a loss matrix L (k predictions, m true labels), one score
per prediction and a number kappa > 0. Under a distribution q of the true label, with expected
losses l = L q, scores stand for estimates e of l and a distribution pi on the labels of least e;
the excess of the surrogate is |e - l|^2 / 2 kappa + sum_c pi_c l_c - min l, and j is predicted
where pi_j is largest. Such pi mix uniform distributions on sets A that contain j, and the excess is
linear in pi, so

    H(eps) = inf over i, j, A, q, t of  mean_A l - min l
             + [sum_A (l_c - t)^2 + sum_rest max(t - l_c, 0)^2] / 2 kappa

over (L_j - L_i) q >= eps.

* Upper end: one pair, one q, one set A and one t.
* Lower end, every pair with max (L_j - L_i) >= eps. Labels other than i, j that may be swapped
  without changing L form classes, and a set A is described by how many of each class it has. Boxes
  of such counts cover all sets. In a box, I are the labels that every A has, n the most labels that
  one has, and with numbers z of sum 0, z <= 0 off I, rho >= 0 of sum |I| / n, and nu >= 0,

    nu eps + min_y [L^T (z + 1_I / n - rho) - nu (L_j - L_i)]_y - kappa |z|^2 / 2

  is below the excess: (x - t)^2 / 2 kappa >= z (x - t) - kappa z^2 / 2, mean_A (l - min l) is at
  least sum_I (l - min l) / n, and rho averages l to no less than min l. Signs and sums of z and rho
  are put right by this program before they are used, so any numbers will do.
* eps / k + eps^2 / 4 kappa bounds every pair. A pair is also proved by one with labels of the same
  classes.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import (
    Refused,
    dot,
    ends,
    exact_text,
    integer,
    matrix,
    number,
    pair_and_distribution,
    vector,
)
from consistruct.certificates.statement import NO_MEASURE, Statement, matrix_statement

MOST_SETS = 100_000  # sets of tied labels of one pair, up to swaps, that are listed


class Problem:
    """Hold the loss, kappa, and which labels may be swapped without changing the loss.

    Swappable labels form classes, and a set of tied labels counts by how many of each class it has:
    otherwise there would be 2^(k-1) sets per pair.
    """

    def __init__(self, kappa: Any, loss: Any) -> None:
        self.L, self.kappa = matrix(loss, "loss"), number(kappa, "kappa")
        self.k, self.m = len(self.L), len(self.L[0])
        if self.kappa <= 0:
            raise Refused("kappa must be positive")
        self.class_of = list(range(self.k))
        for c in range(self.k):
            alike = (d for d in range(c) if self.class_of[d] == d and self.swaps(c, d))
            self.class_of[c] = next(alike, c)

    def swaps(self, c: int, d: int) -> bool:
        """Return whether L stays the same when two labels are swapped, predicted and true."""
        if self.k != self.m:
            return False
        order = [d if x == c else c if x == d else x for x in range(self.k)]
        return [[self.L[a][b] for b in order] for a in order] == self.L

    def gap(self, i: int, j: int) -> list[Fraction]:
        """L_j - L_i."""
        return [a - b for a, b in zip(self.L[j], self.L[i])]

    def classes(self, i: int, j: int) -> list[list[int]]:
        """Return [j], [i], then the other labels by class."""
        found: dict[int, list[int]] = {}
        for c in range(self.k):
            if c not in (i, j):
                found.setdefault(self.class_of[c], []).append(c)
        return [[j], [i], *found.values()]

    # --- lower ends ---

    def plain_bound(self, eps: Fraction) -> Fraction:
        """Return the bound that every pair has."""
        return eps / self.k + eps**2 / (4 * self.kappa)

    def box_bound(self, i: int, j: int, eps: Fraction, box: Any) -> Fraction:
        """Return a lower bound over all sets of a box.

        Signs and sums of z and rho are put right first: rounding can only cost tightness.
        """
        low, high = self.counts(i, j, box)
        parts = zip(self.classes(i, j), low)
        inside = {c for members, size in parts for c in members[:size]}
        n, nu = sum(high), max(number(box["nu"], "nu"), Fraction(0))
        z, rho = vector(box["z"], self.k, "z"), vector(box["rho"], self.k, "rho")
        z = [x if c in inside else min(x, Fraction(0)) for c, x in enumerate(z)]
        z[j] -= sum(z)
        rho = [max(x, Fraction(0)) for x in rho]
        if not any(rho):
            rho = [Fraction(1)] * self.k
        factor = Fraction(len(inside), n) / sum(rho)
        weights = [
            x + (Fraction(1, n) if c in inside else 0) - factor * r
            for c, (x, r) in enumerate(zip(z, rho))
        ]
        planes = [nu * (eps - d) for d in self.gap(i, j)]
        for weight, row in zip(weights, self.L):
            if weight:
                planes = [x + weight * y for x, y in zip(planes, row)]
        return min(planes) - self.kappa * dot(z, z) / 2

    def counts(self, i: int, j: int, box: Any) -> tuple[list[int], list[int]]:
        """Return the least and the most labels of each class; j is in every set."""
        sizes = [len(members) for members in self.classes(i, j)]
        low = [integer(x, 0, size) for x, size in zip(box["low"], sizes)]
        high = [integer(x, 0, size) for x, size in zip(box["high"], sizes)]
        if not len(low) == len(high) == len(box["low"]) == len(box["high"]) == len(sizes):
            raise Refused("a box has one count per class")
        if low[0] != 1 or any(a > b for a, b in zip(low, high)):
            raise Refused("a box must contain j, and no more at least than at most")
        return low, high

    def check_pair(self, proof: Any, eps: Fraction, lower: Fraction) -> tuple[int, int]:
        """Refuse unless every set is in a box and every box is bounded; return the pair."""
        i, j = (integer(c, 0, self.k - 1) for c in proof["pair"])
        if i == j:
            raise Refused("a pair has two labels")
        left = 1
        for members in self.classes(i, j)[1:]:
            left *= len(members) + 1
        if left > MOST_SETS:
            raise Refused(f"{left} sets of tied labels are too many to list")
        seen: set[tuple[int, ...]] = set()
        for box in proof["boxes"]:
            low, high = self.counts(i, j, box)
            found = self.box_bound(i, j, eps, box)
            if found < lower:
                raise Refused(f"pair ({i}, {j}) is bounded by {float(found)!r} only")
            ranges = (range(a, b + 1) for a, b in zip(low[1:], high[1:]))
            seen.update(itertools.product(*ranges))
        if len(seen) < left:
            raise Refused(f"some sets of tied labels of pair ({i}, {j}) are in no box")
        return i, j

    # --- the upper end ---

    def excess(self, q: list[Fraction], tied: list[int], t: Fraction) -> Fraction:
        """Return the excess at a set of tied labels and their common estimate."""
        ell = [dot(row, q) for row in self.L]
        total = Fraction(0)
        for c, x in enumerate(ell):
            total += (x - t if c in tied else max(t - x, Fraction(0))) ** 2
        mean = sum((ell[c] for c in tied), Fraction(0)) / len(tied)
        return total / (2 * self.kappa) + mean - min(ell)


def check_upper(problem: Problem, document: Any, eps: Fraction, upper: Fraction) -> None:
    """Refuse unless a distribution and scores that predict j show the upper end."""
    _, j, q = pair_and_distribution(document, problem.gap, problem.k, eps)
    tied = [integer(c, 0, problem.k - 1) for c in document["tied"]]
    if j not in tied or len(set(tied)) < len(tied):
        raise Refused("tied labels must be distinct and contain j")
    value = problem.excess(q, tied, number(document["threshold"], "threshold"))
    if value > upper:
        raise Refused(f"the point has the value {float(value)!r}, above upper")


def check_lower(problem: Problem, document: Any, eps: Fraction, lower: Fraction) -> None:
    """Refuse unless every pair that reaches eps is proved, itself or by one of its classes."""
    if problem.plain_bound(eps) >= lower:
        return
    kind = problem.class_of
    proved = set()
    for proof in document["pairs"]:
        i, j = problem.check_pair(proof, eps, lower)
        proved.add((kind[i], kind[j]))
    for i, j in itertools.permutations(range(problem.k), 2):
        if (kind[i], kind[j]) not in proved and max(problem.gap(i, j)) >= eps:
            raise Refused(f"pair ({i}, {j}) is not proved")


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    kappa = number(document["kappa"], "kappa")
    found = matrix_statement(
        document,
        ("kappa", "loss"),
        surrogate=f"linear regret with κ = {exact_text(kappa)}",
        measure=NO_MEASURE,
    )
    found.data["surrogate"] = "linear-regret"
    return found


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    problem = Problem(document["kappa"], document["loss"])
    eps, lower, upper = ends(document)
    check_upper(problem, document, eps, upper)
    if lower > 0:
        check_lower(problem, document, eps, lower)
