"""``consistruct check``: does a certificate prove what it claims?"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import typer

from consistruct.cli.options import AsJson
from consistruct.cli.output import show

__all__ = ["check", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(check)


def check(
    certificate: Path = typer.Argument(help="A file that certificate.to_json() wrote."),
    json_output: AsJson = False,
) -> None:
    """Does this certificate prove its claim? Exact arithmetic, no solver, no tolerance.

    Exit code 0: proved; 1: refused, with the reason; 2: not a certificate.

    Example: consistruct check certificate.json
    """
    from consistruct.calibration.proofs import KINDS, from_json
    from consistruct.calibration.proofs.base import down, up
    from consistruct.calibration.proofs.checkers.listed import number
    from consistruct.exceptions import CertificateError

    try:
        text = certificate.read_text(encoding="utf-8")
        document = json.loads(text)
    except ValueError as error:  # not UTF-8, or not JSON
        raise ValueError(f"{certificate} is not JSON: {error}") from None
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(
            f"{certificate} is not a certificate: its kind must be one of "
            f"{', '.join(sorted(KINDS))}, got {kind!r}"
        )
    result: dict[str, Any] = {"command": "check", "kind": kind, "verdict": "proved", "reason": None}
    try:
        found = from_json(text)
        found.check()
    except CertificateError as error:
        result.update(verdict="refused", reason=str(error))
    else:
        result.update(
            eps=down(number(found.eps)),
            log_scale=found.log_scale,
            lower=down(number(found.lower)),
            upper=up(number(found.upper)),  # infinite where it is beyond all floats
        )
    if json_output:
        finite = {k: None if v == math.inf else v for k, v in result.items()}  # JSON has no inf
        show(finite, True)
    elif result["verdict"] == "proved":
        factor = "" if found.log_scale == 0 else f" · exp({found.log_scale:.6g})"
        lower, upper = result["lower"], result["upper"]
        typer.echo(f"proved: H({result['eps']:.17g}) in [{lower:.17g}, {upper:.17g}]{factor}")
    else:
        typer.echo(f"refused: {result['reason']}")
    if result["verdict"] == "refused":
        raise typer.Exit(1)
