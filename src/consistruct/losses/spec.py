"""Fields of loss specs such as ``hamming:10x26``: one clear line when a field is wrong."""

from __future__ import annotations

import re

from consistruct.exceptions import LossSpecError

__all__ = ["at_most", "count_field", "number_field"]


def at_most(name: str, arguments: tuple[str, ...], n: int, example: str) -> None:
    """Refuse more fields than the loss has."""
    if len(arguments) > n:
        raise LossSpecError(
            f"the spec of {name} takes at most {n} field(s), got {len(arguments)}; "
            f"write for example {example}"
        )


def count_field(
    name: str, arguments: tuple[str, ...], position: int, inferred: int | None, what: str
) -> int:
    """A positive integer from the spec, or the value inferred from data."""
    if len(arguments) > position and arguments[position]:
        text = arguments[position]
        if not re.fullmatch(r"[0-9]+", text) or int(text) == 0:
            raise LossSpecError(
                f"{what} in the spec of {name} must be a positive integer, got {text!r}"
            )
        return int(text)
    if inferred is None:
        raise LossSpecError(f"the spec of {name} lacks the {what}; write for example {name}:5")
    return inferred


def number_field(name: str, arguments: tuple[str, ...], position: int, what: str) -> float:
    """A required number."""
    text = arguments[position] if len(arguments) > position else ""
    try:
        return float(text)
    except ValueError:
        raise LossSpecError(
            f"{what} in the spec of {name} must be a number, got {text!r}"
        ) from None
