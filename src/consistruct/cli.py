"""The command line: parse, call, render. No mathematics here.

Exit codes: 0 done, 1 a check failed, 2 bad usage or input (one clear line, no traceback).
"""

from __future__ import annotations

import sys
import time

import typer
from rich.console import Console
from rich.table import Table

from consistruct import __version__, cli_learning, losses
from consistruct.exceptions import ConsistructError, describe_count
from consistruct.losses.base import Loss

__all__ = ["app", "main"]

app = typer.Typer(
    help="Train for the loss you are judged by, and know beforehand how hard it is.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


def _version(show: bool) -> None:
    if show:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    pass


cli_learning.register(app)

DEMO_LOSSES: tuple[Loss, ...] = (
    losses.ZeroOne(10),
    losses.Block((25,) * 4),
    losses.Ordinal(5, 2.0),
    losses.Hamming(1000),
    losses.Hamming(1000, 26),
)


@app.command()
def demo() -> None:
    """Show on embedded examples what the package does.

    Example: consistruct demo
    """
    console = Console()
    table = Table(title="Losses and the scores that express them")
    for column in ("loss", "predictions", "rank", "effective classes", "seconds"):
        table.add_column(column, justify="left" if column == "loss" else "right")
    for loss in DEMO_LOSSES:
        start = time.perf_counter()
        space = loss.score_space
        rank, effective = space.rank, space.effective_classes()
        seconds = time.perf_counter() - start
        row = (repr(loss), describe_count(loss.n_labels), str(rank), f"{effective:g}")
        table.add_row(*row, f"{seconds:.4f}")
    console.print(table)


def main() -> None:
    """Entry point: package errors become one line on stderr and exit code 2."""
    try:
        app()
    except ConsistructError as error:
        typer.echo(f"consistruct: {error}", err=True)
        sys.exit(2)
