"""Data files that are read as the training file of a model was, and what a model reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consistruct.cli.failures import is_for_users, is_usage, one_line
from consistruct.cli.progress import activity
from consistruct.exceptions import ModelFileError

if TYPE_CHECKING:  # imported inside the functions: see cli/commands/learning.py
    from consistruct.learning.files.data import DataSet, Layout
    from consistruct.learning.files.persistence import ModelFile

__all__ = [
    "columns_of",
    "format_of",
    "keep_columns",
    "layout_of",
    "notes_of",
    "of_metric",
    "read_like_training",
    "shape_of",
    "using",
]


def read_like_training(
    stored: ModelFile,
    model: Path,
    data: Path,
    target: list[str] | None,
    part: str | None,
    format: str | None,  # noqa: A002
    drop_missing_target: bool = False,
) -> tuple[DataSet, Layout]:
    """Rows with true labels, read as the model's training file was."""
    from consistruct.learning.files.data import read_data

    layout = layout_of(stored, model)
    with activity(f"reading {data.name}"):
        examples = read_data(
            data, format=format or format_of(layout, data), target=target or (), part=part,
            like=layout, drop_missing_target=drop_missing_target,
        )  # fmt: skip
    return examples, layout


@contextmanager
def using(model: Path) -> Iterator[None]:
    """Errors of a loaded model are reported as errors of its file.

    Its checksum states that it is whole, not that its parts fit together: a file made by hand can
    hold anything that the types allow.
    """
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        if is_for_users(error) or is_usage(error):
            raise
        raise ModelFileError(
            f"{model} cannot be used, its parts do not fit together "
            f"({one_line(f'{type(error).__name__}: {error}')[:200]}); if `consistruct fit` wrote "
            "it, this is a bug in consistruct: please report it"
        ) from error


def layout_of(stored: ModelFile, path: Path) -> Layout:
    """How the training file was laid out, as the model file notes it."""
    from consistruct.learning.files.data import Layout

    columns = getattr(_inner(stored.estimator), "columns_", None)
    try:
        layout = Layout.from_dict(stored.notes["layout"])
    except (KeyError, TypeError, AttributeError):
        if columns is None or not _reads_files(_inner(stored.estimator)):
            raise ModelFileError(
                f"{path} does not say which columns it was fitted on; it was saved from Python, "
                f"where load(path).predict(X) takes arrays and frames"
            ) from None
        layout = _layout_of_columns(stored.estimator, columns)
    if columns is None:
        return layout
    plain = set(columns.kinds) == {"number"} and layout.complete
    return dataclasses.replace(
        layout,
        feature_names=columns.names if columns.named else None,
        kinds=None if plain else columns.kinds,
    )


def _reads_files(estimator: Any) -> bool:
    """Whether rows of a file can take the place of the frame that an estimator was fitted on."""
    columns = estimator.columns_
    rows = getattr(getattr(estimator, "kind_", None), "name", "") == "rows"
    # steps of scikit-learn that were fitted on a frame know its columns by name and type
    by_frame = estimator.model_.wants_frames and set(columns.kinds) != {"number"}
    return rows and columns.named and "duration" not in columns.kinds and not by_frame


def _layout_of_columns(estimator: Any, columns: Any) -> Layout:
    """The layout of a model that was fitted on a frame and saved from Python."""
    from consistruct.learning.files.data import Layout

    inner = _inner(estimator)
    # the reader finds columns by name, so that scikit-learn need not warn of arrays without names
    vars(inner).pop("feature_names_in_", None)
    classes = getattr(inner, "classes_", None)
    kinds = {"b": "int", "i": "int", "u": "int", "f": "float"}
    return Layout(
        "csv",
        len(columns.columns),
        label_kind=None if classes is None else kinds.get(classes.dtype.kind, "str"),
        formats=tuple(c.decimal or c.date_format or "" for c in columns.columns),
        missing=columns.missing,
        complete=False,
    )


def keep_columns(estimator: Any, examples: DataSet) -> None:
    """Store the columns of the training file in the estimator, which then takes frames by name."""
    from consistruct.learning.encoding.frames import InputColumns

    layout, inner = examples.layout, _inner(estimator)
    if layout.feature_names is not None or layout.kinds is not None:
        known = InputColumns.of_array(
            examples.X, layout.feature_names, layout.kinds, layout.formats, layout.missing
        )
        encoded = getattr(getattr(inner, "columns_", None), "encoded", False)
        inner.columns_ = dataclasses.replace(known, encoded=encoded)


def _inner(estimator: Any) -> Any:
    """The estimator that reads rows, inside one that controls its risk."""
    return getattr(estimator, "estimator_", estimator)


def notes_of(examples: DataSet) -> dict[str, Any]:
    """What a model file keeps of the file that the model was fitted on."""
    complete = examples.layout.kinds is None
    layout = dataclasses.replace(examples.layout, feature_names=None, kinds=None, complete=complete)
    notes: dict[str, Any] = {"layout": layout.as_dict()}
    if examples.columns:
        notes["table"] = [dataclasses.asdict(note) for note in examples.columns]
    return notes


def columns_of(stored: ModelFile, path: Path) -> list[Any]:
    """What was made of each column of the training file, dropped ones too, as the model notes it.

    None for a table of complete numbers.
    """
    from consistruct.learning.files.data.raw import ColumnNote

    try:
        return [ColumnNote(**note) for note in stored.notes.get("table", ())]
    except TypeError:
        raise ModelFileError(f"{path} is damaged: its notes on columns cannot be read") from None


def format_of(layout: Layout, data: Path) -> str | None:
    """The format of the training file for a file whose suffix states nothing."""
    return None if data.suffix else layout.format


def shape_of(examples: DataSet) -> str:
    """What is read or fitted, in words."""
    return f"{examples.X.shape[0]} examples x {examples.X.shape[1]} features"


def of_metric(estimator: Any) -> dict[str, Any]:
    """What out-of-fold rows say of a non-decomposable metric; nothing for a loss."""
    if not hasattr(estimator, "metric_"):
        return {}
    rule = estimator.rule_
    found = {
        "metric": repr(rule.metric),
        "metric_estimate": rule.estimate,
        "metric_of_likeliest": rule.plain,
        "out_of_fold_rows": rule.n_rows,
    }
    if rule.gap is not None:
        found["optimality_gap"] = rule.gap
    if len(rule.shares):
        found["drawn_shares"] = [round(float(share), 6) for share in rule.shares]
    if len(rule.slack):
        found["constraint_slack"] = [round(float(value), 6) for value in rule.slack]
    return found
