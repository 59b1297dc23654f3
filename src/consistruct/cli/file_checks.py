"""What a command reads and what it will write: collected and compared before any work starts.

`FileCommand` does it for every command, from the options alone, so that no command can forget it.
An option that names a file has a line in `READ` or `WRITTEN`.
"""

from __future__ import annotations

import itertools
import os
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from consistruct._atomic import is_stream, try_write
from consistruct.cli.choices import read_setting
from consistruct.cli.report_files import table_file

__all__ = ["READ", "WRITTEN", "FileCommand", "check_files", "folder_checkpoint"]

# options and arguments that name a file or a folder to read: what it is, in words
READ = {
    "certificate": "certificate",
    "confusion": "confusion matrix",
    "data": "data",
    "labels": "list of labels",
    "model": "model",
    "subject": "data",
    "template": "template",
    "train": "training data",
}
# specs, in which a file may be named at any depth
SPECS = {"candidate": "scores", "loss": "loss", "scores": "scores", "subject": "loss"}
# options that name a file to write; `fit` writes its model
WRITTEN = ("checkpoint", "csv", "html", "model", "out", "plot")
FOLDER = "folder"  # the option that names a folder to write into
TABLES = "csv's tables"
KEPT = ("checkpoint", "--set checkpoint")  # read back later, so a device will not do


class FileCommand(TyperCommand):
    """A command whose files are checked before it begins."""

    def invoke(self, ctx: Any) -> Any:
        check_files(str(self.name), ctx.params)
        return super().invoke(ctx)


@dataclass
class _Files:
    """Paths of one command: what each is in words, or the option that names it."""

    read: list[tuple[str, Path]] = field(default_factory=list)
    written: list[tuple[str, Path]] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)


def check_files(command: str, options: dict[str, Any]) -> None:
    """Refuse outputs that are inputs, that are each other, or that cannot be written.

    Two names are one file if they lead to it by spelling, case or links of either kind.

    >>> check_files("fit", {"data": Path("x.csv"), "model": Path("./x.csv")})
    Traceback (most recent call last):
    ValueError: cannot write x.csv: it is the data that this command reads; name another file
    """
    files = _collect(command, options)
    if options.get("plot") is not None:
        from consistruct.charts.pictures import picture_kind

        picture_kind(str(options["plot"]))
    for option, path in files.written:
        _check_inputs(option, path, files.read)
    for (first, path), (second, other) in itertools.combinations(files.written, 2):
        _check_distinct(first, path, second, other)
    for option, path in files.written:
        _check_place(option, path)
    for folder in files.folders:
        _check_folder(folder)


def folder_checkpoint(model: Path) -> Path:
    """Where a fit on a folder keeps its sums unless stated otherwise."""
    return model.with_name(f"{model.name}.checkpoint")


# --- collect ---


def _collect(command: str, options: dict[str, Any]) -> _Files:
    files = _Files()
    for name, value in options.items():
        if value is None or value == "":
            continue
        if name in WRITTEN and (name != "model" or command == "fit"):
            files.written.append((name, Path(value)))
        elif name in READ and (name != "labels" or Path(value).is_file()):  # or their number
            files.read.append((READ[name], Path(value)))
        if name in SPECS:
            for spec in [value] if isinstance(value, str) else value:
                files.read += [(SPECS[name], path) for path in _files_in(spec)]
        if name == FOLDER:
            files.folders.append(Path(value))
    for text in options.get("settings") or ():
        if text.partition("=")[0] == "checkpoint":
            _, value = read_setting(text)  # as it will be used: "m" in quotes is m
            if isinstance(value, str) and value:
                files.written.append(("--set checkpoint", Path(value)))
    if options.get("csv") is not None and not Path(options["csv"]).is_dir():
        files.written += _further_tables(command, Path(options["csv"]))
    if command == "fit" and options.get("checkpoint") is None and Path(options["data"]).is_dir():
        model = Path(options["model"])
        if not model.is_dir():  # refused later
            files.written.append(("checkpoint", folder_checkpoint(model)))
    return files


