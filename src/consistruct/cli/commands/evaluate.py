"""The command evaluate: what a model loses on a data file with true labels.

Exit codes: 0 done, 1 a check failed (``--at-most``, ``--at-least``), 2 bad usage or input.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from consistruct.cli import folders, sequences
from consistruct.cli.choices import query_arguments
from consistruct.cli.file_checks import FileCommand
from consistruct.cli.model_data import read_like_training, shape_of, using
from consistruct.cli.options import (
    AsJson,
    DataFile,
    DropMissingTarget,
    Format,
    ModelPath,
    Part,
    Target,
)
from consistruct.cli.output import show
from consistruct.cli.progress import activity
from consistruct.cli.risk import evaluation_result, is_controlled

if TYPE_CHECKING:  # imported inside the functions: see cli/commands/learning.py
    from consistruct.learning.files.persistence import ModelFile

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(cls=FileCommand)(evaluate)


def evaluate(
    context: typer.Context,
    model: ModelPath,
    data: DataFile,
    target: Target = None,
    at_most: Annotated[
        float | None,
        typer.Option(
            help="Exit with code 1 if the mean loss (for sequences, the token error) is greater "
            "than this."
        ),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            help="Exit with code 1 if the metric that the model was trained for is below this."
        ),
    ] = None,
    drop_missing_target: DropMissingTarget = False,
    part: Part = None,
    format: Format = None,  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """Measure the task loss of a model on a data file with true labels.

    Example: consistruct evaluate animals.safetensors test.csv --at-most 0.2
    """
    from consistruct.learning.files.persistence import read_model

    stored = read_model(model)
    if sequences.is_sequence_model(stored, model, data, format):
        allowed, reason = sequences.EVALUATE_OPTIONS, "does not apply to a sequence model"
        sequences.refuse_options(context, allowed, reason)
        with using(model):
            result = sequences.evaluate_columns(stored, model, data)
        name, value = "token error", result["token_error"]
    elif data.is_dir():
        with using(model):
            result = folders.evaluate_folder(
                context, stored, model, data, target, drop_missing_target
            )
        name, value = "mean loss", result["mean_loss"]
    else:
        with using(model):
            result = _evaluate_rows(stored, model, data, target, part, format, drop_missing_target)
        name, value = "mean loss", result["mean_loss"]
    if at_least is not None and "metric_value" not in result:
        raise ValueError(
            "--at-least applies only to metrics (macro-f1, …), but this model was trained for a "
            "loss"
        )
    above = at_most is None or value <= at_most
    reached = at_least is None or result["metric_value"] >= at_least
    if at_most is not None:
        result |= {"at_most": at_most}
    if at_least is not None:
        result |= {"at_least": at_least}
    if at_most is not None or at_least is not None:
        result |= {"passed": above and reached}
    show(result, as_json)
    if not above:
        typer.echo(f"consistruct: {name} {value:.6g} is above --at-most {at_most:g}", err=True)
    if not reached:
        value = result["metric_value"]
        typer.echo(f"consistruct: metric {value:.6g} is below --at-least {at_least:g}", err=True)
    if not (above and reached):
        raise typer.Exit(1)


def _evaluate_rows(
    stored: ModelFile,
    model: Path,
    data: Path,
    target: list[str] | None,
    part: str | None,
    format: str | None,  # noqa: A002
    drop_missing_target: bool,
) -> dict[str, Any]:
    from consistruct.learning.evaluation.intervals import loss_interval

    examples, _ = read_like_training(stored, model, data, target, part, format, drop_missing_target)
    with activity(f"evaluating on {shape_of(examples)}"):
        estimator = stored.estimator
        queries = query_arguments(estimator, examples)
        summary = {
            "command": "evaluate",
            "model": str(model),
            "data": str(data),
            "loss": repr(estimator.loss_),
        }
        if is_controlled(estimator):
            return summary | evaluation_result(estimator, examples.X, examples.y, queries)
        losses = np.asarray(estimator.task_losses(examples.X, examples.y, **queries))
        metric = {}
        if hasattr(estimator, "metric_"):
            value = estimator.score(examples.X, examples.y)
            metric = {"metric": repr(estimator.metric_), "metric_value": value}
    return {
        **summary,
        **metric,
        "n_queries" if queries else "n_examples": len(losses),
        "mean_loss": float(losses.mean()),
        "interval": loss_interval(estimator.loss_, losses).as_list(),  # 95 %, any number of rows
        # of a mean of independent losses; none for a single example
        "standard_error": (
            float(losses.std(ddof=1) / np.sqrt(len(losses))) if len(losses) > 1 else None
        ),
    }
