"""From rationals to floats, outward."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["down", "log_down", "log_up", "up"]

LOG_ERROR = 8 * 2.0**-52  # of math.log of an integer ratio, relative to |log| + 1


def down(x: Fraction) -> float:
    """The largest float that is at most x ≥ 0 or so: one comparison after rounding to nearest."""
    try:
        found = float(x)
    except OverflowError:
        return math.copysign(math.nextafter(math.inf, 0.0), 1) if x > 0 else -math.inf
    return found if found <= x else math.nextafter(found, -math.inf)


def up(x: Fraction) -> float:
    """The smallest float that is at least x."""
    try:
        found = float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.nextafter(math.inf, 0.0)
    return found if found >= x else math.nextafter(found, math.inf)


def _log(x: Fraction) -> float:
    """log x for x > 0 of any size."""
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    mantissa = x / Fraction(2) ** shift
    return math.log(float(mantissa)) + shift * math.log(2.0)


def log_down(x: Fraction) -> float:
    """A float below log x; −inf at 0."""
    if x <= 0:
        return -math.inf
    value = _log(x)
    return value - LOG_ERROR * (abs(value) + 1)


def log_up(x: Fraction) -> float:
    """A float above log x; −inf at 0."""
    if x <= 0:
        return -math.inf
    value = _log(x)
    return value + LOG_ERROR * (abs(value) + 1)
