"""Columns of text as people write them: numbers, dates, categories, missing cells.

One rule for files and data frames. What has a single reading is read: ``3,7`` beside ``12,25``,
``1,862.50``, ``1 862``, ISO dates, ``25/12/2023`` beside ``07/12/2023``, ``01 Jan 2023``. What has
several stays a category, with a note that states what it looks like and which option reads it. A
later column is read with the decimal sign and the date format that were found first, never by a
fresh look at its cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct._frames import EXACT, is_missing

__all__ = [
    "CellError",
    "TextColumn",
    "is_number_cell",
    "is_unique",
    "loses_digits",
    "many_values_note",
    "read_text_column",
]

ISO = "iso"  # the format of dates such as 2026-01-31 and 2026-01-31T12:30:00
# A share of cells: from it on commas are the notation of a column, and numbers make the words
# beside them look like missing cells
MOSTLY = 0.5
LEAST_NUMBERS = 10  # cells of a column of which the latter is stated
FEW_WORDS = 3  # different words of which this can be stated
MANY_VALUES = 0.9  # of the rows: a category of more values than this is nearly a name of each row
LEAST_ROWS = 20  # from which this is stated
SLIPS = 0.1  # so few cells that are no numbers in a column of numbers are mistakes

_BOOLEANS = {"True": "1", "False": "0", "true": "1", "false": "0"}
_ISO_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})$", re.ASCII)
_CLOCK = r"( \d{1,2}:\d{2}(:\d{2})?)?"
# A date as people write it, its separator in group 1 and perhaps a clock time after it, and the
# formats that may read it. English names of months need no order of day and month.
_DATES = [
    (re.compile(pattern + _CLOCK, re.ASCII), forms)
    for pattern, forms in (
        (r"\d{1,2}([/.-])\d{1,2}\1\d{4}", ("%d{}%m{}%Y", "%m{}%d{}%Y")),
        (r"\d{4}([/.])\d{1,2}\1\d{1,2}", ("%Y{}%m{}%d",)),
        (r"\d{1,2}([ /.-])[A-Za-z]{3}\1\d{4}", ("%d{}%b{}%Y",)),
        (r"\d{1,2}([ /.-])[A-Za-z]{4,9}\1\d{4}", ("%d{}%B{}%Y",)),
        (r"[A-Za-z]{3}( )\d{1,2}, \d{4}", ("%b{}%d,{}%Y",)),
        (r"[A-Za-z]{4,9}( )\d{1,2}, \d{4}", ("%B{}%d,{}%Y",)),
        (r"(?:18|19|20|21)\d{2}(-)\d{2}", ("%Y{}%m",)),
    )
]
# 25/12/23 leaves the century open, and often which number is the year: never read unasked
_SHORT_YEAR = re.compile(r"\d{1,2}([/.-])\d{1,2}\1\d{2}" + _CLOCK, re.ASCII)
_SHORT_YEAR_FORMS = ("%d{}%m{}%y", "%m{}%d{}%y", "%y{}%m{}%d")
_SEASON = re.compile(r"\d{2}(\d{2})-(\d{2})", re.ASCII)
# Between thousands: spaces (also those that do not break a line) and apostrophes, which are never
# decimal signs. A group of zeros before them is no number: 020 123 is a telephone's.
_GAPS = " \u00a0\u2009\u202f'\u2019"
_ONE_GAP = re.compile(rf"(?<=\d)[{_GAPS}](?=\d{{3}})")
# decimal sign → a number with it, perhaps with the other sign or with gaps between thousands
_NUMBER = {
    sign: re.compile(
        rf"[+-]?(\d{{1,3}}({other}\d{{3}})+|[1-9]\d{{0,2}}([{_GAPS}])\d{{3}}(\3\d{{3}})*|\d+)?"
        rf"({own}\d*)?([eE][+-]?\d+)?",
        re.ASCII,
    )
    for sign, own, other in ((".", r"\.", ","), (",", ",", r"\."))
}


class CellError(ValueError):
    """A cell that is not of the kind that its column must have; `place` counts from 0."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, eq=False)