def _further_tables(command: str, csv: Path) -> Iterator[tuple[str, Path]]:
    """The files that --csv writes besides the one that it names."""
    from consistruct.report.calibration import charts as calibration
    from consistruct.report.learning import charts as learning

    if is_stream(csv):
        raise ValueError(
            f"--csv writes several files, but {csv} is a device or a pipe; name a plain file"
        )
    charts: Mapping[str, Any] = (calibration if command == "analyze" else learning).CHARTS
    names = [name for name, chart in charts.items() if chart.table in ("", name)]
    for name in names[1:]:
        yield TABLES, table_file(csv, name)


def _files_in(spec: str) -> Iterator[Path]:
    """Files that a spec may read: every part of it between colons that is one.

    Independent of the grammar: losses nest, and names of files may hold colons. What follows a name
    are at most two fields, as in tree:FILE.csv:nodes.
    """
    parts = spec.split(":")
    for stop in range(len(parts), max(1, len(parts) - 3), -1):
        for start in range(1, stop):
            path = Path(":".join(parts[start:stop]))
            try:
                found = path.is_file()
            except (OSError, ValueError):  # too long for a name
                continue
            if found:
                yield path


# --- compare ---


def _check_inputs(option: str, path: Path, read: list[tuple[str, Path]]) -> None:
    for what, source in read:
        inside = source.is_dir() and (
            os.path.realpath(path).startswith(os.path.join(os.path.realpath(source), ""))  # noqa: PTH118
            or _is_linked_from(source, path)
        )
        if inside:
            raise ValueError(
                f"cannot write {path}: it is in the folder that this command reads; name another "
                "file"
            )
        if _same_file(path, source):
            of = f" (--{option})" if option == TABLES else ""
            raise ValueError(
                f"cannot write {path}{of}: it is the {what} that this command reads; name another "
                "file"
            )


def _is_linked_from(folder: Path, path: Path) -> bool:
    """Whether a file in a folder is this one by a link."""
    try:
        mine = path.stat()
    except OSError:
        return False
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                other = Path(place, name).stat()
            except OSError:
                continue
            if os.path.samestat(mine, other):
                return True
    return False


def _check_distinct(first: str, path: Path, second: str, other: Path) -> None:
    if is_stream(path):  # two pages into /dev/null harm nobody
        return
    if _same_file(path, other):
        raise ValueError(
            f"--{first} and --{second} both name {path}; choose two different files"
            if first != second
            else f"--{first} writes {path} twice; choose another name"
        )
    if _folded(path) == _folded(other):  # one file on many systems, and neither is there yet
        raise ValueError(
            f"--{first} {path} and --{second} {other} differ only in case; choose two different "
            "files"
        )


def _same_file(path: Path, other: Path) -> bool:
    """Whether two names are one file, by links of either kind or by spelling."""
    try:
        return path.samefile(other)
    except (OSError, ValueError):  # one of them is not there yet
        return os.path.realpath(path) == os.path.realpath(other)


def _folded(path: Path) -> str:
    return unicodedata.normalize("NFC", os.path.realpath(path)).casefold()


def _check_place(option: str, path: Path) -> None:
    """Before hours of work, not after it."""
    if is_stream(path):
        if option in KEPT:
            raise ValueError(
                f"cannot keep a checkpoint in {path}: it is a device or a pipe; name a plain file"
            )
    elif path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder; name another file")
    elif not Path(os.path.realpath(path)).parent.is_dir():
        raise ValueError(
            f"cannot write {path}: it is in a folder that does not exist; name another file"
        )
    try:
        try_write(path)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None


def _check_folder(folder: Path) -> None:
    """A folder that is made where it is not there yet."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise ValueError(f"cannot write into {folder}: {there} is not a folder")
    try:
        try_write(there / "report")
    except OSError as error:
        raise ValueError(f"cannot write into {folder}: {error.strerror}") from None
