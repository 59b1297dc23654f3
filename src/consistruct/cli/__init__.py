"""The command line: parse, call, render. No mathematics here.

Exit codes: 0 done, 1 a check failed, 2 bad usage or input (one clear line, no traceback).
"""

from __future__ import annotations

import sys

import typer

from consistruct import __version__
from consistruct.cli import advise, analyze, demo, figures, learning, plan
from consistruct.exceptions import ConsistructError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Train for the loss you are judged by, and know beforehand how hard it is.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
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


demo.register(app)
analyze.register(app)
plan.register(app)
advise.register(app)
figures.register(app)
learning.register(app)


def main() -> None:
    """Entry point: package errors become one line on stderr and exit code 2."""
    try:
        app()
    except ConsistructError as error:
        typer.echo(f"consistruct: {error}", err=True)
        sys.exit(2)
