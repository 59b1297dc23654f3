"""``consistruct demo``: what the package does, on embedded examples."""

from __future__ import annotations

from pathlib import Path

import typer

from consistruct.cli.file_checks import FileCommand

__all__ = ["demo", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=FileCommand)(demo)


def demo(
    folder: Path = typer.Option(Path("consistruct-report"), help="Folder for the reports."),
) -> None:
    """Show on embedded examples what the package does.

    Example: consistruct demo --folder my-reports
    """
    from consistruct.cli.showcase import show  # with the engine: other commands need not wait

    show(folder)
