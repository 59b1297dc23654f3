"""What all commands on files share: results on stdout, one line on stderr, checks before work."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import typer

__all__ = ["check_distinct", "check_writable", "loss_file", "show"]

SCHEMA_VERSION = 1


def check_writable(path: Path, **read: Path | None) -> None:
    """Before hours of work, not after; `read` are the files that must outlive it, by what they are.

    >>> check_writable(Path("data.csv"), data=Path("./data.csv"))
    Traceback (most recent call last):
    ValueError: cannot write data.csv: it is the data that this command reads; name another file
    """
    for what, other in read.items():
        if other is not None and _same_file(path, other):
            words = what.replace("_", " ")
            raise ValueError(
                f"cannot write {path}: it is the {words} that this command reads; name another file"
            )
    if path.is_dir() or not path.resolve().parent.is_dir():
        reason = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise ValueError(f"cannot write {path}: it {reason}")


def check_distinct(**written: Path | None) -> None:
    """Refuse two options that would write the same file."""
    paths = [(name, path) for name, path in written.items() if path is not None]
    for (first, path), (second, other) in itertools.combinations(paths, 2):
        if _same_file(path, other):
            raise ValueError(
                f"--{first} and --{second} both name {path}; choose two different files"
            )


def _same_file(path: Path, other: Path) -> bool:
    """Whether two names are one file, by links of either kind or by spelling."""
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there yet
        return os.path.realpath(path) == os.path.realpath(other)


def loss_file(spec: str) -> Path | None:
    """The file that a loss spec reads, if it names one."""
    name, _, tail = spec.partition(":")
    if name.strip().lower() not in ("cost", "tree") or not tail:
        return None
    return Path(tail.removesuffix(":nodes").removesuffix(":leaves"))


def show(result: dict[str, Any], as_json: bool) -> None:
    """One JSON object, or one line per entry."""
    if as_json:
        typer.echo(json.dumps({"schema_version": SCHEMA_VERSION, **result}))
        return
    width = max(map(len, result))
    for name, value in result.items():
        if name == "command":
            continue
        title = name.replace("_", " ")
        if isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values()):
            inner = max(map(len, value), default=0)
            typer.echo(title)
            for key, entry in value.items():
                typer.echo(f"  {key:<{inner}}  {entry}")
            continue
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        typer.echo(f"{title:<{width}}  {shown}")
