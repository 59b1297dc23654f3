"""The commands on data files: fit, predict, evaluate. Parse, call, render.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 a check failed
(``evaluate --at-most``), 2 bad usage or input (one clear line, no traceback).
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import typer

from consistruct._atomic import atomic_write
from consistruct.cli.options import (
    AsJson,
    DataFile,
    Format,
    Labels,
    LabelsAt,
    ModelPath,
    Part,
    Target,
)
from consistruct.cli.progress import activity
from consistruct.exceptions import ModelFileError
from consistruct.losses import parse_loss

# scikit-learn takes a second to import, so `consistruct --help` must not: learning is imported
# inside the commands.
if TYPE_CHECKING:
    from consistruct.learning.data_files import DataSet, Layout
    from consistruct.learning.persistence import ModelFile

__all__ = ["register"]

SCHEMA_VERSION = 1


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (fit, predict, evaluate):
        app.command()(command)


def fit(
    data: DataFile,
    model: Annotated[Path, typer.Option(help="Where to write the model.")],
    target: Target = None,
    loss: Annotated[
        str,
        typer.Option(
            help="What predictions are judged by: zero-one, hamming, ordinal, abstain::0.3, "
            "cost:FILE.csv, tree:FILE.csv, … (sizes may be left out)."
        ),
    ] = "zero-one",
    rows: Annotated[
        str | None,
        typer.Option(help="What the rows of a cost file are: pred or true."),
    ] = None,
    surrogate: Annotated[str, typer.Option(help="quadratic, logistic, log, …")] = "quadratic",
    decoding: Annotated[str, typer.Option(help="argmax or bayes.")] = "argmax",
    features: Annotated[
        str, typer.Option(help="auto, linear, rbf, laplace, poly, nystroem or random.")
    ] = "auto",
    n_components: Annotated[int | None, typer.Option(help="Landmarks or random features.")] = None,
    solver: Annotated[str, typer.Option(help="auto, closed_form, sgd, paper_sgd, lbfgs.")] = "auto",
    alpha: Annotated[str, typer.Option(help="Penalty: auto or a number.")] = "auto",
    epochs: Annotated[
        int | None, typer.Option(help="Most passes over the data, for --solver sgd.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="For --solver sgd: file that keeps the state after every epoch; the same command "
            "goes on from it after an interruption, to the identical result."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Parallel work.")] = None,
    groups: Annotated[str | None, typer.Option(help="Column with query or group.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out.")] = None,
    labels: Labels = None,
    labels_at: LabelsAt = "end",
    part: Part = None,
    format: Format = None,  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """Learn from a data file, for the loss that predictions are judged by.

    Example: consistruct fit animals.csv --target kind --loss cost:costs.csv --rows true
    --model animals.safetensors
    """
    from consistruct.learning.data_files import read_data
    from consistruct.learning.persistence import save

    with _one_line_errors():
        _check_writable(model)
        with activity(f"reading {data.name}"):
            examples = read_data(
                data,
                format=format,
                target=target or (),
                groups=groups,
                ignore=ignore or (),
                labels=_count_or_file(labels),
                labels_at=labels_at,
                part=part,
            )
        estimator = _estimator(
            examples,
            loss=_loss(loss, rows),
            surrogate=surrogate,
            decoding=decoding,
            features=features,
            n_components=n_components,
            solver=_solver(solver, _alpha(alpha), epochs, checkpoint),
            alpha=_alpha(alpha),
            random_state=seed,
            n_jobs=jobs,
        )
        start = time.perf_counter()
        with activity(f"fitting {_shape(examples)}"):
            estimator.fit(examples.X, examples.y)
        seconds = time.perf_counter() - start
        save(estimator, model, notes={"layout": examples.layout.as_dict()})
        losses = estimator.task_losses(examples.X, examples.y)
    _show(
        {
            "command": "fit",
            "data": str(data),
            "model": str(model),
            "loss": repr(estimator.loss_),
            "estimator": type(estimator).__name__,
            "n_examples": int(examples.X.shape[0]),
            "n_features": int(examples.X.shape[1]),
            "alpha": float(estimator.alpha_),
            "n_iter": int(estimator.n_iter_),
            "training_loss": float(losses.mean()),
            "seconds": seconds,
        },
        as_json,
    )


def predict(
    model: ModelPath,
    data: DataFile,
    out: Annotated[
        Path | None, typer.Option(help="CSV file for the predictions; default: stdout.")
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
    from consistruct.learning.data_files import read_data

    with _one_line_errors():
        stored, layout = _read_model(model)
        if out is not None:
            _check_writable(out)
        with activity(f"reading {data.name}"):
            examples = read_data(
                data, format=format or _format(layout, data), part=part, like=layout,
                with_target=False,
            )  # fmt: skip
        with activity(f"predicting {_shape(examples)}"):
            predictions = np.asarray(stored.estimator.predict(examples.X))
            expected = stored.estimator.predict_expected_loss(examples.X) if expected_loss else None
        text = _predictions_csv(predictions, expected, layout)
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
            result["predictions"] = predictions.tolist()
            if expected is not None:
                result["expected_loss"] = expected.tolist()
        _show(result, as_json)
    elif out is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"{len(predictions)} predictions written to {out}")


def evaluate(
    model: ModelPath,
    data: DataFile,
    target: Target = None,
    at_most: Annotated[
        float | None, typer.Option(help="Exit with code 1 if the mean loss is greater.")
    ] = None,
    part: Part = None,
    format: Format = None,  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """Measure the task loss of a model on a data file with truths.

    Example: consistruct evaluate animals.safetensors test.csv --at-most 0.2
    """
    from consistruct.learning.data_files import read_data

    with _one_line_errors():
        stored, layout = _read_model(model)
        with activity(f"reading {data.name}"):
            examples = read_data(
                data, format=format or _format(layout, data), target=target or (), part=part,
                like=layout,
            )  # fmt: skip
        with activity(f"evaluating on {_shape(examples)}"):
            losses = np.asarray(stored.estimator.task_losses(examples.X, examples.y))
    mean = float(losses.mean())
    # standard error of a mean of independent losses; none for a single example
    error = float(losses.std(ddof=1) / np.sqrt(len(losses))) if len(losses) > 1 else None
    passed = at_most is None or mean <= at_most
    result: dict[str, Any] = {
        "command": "evaluate",
        "model": str(model),
        "data": str(data),
        "loss": repr(stored.estimator.loss_),
        "n_examples": len(losses),
        "mean_loss": mean,
        "standard_error": error,
    }
    if at_most is not None:
        result |= {"at_most": at_most, "passed": passed}
    _show(result, as_json)
    if not passed:
        typer.echo(f"consistruct: mean loss {mean:.6g} is above --at-most {at_most:g}", err=True)
        raise typer.Exit(1)


# --- from options to objects ---------------------------------------------------------------------


def _loss(spec: str, rows: str | None) -> Any:
    """A cost file is read here, because only the command line knows its orientation."""
    if rows not in (None, "pred", "true"):
        raise ValueError(f"--rows must be pred or true, got {rows!r}")
    if spec.partition(":")[0].strip().lower() == "cost":
        return parse_loss(spec, rows=rows)  # type: ignore[arg-type]
    if rows is not None:
        raise ValueError(f"--rows is about cost files (cost:FILE.csv), the loss is {spec!r}")
    return spec


def _estimator(examples: DataSet, **parameters: Any) -> Any:
    """A classifier for classes and 0/1 label matrices, a structured predictor for the rest."""
    from consistruct.learning import StructuredPredictor, TaskLossClassifier

    y = examples.y
    assert y is not None
    indicator = y.ndim == 2 and y.dtype.kind == "i" and set(np.unique(y)) <= {0, 1}
    vectors = str(parameters["loss"]).replace("_", "-").startswith("cost-vectors")
    face = TaskLossClassifier if (y.ndim == 1 or indicator) and not vectors else StructuredPredictor
    return face(**parameters)


def _solver(name: str, alpha: str | float, epochs: int | None, checkpoint: Path | None) -> Any:
    if epochs is None and checkpoint is None:
        return name
    if name != "sgd":
        option = "--epochs" if epochs is not None else "--checkpoint"
        raise ValueError(f"{option} needs --solver sgd, got --solver {name}")
    from consistruct.learning import AveragedSGD

    if checkpoint is not None:
        _check_writable(checkpoint)
    options: dict[str, Any] = {} if epochs is None else {"max_epochs": epochs}
    return AveragedSGD(
        alpha=alpha, checkpoint=None if checkpoint is None else str(checkpoint), **options
    )


def _alpha(text: str) -> str | float:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--alpha must be auto or a number, got {text!r}") from None


def _count_or_file(labels: str | None) -> int | Path | None:
    if labels is None:
        return None
    return int(labels) if labels.lstrip("-").isdigit() else Path(labels)


def _read_model(path: Path) -> tuple[ModelFile, Layout]:
    from consistruct.learning.data_files import Layout
    from consistruct.learning.persistence import read_model

    stored = read_model(path)
    try:
        return stored, Layout.from_dict(stored.notes["layout"])
    except (KeyError, TypeError, AttributeError):
        raise ModelFileError(
            f"{path} does not say which columns it was fitted on; it was saved from Python, "
            f"where load(path).predict(X) takes arrays"
        ) from None


def _format(layout: Layout, data: Path) -> str | None:
    """The format of the training file for a file whose suffix says nothing."""
    return None if data.suffix else layout.format


def _check_writable(path: Path) -> None:
    """Before hours of work, not after."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        reason = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise ValueError(f"cannot write {path}: it {reason}")


