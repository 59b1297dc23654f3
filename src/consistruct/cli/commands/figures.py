"""``consistruct figures``: the paper's figures and more, with their data."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from consistruct._atomic import atomic_write
from consistruct.cli.progress import progress_bar
from consistruct.exceptions import ConsistructError

__all__ = ["figures", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(figures)


def figures(
    folder: Path = typer.Option(Path("consistruct-figures"), help="Folder for the files."),
    only: list[str] = typer.Option([], help="Names of figures, e.g. figure_1b; default: all."),
    json_output: bool = typer.Option(False, "--json", help="Print the files as one JSON object."),
) -> None:
    """Draw the paper's Figure 1 and what it leaves out; PNG, SVG and CSV of each.

    Example: consistruct figures --folder figures
    """
    from consistruct.guarantees import FIGURES, figure_data
    from consistruct.report.figures import figure_csv, figure_picture

    unknown = sorted(set(only) - set(FIGURES))
    if unknown:
        raise ConsistructError(
            f"unknown figure {unknown[0]!r}; the figures are {', '.join(FIGURES)}"
        )
    names = only or list(FIGURES)
    written: dict[str, list[str]] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with progress_bar("figures") as step:
            for done, name in enumerate(names):
                figure = figure_data(name)
                contents = {
                    "csv": figure_csv(figure).encode(),
                    "png": figure_picture(figure, "png"),
                    "svg": figure_picture(figure, "svg"),
                }
                written[name] = []
                for kind, content in contents.items():
                    path = folder / f"{name}.{kind}"
                    with atomic_write(path) as stream:
                        stream.write(content)
                    written[name].append(str(path))
                step(done + 1, len(names))
    except OSError as error:
        raise ConsistructError(f"{folder} cannot be written: {error.strerror}") from None
    if json_output:
        typer.echo(json.dumps({"figures": written}))
        return
    for files in written.values():
        typer.echo("  ".join(files))
