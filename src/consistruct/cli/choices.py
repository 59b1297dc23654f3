"""From the options of `fit` to losses, models and estimators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct._validation import check_settings, read_integer
from consistruct.cli.progress import activity

if TYPE_CHECKING:  # imported inside the functions: see cli/commands/learning.py
    from consistruct.learning.files.data import DataSet

__all__ = [
    "choose_estimator",
    "choose_loss",
    "choose_model",
    "column_kinds",
    "count_or_file",
    "estimator_for",
    "prepared_for",
    "query_arguments",
    "read_setting",
    "read_table",
]


def choose_loss(spec: str, rows: str | None) -> Any:
    """A cost file is read here, because only the command line knows its orientation."""
    if rows not in (None, "pred", "true"):
        raise ValueError(f"--rows must be pred or true, got {rows!r}")
    from consistruct.losses import parse_loss
    from consistruct.losses.registry import names_cost_file

    if names_cost_file(spec):
        return parse_loss(spec, rows=rows)  # type: ignore[arg-type]
    if rows is not None:
        raise ValueError(
            f"--rows applies only to cost files (cost:FILE.csv), but the loss is {spec!r}"
        )
    return spec


def read_table(
    data: Path,
    *,
    target: list[str] | None,
    ignore: list[str] | None,
    columns: list[str] | None,
    **options: Any,
) -> DataSet:
    """A data file as the options of a command describe it, with a sign of life."""
    from consistruct.learning.files.data import read_data

    with activity(f"reading {data.name}"):
        return read_data(
            data,
            target=target or (),
            ignore=ignore or (),
            columns=column_kinds(columns),
            **options,
        )


def estimator_for(
    examples: DataSet,
    *,
    loss: str,
    rows: str | None,
    learner: str,
    settings: list[str] | None,
    epochs: int | None = None,
    checkpoint: Path | None = None,
    **parameters: Any,
) -> Any:
    """The unfitted estimator that the options request."""
    model = prepared_for(choose_model(learner, settings, epochs, checkpoint), examples)
    return choose_estimator(examples, loss=choose_loss(loss, rows), model=model, **parameters)


def choose_estimator(examples: DataSet, **parameters: Any) -> Any:
    """A classifier for classes and 0/1 label matrices, a structured predictor for the rest."""
    from consistruct.learning import StructuredPredictor, TaskLossClassifier
    from consistruct.learning.encoding.queries import takes_queries

    y = examples.y
    assert y is not None
    if takes_queries(parameters["loss"], examples.X, y):  # one relevance per row
        if examples.groups is None:
            raise ValueError(
                f"--loss {parameters['loss']} ranks the items of queries: name the query column "
                "with --groups, or use qid:… in an svmlight file"
            )
        return StructuredPredictor(**parameters)
    indicator = y.ndim == 2 and y.dtype.kind == "i" and set(np.unique(y)) <= {0, 1}
    vectors = str(parameters["loss"]).replace("_", "-").startswith("cost-vectors")
    if (y.ndim == 1 or indicator) and not vectors:
        return TaskLossClassifier(**parameters)
    return StructuredPredictor(**parameters)


def query_arguments(estimator: Any, examples: DataSet) -> dict[str, Any]:
    """What `fit`, `predict` and `task_losses` take besides X and y: the queries of a ranking."""
    from consistruct.learning import StructuredPredictor
    from consistruct.learning.encoding.queries import takes_queries

    inner = getattr(estimator, "estimator_", estimator)  # of a guarantee
    fitted = getattr(getattr(inner, "kind_", None), "name", "") == "queries"
    starting = isinstance(estimator, StructuredPredictor) and takes_queries(
        estimator.loss, examples.X, examples.y, examples.groups
    )
    return {"groups": examples.groups} if fitted or starting else {}


def choose_model(
    learner: str, settings: list[str] | None, epochs: int | None, checkpoint: Path | None
) -> Any:
    """The model that ``--learner`` names, with the settings that ``--set name=value`` gives it."""
    given = dict(read_setting(text) for text in settings or ())
    if learner == "auto":
        if given or epochs is not None or checkpoint is not None:
            raise ValueError(
                "--set, --epochs and --checkpoint are settings of one learner; name it, for "
                "example --learner ridge"
            )
        return "auto"
    from consistruct.learning.models import make_model, model_class, set_names

    if learner not in set_names():
        make_model(learner, "rows")  # raises, with the names
    model = model_class(learner)()
    known = sorted(model.get_params(deep=False))
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(
            f"--learner {learner} has no setting {unknown[0]!r}; its settings are "
            f"{', '.join(known)}"
        )
    if epochs is not None or checkpoint is not None:
        given["solver"] = _stochastic(learner, given, epochs, checkpoint)
    model.set_params(**given)
    check_settings(model)  # before the data are read
    return model


def column_kinds(given: list[str] | None) -> dict[str, str]:
    """``--columns name=kind``, several of them separated by commas or given one by one."""
    found = {}
    for text in (part for entry in given or () for part in entry.split(",")):
        name, equals, kind = text.rpartition("=")
        if not equals or not name:
            raise ValueError(
                f"--columns takes name=kind, for example --columns zip=category, got {text!r}"
            )
        found[name.strip()] = kind.strip().lower()
    return found


def prepared_for(model: Any, examples: DataSet) -> Any:
    """The model behind encoders and imputers where the table has categories or missing cells.

    "auto" prepares the table for each of its models by itself.
    """
    X = examples.X
    if not isinstance(X, np.ndarray) or model == "auto" or "rows" not in model.kinds:
        return model  # learners of queries read tables by themselves
    if X.dtype != object and not np.isnan(X.sum()):
        return model
    from consistruct.learning.models.prepared import Prepared
    from consistruct.learning.selection.columns import Columns

    return Prepared(Columns.of(X).for_linear(), model)


def read_setting(text: str) -> tuple[str, Any]:
    """``name=value``: a number, true, false or null as JSON writes them, else a string."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"--set takes name=value, for example --set alpha=0.1, got {text!r}")
    try:
        return name, json.loads(value, parse_int=_whole_number)
    except RecursionError:
        raise ValueError(f"--set {name}: lists within lists are not nested so deeply") from None
    except OverflowError as error:
        raise ValueError(f"--set {name}: {error}") from None
    except ValueError:
        return name, value


def _whole_number(text: str) -> int:
    """Of 64 bits: compiled loops and generators take no longer ones."""
    try:
        return read_integer(text)
    except ValueError as error:
        raise OverflowError(str(error)) from None


def _stochastic(
    learner: str, given: dict[str, Any], epochs: int | None, checkpoint: Path | None
) -> Any:
    """Averaged SGD with the options that only it has."""
    option = "--epochs" if epochs is not None else "--checkpoint"
    if learner not in ("ridge", "linear") or given.get("solver") != "sgd":
        raise ValueError(
            f"{option} needs --learner ridge (or linear) with --set solver=sgd, got --learner "
            f"{learner}"
        )
    from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD

    options: dict[str, Any] = {} if epochs is None else {"max_epochs": epochs}
    return AveragedSGD(checkpoint=None if checkpoint is None else str(checkpoint), **options)


def count_or_file(labels: str | None) -> int | Path | None:
    """How many labels, or the file that names them."""
    if labels is None:
        return None
    try:
        return read_integer(labels)
    except ValueError:
        return Path(labels)
