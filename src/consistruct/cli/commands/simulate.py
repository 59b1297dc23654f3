"""``consistruct simulate``: the guarantee beside what the paper's algorithm really does."""

from __future__ import annotations

from typing import cast

import typer

from consistruct._validation import read_integer
from consistruct.cli.commands.plan import read_loss, show
from consistruct.cli.options import AsJson, CostRows
from consistruct.cli.progress import progress_bar
from consistruct.exceptions import LossSpecError

__all__ = ["register", "simulate"]

MOST_STEPS, MOST_REPEATS, MOST_ANCHORS = 10_000_000, 10_000, 1000


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(simulate)


def simulate(
    loss: str = typer.Argument("", help="Loss spec, e.g. hamming:20, mixed:20x5:0.1."),
    scores: str = typer.Option("own", help="own, full, blocks:20x5, separable, chain."),
    constants: str = typer.Option("known-optimum", help="paper, sharp or known-optimum."),
    steps: str = typer.Option("10,100,1000,10000", help="Numbers of examples, comma-separated."),
    repeats: int = typer.Option(10, min=2, max=MOST_REPEATS, help="Independent runs per number."),
    anchors: int = typer.Option(
        4, min=2, max=MOST_ANCHORS, help="Number of distributions to learn."
    ),
    noise: float = typer.Option(0.5, help="Share of uniform noise in each distribution."),
    rows: CostRows = "",
    study: bool = typer.Option(False, "--study", help="Study all losses: what makes one hard?"),
    eps: float = typer.Option(0.02, help="With --study: excess task risk to reach."),
    seed: int = typer.Option(0, min=0, help="Random seed of the problem and of the draws."),
    json_output: AsJson = False,
) -> None:
    """Learn synthetic problems with known risks; print measured excess risks and their bounds.

    Exit code 1 if a bound does not hold. Example: consistruct simulate hamming:20
    """
    if study == bool(loss):
        raise LossSpecError("pass a loss, for example hamming:20, or --study for a comparison")
    from consistruct.guarantees import hardness_study, learning_curve, synthetic_problem
    from consistruct.guarantees.simulation.curves import Variant
    from consistruct.report.simulation import (
        hardness_dict,
        hardness_text,
        simulation_dict,
        simulation_text,
    )
    from consistruct.scores.spec import parse_scores

    variant = cast(Variant, constants.replace("-", " "))
    with progress_bar("simulation") as step:
        if study:
            found = hardness_study(
                eps=eps, variant=variant, repeats=repeats, random_state=seed, progress=step
            )
            result = hardness_dict(found) if json_output else hardness_text(found)
        else:
            task = read_loss(loss, rows)
            problem = synthetic_problem(
                task,
                parse_scores(scores, task),
                n_anchors=anchors,
                noise=noise,
                random_state=seed,
            )
            curve = learning_curve(
                problem,
                _counts(steps),
                variant=variant,
                repeats=repeats,
                random_state=seed,
                progress=step,
            )
            result = simulation_dict(curve) if json_output else simulation_text(curve)
    show(result)
    if not study and not curve.holds:
        raise typer.Exit(1)


def _counts(text: str) -> tuple[int, ...]:
    try:
        counts = tuple(read_integer(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"--steps must be integers separated by commas, got {text[:40]!r}"
        ) from None
    if max(counts) > MOST_STEPS:
        raise ValueError(f"--steps may be at most {MOST_STEPS}, got {max(counts)}")
    return counts
