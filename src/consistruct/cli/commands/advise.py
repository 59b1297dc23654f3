"""``consistruct advise``: which scores and which surrogate, for a budget or an accuracy."""

from __future__ import annotations

import typer

from consistruct.cli.commands.plan import read_loss, show
from consistruct.cli.file_checks import FileCommand
from consistruct.cli.options import AsJson, CostRows, QBound, Radius
from consistruct.cli.progress import progress_bar

__all__ = ["advise", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=FileCommand)(advise)


def advise(
    loss: str = typer.Argument(help="Loss spec, e.g. mixed:20x5:0.1, ordinal:8."),
    eps: float | None = typer.Option(None, help="Accuracy: excess task risk to reach."),
    n_samples: int | None = typer.Option(None, help="Budget: number of examples."),
    candidate: list[str] = typer.Option(
        [], help="Additional scores to compare, e.g. blocks:4x25; repeatable."
    ),
    radius: Radius = 1.0,
    q_bound: QBound = 1.0,
    total: bool = typer.Option(False, "--total", help="Include the approximation error in eps."),
    surrogates: bool = typer.Option(True, help="Also compare surrogates."),
    rows: CostRows = "",
    json_output: AsJson = False,
) -> None:
    """Which scores, and which surrogate, have the best guarantee for this budget or accuracy?

    Example: consistruct advise mixed:20x5:0.1 --eps 0.3
    """
    from consistruct.guarantees import advise as find_advice
    from consistruct.report.guarantees import advice_dict, advice_text
    from consistruct.structures.registry import parse_scores

    task = read_loss(loss, rows)
    with progress_bar("score families") as step:
        advice = find_advice(
            task,
            n_samples=n_samples,
            eps=eps,
            candidates=tuple(parse_scores(spec, task) for spec in candidate),
            radius=radius,
            q_bound=q_bound,
            total=total,
            surrogates=surrogates,
            progress=step,
        )
    show(advice_dict(advice) if json_output else advice_text(advice))
