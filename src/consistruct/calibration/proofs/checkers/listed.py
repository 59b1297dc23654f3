#!/usr/bin/env python3
"""Check a certificate over listed labels. Python's standard library alone; exact arithmetic only.

    python listed.py certificate.json          # exit code 0: proved, 1: refused, 2: unreadable

The claim: lower <= H(eps) <= upper, H the calibration function of the quadratic surrogate for the
loss matrix L (k predictions x m true labels), scores f = F theta and reference weights mu:

    H(eps) = min 1/2 |f + P L q|^2   over distributions q of the true label and scores f under which
    a label j is predicted (ties to the smallest index) although some predictable i has
    (L q)_j - (L q)_i >= eps;   |z|^2 = sum_c mu_c z_c^2,  P = projection on the scores.
Why few lines check that. Write K = F (F' M F)^+ F', M = diag(mu), P L = K M L.
* Upper end: any feasible (q, f) is above H. It is enough to evaluate one.
* Lower end: for a pair (i, j), any w >= 0 over labels and any nu >= 0, weak duality gives
      H_ij(eps) >= (nu eps + h)^2 / (2 n)   if nu eps + h > 0, where
      h = min_y [ -sum_c w_c (PL_c - PL_j) - nu (L_j - L_i) ]_y   and
      n = |sum_c w_c (F_c - F_j)|^2 = sum_ab w_a w_b (K_ab - K_aj - K_jb + K_jj);
  n = 0 with a positive numerator means that the pair is infeasible. The point w = e_i, nu = 1 is
  always tried. A pair with max_y (L_j - L_i)_y < eps is infeasible.
* A label that is a mixture of others (`excluded`), one of them earlier, loses every tie and is
  never predicted. All others take part in the lower end. The two labels of the upper end must be
  predictable: `wins` has parameters under which they win.
Numbers are integers, floats (dyadic rationals) or strings "p/q", all exact. There is no tolerance.
"""

from __future__ import annotations

import json
import math
import re
import sys
from fractions import Fraction
from typing import Any

Points = dict[tuple[int, int], list[tuple[dict[int, Fraction], Fraction]]]
RATIONAL = r"-?(0x[0-9a-f]+|[0-9]+)(/(0x[0-9a-f]+|[0-9]+))?"


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


def matrix(rows: Any, n_rows: int, name: str) -> list[list[Fraction]]:
    """Rows of exact numbers."""
    if not isinstance(rows, (list, tuple)) or len(rows) != n_rows or not rows or not rows[0]:
        raise Refused(f"{name} must be a list of {n_rows} rows")
    return [vector(row, len(rows[0]), name) for row in rows]


