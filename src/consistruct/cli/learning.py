"""The commands on data files: fit, predict, evaluate. Parse, call, render.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 a check failed
(``evaluate --at-most``), 2 bad usage or input (one clear line, no traceback).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from consistruct._atomic import atomic_write
from consistruct._csv import csv_text
from consistruct.cli import sequences
from consistruct.cli.choices import (
    choose_estimator,
    choose_loss,
    choose_model,
    count_or_file,
    query_arguments,
)
from consistruct.cli.model_data import (
    format_of,
    layout_of,
    of_metric,
    read_like_training,
    shape_of,
)
from consistruct.cli.options import (
    AsJson,
    DataFile,
    Format,
    HashBits,
    Labels,
    LabelsAt,
    ModelPath,
    Part,
    TagScheme,
    Target,
    Template,
    Transitions,
)
from consistruct.cli.output import check_distinct, check_writable, loss_file, show
from consistruct.cli.progress import activity

# scikit-learn takes a second to import, so `consistruct --help` must not: learning is imported
# inside the commands.
if TYPE_CHECKING:
    from consistruct.learning.files.data import Layout
    from consistruct.learning.files.persistence import ModelFile

__all__ = ["read_like_training", "register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (fit, predict, evaluate):
        app.command()(command)


def fit(
    context: typer.Context,
    data: DataFile,
    model: Annotated[Path, typer.Option(help="Where to write the model.")],
    target: Target = None,
    loss: Annotated[
        str,
        typer.Option(
            help="What predictions are judged by: zero-one, hamming, fbeta, ordinal, "
            "abstain::0.3, cost:FILE.csv, tree:FILE.csv, ndcg, precision-at::5, … (sizes may be "
            "left out); or a metric: macro-f1, g-mean, mcc, qwk, precision-at-recall:0.9, …"
        ),
    ] = "zero-one",
    rows: Annotated[
        str | None,
        typer.Option(help="What the rows of a cost file are: pred or true."),
    ] = None,
    learner: Annotated[
        str,
        typer.Option(
            help="auto (several models, chosen on left-out rows), ridge, linear, probabilities, "
            "regressor, items; for column files chain."
        ),
    ] = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Setting of the learner, name=value: --learner ridge --set alpha=0.1."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Most passes over the data, for stochastic solvers.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="For stochastic solvers: file that keeps the state after every epoch; the same "
            "command goes on from it after an interruption, to the identical result."
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds after which --learner auto tries nothing more.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Parallel work.")] = None,
    groups: Annotated[str | None, typer.Option(help="Column with query or group.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out.")] = None,
    labels: Labels = None,
    labels_at: LabelsAt = "end",
    part: Part = None,
    template: Template = None,
    tag_scheme: TagScheme = None,
    transitions: Transitions = "shared",
    hash_bits: HashBits = None,
    format: Format = None,  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """Learn from a data file, for the loss that predictions are judged by.

    Example: consistruct fit animals.csv --target kind --loss cost:costs.csv --rows true
    --model animals.safetensors

    Sequences: consistruct fit train.conll --template chunking.txt --tag-scheme bio --model
    chunks.safetensors
    """
    from consistruct.learning.files.data import read_data
    from consistruct.learning.files.persistence import save

    if sequences.is_column_file(data, format):
        allowed, reason = sequences.FIT_OPTIONS, "does not go with a column file"
        sequences.refuse_options(context, allowed, reason)
        result = sequences.fit_columns(
            data,
            model,
            template=template,
            target=target,
            learner=learner,
            settings=settings,
            checkpoint=checkpoint,
            epochs=epochs,
            random_state=seed,
            tag_scheme=tag_scheme,
            transitions=transitions,
            hash_bits=hash_bits,
        )
        show(result, as_json)
        return
    others = set(context.params) - set(sequences.COLUMN_OPTIONS)
    sequences.refuse_options(context, others, "is about column files (.conll, or --format conll)")
    check_distinct(model=model, checkpoint=checkpoint)
    listed = count_or_file(labels)
    read = {
        "data": data,
        "loss": loss_file(loss),
        "list_of_labels": listed if isinstance(listed, Path) else None,
    }
    check_writable(model, **read)
    if checkpoint is not None:
        check_writable(checkpoint, **read)
    with activity(f"reading {data.name}"):
        examples = read_data(
            data,
            format=format,
            target=target or (),
            groups=groups,
            ignore=ignore or (),
            labels=listed,
            labels_at=labels_at,
            part=part,
        )
    estimator = choose_estimator(
        examples,
        loss=choose_loss(loss, rows),
        model=choose_model(learner, settings, epochs, checkpoint),
        time_limit=time_limit,
        random_state=seed,
        n_jobs=jobs,
    )
    start = time.perf_counter()
    with activity(f"fitting {shape_of(examples)}"):
        queries = query_arguments(estimator, examples)
        estimator.fit(examples.X, examples.y, **queries)
    seconds = time.perf_counter() - start
    save(estimator, model, notes={"layout": examples.layout.as_dict()})
    losses = estimator.task_losses(examples.X, examples.y, **queries)
    show(
        {
            "command": "fit",
            "data": str(data),
            "model": str(model),
            "loss": repr(estimator.loss_),
            "estimator": type(estimator).__name__,
            "n_examples": int(examples.X.shape[0]),
            **({"n_queries": len(losses)} if queries else {}),
            "n_features": int(examples.X.shape[1]),
            **_what_was_learnt(estimator),
            **of_metric(estimator),
            "training_loss": float(losses.mean()),
            "seconds": seconds,
        },
        as_json,
    )


def _what_was_learnt(estimator: Any) -> dict[str, Any]:
    """The models behind an estimator, with their weights, or the penalty of a single one."""
    if hasattr(estimator, "portfolio_"):
        used = [entry for entry in estimator.portfolio_ if entry["weight"] > 0]
        return {"models": {entry["name"]: round(entry["weight"], 3) for entry in used}}
    found: dict[str, Any] = {"models": {type(estimator.model_).__name__: 1.0}}
    if hasattr(estimator.model_, "alpha_"):
        found["alpha"] = float(estimator.model_.alpha_)
    return found


def predict(
    context: typer.Context,
    model: ModelPath,
    data: DataFile,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the predictions (CSV; of a column file its columns and the predicted "
            "tag); default: stdout."
        ),
    ] = None,
    expected_loss: Annotated[
        bool, typer.Option("--expected-loss", help="Add the estimated loss of each prediction.")
    ] = False,
    part: Part = None,
    format: Format = None,  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """Predict for the rows of a data file, whose columns are found by name.

    Example: consistruct predict animals.safetensors new.csv --out predictions.csv
    """
    from consistruct.learning.files.data import read_data
    from consistruct.learning.files.persistence import read_model

    predictions: Any
    expected = None
    stored = read_model(model)
    if out is not None:
        check_writable(out, model=model, data=data)
    if sequences.is_sequence_model(stored, model, data, format):
        allowed, reason = sequences.PREDICT_OPTIONS, "does not go with a sequence model"
        sequences.refuse_options(context, allowed, reason)
        text, predictions = sequences.predict_columns(stored, model, data)
    else:
        layout = layout_of(stored, model)
        with activity(f"reading {data.name}"):
            examples = read_data(
                data, format=format or format_of(layout, data), part=part, like=layout,
                with_target=False,
            )  # fmt: skip
        with activity(f"predicting {shape_of(examples)}"):
            queries = query_arguments(stored.estimator, examples)
            predictions = np.asarray(stored.estimator.predict(examples.X, **queries))
            if expected_loss:
                expected = stored.estimator.predict_expected_loss(examples.X)
        text = _predictions_csv(predictions, expected, layout, ranks=bool(queries))
    if out is not None:
        with atomic_write(out) as stream:
            stream.write(text.encode())
    if as_json:
        result: dict[str, Any] = {
            "command": "predict",
            "model": str(model),
            "data": str(data),
            "n_examples": len(predictions),
        }
        if out is not None:
            result["out"] = str(out)
        else:
            listed = predictions if isinstance(predictions, list) else predictions.tolist()
            result["predictions"] = listed
            if expected is not None:
                result["expected_loss"] = expected.tolist()
        show(result, as_json)
    elif out is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"{len(predictions)} predictions written to {out}")


def evaluate(
    context: typer.Context,
    model: ModelPath,
    data: DataFile,
    target: Target = None,
    at_most: Annotated[
        float | None,
        typer.Option(
            help="Exit with code 1 if the mean loss (of sequences: the token error) is greater."
        ),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(help="Exit with code 1 if the metric that the model is for is smaller."),
    ] = None,
    part: Part = None,
    format: Format = None,  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """Measure the task loss of a model on a data file with truths.

    Example: consistruct evaluate animals.safetensors test.csv --at-most 0.2
    """
    from consistruct.learning.files.persistence import read_model

    stored = read_model(model)
    if sequences.is_sequence_model(stored, model, data, format):
        allowed, reason = sequences.EVALUATE_OPTIONS, "does not go with a sequence model"
        sequences.refuse_options(context, allowed, reason)
        result = sequences.evaluate_columns(stored, model, data)
        name, judged = "token error", result["token_error"]
    else:
        result = _evaluate_rows(stored, model, data, target, part, format)
        name, judged = "mean loss", result["mean_loss"]
    if at_least is not None and "metric_value" not in result:
        raise ValueError("--at-least is about metrics (macro-f1, …); this model is for a loss")
    above = at_most is None or judged <= at_most
    reached = at_least is None or result["metric_value"] >= at_least
    if at_most is not None:
        result |= {"at_most": at_most}
    if at_least is not None:
        result |= {"at_least": at_least}
    if at_most is not None or at_least is not None:
        result |= {"passed": above and reached}
    show(result, as_json)
    if not above:
        typer.echo(f"consistruct: {name} {judged:.6g} is above --at-most {at_most:g}", err=True)
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
) -> dict[str, Any]:
    examples, _ = read_like_training(stored, model, data, target, part, format)
    with activity(f"evaluating on {shape_of(examples)}"):
        queries = query_arguments(stored.estimator, examples)
        losses = np.asarray(stored.estimator.task_losses(examples.X, examples.y, **queries))
        metric = {}
        if hasattr(stored.estimator, "metric_"):
            value = stored.estimator.score(examples.X, examples.y)
            metric = {"metric": repr(stored.estimator.metric_), "metric_value": value}
    return {
        "command": "evaluate",
        "model": str(model),
        "data": str(data),
        **metric,
        "loss": repr(stored.estimator.loss_),
        "n_queries" if queries else "n_examples": len(losses),
        "mean_loss": float(losses.mean()),
        # of a mean of independent losses; none for a single example
        "standard_error": (
            float(losses.std(ddof=1) / np.sqrt(len(losses))) if len(losses) > 1 else None
        ),
    }


# --- rendering -----------------------------------------------------------------------------------


def _predictions_csv(predictions: Any, expected: Any, layout: Layout, *, ranks: bool) -> str:
    columns = predictions.reshape(len(predictions), -1)
    names = layout.label_names if layout.label_names and predictions.ndim > 1 else None
    if ranks:
        header = ["rank"]
    elif predictions.ndim == 1:
        header = [layout.target[0] if layout.target and layout.feature_names else "prediction"]
    elif names is not None and len(names) == columns.shape[1]:
        header = list(names)
    else:
        header = [f"prediction_{part}" for part in range(columns.shape[1])]
    rows = columns.tolist()
    if expected is not None:
        header = [*header, "expected_loss"]
        rows = [[*row, float(value)] for row, value in zip(rows, expected, strict=True)]
    return csv_text(header, rows)
