"""Numbers of any size: in a few characters for readers, and in JSON, which holds no infinities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from consistruct._fields import Form, finite, form

__all__ = [
    "Count",
    "LogOrZero",
    "OrInfinite",
    "Texts",
    "count_text",
    "dump_log",
    "dump_magnitude",
    "load_log",
    "load_magnitude",
    "log_text",
    "null_as",
]

LARGEST = 308.2  # 10^308.2 is still a float


# --- for readers ---


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


# --- in JSON, see consistruct._fields ---


def dump_log(name: str, log: float | None) -> dict[str, float | None]:
    """A quantity given by its logarithm, as value and logarithm.

    >>> dump_log("bound", 0.0), dump_log("bound", None)
    ({'bound': 1.0, 'bound_log': 0.0}, {'bound': None, 'bound_log': None})
    """
    value = None if log is None or log > 709 else math.exp(log)
    return {name: value, f"{name}_log": log}


def load_log(data: Mapping[str, Any], name: str) -> float | None:
    """The inverse of `dump_log`, for quantities that are finite or not known; null beside 0: −inf.

    >>> load_log({"bound": 0.0, "bound_log": None}, "bound")
    -inf
    """
    value, log = data[name], data[f"{name}_log"]
    if log is not None:
        return float(log)
    return None if value is None else -math.inf


def dump_magnitude(name: str, log10: float | None) -> dict[str, float | None]:
    """A count given by log₁₀: 0 for −inf; null beside a logarithm if too large, beside null: inf.

    >>> dump_magnitude("n", 3.0), dump_magnitude("n", 1000.0)
    ({'n': 1000.0, 'n_log10': 3.0}, {'n': None, 'n_log10': 1000.0})
    """
    value = None if log10 is None or log10 > LARGEST else 10.0**log10
    return {name: value, f"{name}_log10": log10}


def load_magnitude(data: Mapping[str, Any], name: str) -> float:
    """The inverse of `dump_magnitude`."""
    value, log10 = data[name], data[f"{name}_log10"]
    if log10 is not None:
        return float(log10)
    return math.inf if value is None else -math.inf


def null_as(infinity: float, name: str = "") -> Form:
    """A number whose null stands for this infinity."""
    return form(finite, lambda data: infinity if data is None else data, name)


Count = Annotated[int, form(str, int)]  # of any size: a decimal string
OrInfinite = Annotated[float, null_as(math.inf)]
LogOrZero = Annotated[float, null_as(-math.inf)]  # log 0
Texts = Annotated[tuple[tuple[str, str], ...], form(dict, lambda data: tuple(data.items()))]
