"""CSV as this package writes it: all digits, and no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from consistruct._validation import read_number

__all__ = ["csv_text"]

STARTS = ("=", "+", "-", "@", "\t", "\r")  # of text that spreadsheets take for a formula


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; an empty field where there is no value (None).

    Names from data may begin like a formula, and a spreadsheet that opens the file would run it:
    such text gets an apostrophe in front. Text that is a number, such as ``-1``, stays.

    >>> csv_text(["name", "cost"], [["=2+3", -1.5], ["-1", None]]).splitlines()
    ['name,cost', "'=2+3,-1.5", '-1,']
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([_cell(name) for name in header])
    for row in rows:
        writer.writerow([_cell(cell) for cell in row])
    return stream.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(float(value))
    text = str(value)
    return f"'{text}" if text.startswith(STARTS) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        read_number(text)
    except ValueError:
        return False
    return text.strip() == text
