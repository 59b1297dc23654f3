"""Read fields of loss specs such as ``hamming:10x26``: one clear line when a field is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from consistruct._budgets import SPECS
from consistruct._validation import read_number
from consistruct.exceptions import LossSpecError

__all__ = [
    "at_most",
    "check_most",
    "check_order",
    "check_spec",
    "count_field",
    "grades_field",
    "items_field",
    "naming",
    "number_field",
]

SHOWN = 24  # digits of a number that a message repeats


def check_spec(spec: str, what: str) -> None:
    """Refuse what is no string, or longer than any spec: it may come from a web form."""
    if not isinstance(spec, str):
        raise TypeError(f"a {what} spec must be a string, got {type(spec).__name__}")
    if len(spec) > SPECS.characters:
        raise LossSpecError(
            f"a {what} spec may have at most {SPECS.characters} characters, got {len(spec)}, "
            f"{spec[:40]!r}…"
        )


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Put the spec or the file in front of what a constructor says about its arguments."""
    try:
        yield
    except LossSpecError:
        raise  # names its source already
    except (TypeError, ValueError) as error:
        raise LossSpecError(f"{source}: {error}") from None


def at_most(name: str, arguments: tuple[str, ...], n: int, example: str) -> None:
    """Refuse more fields than the loss has."""
    if len(arguments) > n:
        raise LossSpecError(
            f"the spec of {name} takes at most {n} field(s), got {len(arguments)}; "
            f"write for example {example}"
        )


def check_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of classes in order: text, none empty, none twice.

    >>> check_order(["low", " mid", "high"])
    ('low', 'mid', 'high')
    """
    if isinstance(names, str):
        raise TypeError(f"names must be a sequence of names, got the string {names!r}")
    order = tuple(str(name).strip() for name in names)
    if not all(order) or len(set(order)) != len(order):
        raise ValueError(
            f"names must be different and not empty, got {', '.join(map(repr, order))}"
        )
    return order


def count_field(
    name: str,
    arguments: tuple[str, ...],
    position: int,
    inferred: int | None,
    what: str,
    *,
    most: int | None = None,
) -> int:
    """Return a positive integer from the spec, or the value inferred from data, without limit."""
    if len(arguments) > position and arguments[position]:
        text = arguments[position]
        # before int(): text of a million digits takes Python minutes, and a web form may send it
        if len(text) > SPECS.digits:
            raise LossSpecError(
                f"{what} in the spec of {name} must be a positive integer of at most "
                f"{SPECS.digits} digits, got {len(text)} characters, {text[:SHOWN]!r}…"
            )
        if not re.fullmatch(r"[0-9]+", text) or int(text) == 0:
            raise LossSpecError(
                f"{what} in the spec of {name} must be a positive integer, got {text!r}"
            )
        check_most(name, int(text), what, most)
        return int(text)
    if inferred is None:
        raise LossSpecError(f"the spec of {name} lacks the {what}; write for example {name}:5")
    return inferred


def items_field(
    name: str, arguments: tuple[str, ...], inferred: int | None, *, most: int = SPECS.items
) -> int:
    """Return the number of items, the first field of a loss on rankings."""
    return count_field(name, arguments, 0, inferred, "number of items", most=most)


def grades_field(name: str, arguments: tuple[str, ...], position: int, inferred: int | None) -> int:
    """Return how many grades of relevance there are, 2 unless stated."""
    return count_field(
        name, arguments, position, inferred or 2, "number of grades", most=SPECS.grades
    )


def check_most(name: str, value: int, what: str, most: int | None) -> None:
    """Refuse a size above what can be held; larger ones are for Python, where nobody guesses."""
    if most is not None and value > most:
        shown = str(value) if value < 10**SHOWN else f"{str(value)[:SHOWN]}…"
        raise LossSpecError(
            f"{what} in a spec of {name} may be at most {most}, got {shown}; "
            f"choose a smaller one, or build the loss in Python, where sizes have no limit"
        )


def number_field(name: str, arguments: tuple[str, ...], position: int, what: str) -> float:
    """Return a number that the spec must hold."""
    text = arguments[position] if len(arguments) > position else ""
    try:
        return read_number(text)
    except ValueError:
        raise LossSpecError(
            f"{what} in the spec of {name} must be a number, got {text[:SHOWN]!r}"
        ) from None
