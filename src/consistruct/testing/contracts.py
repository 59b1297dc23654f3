"""Report broken contracts: one subject, comparisons that say by how much they fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Contracts", "read_only", "reports_errors"]

# Share of the largest entry by which two computations of one quantity may differ. Closed forms and
# dense algebra over a few hundred labels agree to about 1e-12; a wrong formula is off by far more.
RELATIVE_TOLERANCE = 1e-8

Subject = TypeVar("Subject")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True)
class Contracts:
    """Hold one subject against its contracts; the first that is broken raises AssertionError.

    The message names the subject by its `repr`, which is the code that makes it, so that a failure
    can be pasted and run again. Nothing here is an ``assert``: the checks hold under ``python -O``.

    Parameters
    ----------
    subject : object
        What is checked: a loss, a structure, a set of labels, a metric, a model.

    Examples
    --------
    >>> from consistruct.losses import ZeroOne
    >>> Contracts(ZeroOne(3)).ensure(ZeroOne(3).n_labels == 4, "there are four labels")
    Traceback (most recent call last):
    AssertionError: ZeroOne(3) breaks a contract: there are four labels
    """

    subject: object

    def ensure(self, condition: bool | np.bool_, contract: str, found: str = "") -> None:
        """Raise unless `condition` holds; `found` says what was there instead."""
        if not condition:
            raise AssertionError(
                f"{self.subject!r} breaks a contract: {contract}" + (f"; {found}" * bool(found))
            )

    def close(
        self,
        actual: ArrayLike,
        expected: ArrayLike,
        contract: str,
        *,
        tolerance: float = RELATIVE_TOLERANCE,
    ) -> None:
        """Raise unless shapes are equal and max |actual − expected| ≤ tolerance·max(1, |expected|).

        Entries are not compared relative to themselves: an entry that is 0 in exact arithmetic is
        1e-17 after a sum that cancels, and no relative tolerance forgives that.
        """
        one, other = np.asarray(actual), np.asarray(expected)
        self.shape(one, other.shape, contract)
        if one.size == 0:
            return
        scale = max(1.0, float(np.abs(other).max()))
        error = float(np.abs(one - other).max())
        # NaN compares false, so that an estimate that is not a number breaks the contract
        self.ensure(error <= tolerance * scale, contract, f"off by {error:.3g}")

    def shape(self, array: NDArray[Any], shape: tuple[int, ...], contract: str) -> None:
        """Raise unless the array has exactly this shape; broadcasting would hide a lost axis."""
        self.ensure(array.shape == shape, contract, f"shape {array.shape}, not {shape}")

    def raises(
        self,
        error: type[Exception] | tuple[type[Exception], ...],
        action: Callable[[], object],
        contract: str,
    ) -> None:
        """Raise unless `action` raises `error` with a message that says something."""
        try:
            action()
        except error as raised:
            self.ensure(len(str(raised)) > 10, contract, f"the message states nothing: {raised!s}")
        except Exception as raised:
            self.ensure(False, contract, f"raised {type(raised).__name__}: {raised}")
        else:
            self.ensure(False, contract, "nothing was raised")


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
            # a crash deep in NumPy names neither the subject nor what was tried; this line does
            Contracts(subject).ensure(
                False, "every method runs on valid input", f"{type(error).__name__}: {error}"
            )

    return reporting


def read_only(values: ArrayLike, dtype: Any = None) -> NDArray[Any]:
    """Return a copy that cannot be written to, so that a check which writes to its input fails."""
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array
