"""fit, predict and evaluate on CoNLL column files: called by the commands on data files."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from consistruct._budgets import irregular_file, unreadable_table
from consistruct._validation import read_integer
from consistruct.cli.choices import choose_model
from consistruct.cli.progress import activity
from consistruct.exceptions import DataFileError, ModelFileError

if TYPE_CHECKING:  # imported inside the functions: see cli/commands/learning.py
    from consistruct.learning.files.column_layout import ColumnLayout
    from consistruct.learning.files.conll import ColumnFile
    from consistruct.learning.files.persistence import ModelFile

__all__ = [
    "evaluate_columns",
    "fit_columns",
    "is_column_file",
    "is_sequence_model",
    "predict_columns",
    "read_columns",
    "refuse_options",
    "report_inputs",
]

COLUMN_OPTIONS = (
    "template",
    "tag_scheme",
    "transitions",
    "hash_bits",
)  # of `fit`, for column files only
# options of the three commands that say something about sequences
FIT_OPTIONS = (
    "data",
    "model",
    "format",
    "as_json",
    "target",
    "learner",
    "settings",
    "epochs",
    "checkpoint",
    "seed",
    *COLUMN_OPTIONS,
)
PREDICT_OPTIONS = ("model", "data", "out", "format", "as_json")
REPORT_OPTIONS = (
    "model", "data", "train", "html", "plot", "csv", "quick", "seed", "format", "as_json",
)  # fmt: skip
EVALUATE_OPTIONS = ("model", "data", "at_most", "format", "as_json")


def is_column_file(data: Path, format: str | None) -> bool:  # noqa: A002
    """By the option, or by the suffix where there is none."""
    return (format or data.suffix.lower().lstrip(".")) == "conll"


def is_sequence_model(
    stored: ModelFile,
    model: Path,
    data: Path,
    format: str | None,  # noqa: A002
) -> bool:
    """Whether the model reads column files; a model and data of different kinds are refused."""
    from consistruct.learning.files.data import SUFFIXES

    kind = type(stored.estimator).__name__
    examples = getattr(stored.estimator, "kind_", None)
    reads_columns = getattr(examples, "name", "") == "sequences"
    if is_column_file(data, format) and not reads_columns:
        raise ModelFileError(
            f"{model} contains a {kind}, which does not read column files; fit a model on a "
            ".conll file with --template"
        )
    if is_column_file(data, format) or not reads_columns:
        return reads_columns
    other = format or SUFFIXES.get(data.suffix.lower())
    if other is not None:
        raise ModelFileError(
            f"{model} contains a {kind}, which reads column files, but {data} is read as {other}; "
            "pass --format conll if it is one"
        )
    return True  # .txt, .data, .bio, … may be column files


def refuse_options(context: typer.Context, allowed: Iterable[str], reason: str) -> None:
    """Raise if an option outside `allowed` was given: it would have no effect."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in allowed and source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{name.replace('_', '-')} {reason}")


def fit_columns(
    data: Path,
    model: Path,
    *,
    template: Path | None,
    target: list[str] | None,
    learner: str,
    settings: list[str] | None,
    checkpoint: Path | None,
    epochs: int | None,
    random_state: int,
    **parameters: Any,
) -> dict[str, Any]:
    """Fit a chain, save it with its layout, and say how it went."""
    from consistruct.learning import StructuredPredictor
    from consistruct.learning.evaluation.sequence_metrics import token_error
    from consistruct.learning.files.persistence import save

    text, column = _read_layout(template, target)
    assert template is not None
    if learner not in ("auto", "chain"):
        raise ValueError(f"column files need --learner chain, got --learner {learner}")
    if checkpoint is not None:
        parameters["checkpoint"] = str(checkpoint)
    if epochs is not None:
        parameters["max_epochs"] = epochs
    chain = choose_model("chain", settings, None, None).set_params(**parameters)
    file, layout = _laid_out(data, template, text, column)
    estimator = StructuredPredictor("hamming", chain, random_state=random_state)
    start = time.perf_counter()
    with activity(f"fitting {_size(file)}"):
        X, y = layout.features(file), layout.tags(file)
        estimator.fit(X, y)
    seconds = time.perf_counter() - start
    save(estimator, model, notes={"columns": layout.as_dict()})
    return {
        "command": "fit",
        "data": str(data),
        "model": str(model),
        "estimator": "Chain",
        "surrogate": chain.surrogate,
        "decoding": chain.decoding,
        **_counts(file),
        "n_features": int(estimator.model_.n_features_in_),
        "n_tags": len(estimator.label_encoding_),
        "alpha": float(estimator.model_.alpha_),
        "n_iter": int(estimator.model_.n_iter_),
        "training_token_error": token_error(y, _predict(estimator, X)),
        "seconds": seconds,
    }


def predict_columns(stored: ModelFile, model: Path, data: Path) -> tuple[str, list[list[str]]]:
    """The columns of the file with the predicted tags as a further one, and the tags alone."""
    from consistruct.learning.files.conll import columns_text

    layout, file = _layout(stored, model), _read(data)
    with activity(f"predicting {_size(file)}"):
        tags = _predict(stored.estimator, _features(layout, file, data))
    return columns_text(file.sequences, tags), tags


