"""Numbers of any size in a few characters, from their logarithms."""

from __future__ import annotations

import math

__all__ = ["count_text", "log_text"]


def count_text(log: float) -> str:
    """A count, rounded to three digits.

    >>> count_text(math.log(2000)), count_text(math.log(123456)), count_text(1000 * math.log(2))
    ('2,000', '123,000', 'about 10^301')
    >>> count_text(-math.inf), count_text(math.log(2.5))
    ('0', '2.5')
    """
    if log == -math.inf:
        return "0"
    log10 = log / math.log(10)
    if log10 >= 12:
        return f"about 10^{log10:.0f}" if log10 >= 100 else f"about 10^{log10:.1f}"
    value = float(f"{math.exp(log):.3g}")
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def log_text(log: float) -> str:
    """A positive number by its logarithm.

    >>> log_text(math.log(0.00125)), log_text(-2000.0), log_text(-math.inf)
    ('0.00125', '10^-868.6', '0')
    """
    if log == -math.inf:
        return "0"
    if log > -600:
        return f"{math.exp(log):.4g}"
    return f"10^{log / math.log(10):.1f}"
