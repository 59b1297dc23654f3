"""Labels as reports show them."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from consistruct.charts.model import shortened
from consistruct.report.calibration.model import Label

__all__ = ["N_STATES_SHOWN", "label_text", "pair_difference", "shown_label"]

N_STATES_SHOWN = 16
N_RUNS_SHOWN = 4
N_CHARACTERS = 40
LARGEST_INTEGER = 2**53  # above it JSON readers round


def shown_label(labels: Any, label: Any) -> Label:
    """A label as plain data: its name if it has one, its states, or its number.

    >>> from consistruct.labels import Classes
    >>> shown_label(Classes(2, ("ham", "spam")), 1), shown_label(Classes(2), 1)
    ('spam', 1)
    >>> shown_label(None, [0, 1, 1])
    (0, 1, 1)
    """
    if isinstance(label, list | tuple):
        return tuple(int(state) for state in label)
    names = getattr(labels, "names", None)
    if names is not None:
        return str(names[label])
    return int(label) if abs(label) < LARGEST_INTEGER else str(label)


def label_text(label: Label, n_characters: int = N_CHARACTERS) -> str:
    r"""A label in one line, cut where it is long.

    >>> label_text((0, 1, 1)), label_text((3, 12, 4)), label_text((0,) * 500 + (1,) * 500)
    ('011', '3 12 4', '0×500 1×500')
    >>> label_text((0, 1) * 500)
    '0101010101010101… (1000 parts)'
    >>> label_text("beep \x07 and\nred \x1b[31m")   # terminals and SVG files take no control codes
    'beep � and red �[31m'
    >>> label_text("a name that goes on and on and on and on and on")
    'a name that goes on and on…and on and on'
    """
    if isinstance(label, tuple):
        runs = [(state, len(list(run))) for state, run in groupby(label)]
        if len(label) > N_STATES_SHOWN and len(runs) <= N_RUNS_SHOWN:
            return " ".join(f"{state}×{length}" for state, length in runs)
        between = "" if all(0 <= state < 10 for state in label) else " "
        text = between.join(str(state) for state in label[:N_STATES_SHOWN])
        return text if len(label) <= N_STATES_SHOWN else f"{text}… ({len(label)} parts)"
    words = " ".join(str(label).split())
    text = "".join(letter if letter.isprintable() else "�" for letter in words)
    return shortened(text, n_characters)


def pair_difference(pair: tuple[Label, Label]) -> str | None:
    """In how many parts two labels differ, where they have parts.

    >>> pair_difference(((0, 0, 0), (0, 1, 1)))
    'they differ in 2 of 3 parts'
    """
    one, other = pair
    if not (isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)):
        return None
    number = sum(a != b for a, b in zip(one, other, strict=True))
    return f"they differ in {number} of {len(one)} parts"
