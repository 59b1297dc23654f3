"""The commands fit and predict on data files. Parse, call, render.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 2 bad usage or input (one
clear line, no traceback).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from consistruct.cli import folders, sequences
from consistruct.cli.choices import count_or_file, estimator_for, query_arguments, read_table
from consistruct.cli.failures import show_exactly
from consistruct.cli.file_checks import FileCommand
from consistruct.cli.model_data import (
    format_of,
    keep_columns,
    layout_of,
    notes_of,
    of_metric,
    read_like_training,
    shape_of,
    using,
)
from consistruct.cli.options import (
    AsJson,
    DataFile,
    DateFormat,
    Decimal,
    DropMissingTarget,
    Format,
    Groups,
    HashBits,
    Labels,
    LabelsAt,
    Missing,
    ModelPath,
    Part,
    Seed,
    TagScheme,
    Target,
    Template,
    Transitions,
)
from consistruct.cli.output import show
from consistruct.cli.predictions import predictions_csv
from consistruct.cli.progress import activity
from consistruct.cli.report_files import write_file
from consistruct.cli.risk import (
    Calibrate,
    Confidence,
    PolicyName,
    Risk,
    calibration_result,
    is_controlled,
    with_risk,
)

# scikit-learn takes a second to import, so `consistruct --help` must not: learning is imported
# inside the commands

__all__ = ["read_like_training", "register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (fit, predict):
        app.command(cls=FileCommand)(command)


def fit(
    context: typer.Context,
    data: DataFile,
    model: Annotated[Path, typer.Option(help="File to write the model to.")],
    target: Target = None,
    loss: Annotated[
        str,
        typer.Option(
            help="What predictions are judged by: zero-one, hamming, fbeta, ordinal, abstain::0.3, "
            "cost:FILE.csv, tree:FILE.csv, ndcg, precision-at::5, … (sizes may be omitted); "
            "or a metric: macro-f1, g-mean, mcc, qwk, precision-at-recall:0.9, …"
        ),
    ] = "zero-one",
    rows: Annotated[
        str | None,
        typer.Option(help="What the rows of a cost file are: pred or true."),
    ] = None,
    learner: Annotated[
        str,
        typer.Option(
            help="auto (several models, chosen on out-of-fold rows), ridge, linear, probabilities, "
            "regressor, items; for column files, chain."
        ),
    ] = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Setting of the learner, name=value: --learner ridge --set alpha=0.1."
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Maximum number of passes over the data, for stochastic solvers."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="For stochastic solvers: file that stores the state after every epoch; after an "
            "interruption, the same command continues from it and gives the identical result."
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Seconds that the fit of --learner auto may take; the first, fastest model is "
            "always fitted."
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Annotated[int | None, typer.Option(help="Parallel work.")] = None,
    groups: Groups = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out.")] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="What a column is, name=kind with number, category, date or drop, where its cells "
            "do not say so: --columns zip=category."
        ),
    ] = None,
    missing: Missing = None,
    decimal: Decimal = None,
    date_format: DateFormat = None,
    drop_missing_target: DropMissingTarget = False,
    labels: Labels = None,
    labels_at: LabelsAt = "end",
    part: Part = None,
    template: Template = None,
    tag_scheme: TagScheme = None,
    transitions: Transitions = "shared",
    hash_bits: HashBits = None,
    risk: Risk = None,
    confidence: Confidence = None,
    policy: PolicyName = None,
    calibrate: Calibrate = None,
    format: Format = None,  # noqa: A002
    resume: folders.Resume = False,
    every: folders.Every = 60.0,
    held_out: folders.HeldOut = None,
    passes: folders.Passes = 1,
    n_features: folders.NFeatures = None,
    as_json: AsJson = False,
) -> None:
    """Learn from a data file, or a folder of them, for the loss that predictions are judged by.

    Example: consistruct fit animals.csv --target kind --loss cost:costs.csv --rows true
    --model animals.safetensors

    More rows than memory: consistruct fit folder/ --target kind --learner ridge --set
    features=linear --model animals.safetensors

    Sequences: consistruct fit train.conll --template chunking.txt --tag-scheme bio --model
    chunks.safetensors
    """
    from consistruct.learning.files.persistence import save

    if sequences.is_column_file(data, format):
        allowed, reason = sequences.FIT_OPTIONS, "does not apply to a column file"
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
    if data.is_dir():
        result = folders.fit_folder(
            context, data, model, target=target, ignore=ignore, loss=loss, rows=rows,
            learner=learner, settings=settings, checkpoint=checkpoint, seed=seed, resume=resume,
            every=every, held_out=held_out, passes=passes, n_features=n_features,
            hash_bits=hash_bits, drop_missing_target=drop_missing_target,
        )  # fmt: skip
        show(result, as_json)
        return
    plain = set(context.params) - set(folders.FOLDER_ONLY)
    sequences.refuse_options(context, plain, "applies only to folders of files")
    others = set(context.params) - set(sequences.COLUMN_OPTIONS)
    sequences.refuse_options(
        context, others, "applies only to column files (.conll, or --format conll)"
    )
    examples = read_table(
        data,
        format=format,
        target=target,
        groups=groups,
        ignore=ignore,
        labels=count_or_file(labels),
        labels_at=labels_at,
        part=part,
        columns=columns,
        missing=missing or (),
        decimal=decimal,
        date_format=date_format,
        drop_missing_target=drop_missing_target,
    )
    estimator = estimator_for(
        examples,
        loss=loss,
        rows=rows,
        learner=learner,
        settings=settings,
        epochs=epochs,
        checkpoint=checkpoint,
        time_limit=time_limit,
        random_state=seed,
        n_jobs=jobs,
    )
    queries = query_arguments(estimator, examples)
    estimator = with_risk(estimator, risk, confidence, policy, calibrate, seed)
    start = time.perf_counter()
    with activity(f"fitting {shape_of(examples)}"):
        estimator.fit(_table_of(examples.X, queries), examples.y, **queries)
    seconds = time.perf_counter() - start
    keep_columns(estimator, examples)
    save(estimator, model, notes=notes_of(examples))
    losses = estimator.task_losses(examples.X, examples.y, **queries)
    guaranteed = calibration_result(estimator) if is_controlled(estimator) else {}
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
            **({"columns": {c.name: str(c) for c in examples.columns}} if examples.columns else {}),
            **_what_was_learned(getattr(estimator, "estimator_", estimator)),
            **of_metric(getattr(estimator, "estimator_", estimator)),
            "training_loss": float(losses.mean()),
            **guaranteed,
            "seconds": seconds,
        },
        as_json,
    )


def _table_of(X: Any, queries: dict[str, Any]) -> Any:
    """Items with missing cells as a table, whose cells are filled; an array may have none."""
    gaps = queries and isinstance(X, np.ndarray) and X.dtype != object and np.isnan(X).any()
    return X.astype(object) if gaps else X


def _what_was_learned(estimator: Any) -> dict[str, Any]:
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
            help="File for the predictions (CSV; for a column file, its columns and the predicted "
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
    result: dict[str, Any]
    expected = None
    stored = read_model(model)
    if sequences.is_sequence_model(stored, model, data, format):
        allowed, reason = sequences.PREDICT_OPTIONS, "does not apply to a sequence model"
        sequences.refuse_options(context, allowed, reason)
        with using(model):
            text, predictions = sequences.predict_columns(stored, model, data)
    elif data.is_dir():
        with using(model):
            result = folders.predict_folder(
                context, stored, model, data, out, expected_loss, predictions_csv
            )
        show(result, as_json)
        return
    else:
        layout = layout_of(stored, model)
        with activity(f"reading {data.name}"):
            examples = read_data(
                data, format=format or format_of(layout, data), part=part, like=layout,
                with_target=False,
            )  # fmt: skip
        with activity(f"predicting {shape_of(examples)}"), using(model):
            queries = query_arguments(stored.estimator, examples)
            predictions = np.asarray(stored.estimator.predict(examples.X, **queries))
            if expected_loss:
                expected = stored.estimator.predict_expected_loss(examples.X)
            text = predictions_csv(predictions, expected, layout, ranks=bool(queries))
    if out is not None:
        write_file(out, text)
    if as_json:
        result = {
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
        show_exactly(text)
    else:
        typer.echo(f"{len(predictions)} predictions written to {out}")
