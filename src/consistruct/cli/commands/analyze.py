"""``consistruct analyze``: consistency, hardness and the calibration function of a loss."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from consistruct._budgets import SPECS
from consistruct._validation import read_number
from consistruct.cli.commands.plan import read_loss
from consistruct.cli.file_checks import FileCommand
from consistruct.cli.progress import progress_bar
from consistruct.cli.report_files import write_file, write_tables
from consistruct.exceptions import ConsistructError, LossSpecError

# imported inside the functions: other commands must not wait for losses and the engine
if TYPE_CHECKING:
    from consistruct.calibration import CalibrationFunction
    from consistruct.losses.base import Loss
from consistruct.cli.options import AsJson, CostRows, Figures, HtmlPage, QBound, Radius

__all__ = ["analyze", "register"]

POINTS = 21
POINTS_OF_A_FORMULA = 101  # for pictures: jumps and bends are seen, and cost nothing


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=FileCommand)(analyze)


def analyze(
    loss: str = typer.Argument(
        help="Loss spec, e.g. hamming:10, mixed:4x25:0.4, cost:FILE.csv; or a metric with "
        "--confusion."
    ),
    scores: str = typer.Option(
        "own", help="own, full, blocks:4x25, separable, chain, sortable, matrix:FILE.csv."
    ),
    surrogate: str = typer.Option(
        "quadratic", help="quadratic, logistic, log, hinge, …; an unknown name lists them all."
    ),
    decoding: str = typer.Option("argmax", help="argmax, or bayes for log and sparsemax."),
    eps: str = typer.Option("", help="Values of eps, comma-separated; default: a grid."),
    points: int | None = typer.Option(
        None,
        min=2,
        max=SPECS.points,
        help="Number of grid values from 0 to max_eps; default: 21, more for exact pictures.",
    ),
    at: float | None = typer.Option(
        None,
        help="The eps at which to report the worst case and the sample size; default: a tenth of "
        "what the best constant prediction loses.",
    ),
    radius: Radius = 1.0,
    q_bound: QBound = 1.0,
    distributions: str = typer.Option(
        "",
        help="Restrict the distributions of the true label: noise:0.05 (certain labels apart from "
        "noise), margin:0.3 (the best leads the second by that much), cap:0.1 (no probability "
        "above 0.9).",
    ),
    confusion: Path | None = typer.Option(
        None,
        help="For a metric such as macro-f1: CSV file with the confusion matrix at which its costs "
        "are analyzed; --rows gives its orientation.",
    ),
    rows: CostRows = "",
    json_output: AsJson = False,
    html: HtmlPage = None,
    plot: Figures = None,
    csv: Path | None = typer.Option(
        None, help="Write the data behind the figures: FILE.csv, and FILE.worst_case.csv."
    ),
    jobs: int = typer.Option(1, min=1, help="Threads for explicit cost matrices."),
) -> None:
    """Is learning consistent for this loss, and how hard is it?

    Example: consistruct analyze hamming:10 --scores full --html report.html
    """
    from rich.console import Console

    from consistruct.charts import chart_picture
    from consistruct.report import calibration_report

    task = read_loss(loss, rows) if confusion is None else _linearized(loss, confusion, rows)
    curve, messages = _curve(task, scores, surrogate, decoding, distributions, jobs)
    number = _number(points, curve, pictures=html is not None or plot is not None)
    with progress_bar("calibration function") as step:
        report = calibration_report(
            curve,
            _values(eps),
            points=number,
            at=at,
            radius=radius,
            q_bound=q_bound,
            warnings=messages,
            progress=step,
        )
    written = []
    if html is not None:
        written += [write_file(html, report.to_html())]
    if plot is not None:
        picture = chart_picture(report.charts(), plot.suffix[1:].lower())
        written += [write_file(plot, picture)]
    if csv is not None:
        written += write_tables(csv, report.tables())
    if json_output:
        typer.echo(json.dumps(report.as_dict(), allow_nan=False))
        return
    Console().print(report.to_text())
    for path in written:
        typer.echo(f"written: {path}")


def _linearized(spec: str, confusion: Path, rows: str) -> Loss:
    """The cost matrix that a metric is, to first order, at a confusion."""
    from consistruct.losses import parse_metric, read_cost_csv

    if rows not in ("", "pred", "true"):
        raise LossSpecError(f"--rows must be pred or true, got {rows!r}")
    try:
        table = read_cost_csv(confusion, rows=rows or None)  # type: ignore[arg-type]
    except ConsistructError as error:
        raise LossSpecError(str(error).replace("cost matrix", "confusion matrix")) from None
    costs = parse_metric(spec).linearized(table.M, rows="pred")
    return dataclasses.replace(table, M=costs.M, rows="pred")


def _curve(
    task: Loss, scores: str, surrogate: str, decoding: str, distributions: str, jobs: int
) -> tuple[CalibrationFunction, list[str]]:
    """The curve, and what the result depends on, which is also messages in one line on stderr.

    Own scores are those that the surrogate is trained with.
    """
    from consistruct.calibration import LabelOrderWarning, RankWarning, calibration_function
    from consistruct.structures.registry import parse_scores

    space = None if scores == "own" else parse_scores(scores, task)
    with warnings.catch_warnings(record=True) as caught:
        for kind in (LabelOrderWarning, RankWarning):
            warnings.simplefilter("always", kind)
        curve = calibration_function(
            task, space, surrogate, decoding, distributions=distributions or None, jobs=jobs
        )
    messages = [str(warning.message) for warning in caught]
    for message in messages:
        typer.echo(f"consistruct: warning: {message}", err=True)
    return curve, messages


def _number(points: int | None, curve: CalibrationFunction, *, pictures: bool) -> int:
    """How many values of ε, where none are given."""
    fine = pictures and curve.method.startswith("closed form")
    return points or (POINTS_OF_A_FORMULA if fine else POINTS)


def _values(text: str) -> np.ndarray | None:
    """The values of --eps, or None."""
    if not text:
        return None
    try:
        values = np.array([read_number(part) for part in text.split(",")])
    except ValueError:
        raise LossSpecError(f"--eps must be numbers separated by commas, got {text!r}") from None
    if not np.isfinite(values).all() or (values < 0).any():
        raise LossSpecError(f"--eps must be finite and non-negative, got {text!r}")
    return values
