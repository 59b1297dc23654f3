"""From the options of `fit` to losses, solvers and estimators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct._validation import read_integer, read_number
from consistruct.cli.output import check_writable
from consistruct.losses import parse_loss

if TYPE_CHECKING:  # imported inside the functions: see cli/learning.py
    from consistruct.learning.files.data import DataSet

__all__ = [
    "choose_estimator",
    "choose_loss",
    "choose_solver",
    "count_or_file",
    "parse_alpha",
    "query_arguments",
]


def choose_loss(spec: str, rows: str | None) -> Any:
    """A cost file is read here, because only the command line knows its orientation."""
    if rows not in (None, "pred", "true"):
        raise ValueError(f"--rows must be pred or true, got {rows!r}")
    if spec.partition(":")[0].strip().lower() == "cost":
        return parse_loss(spec, rows=rows)  # type: ignore[arg-type]
    if rows is not None:
        raise ValueError(f"--rows is about cost files (cost:FILE.csv), the loss is {spec!r}")
    return spec


def choose_estimator(examples: DataSet, **parameters: Any) -> Any:
    """A classifier for classes and 0/1 label matrices, a structured predictor for the rest."""
    from consistruct.learning import StructuredPredictor, TaskLossClassifier
    from consistruct.learning.encoding.relevance import takes_queries

    y = examples.y
    assert y is not None
    if takes_queries(parameters["loss"], examples.X, y):  # one relevance per row
        if examples.groups is None:
            raise ValueError(
                f"--loss {parameters['loss']} ranks the items of queries: name the column with the "
                f"query by --groups, or give qid:… in an svmlight file"
            )
        return StructuredPredictor(**parameters)
    indicator = y.ndim == 2 and y.dtype.kind == "i" and set(np.unique(y)) <= {0, 1}
    vectors = str(parameters["loss"]).replace("_", "-").startswith("cost-vectors")
    face = TaskLossClassifier if (y.ndim == 1 or indicator) and not vectors else StructuredPredictor
    return face(**parameters)


def query_arguments(estimator: Any, examples: DataSet) -> dict[str, Any]:
    """What `fit`, `predict` and `task_losses` take besides X and y: the queries of a ranking."""
    from consistruct.learning import StructuredPredictor
    from consistruct.learning.encoding.relevance import takes_queries
    from consistruct.learning.models.items.estimator import ranks_queries

    fitted = ranks_queries(estimator)
    starting = isinstance(estimator, StructuredPredictor) and takes_queries(
        estimator.loss, examples.X, examples.y, examples.groups
    )
    return {"groups": examples.groups} if fitted or starting else {}


def choose_solver(
    name: str, alpha: str | float, epochs: int | None, checkpoint: Path | None
) -> Any:
    """A solver by name, or averaged SGD with the options that only it has."""
    if epochs is None and checkpoint is None:
        return name
    if name != "sgd":
        option = "--epochs" if epochs is not None else "--checkpoint"
        raise ValueError(f"{option} needs --solver sgd, got --solver {name}")
    from consistruct.learning import AveragedSGD

    if checkpoint is not None:
        check_writable(checkpoint)
    options: dict[str, Any] = {} if epochs is None else {"max_epochs": epochs}
    return AveragedSGD(
        alpha=alpha, checkpoint=None if checkpoint is None else str(checkpoint), **options
    )


def parse_alpha(text: str) -> str | float:
    """The penalty as it was typed."""
    if text == "auto":
        return text
    try:
        return read_number(text)
    except ValueError:
        raise ValueError(f"--alpha must be auto or a number, got {text!r}") from None


def count_or_file(labels: str | None) -> int | Path | None:
    """How many labels, or the file that names them."""
    if labels is None:
        return None
    try:
        return read_integer(labels)
    except ValueError:
        return Path(labels)
