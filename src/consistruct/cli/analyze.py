"""``consistruct analyze``: consistency, hardness and the calibration function of a loss."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Literal, cast

import numpy as np
import typer
from rich.console import Console

from consistruct._atomic import atomic_write
from consistruct.calibration import (
    SURROGATES,
    CalibrationFunction,
    LabelOrderWarning,
    calibration_function,
)
from consistruct.cli.progress import progress_bar
from consistruct.exceptions import ConsistructError, LossSpecError
from consistruct.losses import parse_loss
from consistruct.losses.base import Loss
from consistruct.report import calibration_report, calibration_text
from consistruct.scores.spec import parse_scores

__all__ = ["analyze", "register", "write_plot"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(analyze)


def analyze(
    loss: str = typer.Argument(help="Loss spec, e.g. hamming:10, mixed:4x25:0.4, cost:FILE.csv."),
    scores: str = typer.Option(
        "own", help="own, full, blocks:4x25, separable, chain, sortable, matrix:FILE.csv."
    ),
    surrogate: str = typer.Option("quadratic", help=f"One of {', '.join(SURROGATES)}."),
    decoding: str = typer.Option("argmax", help="argmax, or bayes for log and sparsemax."),
    eps: str = typer.Option("", help="Values of eps, comma-separated; a grid if not given."),
    points: int = typer.Option(21, min=2, help="Number of grid values from 0 to max_eps."),
    rows: str = typer.Option("", help="What the rows of a cost file are: pred or true."),
    json_output: bool = typer.Option(False, "--json", help="Print one JSON object."),
    plot: Path | None = typer.Option(None, help="Write the curve to a PNG, SVG or PDF file."),
    jobs: int = typer.Option(1, min=1, help="Threads for explicit cost matrices."),
) -> None:
    """Is learning consistent for this loss, and how hard is it?

    Example: consistruct analyze hamming:10 --scores full --eps 0.25,0.5
    """
    if rows not in ("", "pred", "true"):
        raise LossSpecError(f"--rows must be pred or true, got {rows!r}")
    task = parse_loss(loss, rows=cast(Literal["pred", "true"] | None, rows or None))
    curve = _curve(task, scores, surrogate, decoding, jobs)
    grid = _grid(eps, points, curve)
    with progress_bar("calibration function") as step:
        report = calibration_report(curve, grid, progress=step)
    if plot is not None:
        write_plot(curve, plot)
    if json_output:
        typer.echo(json.dumps(report.as_dict(), allow_nan=False))
        return
    console = Console()
    console.print(calibration_text(report))
    if plot is not None:
        console.print(f"plot written to {plot}")


def _curve(
    task: Loss, scores: str, surrogate: str, decoding: str, jobs: int
) -> CalibrationFunction:
    """The curve; what the result depends on is told in one line on stderr.

    Own scores of another surrogate than the quadratic are those that it is trained with.
    """
    other = surrogate != "quadratic"
    space = None if other and scores == "own" else parse_scores(scores, task)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LabelOrderWarning)
        curve = calibration_function(task, space, surrogate, decoding, jobs=jobs)
    for warning in caught:
        typer.echo(f"consistruct: warning: {warning.message}", err=True)
    return curve


def _grid(text: str, points: int, curve: CalibrationFunction) -> np.ndarray:
    if not text:
        return np.linspace(0.0, curve.max_eps, points)
    try:
        values = np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise LossSpecError(f"--eps must be numbers separated by commas, got {text!r}") from None
    if not np.isfinite(values).all() or (values < 0).any():
        raise LossSpecError(f"--eps must be finite and non-negative, got {text!r}")
    return values


def write_plot(curve: CalibrationFunction, path: Path) -> None:
    """Write the curve as a picture; the suffix says which kind."""
    import matplotlib as mpl

    mpl.use("Agg")
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise ConsistructError(f"--plot writes .png, .svg or .pdf files, got {str(path)!r}")
    figure = curve.plot().get_figure(root=True)
    assert figure is not None
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=150)
    try:
        with atomic_write(path) as stream:
            stream.write(picture.getvalue())
    except OSError as error:
        raise ConsistructError(f"{path} cannot be written: {error.strerror}") from None
