"""Fields of loss specs such as ``hamming:10x26``: one clear line when a field is wrong."""

from __future__ import annotations

import re

from consistruct.exceptions import LossSpecError

__all__ = ["at_most", "count_field", "number_field", "sizes_field"]


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


def sizes_field(name: str, text: str) -> tuple[int, ...]:
    """Block sizes: ``3,5,2`` or ``4x25`` for four blocks of 25.

    >>> sizes_field("block", "4x2"), sizes_field("block", "3,5")
    ((2, 2, 2, 2), (3, 5))
    """
    if re.fullmatch(r"[0-9]+x[0-9]+", text):
        n_blocks, size = (int(part) for part in text.split("x"))
        sizes = (size,) * n_blocks
    elif re.fullmatch(r"[0-9]+(,[0-9]+)*", text):
        sizes = tuple(int(part) for part in text.split(","))
    else:
        sizes = ()
    if not sizes or min(sizes) == 0:
        raise LossSpecError(
            f"block sizes in the spec of {name} must be written as 3,5,2 or as 4x25 "
            f"(four blocks of 25), got {text!r}"
        )
    return sizes
