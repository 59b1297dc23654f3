"""``consistruct report``: how good a fitted model is on its loss, against baselines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consistruct.cli import sequences
from consistruct.cli.choices import query_arguments
from consistruct.cli.file_checks import FileCommand
from consistruct.cli.model_data import columns_of, read_like_training, using
from consistruct.cli.options import (
    AsJson,
    DataFile,
    DropMissingTarget,
    Figures,
    Format,
    HtmlPage,
    ModelPath,
    Part,
    Seed,
    Target,
)
from consistruct.cli.progress import progress_bar
from consistruct.cli.report_files import write_file, write_tables
from consistruct.cli.risk import is_controlled

if TYPE_CHECKING:  # imported inside the functions: see cli/commands/learning.py
    from consistruct.learning.files.persistence import ModelFile

__all__ = ["register", "report"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=FileCommand)(report)


def report(
    context: typer.Context,
    model: ModelPath,
    data: DataFile,
    train: Annotated[
        Path | None,
        typer.Option(
            help="Data that the model was fitted on: adds baselines and a learning curve."
        ),
    ] = None,
    target: Target = None,
    drop_missing_target: DropMissingTarget = False,
    html: HtmlPage = None,
    plot: Figures = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="Write the data behind the figures: FILE.csv, FILE.path.csv, …"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Skip everything that needs refits: the learning curve and the bandwidths.",
        ),
    ] = False,
    seed: Seed = 0,
    part: Part = None,
    train_part: Annotated[
        str | None, typer.Option(help="NPZ with several parts: which one to use for --train.")
    ] = None,
    format: Format = None,  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """Evaluate a fitted model on held-out data: is it better than the usual baselines?

    Example: consistruct report animals.safetensors test.csv --train train.csv --html report.html

    Tables, rankings and sequences: consistruct report chunks.safetensors test.conll --train
    train.conll
    """
    from rich.console import Console

    from consistruct.charts import chart_picture
    from consistruct.learning.files.persistence import read_model
    from consistruct.report import learning_report

    stored = read_model(model)
    if is_controlled(stored.estimator):
        raise ValueError(
            f"{model} contains a model with a guarantee; consistruct evaluate states whether it is "
            "kept, and a report needs a model fitted without --risk"
        )
    if sequences.is_sequence_model(stored, model, data, format):
        allowed, reason = sequences.REPORT_OPTIONS, "does not apply to a sequence model"
        sequences.refuse_options(context, allowed, reason)
        given = sequences.report_inputs(stored, model, data, train)
    else:
        given = _table_inputs(
            stored, model, data, train, target, part, train_part, format, drop_missing_target
        )
    with progress_bar("fits for the report") as step, using(model):
        found = learning_report(
            stored.estimator,
            **given,
            learning_curve=not quick,
            bandwidths=not quick,
            random_state=seed,
            progress=step,
        )
    written = []
    if html is not None:
        written += [write_file(html, found.to_html())]
    if plot is not None:
        picture = chart_picture(found.charts(), plot.suffix[1:].lower())
        written += [write_file(plot, picture)]
    if csv is not None:
        written += write_tables(csv, found.tables())
    if as_json:
        typer.echo(json.dumps(found.as_dict(), allow_nan=False))
        return
    Console().print(found.to_text())
    for path in written:
        typer.echo(f"written: {path}")


def _table_inputs(
    stored: ModelFile,
    model: Path,
    data: Path,
    train: Path | None,
    target: list[str] | None,
    part: str | None,
    train_part: str | None,
    format: str | None,  # noqa: A002
    drop: bool,
) -> dict[str, Any]:
    """Rows of a table, or items of queries, held out and, if given, trained on."""
    examples, layout = read_like_training(stored, model, data, target, part, format, drop)
    queries = query_arguments(stored.estimator, examples)
    found = {
        "X": examples.X,
        "y": examples.y,
        "label_names": layout.label_names,
        "columns": columns_of(stored, model),
        **queries,
    }
    if train is not None:
        rows, _ = read_like_training(stored, model, train, target, train_part, format, drop)
        found |= {"X_train": rows.X, "y_train": rows.y}
        if queries:
            found["groups_train"] = rows.groups
    return found
