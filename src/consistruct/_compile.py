"""One place that knows Numba: compiled loops, cached on disk, free of the interpreter lock.

Numba takes a quarter of a second to import, longer than most calls. It is imported when the first
loop runs, not when it is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, update_wrapper
from pathlib import Path
from threading import RLock
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

__all__ = ["cache_folder", "compiled"]

Function = TypeVar("Function", bound=Callable[..., Any])
_lock = RLock()


class _CompiledLater:
    """A function that becomes a Numba dispatcher when it is first called."""

    def __init__(self, function: FunctionType) -> None:
        update_wrapper(self, function)
        self._function = function
        self._dispatcher: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        found = self._dispatcher
        return (self.dispatcher() if found is None else found)(*arguments)

    def dispatcher(self) -> Callable[..., Any]:
        """The function under Numba, and so every other one that its code names."""
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = _njit(self._function)
                names = self._function.__globals__
                for name in _names(self._function.__code__):
                    if isinstance(names.get(name), _CompiledLater):
                        names[name] = names[name].dispatcher()  # Numba looks callees up by name
        return self._dispatcher


def _njit(function: FunctionType) -> Callable[..., Any]:
    """Under Numba, kept on disk wherever it finds a folder that can be written."""
    import numba

    found: Any = numba.njit(nogil=True)(function)
    # without a folder, as in a read-only installation without a home, it is compiled every time
    with suppress(RuntimeError):
        found._cache = _cache_type()(function)
    return cast(Callable[..., Any], found)


@cache
def _cache_type() -> Callable[[FunctionType], Any]:
    """Numba's cache, but what it cannot read or write is compiled again.

    A crash or a full disk can leave truncated files, which Numba itself unpickles or fails.
    """
    from numba.core import caching

    base: Any = caching.FunctionCache

    class Cache(base):  # type: ignore[misc]  # Numba is untyped
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # whatever unpickling raises
                with suppress(OSError):
                    self.flush()  # an empty index: the next process need not try either
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            with suppress(Exception):
                super().save_overload(sig, data)

    return cast(Callable[[FunctionType], Any], Cache)


def cache_folder(function: Callable[..., Any]) -> Path | None:
    """Where Numba keeps what it made of a compiled function; None if it is kept nowhere."""
    dispatcher = function.dispatcher() if isinstance(function, _CompiledLater) else function
    kept: str | None = dispatcher.stats.cache_path  # type: ignore[attr-defined]
    return None if kept is None else Path(kept)


def _names(code: CodeType) -> Iterator[str]:
    """Global names that the code uses, comprehensions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def compiled(function: Function) -> Function:
    """Compile `function` on first call; no fastmath, so that reductions are reproducible."""
    return cast(Function, _CompiledLater(cast(FunctionType, function)))
