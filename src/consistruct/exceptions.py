"""Errors of the package: each states what was given, what is allowed and what to do.

All of them are `ValueError`s (or `TypeError`s where Python expects one), so that a caller who
knows only the standard exceptions catches them too.
"""

from __future__ import annotations

from typing import Any

from consistruct._members import describe_count

__all__ = [
    "CapabilityError",
    "CertificateError",
    "ConsistructError",
    "DataFileError",
    "FamilyError",
    "LossSpecError",
    "ModelFileError",
    "NotInSpanError",
    "RiskLevelError",
    "TooManyLabelsError",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class ConsistructError(ValueError):
    """Base of all errors that this package raises on purpose."""

    # BaseException rebuilds itself from its message; the errors below have other arguments, and
    # an error that cannot be unpickled hangs a pool of worker processes.
    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_error, (type(self), self.args, self.__dict__)


class TooManyLabelsError(ConsistructError):
    """A dense or enumerated object was requested over too many labels.

    Parameters
    ----------
    size : int or None
        Number of labels that would have to be listed; ``None`` for an infinite set.
    limit : int
        Largest number that is allowed.
    what : str
        What was requested, as the subject of the sentence.
    instead : str
        The structured alternative, as an instruction.
    """

    def __init__(self, size: int | None, limit: int, what: str, instead: str) -> None:
        self.size = size
        self.limit = limit
        super().__init__(
            f"{what} needs {describe_count(size)} labels, more than the limit of {limit}; {instead}"
        )


class FamilyError(ConsistructError):
    """A family (size ``None``) was used where one member of fixed size is needed."""

    def __init__(self, family: object, action: str) -> None:
        super().__init__(
            f"{family!r} is a family of sizes and cannot {action}; "
            f"choose a member with .at(size), for example .at(10)"
        )


class NotInSpanError(ConsistructError):
    """Scores of one space cannot be written as scores of another."""


class RiskLevelError(ConsistructError):
    """A level of risk cannot be guaranteed: too few rows, or no prediction is safe enough."""


class CapabilityError(ConsistructError, TypeError):
    """An object lacks an optional capability that the caller needs."""

    def __init__(self, owner: object, capability: str, need: str, instead: str) -> None:
        self.capability, self.instead = capability, instead
        super().__init__(
            f"{need} needs the capability '{capability}', which {owner!r} does not have; {instead}"
        )


class CertificateError(ConsistructError):
    """A certificate does not prove what it claims."""


class LossSpecError(ConsistructError):
    """A loss specification such as ``hamming:10x26`` could not be read."""


class DataFileError(ConsistructError):
    """A data file could not be read; the message names the file and, where it has one, the line."""


class ModelFileError(ConsistructError):
    """A saved model could not be written or read back: unknown type or version, damage."""


def _rebuild_error(
    cls: type[ConsistructError], arguments: tuple[Any, ...], state: dict[str, Any]
) -> ConsistructError:
    error = cls.__new__(cls)
    error.args = arguments
    error.__dict__.update(state)
    return error