class TextColumn:
    """What was made of a column of text.

    Attributes
    ----------
    kind : "number", "date" or "category"
    values : (n,) array
        Floats with NaN where a cell is missing (dates: days since 1970), or strings and None.
    date_format : str, optional
        "iso" or a format of `datetime.strptime`, for dates.
    note : str, optional
        One line for the user: another reading, or a category of nearly as many values as rows.
    decimal : "." or ",", optional
        For numbers.
    """

    kind: str
    values: NDArray[Any]
    date_format: str | None = None
    note: str | None = None
    decimal: str | None = None


def read_text_column(
    name: str,
    values: Sequence[str | None],
    *,
    missing: tuple[str, ...] = (),
    decimal: str | None = None,
    date_format: str | None = None,
    kind: str | None = None,
    options: bool = True,
) -> TextColumn:
    """Read a column of text as numbers, dates or categories.

    Parameters
    ----------
    name : str
        For messages.
    values : sequence of str or None
    missing : tuple of str
        Words that mean a missing cell, besides the empty cell, ``NA``, ``nan``, ``?`` and others.
    decimal : "." or ",", optional
        The decimal sign; found if it is not given.
    date_format : str, optional
        "iso", or a format of `datetime.strptime` such as ``%d/%m/%Y``.
    kind : "number", "date" or "category", optional
        What the column must be, as that of an earlier table was; with `decimal` or `date_format`
        it is read by these alone. A cell of another kind raises `CellError`, and so does a cell
        among numbers that may be a slip where no kind is requested.
    options : bool
        Whether messages may name options of `read_data` and the command line; frames have none,
        and messages say what to do with the column.

    Returns
    -------
    TextColumn

    Examples
    --------
    >>> from consistruct.learning.encoding.text_columns import read_text_column
    >>> read_text_column("weight", ["3,7", "12,25", None]).values.tolist()
    [3.7, 12.25, nan]
    >>> read_text_column("day", ["07/12/2023", "25/12/2023"]).date_format
    '%d/%m/%Y'
    """
    if decimal not in (None, ".", ","):
        raise ValueError(f"the decimal sign must be '.' or ',', got {decimal!r}")
    cells = ["" if value is None else value.strip() for value in values]
    gone = np.array([is_missing(cell, missing) for cell in cells], dtype=bool)
    present = [cell for cell, none in zip(cells, gone.tolist(), strict=True) if not none]
    found = None
    if kind == "number" and set(present) <= _BOOLEANS.keys():  # as files write booleans
        present = [_BOOLEANS[cell] for cell in present]
    if kind in (None, "number"):
        found = _as_numbers(present, gone, decimal)
    if found is None and kind in (None, "date"):
        found = _as_dates(present, gone, date_format, only=kind == "date")
    if found is not None:
        return found
    if kind in ("number", "date"):
        raise _cell_error(name, kind, cells, gone, decimal, date_format, options)
    if kind is None:
        _refuse_slips(name, cells, gone, decimal, options)
    words = np.array(cells, dtype=object)
    words[gone] = None
    note = None if kind == "category" else _note(name, present, decimal, options)
    return TextColumn("category", words, note=note)


# --- numbers ---


def is_number_cell(cell: str, decimal: str | None = None) -> bool:
    """Whether a cell alone is a number, or a whole one that only text keeps exactly."""
    return _is_identifier(cell) or _as_numbers([cell], np.zeros(1, bool), decimal) is not None


def _as_numbers(
    present: Sequence[str], gone: NDArray[np.bool_], decimal: str | None
) -> TextColumn | None:
    signs = (decimal,) if decimal else (".", ",")
    plain = _plain_numbers(present) if decimal != "," else None
    if plain is not None:
        return TextColumn("number", _spread(plain, gone), decimal=".")
    # Thousands are one reading of "1,862" and decimals the other: read where only one is left
    readings = {sign: found for sign in signs if (found := _numbers(present, sign)) is not None}
    if not readings or not _agree(list(readings.values())):
        return None
    sign, numbers = next(iter(readings.items()))
    # one 1,5 among whole numbers is more likely a slip than the notation of the column
    if decimal is None and sign == "," and _share_with_signs(present) < MOSTLY:
        return None
    return TextColumn("number", _spread(numbers, gone), decimal=sign)


def _agree(readings: Sequence[NDArray[np.float64]]) -> bool:
    """Whether all readings are the same numbers, as of ``1 862`` with either decimal sign."""
    return all(np.array_equal(readings[0], other) for other in readings)


