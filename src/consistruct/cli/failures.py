"""The one place where the command line turns a failure into a line and an exit code.

Exit codes: 0 done, 1 a check failed, 2 bad usage or input, 70 a bug of ours, 130 interrupted.
"""

from __future__ import annotations

import io
import linecache
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from consistruct.exceptions import ConsistructError

__all__ = [
    "BAD_INPUT",
    "BUG",
    "INTERRUPTED",
    "Commands",
    "check_output",
    "end_output",
    "is_for_users",
    "is_usage",
    "one_line",
    "show_exactly",
    "tell",
]

BAD_INPUT, BUG, INTERRUPTED = 2, 70, 130
CLOSED_PIPE = 141  # what shells report of a program whose reader went away
LONGEST = 1000  # characters of a message; a hostile file can make it as long as itself
PACKAGE = Path(__file__).resolve().parents[1]
# whose `raise` statements speak to the user: ours, and the checks of inputs by scikit-learn
VALIDATORS = ("sklearn", "typer", "click")


class Commands(TyperGroup):
    """The group of all commands: whatever one of them raises becomes one line here."""

    def invoke(self, ctx: Any) -> Any:
        with reported_failures():
            return super().invoke(ctx)

    # what fails while options are read, such as a help text that cannot be written
    def main(self, *args: Any, **options: Any) -> Any:
        try:
            with reported_failures():
                return super().main(*args, **options)
        except typer.Exit as stop:
            if options.get("standalone_mode", True):
                sys.exit(stop.exit_code)
            return stop.exit_code


@contextmanager
def reported_failures() -> Iterator[None]:
    """Turn what the body raises into one line on stderr and an exit code."""
    try:
        yield
    except (KeyboardInterrupt, typer.Abort):
        raise typer.Exit(INTERRUPTED) from None  # `main` tells it, wherever it came
    except BrokenPipeError:
        _drop_output()
        raise typer.Exit(CLOSED_PIPE) from None
    except OSError as error:
        raise typer.Exit(tell(_file_error(error), BAD_INPUT)) from None
    except MemoryError as error:
        detail = one_line(error) or "no more could be allocated"
        raise typer.Exit(
            tell(f"not enough memory ({detail}); use smaller sizes or fewer rows", BAD_INPUT)
        ) from None
    except Exception as error:
        if is_usage(error):
            raise
        if is_for_users(error):
            raise typer.Exit(tell(one_line(error), BAD_INPUT)) from None
        raise typer.Exit(_tell_bug(error)) from None


def tell(line: str, code: int) -> int:
    """Say one line on stderr; the code, to exit with."""
    typer.echo(f"consistruct: {line}", err=True)
    return code


def one_line(message: object) -> str:
    """A message without line breaks, cut where it is long.

    >>> one_line(ValueError("first\\n  second"))
    'first second'
    """
    text = " ".join(str(message).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def is_for_users(error: Exception) -> bool:
    """Whether an error speaks to the user: a `raise` made it, not a call that failed."""
    if isinstance(error, ConsistructError):
        return True
    if not isinstance(error, ValueError | TypeError | ImportError):  # an extra may be missing
        return False
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    if module.partition(".")[0] in VALIDATORS:
        return True
    if not Path(code.co_filename).is_relative_to(PACKAGE):
        return False
    return linecache.getline(code.co_filename, trace.tb_lineno).lstrip().startswith("raise ")


def check_output() -> None:
    """Refuse a closed standard output, and let any encoding show any text.

    A closed descriptor would be the next file that is opened, and whatever a library prints would
    go into it: so all three are opened first.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", closefd=False
    )
    if sys.stdout is None:
        tell("standard output is closed; send it to a file or to /dev/null", BAD_INPUT)
        sys.exit(BAD_INPUT)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # ε as \u03b5 in ASCII


def show_exactly(text: str) -> None:
    """Print data, which nothing may replace characters of."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"standard output takes {encoding}, which cannot write {text[error.start]!a}; name a "
            "file with --out, or set PYTHONIOENCODING=utf-8"
        ) from None
    typer.echo(text, nl=False)


def end_output(code: int) -> int:
    """Write out what is still buffered; `code`, or that of a full disk or a closed pipe."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return code or CLOSED_PIPE
    except OSError as error:
        _drop_output()
        if code == 0:
            return tell(f"cannot write to standard output: {error.strerror or error}", BAD_INPUT)
    return code


def _drop_output() -> None:
    """Let the interpreter end without another attempt to write."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # no descriptor behind it, as in tests
        return


def _file_error(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return one_line(f"{error.filename}: {reason}" if error.filename is not None else reason)


def is_usage(error: Exception) -> bool:
    """Whether typer itself handles the error: bad options, or the exit that a command requests."""
    base: type[Exception] = typer.BadParameter.__bases__[0]
    return isinstance(error, base | typer.Exit)


def _tell_bug(error: Exception) -> int:
    """Keep the trace in a file: it is for us, the line is for the user."""
    from consistruct import __version__

    kind = one_line(f"{type(error).__name__}: {error}")[:200]
    text = "".join(traceback.format_exception(error))
    try:
        descriptor, name = tempfile.mkstemp(prefix="consistruct-trace-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"consistruct {__version__}\n{sys.argv!r}\n{text}")
    except OSError:
        typer.echo(text, err=True)
        return tell(
            f"this is a bug in consistruct ({kind}); the traceback is above, please report it", BUG
        )
    return tell(
        f"this is a bug in consistruct ({kind}); the traceback is in {name}, please report it", BUG
    )
