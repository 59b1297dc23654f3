"""``consistruct check``: does a certificate prove what it claims, and about what?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import typer

from consistruct.cli.commands.plan import read_loss
from consistruct.cli.file_checks import FileCommand
from consistruct.cli.options import AsJson, CostRows
from consistruct.cli.output import show

__all__ = ["check", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=FileCommand)(check)


def check(
    certificate: Path = typer.Argument(help="A file that certificate.to_json() wrote."),
    loss: str = typer.Option(
        "", help="Your own loss, e.g. ordinal:4 or cost:FILE.csv: a claim about another is refused."
    ),
    scores: str = typer.Option(
        "",
        help="Your own scores (own, full, matrix:FILE.csv, …), with --loss: a claim about others "
        "is refused.",
    ),
    rows: CostRows = "",
    json_output: AsJson = False,
) -> None:
    """Does this certificate prove its claim? Exact arithmetic, no solver, no tolerance.

    Exit code 0: proved; 1: refused, with the reason; 2: not a certificate.

    Example: consistruct check certificate.json --loss ordinal:4 --scores full
    """
    from consistruct._budgets import unreadable_table
    from consistruct.calibration.proofs.base import down, up
    from consistruct.calibration.proofs.comparing import check_space
    from consistruct.calibration.proofs.files import from_document, read_document
    from consistruct.certificates import sentence
    from consistruct.certificates.exact import fraction_text
    from consistruct.exceptions import CertificateError

    if scores and not loss:
        raise ValueError("--scores are compared on a loss: pass --loss too")
    try:
        fault = unreadable_table(certificate)
        if fault is not None:
            raise CertificateError(fault)
        document = read_document(certificate.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{certificate} is not JSON: {error}") from None
    except CertificateError as error:
        raise ValueError(f"{certificate}: {error}") from None
    own = read_loss(loss, rows) if loss else None
    space = None if own is None or not scores else check_space(own, scores)
    result: dict[str, Any] = {
        "command": "check",
        "kind": document["kind"],
        "verdict": "proved",
        "reason": None,
    }
    try:
        found = from_document(document)
        found.check(own, space)
    except CertificateError as error:
        result.update(verdict="refused", reason=str(error))
        if json_output:
            show(result, True)
        else:
            typer.echo(f"refused: {result['reason']}")
        raise typer.Exit(1) from None
    if json_output:
        lower, upper = found.exact_interval
        statement = found.statement
        ends = down(lower), up(upper)  # infinite where they are beyond all floats
        result.update(
            eps=fraction_text(found.exact_eps),
            lower=fraction_text(lower),
            upper=fraction_text(upper),
            interval=[end if math.isfinite(end) else None for end in ends],
            **statement.words,
            sha256=statement.sha256,
        )
        show(result, True)
        return
    typer.echo("proved: " + "\n".join(sentence(document)))
    if own is not None:
        typer.echo(f"  {'compared':<14}this is {own!r}" + (f" with {space!r}" if space else ""))