def _share_with_signs(cells: Sequence[str]) -> float:
    """Share of the cells with a decimal comma or with dots between thousands."""
    return sum("," in cell or cell.count(".") > 1 for cell in cells) / len(cells)


def _plain_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Finite numbers as programs write them, or None if one of the cells is none."""
    try:
        values = np.array(list(map(float, cells)), dtype=np.float64)
    except ValueError:
        return None
    # Python also reads 1_000 and the digits of every script; a whole number that a float cannot
    # hold is an identifier, which stays exact as a category
    plain = all(cell.isascii() and "_" not in cell for cell in cells)
    if not plain or not np.isfinite(values).all():
        return None
    large = np.flatnonzero(np.abs(values) >= EXACT).tolist()
    return None if any(loses_digits(cells[place]) for place in large) else values


def loses_digits(cell: str) -> bool:
    """Whether a whole number is too long for a float to keep it: then it is a name."""
    digits = cell.strip().lstrip("+-")
    # no float has more than 309 digits, and Python reads no integer of more than 4,300
    return (
        len(digits) > 15
        and digits.isdigit()
        and (len(digits) > 309 or int(float(cell)) != int(cell))
    )


def _numbers(cells: Sequence[str], decimal: str) -> NDArray[np.float64] | None:
    """Numbers with this decimal sign, perhaps with the other sign between thousands."""
    pattern, other = _NUMBER[decimal], "," if decimal == "." else "."
    if not all(any(map(str.isdigit, cell)) and pattern.fullmatch(cell) for cell in cells):
        return None
    plain = [_ONE_GAP.sub("", cell).replace(other, "").replace(",", ".") for cell in cells]
    return _plain_numbers(plain)


# --- dates ---


def _as_dates(
    present: Sequence[str], gone: NDArray[np.bool_], date_format: str | None, *, only: bool
) -> TextColumn | None:
    if not present and date_format is None:
        return None
    formats = [date_format] if date_format else []
    if not (date_format and only):
        formats.extend(_date_formats(present))
    for form in formats:
        days = _days(present, form)
        if days is not None:
            return TextColumn("date", _spread(days, gone), date_format=form)
    return None


def _date_formats(cells: Sequence[str]) -> list[str]:
    """The one format that reads all cells; nothing where there is none, or more than one."""
    if all(map(_ISO_DATE.fullmatch, cells)):
        return [ISO]
    readings = _local_formats(cells)
    return readings if len(readings) == 1 and not _are_seasons(cells) else []


def _local_formats(cells: Sequence[str]) -> list[str]:
    """Formats other than ISO's that read all cells; one day above 12 decides which comes first."""
    for pattern, orders in _DATES:
        if forms := _readings(cells, pattern, orders):
            return forms
    return []


def _readings(cells: Sequence[str], pattern: re.Pattern[str], orders: Sequence[str]) -> list[str]:
    """The formats among `orders` that read all cells, if these are written alike."""
    matches = [pattern.fullmatch(cell) for cell in cells]
    notations = {
        (match[1], match[2] and (" %H:%M:%S" if match[3] else " %H:%M"))
        for match in matches
        if match
    }
    if not all(matches) or len(notations) != 1:
        return []
    sign, clock = notations.pop()
    forms = [order.format(sign, sign) + (clock or "") for order in orders]
    return [form for form in forms if _days(cells, form) is not None]


def _are_seasons(cells: Sequence[str]) -> bool:
    """Whether 2011-12 and the like may each be a year and the next one instead of a month."""
    matches = [_SEASON.fullmatch(cell) for cell in cells]
    return all(match and (int(match[1]) + 1) % 100 == int(match[2]) for match in matches)


def _days(cells: Sequence[str], form: str) -> NDArray[np.float64] | None:
    """Days since 1970, or None if one of the cells is no date of this format."""
    try:
        if form != ISO:
            moments = [datetime.strptime(cell, form).replace(tzinfo=None) for cell in cells]
            seconds = np.array(moments, dtype="datetime64[s]")
        elif all(map(_ISO_DATE.fullmatch, cells)):
            plain = [cell.rstrip("Z").replace(" ", "T") for cell in cells]
            seconds = np.array([_universal(cell) for cell in plain], dtype="datetime64[s]")
        else:
            return None
    except ValueError:  # the 31st of February
        return None
    return np.asarray(seconds.astype(np.int64) / 86400.0)


