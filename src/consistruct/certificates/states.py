"""Check a claim about the Hamming loss with chain scores, any number of states.

The loss of T parts with s states each is the share of wrong parts;
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

import math
from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import Refused, integers
from consistruct.certificates.statement import Statement, parts_statement
from consistruct.certificates.theorem7 import verify_by_theorem7


class ChainScores:
    """Score one number per part and state, and per pair of states of neighboring parts.

    The parameters are T s entries of parts, then (T-1) s^2 of neighbors.
    """

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
        """Return scores of parts (T, s) and neighbors (T-1, s, s) as integers, and their unit."""
        T, s = self.T, self.s
        whole, unit = integers(theta)
        parts = [whole[t * s : t * s + s] for t in range(T)]
        rows = [whole[n : n + s] for n in range(T * s, self.width, s)]
        return parts, [rows[t * s : t * s + s] for t in range(T - 1)], unit

    def largest(self, theta: list[Fraction]) -> Fraction:
        parts, edges, unit = self.split(theta)
        # Viterbi's recursion over integers: best[b] is the best score of a start that ends in b
        best = parts[0]
        for part, edge in zip(parts[1:], edges):
            best = [
                part[b] + max(best[a] + edge[a][b] for a in range(self.s)) for b in range(self.s)
            ]
        return Fraction(max(best), unit)

    def mean_square(self, theta: list[Fraction]) -> Fraction:
        """Return E f^2 by a recursion on sums of f and f^2 over all starts that end in a state.

        Sums instead of means keep everything an integer.
        """
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
        """Return the largest squared distance of two labels that differ in at least eps T parts.

        |F_i - F_j|^2 = 2 (rank - K), and the least K depends only on which parts agree: a dynamic
        program over (does this part differ, how many differ so far).
        """
        T, s = self.T, self.s
        needed = math.ceil(eps * T)
        if needed > T:
            raise Refused("no two labels differ by eps")
        levels = {0: s - 1, 1: -1}  # agree, differ
        # more than `needed` differing parts are counted as `needed`: the count need not be exact
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


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    words = "one free score per part and state, and per pair of neighboring states"
    return parts_statement(document["T"], document["n_states"], "chain", words)


space_of = ChainScores  # the scores of a document


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    verify_by_theorem7(document, ChainScores(document))
