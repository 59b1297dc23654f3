"""``consistruct audit``: the claims of the paper, checked now."""

from __future__ import annotations

from pathlib import Path

import typer

from consistruct._atomic import atomic_write
from consistruct.cli.commands.plan import show
from consistruct.cli.options import AsJson
from consistruct.cli.output import check_writable
from consistruct.cli.progress import progress_bar

__all__ = ["audit", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    only: list[str] = typer.Option([], help="Name of an entry; repeatable. Default: all."),
    quick: bool = typer.Option(False, "--quick", help="Use smaller grids: under a minute."),
    list_entries: bool = typer.Option(False, "--list", help="List the entries and exit."),
    write_docs: Path | None = typer.Option(
        None, help="Folder for the pages of the documentation: an index and one per entry."
    ),
    json_output: AsJson = False,
) -> None:
    """Does the paper say the truth? Each claim is checked by computation, with its verdict.

    Exit code 1 if a verdict is not the expected one: something in the code has changed.

    Example: consistruct audit --quick --only prop-hamming
    """
    # imported here: other commands do not need the solvers that the checks compare
    from consistruct.audit import ENTRIES, audit_dict, audit_pages, audit_text, run_audit

    if list_entries:
        for entry in ENTRIES.values():
            typer.echo(f"{entry.name:<34}{entry.kind:<14}{entry.place}")
        return
    if write_docs is not None:
        check_writable(write_docs / "index.md")
        if only:
            raise ValueError("--write-docs needs all entries; leave out --only")
    with progress_bar("claims") as step:
        report = run_audit(only or None, quick=quick, progress=step)
    if write_docs is not None:
        _write_pages(write_docs, audit_pages(report))
    show(audit_dict(report) if json_output else audit_text(report))
    if not report.passed:
        raise typer.Exit(1)


def _write_pages(folder: Path, pages: dict[str, str]) -> None:
    """Each page whole or not at all; pages of entries that are gone go too."""
    for name, text in pages.items():
        with atomic_write(folder / name) as stream:
            stream.write(text.encode())
    for page in folder.glob("*.md"):
        if page.name not in pages:
            page.unlink()