def integers(rows: list[list[Fraction]]) -> tuple[list[list[int]], int]:
    """Rows of rationals as integers over one common denominator."""
    common = math.lcm(*{x.denominator for row in rows for x in row})
    return [[x.numerator * (common // x.denominator) for x in row] for row in rows], common


def product(A: Any, B: Any) -> list[list[Fraction]]:
    """A B', exactly; summed as integers, which is much faster."""
    (left, d), (right, e) = integers(A), integers(B)
    return [[Fraction(sum(x * y for x, y in zip(a, b)), d * e) for b in right] for a in left]


def solve(A: list[list[int]], B: list[tuple[int, ...]]) -> list[list[Fraction]]:
    """X with A X = B, both of integers and B in the range of A; superfluous unknowns are zero."""
    n, m = len(A), len(B[0])
    T = [list(A[row]) + list(B[row]) for row in range(n)]
    pivots: list[int] = []
    last, top = 1, 0
    for column in range(n):
        row = next((r for r in range(top, n) if T[r][column]), None)
        if row is None:
            continue
        T[top], T[row] = T[row], T[top]
        head = T[top]
        p = head[column]
        for r in range(n):
            if r != top:
                q, body = T[r][column], T[r]
                T[r] = [(p * x - q * y) // last for x, y in zip(body, head)]
        pivots.append(column)
        last, top = p, top + 1
    X = [[Fraction(0)] * m for _ in range(n)]
    for r, column in enumerate(pivots):
        X[column] = [Fraction(x, last) for x in T[r][n:]]
    return X


class Problem:
    """L = loss/unit, PL = projected/unit, K = kernel/scale; mu is uniform by default."""

    def __init__(self, loss: Any, scores: Any = None, measure: Any = None) -> None:
        L = matrix(loss, len(loss), "loss")
        self.k, self.m = len(L), len(L[0])
        mu = [Fraction(1, self.k)] * self.k
        if measure is not None:
            mu = vector(measure, self.k, "measure")
            if any(weight <= 0 for weight in mu):
                raise Refused("the measure must be positive")
        self.mu, self.full = mu, scores is None
        self.scores: list[list[Fraction]] = []
        if scores is None:  # one score per label: K = diag(1/mu), PL = L
            self.loss, self.unit = integers(L)
            self.projected = self.loss
            inverse, self.scale = integers([[1 / weight for weight in mu]])
            self.inverse = inverse[0]
            return
        F = self.scores = matrix(scores, self.k, "scores")
        rows, unit = integers(F)
        weights, total = integers([mu])
        columns = list(zip(*rows))
        weighted = [[w * x for w, x in zip(weights[0], column)] for column in columns]
        gram = integers(product(weighted, columns))[0]
        # gram = unit^2 total F'MF and the right-hand side unit F': X = (F'MF)^+ F' / (unit total)
        X, self.scale = integers(solve(gram, columns))
        self.kernel = integers(product(rows, [[total * x for x in row] for row in zip(*X)]))[0]
        self.dual = [[Fraction(x * unit * total, self.scale) for x in row] for row in X]
        PL = product(self.kernel, [[m * x for m, x in zip(mu, column)] for column in zip(*L)])
        PL = [[x / self.scale for x in row] for row in PL]
        both, self.unit = integers(L + PL)
        self.loss, self.projected = both[: self.k], both[self.k :]

    def distance(self, a: int, b: int, j: int) -> int:
        """<F_a - F_j, F_b - F_j> times `scale`; a and b other than j."""
        if self.full:
            return self.inverse[j] + (self.inverse[a] if a == b else 0)
        K = self.kernel
        return K[a][b] - K[a][j] - K[j][b] + K[j][j]

    def gap(self, i: int, j: int) -> list[int]:
        """L_j - L_i, times `unit`."""
        return [b - a for a, b in zip(self.loss[i], self.loss[j])]


def bound(
    problem: Problem, i: int, j: int, w: dict[int, Fraction], nu: Fraction, eps: Fraction
) -> Fraction | None:
    """The lower bound on H_ij(eps) of the dual point w >= 0, nu >= 0; None stands for infinity."""
    labels = [c for c, weight in w.items() if weight and c != j]
    slope, *weights = integers([[nu, *(w[c] for c in labels)]])[0][0]
    if problem.full and labels == [i] and weights[0] == slope:
        least = 0  # Theorem 7
    else:
        PL, total = problem.projected, [-slope * g for g in problem.gap(i, j)]
        for c, weight in zip(labels, weights):
            total = [t - weight * (p - q) for t, p, q in zip(total, PL[c], PL[j])]
        least = min(total)
    height = slope * eps.numerator * problem.unit + eps.denominator * least
    if height <= 0:
        return Fraction(0)
    if problem.full:
        sums = sum(weights)
        norm = sums * sums * problem.inverse[j]
        norm += sum(x * x * problem.inverse[c] for c, x in zip(labels, weights))
    else:
        norm = sum(
            x * y * problem.distance(a, b, j)
            for a, x in zip(labels, weights)
            for b, y in zip(labels, weights)
        )
    if norm == 0:
        return None
    return Fraction(height**2 * problem.scale, 2 * norm * (eps.denominator * problem.unit) ** 2)


def check_lower(
    problem: Problem, eps: Fraction, lower: Fraction, points: Points, todo: Any
) -> None:
    """Every pair of `todo` is infeasible or bounded by `lower`."""
    for i, j in todo:
        if lower <= 0 or max(problem.gap(i, j)) * eps.denominator < eps.numerator * problem.unit:
            continue
        best = Fraction(0)
        for w, nu in [({i: Fraction(1)}, Fraction(1)), *points.get((i, j), [])]:
            found = bound(problem, i, j, w, nu, eps)
            best = lower if found is None else max(best, found)
            if best >= lower:
                break
        else:
            raise Refused(f"pair ({i}, {j}) is bounded below by {float(best)!r} only")


def check_upper(problem: Problem, document: dict[str, Any], eps: Fraction, upper: Fraction) -> None:
    """The point of the certificate is feasible and its value is at most `upper`."""
    i, j = pair_of(document["pair"], problem.k)
    q = vector(document["distribution"], problem.m, "distribution")
    if any(x < 0 for x in q) or sum(q) <= 0:
        raise Refused("distribution has negative weights or only zeros")
    unit, support = problem.unit * sum(q), [(y, x) for y, x in enumerate(q) if x]
    expected = [sum(x * row[y] for y, x in support) / unit for row in problem.loss]
    if expected[j] - expected[i] < eps:
        raise Refused(f"label {j} is not worse than {i} by eps under this distribution")
    if problem.full:  # f_j = level, f_c = min(-expected loss, level)
        level = number(document["level"], "level")
        short = [(m, x + level) for m, x in zip(problem.mu, expected)]
        value = sum(m * x * x for c, (m, x) in enumerate(short) if c == j or x < 0) / 2
    else:
        width = len(problem.scores[0])
        for label in (i, j):
            theta = vector(document["wins"][str(label)], width, "wins")
            f = product([theta], problem.scores)[0]
            if any(f[c] >= f[label] for c in range(label)) or max(f) > f[label]:
                raise Refused(f"label {label} is not shown to be predictable")
        f = product([vector(document["theta"], width, "theta")], problem.scores)[0]
        if max(f) > f[j]:
            raise Refused(f"label {j} does not win under the scores")
        z = [m * (a + b) for m, a, b in zip(problem.mu, f, expected)]
        value = product([z], product([z], problem.kernel))[0][0] / (2 * problem.scale)
    if value > upper:
        raise Refused(f"the point has the value {float(value)!r}, above the upper end")


def check_excluded(F: list[list[Fraction]], label: int, mixture: dict[str, Any]) -> None:
    """The label is a mixture of others, one of them earlier."""
    parts = [(int(c), number(x, "mixture")) for c, x in mixture.items()]
    good = all(x >= 0 and 0 <= c < len(F) for c, x in parts) and sum(x for _, x in parts) == 1
    good = good and any(c < label and x > 0 for c, x in parts)
    if not good or [sum(x * F[c][a] for c, x in parts) for a in range(len(F[0]))] != F[label]:
        raise Refused(f"label {label} is not shown to lose every tie")


def pair_of(pair: Any, k: int) -> tuple[int, int]:
    """Two labels."""
    i, j = pair
    if not (type(i) is int and type(j) is int and 0 <= i < k and 0 <= j < k and i != j):
        raise Refused(f"({i}, {j}) is not a pair of labels")
    return i, j


def read_points(document: dict[str, Any], k: int) -> Points:
    """The dual points by pair."""
    points: Points = {}
    for entry in document["points"]:
        w = {int(c): number(x, "w") for c, x in entry["w"].items()}
        nu = number(entry["nu"], "nu")
        if nu < 0 or any(x < 0 or not 0 <= c < k for c, x in w.items()):
            raise Refused("a multiplier is negative, or of a label that does not exist")
        points.setdefault(pair_of(entry["pair"], k), []).append((w, nu))
    return points


def verify(document: dict[str, Any], screen: Any = None) -> None:
    """Raise Refused unless the document proves its claim; `screen` may decide pairs beforehand."""
    if document["kind"] != "listed":
        raise Refused("its kind is not 'listed'")
    problem = Problem(document["loss"], document.get("scores"), document.get("measure"))
    eps = number(document["eps"], "eps")
    lower, upper = number(document["lower"], "lower"), number(document["upper"], "upper")
    if eps <= 0:
        raise Refused("eps must be positive")
    points = read_points(document, problem.k)
    excluded = {int(c): mixture for c, mixture in document.get("excluded", {}).items()}
    if excluded and problem.full:
        raise Refused("with full scores every label is predictable")
    for label, mixture in excluded.items():
        check_excluded(problem.scores, label, mixture)
    check_upper(problem, document, eps, upper)
    rows = [c for c in range(problem.k) if c not in excluded]
    proved = screen(problem, eps, lower, points, rows) if screen else ()
    todo = [(i, j) for i in rows for j in rows if i != j and (i, j) not in proved]
    check_lower(problem, eps, lower, points, todo)


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
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as reason:
        print(f"refused: {reason}")
        return 1
    print("proved")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else print(__doc__) or 2)
