"""The command line: parse, call, render. No mathematics here.

Exit codes: 0 done, 1 a check failed, 2 bad usage or input, 70 a bug of ours; always one clear line
and no traceback (`failures`).
"""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import typer

from consistruct.cli.commands import (
    advise,
    analyze,
    check,
    decide,
    demo,
    doctor,
    evaluate,
    explore,
    learning,
    lint,
    plan,
    report,
)
from consistruct.cli.failures import (
    BAD_INPUT,
    INTERRUPTED,
    Commands,
    check_output,
    end_output,
    one_line,
    tell,
)
from consistruct.exceptions import ConsistructError

__all__ = ["app", "main"]

UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # of the click that typer uses

app = typer.Typer(
    cls=Commands,
    help="Train for the loss you are judged by, and know beforehand how hard it is.\n\nExample: "
    "consistruct analyze hamming:10 --html report.html\n\nFor help on a command: consistruct "
    "fit --help",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        from consistruct import __version__

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
lint.register(app)
decide.register(app)
check.register(app)
learning.register(app)
evaluate.register(app)
report.register(app)
explore.register(app)
doctor.register(app)

MOVED = ("audit", "figures", "simulate")  # commands of 0.1 that are about the paper


def _moved(context: typer.Context) -> None:
    name = context.info_name
    raise ConsistructError(
        f"{name} is not part of the package any more: in a clone of the repository, run make paper "
        f"(everything) or python -m paper {name}"
    )


for command in MOVED:
    app.command(
        command,
        hidden=True,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(_moved)


def main() -> None:
    """Entry point. `Commands` reports failures; bad usage, Ctrl-C and a full disk end here."""
    warnings.showwarning = _show_warning
    check_output()
    logging.lastResort = _WarningHandler(logging.WARNING)  # there is no other handler
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        message = error.format_message()  # type: ignore[attr-defined]
        # without arguments it is the whole help text
        typer.echo(message if "\n" in message else f"consistruct: {message}", err=True)
        code = BAD_INPUT
    except KeyboardInterrupt:  # before a command has begun
        code = INTERRUPTED
    if code == INTERRUPTED:
        tell("interrupted", INTERRUPTED)
    sys.exit(end_output(code if isinstance(code, int) else 0))


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning in one line, without the place in the source."""
    tell(f"warning: {one_line(message)}", 0)


class _WarningHandler(logging.Handler):
    """Shows what the package logs as a warning like any other warning."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(f"warning: {one_line(record.getMessage())}", 0)
