"""Results on stdout: one JSON object, or one line per entry."""

from __future__ import annotations

import json
from typing import Any

import typer

__all__ = ["show"]

SCHEMA_VERSION = 1


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
