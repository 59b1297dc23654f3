"""The command line: parse, call, render. No mathematics here.

Exit codes: 0 done, 1 a check failed, 2 bad usage or input (one clear line, no traceback).
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import typer

from consistruct import __version__
from consistruct.cli import (
    advise,
    analyze,
    audit,
    check,
    demo,
    explore,
    figures,
    learning,
    plan,
    report,
    simulate,
)
from consistruct.exceptions import ConsistructError

__all__ = ["app", "main"]

PACKAGE = Path(__file__).resolve().parents[1]
UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # of the click that typer uses

app = typer.Typer(
    help="Train for the loss you are judged by, and know beforehand how hard it is.\n\n"
    "Example: consistruct analyze hamming:10 --html report.html\n\n"
    "Every command explains itself: consistruct fit --help",
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
simulate.register(app)
figures.register(app)
audit.register(app)
check.register(app)
learning.register(app)
report.register(app)
explore.register(app)


def main() -> None:
    """Entry point: what the user can mend becomes one line on stderr and exit code 2.

    That is bad usage, the package's own errors, and any ValueError or TypeError that a ``raise`` of
    this package threw on purpose. Others are programming errors and keep their traceback.
    """
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        message = error.format_message()  # type: ignore[attr-defined]
        # without arguments it is the whole help text
        typer.echo(message if "\n" in message else f"consistruct: {message}", err=True)
        sys.exit(2)
    except typer.Abort:
        sys.exit(1)
    except (ValueError, TypeError) as error:
        if not (isinstance(error, ConsistructError) or raised_on_purpose(error)):
            raise
        typer.echo(f"consistruct: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def raised_on_purpose(error: Exception) -> bool:
    """Whether a ``raise`` statement of this package made the error, not a call that failed."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    path = trace.tb_frame.f_code.co_filename
    if not Path(path).is_relative_to(PACKAGE):
        return False
    return linecache.getline(path, trace.tb_lineno).lstrip().startswith("raise ")
