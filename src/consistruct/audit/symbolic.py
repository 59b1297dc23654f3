"""SymPy, imported late: it is an extra."""

from __future__ import annotations

from typing import Any

from consistruct.exceptions import ConsistructError

__all__ = ["residual", "sympy"]


def sympy() -> Any:
    """The module, or one line on how to get it."""
    try:
        import sympy as module
    except ImportError:
        raise ConsistructError(
            "the audit needs SymPy; install it with pip install consistruct[audit]"
        ) from None
    return module


def residual(*expressions: Any) -> float:
    """How many of the expressions are not identically zero."""
    sp = sympy()
    return float(sum(sp.simplify(sp.expand(one)) != 0 for one in expressions))
