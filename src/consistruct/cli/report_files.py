"""The files of a report: checked before the work, written in full or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from consistruct._atomic import atomic_write
from consistruct.cli.output import check_distinct, check_writable
from consistruct.exceptions import ConsistructError

__all__ = ["check_targets", "write_file", "write_tables"]


def check_targets(
    *, html: Path | None, plot: Path | None, csv: Path | None, **read: Path | None
) -> None:
    """Refuse names and places that could not be written, before anything is computed.

    `read` are the files that the command reads, by what they are.
    """
    from consistruct.charts import picture_kind

    if plot is not None:
        picture_kind(str(plot))
    check_distinct(html=html, plot=plot, csv=csv)
    for path in (html, plot, csv):
        if path is not None:
            check_writable(path, **read)


def write_file(path: Path, content: str | bytes) -> Path:
    """Write one file; the path, for the message."""
    try:
        with atomic_write(path) as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise ConsistructError(f"{path} cannot be written: {error.strerror}") from None
    return path


def write_tables(path: Path, tables: Mapping[str, str]) -> list[Path]:
    """The first table under the name given, the others beside it with their own names."""
    (_, first), *others = tables.items()
    written = [write_file(path, first)]
    for name, text in others:
        written.append(write_file(path.with_suffix(f".{name}.csv"), text))
    return written
