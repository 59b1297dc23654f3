"""Numbers as logarithms: 1/k over 2^1000 labels and N* of both signs of magnitude stay finite."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["exp", "log_fraction", "log_sum"]

OVERFLOW = 709.0  # e^709 is the last power below the largest float


def exp(log: float) -> float:
    """e^log, +inf where that is above all floats.

    >>> exp(0.0), exp(1e6), exp(-math.inf)
    (1.0, inf, 0.0)
    """
    return math.exp(log) if log <= OVERFLOW else math.inf


def log_fraction(value: Fraction) -> float:
    """log of an exact ratio of integers of any size; −inf at 0."""
    if value == 0:
        return -math.inf
    return math.log(value.numerator) - math.log(value.denominator)


def log_sum(one: float, other: float) -> float:
    """log(e^one + e^other)."""
    high, low = max(one, other), min(one, other)
    if math.isinf(high):
        return high
    return high + math.log1p(math.exp(low - high))
