"""How a broken contract is reported, and comparisons that say by how much."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ensure",
    "ensure_close",
    "ensure_raises",
    "ensure_same_shape",
    "read_only",
    "reports_errors",
]

RELATIVE_TOLERANCE = 1e-8

Subject = TypeVar("Subject")
Arguments = ParamSpec("Arguments")


def ensure(condition: bool, subject: object, contract: str, found: str = "") -> None:
    """Raise AssertionError unless `condition` holds; works under ``python -O`` too."""
    if not condition:
        raise AssertionError(
            f"{subject!r} breaks a contract: {contract}" + (f"; {found}" * bool(found))
        )


def ensure_close(
    actual: ArrayLike,
    expected: ArrayLike,
    subject: object,
    contract: str,
    *,
    tolerance: float = RELATIVE_TOLERANCE,
) -> None:
    """Shapes are equal and entries differ by at most `tolerance` times the largest magnitude."""
    one, other = np.asarray(actual), np.asarray(expected)
    ensure_same_shape(one, other.shape, subject, contract)
    if one.size == 0:
        return
    scale = max(1.0, float(np.abs(other).max()))
    error = float(np.abs(one - other).max())
    ensure(error <= tolerance * scale, subject, contract, f"off by {error:.3g}")


def ensure_same_shape(
    array: NDArray[Any], shape: tuple[int, ...], subject: object, contract: str
) -> None:
    """The array has exactly this shape."""
    ensure(array.shape == shape, subject, contract, f"shape {array.shape}, not {shape}")


def ensure_raises(
    error: type[Exception] | tuple[type[Exception], ...],
    action: Callable[[], object],
    subject: object,
    contract: str,
) -> None:
    """`action` raises `error` with a message; anything else breaks the contract."""
    try:
        action()
    except error as raised:
        ensure(len(str(raised)) > 10, subject, contract, f"the message states nothing: {raised!s}")
    except Exception as raised:
        ensure(False, subject, contract, f"raised {type(raised).__name__}: {raised}")
    else:
        ensure(False, subject, contract, "nothing was raised")


def reports_errors(
    check: Callable[Concatenate[Subject, Arguments], None],
) -> Callable[Concatenate[Subject, Arguments], None]:
    """Turn an unexpected error inside a check into a broken contract of what is checked."""

    @wraps(check)
    def reporting(
        subject: Subject, /, *arguments: Arguments.args, **options: Arguments.kwargs
    ) -> None:
        try:
            check(subject, *arguments, **options)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(
                f"{subject!r} breaks a contract: every product runs on valid input; "
                f"{type(error).__name__}: {error}"
            ) from error

    return reporting


def read_only(values: ArrayLike, dtype: Any = None) -> NDArray[Any]:
    """A copy that cannot be written to."""
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array
