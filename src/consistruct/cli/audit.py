"""``consistruct audit``: the claims of the paper, checked now."""

from __future__ import annotations

from pathlib import Path

import typer

from consistruct._atomic import atomic_write
from consistruct.cli.output import check_writable
from consistruct.cli.plan import show
from consistruct.cli.progress import progress_bar

__all__ = ["audit", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    only: list[str] = typer.Option([], help="Name of an entry; repeatable. All if not given."),
    quick: bool = typer.Option(False, "--quick", help="Smaller grids: under a minute."),
    list_entries: bool = typer.Option(False, "--list", help="Only name the entries."),
    write_docs: Path | None = typer.Option(None, help="Write the page of the documentation."),
    json_output: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Does the paper say the truth? Each claim is checked by computation, with its verdict.

    Exit code 1 if a verdict is not the expected one: something in the code has changed.

    Example: consistruct audit --quick --only prop-hamming
    """
    # imported here: other commands do not need the solvers that the checks compare
    from consistruct.audit import ENTRIES, audit_dict, audit_page, audit_text, run_audit

    if list_entries:
        for entry in ENTRIES.values():
            typer.echo(f"{entry.name:<34}{entry.kind:<14}{entry.place}")
        return
    if write_docs is not None:
        check_writable(write_docs)
        if only:
            raise ValueError("--write-docs needs all entries; leave out --only")
    with progress_bar("claims") as step:
        report = run_audit(only or None, quick=quick, progress=step)
    if write_docs is not None:
        with atomic_write(write_docs) as stream:
            stream.write(audit_page(report).encode())
    show(audit_dict(report) if json_output else audit_text(report))
    if not report.passed:
        raise typer.Exit(1)
