"""What all commands on files share: results on stdout, one line on stderr, checks before work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

__all__ = ["check_writable", "show"]

SCHEMA_VERSION = 1


def check_writable(path: Path) -> None:
    """Before hours of work, not after."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        reason = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise ValueError(f"cannot write {path}: it {reason}")


def show(result: dict[str, Any], as_json: bool) -> None:
    """One JSON object, or one line per entry."""
    if as_json:
        typer.echo(json.dumps({"schema_version": SCHEMA_VERSION, **result}))
        return
    width = max(map(len, result))
    for name, value in result.items():
        if name != "command":
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            typer.echo(f"{name.replace('_', ' '):<{width}}  {shown}")