# --- rendering -----------------------------------------------------------------------------------


def _predictions_csv(predictions: Any, expected: Any, layout: Layout) -> str:
    columns = predictions.reshape(len(predictions), -1)
    names = layout.label_names if layout.label_names and predictions.ndim > 1 else None
    if predictions.ndim == 1:
        header = [layout.target[0] if layout.target and layout.feature_names else "prediction"]
    elif names is not None and len(names) == columns.shape[1]:
        header = list(names)
    else:
        header = [f"prediction_{part}" for part in range(columns.shape[1])]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*header, "expected_loss"] if expected is not None else header)
    for row, cells in enumerate(columns.tolist()):
        writer.writerow(cells if expected is None else [*cells, repr(float(expected[row]))])
    return text.getvalue()


def _shape(examples: DataSet) -> str:
    return f"{examples.X.shape[0]} examples x {examples.X.shape[1]} features"


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"schema_version": SCHEMA_VERSION, **result}))
        return
    width = max(map(len, result))
    for name, value in result.items():
        if name != "command":
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            typer.echo(f"{name.replace('_', ' '):<{width}}  {shown}")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, OSError, MemoryError) as error:
        _fail(error)


def _fail(error: Exception) -> NoReturn:
    line = " ".join(str(error).split()) or type(error).__name__
    typer.echo(f"consistruct: {line}", err=True)
    raise typer.Exit(2) from None
