"""H of the logistic, square and linear-regret surrogates for two labels, by one number."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import mpmath

from tests.calibration.rational import calibration_value

__all__ = ["bregman_value", "ties_value"]

DIGITS = 60


def _gap(L, i, j):
    return [a - b for a, b in zip(L[j], L[i], strict=True)]


@cache
def ties_value(kappa, L, eps):
    """Two labels: the excess is δ²/4κ + δ/2 with δ = (L_j − L_i)q, at least ε; None for +∞.

    j alone costs δ²/4κ + δ, both tied δ²/4κ + δ/2.
    """
    assert len(L) == 2
    gaps = [_gap(L, i, 1 - i) for i in (0, 1)]
    steps = [max(eps, min(gap)) for gap in gaps if max(gap) >= eps]
    return min((d**2 / (4 * kappa) + d / 2 for d in steps), default=None)


@cache
def bregman_value(surrogate, largest, L, eps):
    """k·H(ε): the quadratic one by the rational solver, the logistic for two labels."""
    if surrogate == "square":
        k = len(L)
        value = calibration_value([list(row) for row in L], None, [Fraction(1, k)] * k, eps)
        return None if value is None else k * value
    assert len(L) == len(L[0]) == 2
    values = [_logistic(largest, L, i, 1 - i, eps) for i in (0, 1)]
    return min((x for x in values if x is not None), default=None)


def _logistic(largest, L, i, j, eps):
    """min over x of both divergences from the mean, q = (x, 1 − x): convex in x."""
    gap = _gap(L, i, j)
    if max(gap) < eps:
        return None
    # x·gap_0 + (1 − x)·gap_1 ≥ ε
    low, high = Fraction(0), Fraction(1)
    if gap[0] != gap[1]:
        edge = (eps - gap[1]) / (gap[0] - gap[1])
        low, high = (max(low, edge), high) if gap[0] > gap[1] else (low, min(high, edge))
    with mpmath.workdps(DIGITS):

        def excess(x):
            p = [
                (mpmath.mpf(a.numerator) / a.denominator * x)
                + mpmath.mpf(b.numerator) / b.denominator * (1 - x)
                for a, b in ((row[0] / largest, row[1] / largest) for row in (L[i], L[j]))
            ]
            t = sum(p) / 2
            return sum(_term(a, t) + _term(1 - a, 1 - t) for a in p)

        a, b = (mpmath.mpf(x.numerator) / x.denominator for x in (low, high))
        found = min(excess(a), excess(b))
        for _ in range(200):
            third = (b - a) / 3
            first, second = excess(a + third), excess(b - third)
            found = min(found, first, second)
            a, b = (a + third, b) if first > second else (a, b - third)
        return Fraction(int(mpmath.floor(found * mpmath.mpf(2) ** 190)), 2**190)


def _term(p, s):
    return p * mpmath.log(p / s) if p > 0 else mpmath.mpf(0)