def _universal(cell: str) -> Any:
    """An ISO date in universal time, whatever zone it is written in."""
    offset = _OFFSET.search(cell) if ":" in cell else None  # 2026-01-31 ends like one
    if offset is None:
        return np.datetime64(cell, "s")
    minutes = int(offset[1] + "1") * (60 * int(offset[2]) + int(offset[3]))
    return np.datetime64(cell[: offset.start()], "s") - np.timedelta64(minutes, "m")


# --- what to say ---


def _refuse_slips(
    name: str,
    cells: Sequence[str],
    gone: NDArray[np.bool_],
    decimal: str | None,
    options: bool,
) -> None:
    """Refuse what may be a column of numbers with a slip: read as categories, it would be lost."""
    present = [(place, cells[place]) for place in np.flatnonzero(~gone).tolist()]
    others = [(place, cell) for place, cell in present if not is_number_cell(cell, decimal or ".")]
    slips = [(place, cell) for place, cell in others if _python_number(cell)]  # 1_000, 1e999
    mostly = len(present) >= LEAST_NUMBERS and len(others) <= SLIPS * len(present)
    if not (slips or (others and mostly)):
        return
    place, cell = (slips or others)[0]
    if not options:
        remedy = f"replace it by a number or None, or X[{name!r}] by categories"
    else:
        comma = decimal is None and is_number_cell(cell, ",")
        option = "read it with --decimal ," if comma else f"read it as missing (--missing {cell!r})"
        remedy = (
            f"correct the cell, leave it empty, {option}, or set the kind of the column: --columns "
            f"{name}=category"
        )
    raise CellError(place, f"column {name!r} must contain a number, got {cell!r}; {remedy}")


