"""What every learning report states of a model and of the losses of its decisions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from consistruct.protocols import FloatArray
from consistruct.report.learning.entries import (
    LossBin,
    ModelScore,
    PortfolioEntry,
    Selective,
    SelectivePoint,
)

__all__ = [
    "MODEL",
    "column_notes",
    "described",
    "error_of",
    "loss_bins",
    "portfolio_of",
    "ridge_of",
    "score_of",
    "selective_of",
]

MODEL = "this model"
N_BINS = 10
BIN_ROWS = 20
SELECTIVE_POINTS = 50


def ridge_of(model: Any) -> Any:
    """The ridge regression that is the model, behind a transformer or not; else None."""
    inner = getattr(model.model_, "model_", model.model_)
    return inner if hasattr(inner, "feature_map_") and hasattr(inner, "alpha_") else None


def described(model: Any) -> str:
    """The model in words."""
    entries = [entry for entry in portfolio_of(model) if entry.weight > 0]
    if len(entries) == 1:
        return entries[0].name
    if entries:
        return " + ".join(f"{entry.weight:.2g} × {entry.name}" for entry in entries)
    ridge = ridge_of(model)
    if ridge is None:
        return _single(model.model_)
    kernel = getattr(ridge.feature_map_, "kernel", None)
    if kernel is None:
        return "ridge regression"
    return f"kernel ridge regression ({kernel.name}, bandwidth {kernel.bandwidth:.3g})"


def _single(model: Any) -> str:
    """A model that was given, by what it wraps."""
    name = type(model).__name__
    if name == "Chain":
        return f"a chain, trained with the {model.surrogate} surrogate"
    inner = getattr(model, "estimator", None) or getattr(model, "model", None)
    steps = getattr(inner, "steps", None)
    if steps:
        inner = steps[-1][1]
    return name if inner is None or isinstance(inner, str) else f"{name} of {type(inner).__name__}"


def portfolio_of(model: Any) -> tuple[PortfolioEntry, ...]:
    """What was tried; empty for a single model."""
    return tuple(
        PortfolioEntry(
            entry["name"],
            entry["status"],
            entry["weight"],
            entry["task_loss"],
            entry["seconds"] or 0.0,
            entry["criterion"],
        )
        for entry in getattr(model, "portfolio_", ())
    )


def score_of(
    name: str,
    losses: FloatArray,
    model: FloatArray,
    seconds: float | None,
    loss: Any = None,
) -> ModelScore:
    """Mean of `losses` (n,) and of their differences to those of the reported model (n,).

    With the `loss`, whose bounds it needs, also an interval of the mean.
    """
    from consistruct.learning.evaluation.intervals import loss_interval

    found = None if loss is None else loss_interval(loss, losses)
    return ModelScore(
        name=name,
        mean=float(losses.mean()),
        standard_error=error_of(losses),
        difference=float((losses - model).mean()),
        difference_error=error_of(losses - model),
        seconds=seconds,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
    )


def selective_of(predicted: FloatArray, losses: FloatArray) -> Selective:
    """Risk against coverage, from what was predicted (n,) and what occurred (n,)."""
    from consistruct.learning.evaluation.selective import selective_curve

    curve = selective_curve(losses, predicted, n_points=SELECTIVE_POINTS)
    columns = zip(curve.coverage, curve.risk, curve.low, curve.high, strict=True)
    return Selective(
        tuple(SelectivePoint(*map(float, row)) for row in columns),
        curve.area.estimate,
        curve.area.low,
        curve.area.high,
        curve.best_area,
        curve.random_area,
    )


def error_of(values: FloatArray) -> float | None:
    """Standard error of a mean; none for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def loss_bins(
    predicted: FloatArray, losses: FloatArray
) -> tuple[tuple[LossBin, ...], float | None]:
    """Examples by predicted loss, in equal numbers; and the rank correlation."""
    from scipy.stats import spearmanr

    order = np.argsort(predicted, kind="stable")
    number = int(np.clip(len(order) // BIN_ROWS, 1, N_BINS))
    bins = tuple(
        LossBin(
            float(predicted[rows].mean()), float(losses[rows].mean()), error_of(losses[rows]),
            len(rows),
        )
        for rows in np.array_split(order, number)
    )  # fmt: skip
    constant = np.ptp(predicted) == 0 or np.ptp(losses) == 0
    correlation = None if constant else float(spearmanr(predicted, losses).statistic)
    return bins, correlation


def column_notes(X: Any, known: Any = None) -> tuple[Any, ...]:
    """A `ColumnNote` for each column of a data frame; none for arrays and plain numbers.

    `known` are the columns of the fit (`InputColumns`), where there are some.

    >>> import pandas as pd
    >>> for note in column_notes(pd.DataFrame({"age": [31, None], "town": ["Bonn", "Ulm"]})):
    ...     print(note.name, "-", note)
    age - number, 1 missing
    town - category of 2 values
    """
    from consistruct._frames import is_frame
    from consistruct.learning.encoding.frames import InputColumns
    from consistruct.learning.files.data.raw import ColumnNote

    if not is_frame(X):
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has stated what is doubtful
        found, values = (known, known.read(X)) if known is not None else InputColumns.fit(X)
    notes = []
    for place, column in enumerate(found.columns):
        present = [cell for cell in values[:, place].tolist() if cell is not None and cell == cell]
        missing, distinct = len(values) - len(present), len(set(present))
        notes.append(ColumnNote(column.name, column.kind, missing, distinct))
    plain = all(note.kind == "number" and not note.missing for note in notes)
    return () if plain else tuple(notes)
