"""One place that knows Numba: compiled loops, cached on disk, free of the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile `function` on first call; no fastmath, so that reductions are reproducible."""
    return cast(Function, numba.njit(cache=True, nogil=True)(function))