def _python_number(cell: str) -> bool:
    """Whether Python reads a number there, though files mean something else or nothing finite."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _note(name: str, present: Sequence[str], decimal: str | None, options: bool) -> str | None:
    """What a category looks like, and what reads it so; None where it looks like a category."""
    if not present:
        return None
    if any(_plain_numbers([cell]) is None and _is_identifier(cell) for cell in present) and all(
        map(_is_identifier, present)
    ):
        return (
            f"column {name!r} contains whole numbers beyond 2^53, which no float holds exactly "
            "(identifiers?); they are kept as categories"
        )
    signs = [sign for sign in ".," if _numbers(present, sign) is not None]
    if decimal is None and signs:
        shown = next((cell for cell in present if "," in cell), present[0])
        remedy = " or ".join(f"--decimal {sign}" for sign in signs) + " reads it"
        return (
            f"column {name!r} looks like numbers with thousands or decimals ({shown!r}) and is "
            f"read as categories; {remedy if options else 'convert it to numbers'}"
        )
    forms = _local_formats(present)
    if len(forms) > 1:
        remedy = f"--date-format '{forms[0]}' or '{forms[1]}' reads it"
        if not options:
            remedy = f"convert it to dates, of the format '{forms[0]}' or '{forms[1]}'"
        return (
            f"column {name!r} looks like dates with the day or the month first "
            f"({present[0]!r}) and is read as categories; {remedy}"
        )
    if len(forms) == 1 or (forms := _readings(present, _SHORT_YEAR, _SHORT_YEAR_FORMS)):
        what = "months or seasons" if _are_seasons(present) else "dates with two-digit years"
        shown = " or ".join(f"'{form}'" for form in forms)
        remedy = f"--date-format {shown} reads it"
        if not options:
            remedy = f"convert it to dates, of the format {shown}"
        return (
            f"column {name!r} looks like {what} ({present[0]!r}) and is read as categories; "
            f"{remedy}"
        )
    among = _words_among(present)
    if among is not None:
        what, distinct = among
        if not distinct:
            return (
                f"column {name!r} looks like {what} in several notations and is read as "
                "categories; write them alike"
            )
        if len(distinct) > FEW_WORDS:
            remedy = f"pass --missing for each of these words, or --columns {name}=category"
            if not options:
                remedy = "replace by None what means missing"
        else:
            remedy = " ".join(f"--missing {word}" for word in distinct) + " reads it"
            if not options:
                remedy = f"replace {' and '.join(map(repr, distinct))} by None if it means missing"
        return (
            f"column {name!r} looks like {what} with {distinct[0]!r} among them and is read as "
            f"categories; {remedy}"
        )
    return many_values_note(name, present, options=options)


def many_values_note(name: str, present: Sequence[Any], *, options: bool) -> str | None:
    """What to say of a category with nearly as many values as rows; None for others."""
    n_values = len(set(present))
    if len(present) < LEAST_ROWS or n_values <= MANY_VALUES * len(present):
        return None
    remedy = f"leave it out with --columns {name}=drop" if options else "drop it"
    if n_values == len(present):
        return (
            f"column {name!r} has {n_values} different values in {n_values} rows, such as "
            f"{present[0]!r}; models take nothing from it, so {remedy}, unless steps of your own "
            "read it"
        )
    return (
        f"column {name!r} has {n_values} different values in {len(present)} rows, such as "
        f"{present[0]!r}, and is read as categories; {remedy} if they are names"
    )


def is_unique(cells: Sequence[Any]) -> bool:
    """Whether the words of a column differ in all rows that have one, as names do.

    >>> is_unique([f"patient {n}" for n in range(20)]), is_unique(["Rome", "Oslo"])
    (True, False)
    """
    present = [cell for cell in cells if cell is not None]
    return len(set(present)) == len(present) >= LEAST_ROWS


def _words_among(present: Sequence[str]) -> tuple[str, list[str]] | None:
    """What most cells of a column are, "numbers" or "dates", and the words among them."""
    one = np.zeros(1, bool)

    def is_number(cell: str) -> bool:
        return _as_numbers([cell], one, None) is not None or all(
            _numbers([cell], sign) is not None for sign in ".,"
        )

    def is_date(cell: str) -> bool:
        patterns = [_ISO_DATE, *(pattern for pattern, _ in _DATES)]
        return any(pattern.fullmatch(cell) for pattern in patterns)

    for what, fits in (("numbers", is_number), ("dates", is_date)):
        words = [cell for cell in present if not fits(cell)]
        n, distinct = len(present) - len(words), sorted(set(words))
        # a few words, however often they occur, or few cells with words
        if n >= LEAST_NUMBERS and (len(distinct) <= FEW_WORDS or n >= MOSTLY * len(present)):
            return what, distinct
    return None


def _is_identifier(cell: str) -> bool:
    return cell.isascii() and cell.lstrip("+-").isdigit()


def _cell_error(
    name: str,
    kind: str,
    cells: Sequence[str],
    gone: NDArray[np.bool_],
    decimal: str | None,
    date_format: str | None,
    options: bool,
) -> CellError:
    """The first cell that is not of the kind, or the first of all where they differ in notation."""
    one = np.zeros(1, dtype=bool)

    def fits(cell: str) -> bool:
        if kind == "number":
            return _as_numbers([cell], one, decimal) is not None
        return _as_dates([cell], one, date_format, only=True) is not None

    places = np.flatnonzero(~gone).tolist()
    place = next((place for place in places if not fits(cells[place])), places[0])
    cell = cells[place]
    if kind == "number":
        wanted, hint = "a number", "such a column was all numbers"
        if loses_digits(cell) if _is_identifier(cell) else _is_infinite(cell):
            hint = "numbers must be finite, and whole ones exact as floats (below 2^53)"
        elif decimal is None and options and _numbers([cell], ",") is not None:
            hint = "--decimal , or --decimal . reads it"
    else:
        wanted, hint = "a date", "write dates as 2026-01-31"
        if date_format is None and options:
            hint += ", or pass --date-format"
        elif date_format not in (None, ISO):
            wanted = f"a date like {date_format}"
            hint = "the column has this format"
    return CellError(place, f"column {name!r} must contain {wanted}, got {cell!r}; {hint}")


def _is_infinite(cell: str) -> bool:
    try:
        return not np.isfinite(float(cell))
    except ValueError:
        return False


def _spread(present: NDArray[np.float64], gone: NDArray[np.bool_]) -> NDArray[np.float64]:
    values = np.full(len(gone), np.nan)
    values[~gone] = present
    return values
