"""The files of a report, written in full or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from consistruct._atomic import atomic_write
from consistruct.exceptions import ConsistructError

__all__ = ["table_file", "write_file", "write_tables"]


def write_file(path: Path, content: str | bytes) -> Path:
    """Write one file; the path, for the message."""
    try:
        with atomic_write(path) as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise ConsistructError(f"{path} cannot be written: {error.strerror}") from None
    return path


def table_file(path: Path, name: str) -> Path:
    """The file of a further table, beside that of the first.

    >>> table_file(Path("loss.csv"), "worst_case").name
    'loss.worst_case.csv'
    """
    return path.with_suffix(f".{name}.csv")


def write_tables(path: Path, tables: Mapping[str, str]) -> list[Path]:
    """The first table under the name given, the others beside it with their own names."""
    (_, first), *others = tables.items()
    written = [write_file(path, first)]
    for name, text in others:
        written.append(write_file(table_file(path, name), text))
    return written
