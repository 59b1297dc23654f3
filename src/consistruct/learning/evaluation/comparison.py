"""Which of several models is better on the same rows: paired, with intervals and a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.learning.evaluation.intervals import Interval, mean_interval
from consistruct.protocols import FloatArray

__all__ = ["Comparison", "ComparisonRow", "compare"]

PERMUTATIONS = 9999
CHUNK = 2**22  # signs that are drawn at a time


@dataclass(frozen=True)
class ComparisonRow:
    """One model against the reference.

    Attributes
    ----------
    name : str
    loss : Interval
        Mean task loss.
    difference : Interval
        Mean loss of this model minus that of the reference; below 0 it is better.
    p_value : float
        Of "both models have the same loss", by exchanging the two losses of rows at random,
        corrected for the number of models compared (Holm 1979). 1 for the reference itself.
    """

    name: str
    loss: Interval
    difference: Interval
    p_value: float


@dataclass(frozen=True)
class Comparison:
    """Models on the same rows; the first is the reference.

    Attributes
    ----------
    rows : tuple of ComparisonRow
    n : int
        Examples.
    """

    rows: tuple[ComparisonRow, ...]
    n: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            row.name: {
                "mean_loss": row.loss.estimate,
                "interval": row.loss.as_list(),
                "difference": row.difference.estimate,
                "difference_interval": row.difference.as_list(),
                "p_value": row.p_value,
            }
            for row in self.rows
        }

    def __str__(self) -> str:
        width = max(5, *(len(row.name) for row in self.rows))
        lines = [f"{'model':{width}}  {'mean loss':28}  {'minus the first':28}  p"]
        for number, row in enumerate(self.rows):
            against = "" if number == 0 else str(row.difference)
            p = "" if number == 0 else f"{row.p_value:.2g}"
            lines.append(f"{row.name:{width}}  {row.loss!s:28}  {against:28}  {p}".rstrip())
        return "\n".join(lines)


def compare(
    models: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Comparison:
    """Compare fitted models by their task loss on the same rows, example by example.

    Much of the loss is the same for all models (hard rows are hard for everyone), so the difference
    is known far better than the two losses are.

    Parameters
    ----------
    models : dict of name -> estimator, or list of estimators
        Fitted on other rows, all for the same loss; the first is the reference.
    X, y, groups
        As the estimators take them.
    confidence : float
        Of the intervals.
    random_state : int or Generator
        Draws the exchanges of the test.

    Returns
    -------
    comparison : Comparison

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> good = cs.TaskLossClassifier("zero_one", cs.models.Ridge()).fit(X[::2], y[::2])
    >>> bad = cs.TaskLossClassifier("zero_one", cs.models.Probabilities(DummyClassifier()))
    >>> result = cs.compare({"ridge": good, "dummy": bad.fit(X[::2], y[::2])}, X[1::2], y[1::2])
    >>> result.rows[1].difference.low > 0, result.rows[1].p_value < 0.01
    (True, True)
    """
    named = _named(models)
    losses = {name: model.loss_ for name, model in named.items()}
    first = next(iter(losses))
    for name, loss in losses.items():
        if loss != losses[first]:
            raise ValueError(
                f"models must have the same loss, but {first!r} has {losses[first]!r} and "
                f"{name!r} has {loss!r}"
            )
    extra = {} if groups is None else {"groups": groups}
    values = {name: np.asarray(model.task_losses(X, y, **extra)) for name, model in named.items()}
    every = np.concatenate(list(values.values()))
    low = min(losses[first].value_range[0], float(every.min()))
    high = max(losses[first].value_range[1], float(every.max()))
    rng = np.random.default_rng(random_state)
    spread = high - low
    found: list[tuple[str, Interval, Interval]] = []
    raw: list[float] = []
    for name in named:
        gap = values[name] - values[first]
        found.append(
            (
                name,
                mean_interval(values[name], bounds=(low, high), confidence=confidence),
                mean_interval(gap, bounds=(-spread, spread), confidence=confidence),
            )
        )
        raw.append(1.0 if name == first else _exchange_test(gap, rng))
    corrected = _holm(raw[1:])
    rows = [
        ComparisonRow(*entry, p_value=p) for entry, p in zip(found, [1.0, *corrected], strict=True)
    ]
    return Comparison(tuple(rows), len(every) // len(named))


def _named(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        named = {str(name): model for name, model in models.items()}
    elif isinstance(models, Sequence):
        named = {f"model {number}": model for number, model in enumerate(models, 1)}
    else:
        raise TypeError(
            f"models must be a dict of name -> estimator or a list, got {type(models).__name__}"
        )
    if len(named) < 2:
        raise ValueError(f"compare needs at least two models, got {len(named)}")
    for name, model in named.items():
        if not hasattr(model, "task_losses"):
            raise TypeError(
                f"{name!r} is a {type(model).__name__}, which has no task loss; wrap a classifier "
                f"as TaskLossClassifier(loss, consistruct.models.Probabilities(classifier))"
            )
    return named


def _exchange_test(gap: FloatArray, rng: np.random.Generator) -> float:
    """P(|mean| at least as large with random signs); rows where both agree say nothing."""
    differing = gap[gap != 0.0]
    if len(differing) == 0:
        return 1.0
    observed = abs(float(differing.sum())) * (1.0 - 1e-12)
    step = max(1, CHUNK // len(differing))
    hits = 0
    for start in range(0, PERMUTATIONS, step):
        size = (min(step, PERMUTATIONS - start), len(differing))
        signs = rng.integers(2, size=size, dtype=np.int8) * np.int8(2) - np.int8(1)
        hits += int((np.abs(signs @ differing) >= observed).sum())
    return (hits + 1) / (PERMUTATIONS + 1)


def _holm(p_values: list[float]) -> list[float]:
    """p-values corrected for their number.

    >>> _holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    corrected, largest = np.empty(len(p_values)), 0.0
    for position, number in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - position) * p_values[number]))
        corrected[number] = largest
    return [float(value) for value in corrected]
