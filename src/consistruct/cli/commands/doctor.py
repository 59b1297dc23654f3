"""``consistruct doctor``: is this installation sound?"""

from __future__ import annotations

import typer

from consistruct.cli.file_checks import FileCommand
from consistruct.cli.options import AsJson
from consistruct.cli.output import show

__all__ = ["doctor", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=FileCommand)(doctor)


def doctor(
    json_output: AsJson = False,
) -> None:
    """Print versions, threads, compile cache and extras, and run a self-test.

    Exit code 0: all is well; 1: something is not, and the last lines say what.

    Example: consistruct doctor
    """
    from consistruct.doctor import examine

    found = examine()
    if json_output:
        show({"command": "doctor", **found.as_dict()}, True)
    else:
        extras = {
            extra.name: f"missing {', '.join(extra.missing)}: {extra.remedy}"
            if extra.missing
            else ", ".join(f"{name} {text}" for name, text in extra.versions.items())
            for extra in found.extras
        }
        tests = {
            trial.name: f"{'passed' if trial.error is None else 'FAILED'} ({trial.seconds:.1f} s)"
            for trial in found.trials
        }
        result = {
            "consistruct": found.consistruct,
            "python": found.python,
            "versions": found.versions,
            "threads": found.threads,
            "compile cache": found.cache,
            "extras": extras,
            "self-test": tests,
            "verdict": "all is well" if not found.problems else "problems found, see below",
        }
        show(result, False)
    for problem in found.problems:
        typer.echo(f"consistruct: {problem}", err=True)
    if found.problems:
        raise typer.Exit(1)
