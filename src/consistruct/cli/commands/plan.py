"""``consistruct plan``: what more rows bring, from a pilot data set; or a loss's worst case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import typer

from consistruct.cli.file_checks import FileCommand
from consistruct.cli.options import (
    AsJson,
    CostRows,
    DateFormat,
    Decimal,
    DropMissingTarget,
    Format,
    Groups,
    Missing,
    Part,
    QBound,
    Radius,
    Seed,
    Target,
    Template,
)
from consistruct.cli.sequences import refuse_options
from consistruct.exceptions import LossSpecError

# solvers and tables take longer to import than `consistruct --help` may: inside the commands
if TYPE_CHECKING:
    from consistruct.losses.base import Loss

__all__ = ["plan", "read_loss", "register", "show"]

WORST_CASE_OPTIONS = (
    "subject",
    "eps",
    "scores",
    "radius",
    "q_bound",
    "rows",
    "table",
    "json_output",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=FileCommand)(plan)


def plan(
    context: typer.Context,
    subject: str = typer.Argument(
        "",
        metavar="[DATA]",
        help="Pilot data set (.csv, .parquet, .arff, .npz, .svm, .conll), with --loss. Without "
        "--loss: a loss spec, e.g. hamming:1000, to print its worst-case guarantee.",
    ),
    loss: str = typer.Option("", help="What predictions on DATA are judged by, as in `fit`."),
    target: Target = None,
    want: list[float] = typer.Option(
        [],
        help="Say how many rows it takes to reach this loss (or this value of a metric). "
        "Repeatable.",
    ),
    confidence: float = typer.Option(0.9, help="Confidence of the forecast intervals."),
    learner: str = typer.Option("auto", help="As in `fit`; auto chooses once, on all rows."),
    settings: list[str] = typer.Option(
        [], "--set", help="Setting of the learner, name=value, as in `fit`."
    ),
    groups: Groups = None,
    ignore: list[str] = typer.Option([], help="Column to leave out."),
    columns: list[str] = typer.Option([], help="What a column is, name=kind, as in `fit`."),
    missing: Missing = None,
    decimal: Decimal = None,
    date_format: DateFormat = None,
    drop_missing_target: DropMissingTarget = False,
    template: Template = None,
    part: Part = None,
    format: Format = None,  # noqa: A002
    seed: Seed = 0,
    jobs: int | None = typer.Option(None, help="Parallel work."),
    eps: float | None = typer.Option(
        None,
        help="Worst case: excess task risk over the best rule with the scores; default: a tenth of "
        "what the best constant prediction loses, on DATA if given.",
    ),
    scores: str = typer.Option(
        "own", help="Worst case: own, full, blocks:4x25, separable, chain, matrix:FILE.csv."
    ),
    radius: Radius = 1.0,
    q_bound: QBound = 1.0,
    rows: CostRows = "",
    table: bool = typer.Option(False, "--table", help="Show the paper's losses at growing sizes."),
    json_output: AsJson = False,
) -> None:
    """What would more rows bring? Forecast the loss at 2, 4 and 10 times the rows of a pilot.

    From data: consistruct plan pilot.csv --target kind --loss cost:costs.csv --rows true --want 0.2

    Without data it is the worst case over all distributions.

    Example: consistruct plan hamming:1000 --eps 0.1
    """
    if loss:
        if table or not subject:
            raise LossSpecError("--loss needs a pilot data set: consistruct plan DATA --loss …")
        _plan_data(
            Path(subject),
            {"eps": eps, "scores": scores, "radius": radius, "q_bound": q_bound},
            want,
            confidence,
            json_output,
            loss=loss,
            rows=rows or None,
            target=target,
            groups=groups,
            ignore=ignore,
            columns=columns,
            missing=missing or (),
            decimal=decimal,
            date_format=date_format,
            drop_missing_target=drop_missing_target,
            template=template,
            part=part,
            format=format,
            learner=learner,
            settings=settings,
            seed=seed,
            jobs=jobs,
        )
        return
    refuse_options(context, WORST_CASE_OPTIONS, "applies only to a pilot data set: pass --loss too")
    if table == bool(subject):
        raise LossSpecError(
            "pass a pilot data set with --loss, or a loss, for example hamming:1000, or --table "
            "for a comparison"
        )
    if subject and ":" not in subject and Path(subject).is_file():
        raise LossSpecError(
            f"{subject} is a file: use --loss to say what predictions are judged by, for example "
            "--loss zero-one, and --target to say which column is predicted"
        )
    from consistruct.guarantees import plan_table, sample_complexity
    from consistruct.report.guarantees import plan_dict, plan_table_dict, plan_table_text, plan_text
    from consistruct.structures.registry import parse_scores

    if table:
        if eps is None:
            raise LossSpecError("--table compares losses at one accuracy: set it with --eps")
        lines = plan_table(eps=eps, radius=radius, q_bound=q_bound)
        show(plan_table_dict(lines) if json_output else plan_table_text(lines))
        return
    task = read_loss(subject, rows)
    family = parse_scores(scores, task)
    found = sample_complexity(task, family, eps=eps, radius=radius, q_bound=q_bound)
    show(plan_dict(found) if json_output else plan_text(found))


def _plan_data(
    data: Path,
    worst_case: dict[str, Any],
    want: list[float],
    confidence: float,
    json_output: bool,
    **options: Any,
) -> None:
    from consistruct.cli.pilot import forecast_of, read_pilot, worst_case_of
    from consistruct.report.forecasts import forecast_dict, forecast_text

    pilot = read_pilot(data, **options)
    found = forecast_of(pilot, confidence, options["seed"])
    needed = [found.rows_for(value) for value in want]
    worst = worst_case_of(pilot, **worst_case)
    render = forecast_dict if json_output else forecast_text
    show(render(found, needed, worst))


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
