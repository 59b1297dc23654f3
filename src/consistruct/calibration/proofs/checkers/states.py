#!/usr/bin/env python3
"""Check a certificate for the Hamming loss with chain scores, any number of states. Exact.

    python states.py certificate.json          # exit code 0: proved, 1: refused, 2: unreadable

Python's standard library alone. The loss of T parts with s states each is the share of wrong parts;
scores are one-hot parts (T s) and one-hot neighbors ((T-1) s^2). The claim is lower <= H(eps) <=
upper, H the calibration function (see listed.py) of the quadratic surrogate under the uniform
measure. Write F_c for the scores of a label; the loss is 1 + <F_c, u_y>, u_y = -(parts of y)/T.

Upper end: any distribution q of true labels and parameters theta with <F_j - F_i, Uq> >= eps and
<F_j, theta> the largest of all labels prove H(eps) <= 1/2 E <F_c, theta + Uq>^2. The largest score
is Viterbi's, the mean square comes from the same recursion on means and mean squares.

Lower end: H_ij(eps) >= eps^2 / 2 D_ij (Theorem 7) with D_ij = 2 (rank - K), rank = 1 + T (s-1) +
(T-1)(s-1)^2 and K = 1 + sum x_t + sum x_t x_{t+1}, x_t = s-1 where i and j agree and -1 where they
differ. A pair that differs by eps differs in at least eps T parts; the least K of those is found by
dynamic programming. For two states and up to 1,000 parts chain.py proves more.
"""

from __future__ import annotations

import json
import math
import re
import sys
from fractions import Fraction
from typing import Any

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


def dot(a: Any, b: Any) -> Fraction:
    """Sum of products."""
    return sum((x * y for x, y in zip(a, b) if x and y), Fraction(0))


class Chain:
    """T parts, s states."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.T, self.s = document["T"], document["n_states"]
        if type(self.T) is not int or type(self.s) is not int or self.T < 2 or self.s < 2:
            raise Refused("T and n_states must be integers of at least 2")
        self.width = self.T * self.s + (self.T - 1) * self.s**2

    def states(self, label: Any) -> list[int]:
        good = isinstance(label, (list, tuple)) and len(label) == self.T
        if not good or any(type(x) is not int or not 0 <= x < self.s for x in label):
            raise Refused(f"{label!r} is not a label")
        return list(label)

    def features(self, label: Any) -> list[Fraction]:
        T, s, states = self.T, self.s, self.states(label)
        row = [Fraction(0)] * self.width
        for t, state in enumerate(states):
            row[t * s + state] = Fraction(1)
            if t + 1 < T:
                row[T * s + (t * s + state) * s + states[t + 1]] = Fraction(1)
        return row

    def target(self, true_label: Any) -> list[Fraction]:
        row = [Fraction(0)] * self.width
        for t, state in enumerate(self.states(true_label)):
            row[t * self.s + state] = Fraction(-1, self.T)
        return row

    def split(self, theta: list[Fraction]) -> tuple[list[list[int]], Any, int]:
        """Scores of parts and of neighbors as integers over one denominator."""
        T, s, unit = self.T, self.s, math.lcm(*(x.denominator for x in theta))
        whole = [x.numerator * (unit // x.denominator) for x in theta]
        parts = [whole[t * s : t * s + s] for t in range(T)]
        rows = [whole[n : n + s] for n in range(T * s, self.width, s)]
        return parts, [rows[t * s : t * s + s] for t in range(T - 1)], unit

    def largest(self, theta: list[Fraction]) -> Fraction:
        parts, edges, unit = self.split(theta)
        best = parts[0]
        for part, edge in zip(parts[1:], edges):
            best = [
                part[b] + max(best[a] + edge[a][b] for a in range(self.s)) for b in range(self.s)
            ]
        return Fraction(max(best), unit)

    def mean_square(self, theta: list[Fraction]) -> Fraction:
        """E f^2 from E[f of the first parts | state] and its square, times powers of s."""
        parts, edges, unit = self.split(theta)
        states = range(self.s)
        first, second = parts[0], [x * x for x in parts[0]]
        power = 1
        for part, edge in zip(parts[1:], edges):
            step = [[part[b] + edge[a][b] for a in states] for b in states]
            second = [
                sum(second[a] + 2 * first[a] * step[b][a] + power * step[b][a] ** 2 for a in states)
                for b in states
            ]
            first = [sum(first[a] + power * step[b][a] for a in states) for b in states]
            power *= self.s
        return Fraction(sum(second), power * self.s * unit**2)

    def diameter(self, eps: Fraction) -> Fraction:
        """The largest squared distance of two labels that differ in at least eps T parts."""
        T, s = self.T, self.s
        needed = math.ceil(eps * T)
        if needed > T:
            raise Refused("no two labels differ by eps")
        levels = {0: s - 1, 1: -1}  # agree, differ
        least: dict[tuple[int, int], int] = {
            (now, min(now, needed)): x for now, x in levels.items()
        }
        for _ in range(T - 1):
            step: dict[tuple[int, int], int] = {}
            for (before, count), value in least.items():
                for now, x in levels.items():
                    key = now, min(count + now, needed)
                    found = value + x + levels[before] * x
                    step[key] = min(step.get(key, found), found)
            least = step
        kernel = 1 + min(value for (_, count), value in least.items() if count == needed)
        return Fraction(2 * (1 + T * (s - 1) + (T - 1) * (s - 1) ** 2 - kernel))


def expected(space: Any, true_labels: Any, distribution: Any) -> list[Fraction]:
    """Uq, the distribution divided by its sum."""
    q = vector(distribution, len(true_labels), "distribution")
    if any(x < 0 for x in q) or sum(q) <= 0:
        raise Refused("distribution has negative weights or only zeros")
    total = [Fraction(0)] * space.width
    for true_label, x in zip(true_labels, q):
        for column, u in enumerate(space.target(true_label)):
            if x and u:
                total[column] += x * u
    return [t / sum(q) for t in total]


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    if document["kind"] != "states":
        raise Refused("its kind is not 'states'")
    space = Chain(document)
    eps = number(document["eps"], "eps")
    lower, upper = number(document["lower"], "lower"), number(document["upper"], "upper")
    if eps <= 0:
        raise Refused("eps must be positive")
    bound = eps**2 / (2 * space.diameter(eps))
    if lower > bound:
        raise Refused(f"Theorem 7 gives {float(bound)!r} only")
    i, j = (space.features(label) for label in document["pair"])
    u = expected(space, document["true_labels"], document["distribution"])
    if dot(j, u) - dot(i, u) < eps:
        raise Refused("j is not worse than i by eps under this distribution")
    theta = vector(document["theta"], space.width, "theta")
    if dot(j, theta) < space.largest(theta):
        raise Refused("j does not win under the scores")
    value = space.mean_square([a + b for a, b in zip(theta, u)]) / 2
    if value > upper:
        raise Refused(f"the point has the value {float(value)!r}, above the upper end")


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
