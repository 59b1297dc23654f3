"""Results as plain data: dataclasses as JSON and back, tables as CSV.

JSON follows from the fields and their type hints, both ways.
Tuples become lists and are tuples again after reading; keys of dicts become strings, dataclasses
objects. A field that is written in another way states it in its hint, as ``Annotated[int,
Form(…)]``.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from consistruct._validation import read_number

__all__ = ["Form", "csv_text", "dump", "finite", "form", "load"]

Read = Callable[[Any], Any]
STARTS = ("=", "+", "-", "@", "\t", "\r")  # of text that spreadsheets take for a formula


@dataclass(frozen=True)
class Form:
    """How a field is written that does not go into JSON as it is, perhaps in several entries.

    Attributes
    ----------
    dump : (name, value) → entries of the object
    load : (the object, name) → value
    name : str
        Handed to both; empty for the name of the field.
    """

    dump: Callable[[str, Any], dict[str, Any]]
    load: Callable[[Mapping[str, Any], str], Any]
    name: str = ""


def form(write: Callable[[Any], Any], read: Callable[[Any], Any], name: str = "") -> Form:
    """A field in one entry, such as ``form(str, int)`` for integers of any size."""
    return Form(lambda name, value: {name: write(value)}, lambda data, name: read(data[name]), name)


def finite(value: Any) -> Any:
    """What JSON holds: null for infinities and NaN.

    >>> finite(0.5), finite(math.inf), finite(None)
    (0.5, None, None)
    """
    if not isinstance(value, float):
        return value
    return float(value) if math.isfinite(value) else None


def dump(value: Any, leaf: Callable[[Any], Any] = finite) -> Any:
    """Plain JSON data; `leaf` writes whatever is neither a dataclass, a dict, a list nor a tuple.

    >>> dump({1: (0.5, math.inf)})
    {'1': [0.5, None]}
    """
    if isinstance(value, list | tuple):
        return [dump(entry, leaf) for entry in value]
    if isinstance(value, dict):
        return {str(key): dump(entry, leaf) for key, entry in value.items()}
    if not hasattr(value, "__dataclass_fields__"):
        return leaf(value)
    entries: dict[str, Any] = {}
    for name, _, found in _plan(value.__class__):
        content = getattr(value, name)
        entries |= {name: content} if found is None else found.dump(found.name or name, content)
    return dump(entries, leaf)


def load(hint: Any, data: Any) -> Any:
    """The inverse of `dump`.

    Raises KeyError for what is missing, TypeError or ValueError for what has the wrong form.

    >>> load(dict[int, tuple[str, ...]], {"1": ["a", "b"]})
    {1: ('a', 'b')}
    """
    read = _reader(hint)
    return data if read is None else read(data)


@cache
def _plan(cls: type[Any]) -> tuple[tuple[str, Any, Form | None], ...]:
    """(name, hint, form) of every field."""
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        own = next((mark for mark in marks if isinstance(mark, Form)), None)
        found.append((field.name, hint, own))
    return tuple(found)


@cache
def _reader(hint: Any) -> Read | None:
    """What makes a value of JSON data; None where they are the same."""
    origin, parts = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        return lambda data: _object(hint, data)
    if origin is Annotated:
        return _reader(parts[0])
    if origin in (Union, UnionType):
        return _alternatives(parts)
    if origin is tuple:
        return _tuple(parts)
    if origin is list:
        read = _reader(parts[0])
        return None if read is None else lambda data: [read(entry) for entry in _listed(data)]
    if origin is dict:
        return _dict(*parts)
    return None


def _object(cls: Any, data: Any) -> Any:
    if not isinstance(data, Mapping):
        raise TypeError(f"{type(data).__name__} in place of an object")
    fields: dict[str, Any] = {}
    for name, hint, found in _plan(cls):
        fields[name] = (
            load(hint, data[name]) if found is None else found.load(data, found.name or name)
        )
    return cls(**fields)


def _alternatives(parts: tuple[Any, ...]) -> Read | None:
    """None, one other, or several of which at most one is made of a list."""
    others = [part for part in parts if part is not NoneType]
    readers = [read for part in others if (read := _reader(part)) is not None]
    if not readers:
        return None
    read = readers[0]
    if len(others) == 1:
        return lambda data: None if data is None else read(data)
    return lambda data: read(data) if isinstance(data, list | tuple) else data


def _tuple(parts: tuple[Any, ...]) -> Read:
    if len(parts) == 2 and parts[1] is Ellipsis:
        read = _reader(parts[0])
        if read is None:
            return lambda data: tuple(_listed(data))
        return lambda data: tuple(read(entry) for entry in _listed(data))

    def several(data: Any) -> tuple[Any, ...]:
        if len(_listed(data)) != len(parts):
            raise ValueError(f"{len(data)} entries in place of {len(parts)}")
        return tuple(load(part, entry) for part, entry in zip(parts, data, strict=True))

    return several


def _dict(key: Any, value: Any) -> Read | None:
    keys, values = int if key is int else None, _reader(value)
    if keys is None and values is None:
        return None

    def read(data: Any) -> dict[Any, Any]:
        return {
            (name if keys is None else keys(name)): (entry if values is None else values(entry))
            for name, entry in data.items()
        }

    return read


def _listed(data: Any) -> Any:
    if not isinstance(data, list | tuple):
        raise TypeError(f"{type(data).__name__} in place of a list")
    return data


# --- CSV: all digits, and no cell that a spreadsheet would run ---


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
