"""``consistruct plan``: how many examples a target accuracy takes, before any training."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, cast

import typer

from consistruct.exceptions import LossSpecError

# solvers and tables take longer to import than `consistruct --help` may: inside the commands
if TYPE_CHECKING:
    from consistruct.losses.base import Loss

__all__ = ["plan", "read_loss", "register", "show"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def plan(
    loss: str = typer.Argument("", help="Loss spec, e.g. hamming:1000, mixed:4x25:0.4."),
    eps: float | None = typer.Option(
        None,
        help="Excess task risk over the best rule with the scores; if not given, a tenth of what "
        "the best constant prediction loses.",
    ),
    scores: str = typer.Option(
        "own", help="own, full, blocks:4x25, separable, chain, matrix:FILE.csv."
    ),
    radius: float = typer.Option(1.0, help="R, the largest norm of the features."),
    q_bound: float = typer.Option(1.0, help="Q, the sum of the norms of the conditional laws."),
    rows: str = typer.Option("", help="What the rows of a cost file are: pred or true."),
    table: bool = typer.Option(False, "--table", help="The paper's losses over growing sizes."),
    json_output: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """How many examples does this accuracy take, by the paper's constants and by sharp ones?

    Example: consistruct plan hamming:1000 --eps 0.1
    """
    if table == bool(loss):
        raise LossSpecError("give a loss, for example hamming:1000, or --table for a comparison")
    from consistruct.guarantees import plan_table, sample_complexity
    from consistruct.report import plan_dict, plan_table_dict, plan_table_text, plan_text
    from consistruct.scores.spec import parse_scores

    if table:
        if eps is None:
            raise LossSpecError("--table compares losses at one accuracy: give it by --eps")
        lines = plan_table(eps=eps, radius=radius, q_bound=q_bound)
        show(plan_table_dict(lines) if json_output else plan_table_text(lines))
        return
    task = read_loss(loss, rows)
    family = parse_scores(scores, task)
    found = sample_complexity(task, family, eps=eps, radius=radius, q_bound=q_bound)
    show(plan_dict(found) if json_output else plan_text(found))


def read_loss(spec: str, rows: str) -> Loss:
    """The loss that a spec names."""
    from consistruct.losses import parse_loss

    if rows not in ("", "pred", "true"):
        raise LossSpecError(f"--rows must be pred or true, got {rows!r}")
    return parse_loss(spec, rows=cast(Literal["pred", "true"] | None, rows or None))


def show(result: Any) -> None:
    """A dict as one line of JSON, anything else as text."""
    if isinstance(result, dict):
        typer.echo(json.dumps(result, allow_nan=False))
    else:
        from rich.console import Console

        Console().print(result)