def evaluate_columns(stored: ModelFile, model: Path, data: Path) -> dict[str, Any]:
    """Errors on tokens and sequences, and F1 of chunks where the tags follow a chunk scheme."""
    from consistruct.learning.evaluation.sequence_metrics import (
        chunk_scheme,
        chunk_score,
        sequence_error,
        sequence_intervals,
        token_error,
    )

    layout, file = _layout(stored, model), _read(data)
    X, true = _with_tags(layout, file, data)
    with activity(f"evaluating on {_size(file)}"):
        pred = _predict(stored.estimator, X)
    scheme = chunk_scheme(tag for tags in (*true, *pred) for tag in tags)
    chunks = None if scheme is None else chunk_score(true, pred, scheme)
    intervals = sequence_intervals(true, pred, scheme)
    return {
        "command": "evaluate",
        "model": str(model),
        "data": str(data),
        **_counts(file),
        "token_error": token_error(true, pred),
        "sequence_error": sequence_error(true, pred),
        "tag_scheme": scheme,
        "chunk_precision": None if chunks is None else chunks.precision,
        "chunk_recall": None if chunks is None else chunks.recall,
        "chunk_f1": None if chunks is None else chunks.f1,
        **{f"{name}_interval": found.as_list() for name, found in intervals.items()},
    }


def report_inputs(stored: ModelFile, model: Path, data: Path, train: Path | None) -> dict[str, Any]:
    """Sequences with their tags for a report, held out and, if given, trained on."""
    layout = _layout(stored, model)
    X, y = _with_tags(layout, _read(data), data)
    found = {"X": X, "y": y}
    if train is not None:
        found["X_train"], found["y_train"] = _with_tags(layout, _read(train), train)
    return found


# --- from files to objects -----------------------------------------------------------------------


def read_columns(data: Path, template: Path | None, target: list[str] | None) -> tuple[Any, Any]:
    """Features and tags of the sequences of a column file."""
    text, column = _read_layout(template, target)
    assert template is not None
    file, layout = _laid_out(data, template, text, column)
    return layout.features(file), layout.tags(file)


def _read_layout(template: Path | None, target: list[str] | None) -> tuple[str, int]:
    """The text of the template and the number of the column of tags."""
    if template is None:
        raise ValueError(
            "a column file needs --template FILE with one feature per line, such as w:%x[0,0]"
        )
    return _template_text(template), _tag_column(target)


def _laid_out(
    data: Path, template: Path, text: str, column: int
) -> tuple[ColumnFile, ColumnLayout]:
    from consistruct.learning.files.column_layout import ColumnLayout

    file = _read(data)
    file.column(column)  # refuses a number that the file does not have
    try:
        return file, ColumnLayout(text, column % file.n_columns, file.n_columns)
    except ValueError as error:
        raise ValueError(f"{template}: {error}") from None


def _read(data: Path) -> ColumnFile:
    from consistruct.learning.files.conll import read_columns

    if not data.exists():
        raise DataFileError(f"there is no file {str(data)!r}")
    irregular = irregular_file(data)
    if irregular is not None:
        raise DataFileError(f"{data} is {irregular}; pass a column file")
    with activity(f"reading {data.name}"):
        return read_columns(data)


def _template_text(path: Path) -> str:
    """The text of a template file that can be parsed."""
    from consistruct.learning.files.conll import FeatureTemplate

    fault = unreadable_table(path)
    if fault is not None:
        raise DataFileError(f"{path} is not a valid template: {fault}")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataFileError(f"there is no template file {str(path)!r}") from None
    except OSError as error:
        raise DataFileError(f"{path} could not be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataFileError(f"{path} is not a template: it is not text in utf-8") from None
    try:
        FeatureTemplate.parse(text)
    except ValueError as error:
        raise DataFileError(f"{path}: {error}") from None
    return text


def _tag_column(target: list[str] | None) -> int:
    """Number of the column of tags, the last if none is named."""
    if not target:
        return -1
    if len(target) > 1:
        raise ValueError(f"a column file has one column of tags, got --target {len(target)} times")
    try:
        return read_integer(target[0])
    except ValueError:
        raise ValueError(
            f"--target must be the number of a column (0 is the first, -1 the last), "
            f"got {target[0]!r}: column files have no names"
        ) from None


def _layout(stored: ModelFile, model: Path) -> ColumnLayout:
    from consistruct.learning.files.column_layout import ColumnLayout

    try:
        return ColumnLayout.from_dict(stored.notes["columns"])
    except (KeyError, TypeError):
        raise ModelFileError(
            f"{model} does not say which columns and template it was fitted on; it was saved from "
            f"Python, where load(path).predict(X) takes features"
        ) from None


def _features(layout: ColumnLayout, file: ColumnFile, data: Path) -> list[list[list[str]]]:
    try:
        return layout.features(file)
    except DataFileError as error:
        raise DataFileError(f"{data}: {error}") from None


def _with_tags(
    layout: ColumnLayout, file: ColumnFile, data: Path
) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Features and true tags of all sequences."""
    try:
        return layout.features(file), layout.tags(file)
    except DataFileError as error:
        raise DataFileError(f"{data}: {error}") from None


def _predict(estimator: Any, X: list[list[list[str]]]) -> list[list[str]]:
    return [tags.tolist() for tags in estimator.predict(X)]


def _counts(file: ColumnFile) -> dict[str, int]:
    return {
        "n_sequences": len(file.sequences),
        "n_tokens": sum(map(len, file.sequences)),
    }


def _size(file: ColumnFile) -> str:
    counts = _counts(file)
    return f"{counts['n_sequences']} sequences with {counts['n_tokens']} tokens"
