"""The task loss after training on part of the examples: refits on nested parts of folds.

Every example is left out once, and judged by fits on growing parts of the others. The parts of a
fold are nested, so that sizes are compared on the same rows by fits that share theirs.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from consistruct.exceptions import ConsistructError
from consistruct.learning.encoding.kinds import Examples, take_codes
from consistruct.learning.estimator import TargetEstimator
from consistruct.learning.rules.deciding import confusion_of
from consistruct.learning.selection.cross_fitting import few_threads, folds
from consistruct.losses.metrics import Metric, requested_metric
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Ragged

__all__ = ["Refits", "nested_refits"]

FOLDS = 5
SIZES = 5
REACH = 4  # the largest part is so many times the smallest: smaller ones say little of larger
SMALLEST = 20  # examples of the smallest part
FEWEST_SIZES = 3  # that must remain where small parts cannot be fitted
LEAST = 50  # examples in all
RESAMPLES = 200  # of the rows, for the covariance of a metric


@dataclass(frozen=True, eq=False)
class Refits:
    """Out-of-fold losses at several numbers of training examples.

    Attributes
    ----------
    n : int
        Examples in all.
    sizes : (J,) array
        Examples that were trained on, growing.
    means : (J,) array
        Mean out-of-fold loss; of a metric, one minus its value on all out-of-fold rows together.
    covariance : (J, J) array
        Of the means, over the held-out rows.
    spreads : (J,) array
        Variance of the means of folds beyond what their rows explain: what differs is the rows
        that were trained on.
    n_folds : int
    row_variance : float
        Variance of the loss of one example at the largest size (of a metric: of its influence).
    bounds : (float, float)
        Least and largest loss that is possible.
    loss : str
        What was measured.
    metric : str or None
        Of a metric: its name, whose value is one minus the loss.
    """

    n: int
    sizes: FloatArray
    means: FloatArray
    covariance: FloatArray
    spreads: FloatArray
    n_folds: int
    row_variance: float
    bounds: tuple[float, float]
    loss: str
    metric: str | None


def nested_refits(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    random_state: Any = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Refits:
    """Out-of-fold losses of the estimator, refitted on nested parts of the data.

    With model="auto" the models are chosen once, on all rows; the refits are of those chosen.

    Parameters
    ----------
    estimator : TaskLossClassifier or StructuredPredictor
        Fitted or not; it is not changed.
    X, y, groups
        As its `fit` takes them. Rows of one group stay together.
    random_state : int or Generator
    progress : callable, optional
        Called with (fits done, fits in all).
    """
    if not isinstance(estimator, TargetEstimator):
        raise TypeError(
            "a forecast needs a TaskLossClassifier or StructuredPredictor, got "
            f"{type(estimator).__name__}; wrap other models, as in TaskLossClassifier(loss, "
            "models.Probabilities(classifier))"
        )
    reader: Any = clone(estimator)
    metric = requested_metric(reader.loss)
    if metric is not None and metric.conditions is not None:
        raise ValueError(
            f"{metric!r} has a constraint, and what is possible under it has no learning curve; "
            "forecast the metric without the constraint"
        )
    model, examples = reader._training(X, y, groups=groups)
    units = _units(examples)
    n = len(examples)
    if n < LEAST:
        raise ValueError(
            f"a forecast needs at least {LEAST} examples, to hold some out and refit on small "
            f"parts, got {n}"
        )
    rng = np.random.default_rng(random_state)
    splits = folds(examples, FOLDS, rng)
    sizes = _sizes(min(len(fit) for fit, _ in splits))
    total, done = len(splits) * len(sizes) + 1, 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    if hasattr(model, "with_fixed_weights"):
        chosen = copy.copy(reader)
        chosen._fit_model(model, examples, metric)
        model = chosen.model_.with_fixed_weights()
        reader.set_params(cv=None, time_limit=None)
    step()
    losses = np.empty((n, len(sizes)))
    codes: list[Any] = [[None] * n for _ in sizes]
    failed: dict[int, str] = {}
    for fit, left in splits:
        order = _spread(examples.codes, fit, units, rng)
        held_out = examples.take(left)
        for column, size in enumerate(sizes):
            step()
            one = copy.copy(reader)
            one.random_state = int(rng.integers(2**31))
            part = examples.take(np.sort(order[:size]))
            if column in failed:
                continue
            try:
                with warnings.catch_warnings(), few_threads(model, size):
                    warnings.simplefilter("ignore", ConvergenceWarning)  # small parts, many fits
                    one._fit_model(model, part, metric)
            except (ValueError, ConsistructError) as error:  # too few rows for this model
                failed[column] = str(error)
                if len(failed) > len(sizes) - FEWEST_SIZES:
                    raise
                continue
            found = one._codes(held_out.inputs)
            if metric is None:
                losses[left, column] = examples.kind.code_losses(found, held_out.codes)
            else:
                for row, code in zip(left, found, strict=True):
                    codes[column][row] = code
    kept = [column for column in range(len(sizes)) if column not in failed]
    sizes, losses, codes = sizes[kept], losses[:, kept], [codes[column] for column in kept]
    if metric is not None:
        name = reader.loss if isinstance(reader.loss, str) else repr(metric)
        return _of_metric(metric, name, codes, examples, units, splits, sizes, rng)
    low, high = examples.kind.loss.value_range
    bounds = min(low, float(losses.min())), max(high, float(losses.max()))
    largest = float(losses.max() - bounds[0]) or min(bounds[1] - bounds[0], 1.0)
    # a row that was never seen may lose as much as any: without it no errors would mean certainty
    unseen = (largest / n) ** 2 * (1.0 + np.eye(len(sizes)))
    return Refits(
        n=n,
        sizes=sizes.astype(np.float64),
        means=losses.mean(axis=0),
        covariance=_mean_covariance(losses - losses.mean(axis=0), units) + unseen,
        spreads=_fold_spread(losses, splits),
        n_folds=len(splits),
        row_variance=float(losses[:, -1].var() + n * unseen[-1, -1]),
        bounds=bounds,
        loss=repr(examples.kind.loss),
        metric=None,
    )


def _sizes(most: int) -> IntArray:
    """Sizes of the nested parts, growing by the same factor."""
    least = max(SMALLEST, most / REACH)
    return np.unique(np.round(np.geomspace(least, most, SIZES)).astype(np.int64))


def _units(examples: Examples) -> IntArray:
    """What is drawn and evaluated together: groups of rows, or every example by itself."""
    if examples.groups is None:
        return np.arange(len(examples))
    return np.asarray(np.unique(np.asarray(examples.groups), return_inverse=True)[1])


def _spread(true_codes: Any, rows: IntArray, units: IntArray, rng: np.random.Generator) -> IntArray:
    """The rows in random order: groups together, or classes spread evenly over every beginning."""
    own = units[rows]
    if len(np.unique(own)) < len(rows):
        place = rng.permutation(int(units.max()) + 1)
        return np.asarray(rows[np.argsort(place[own], kind="stable")])
    mixed = rng.permutation(rows)
    if isinstance(true_codes, Ragged) or np.ndim(true_codes) != 1:
        return mixed
    # the i-th of m rows of a class stands at a random place of the i-th of m equal parts
    _, codes = np.unique(take_codes(true_codes, mixed), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    rank = np.arange(len(mixed)) - np.repeat(np.cumsum(counts) - counts, counts)
    spread = np.empty(len(mixed))
    spread[order] = (rank + rng.random(len(mixed))) / np.repeat(counts, counts)
    return np.asarray(mixed[np.argsort(spread, kind="stable")])


def _mean_covariance(centered: FloatArray, units: IntArray) -> FloatArray:
    """Covariance of column means over independent units of rows, (J, J)."""
    sums = np.zeros((int(units.max()) + 1, centered.shape[1]))
    np.add.at(sums, units, centered)
    m = len(sums)
    return np.asarray(sums.T @ sums / len(centered) ** 2 * (m / max(m - 1, 1)))


def _fold_spread(losses: FloatArray, splits: list[tuple[IntArray, IntArray]]) -> FloatArray:
    """Variance of fold means less what the rows in a fold explain, (J,); may be negative."""
    means = np.array([losses[left].mean(axis=0) for _, left in splits])
    within = np.array([losses[left].var(axis=0, ddof=1) / len(left) for _, left in splits])
    return np.asarray(means.var(axis=0, ddof=1) - within.mean(axis=0))


def _of_metric(
    metric: Metric,
    name: str,
    codes: list[Any],
    examples: Examples,
    units: IntArray,
    splits: list[tuple[IntArray, IntArray]],
    sizes: IntArray,
    rng: np.random.Generator,
) -> Refits:
    """One minus the metric of all out-of-fold rows; its covariance by drawing rows again."""
    true_codes, n = examples.codes, len(examples)
    k = int(examples.kind.loss.true_labels.size or 2) if np.ndim(true_codes) == 1 else 2
    pred = [np.array(column) for column in codes]

    def values(weight: Any) -> FloatArray:
        kept = np.flatnonzero(weight)
        return np.array(
            [
                1.0 - metric.value(confusion_of(metric, p[kept], true_codes[kept], weight[kept], k))
                for p in pred
            ]
        )

    m = int(units.max()) + 1
    drawn = np.array(
        [
            values(rng.multinomial(m, np.full(m, 1.0 / m))[units].astype(np.float64))
            for _ in range(RESAMPLES)
        ]
    )
    covariance = np.cov(drawn, rowvar=False) + (1.0 + np.eye(len(sizes))) / n**2
    least, most = metric.value_range
    return Refits(
        n=n,
        sizes=sizes.astype(np.float64),
        means=values(np.ones(n)),
        covariance=np.asarray(covariance),
        spreads=_metric_spread(values, drawn, splits, n),
        n_folds=len(splits),
        row_variance=float(covariance[-1, -1]) * n,
        bounds=(1.0 - most, 1.0 - least),
        loss=f"1 − {name}",
        metric=name,
    )


def _metric_spread(
    values: Callable[[FloatArray], FloatArray],
    drawn: FloatArray,
    splits: list[tuple[IntArray, IntArray]],
    n: int,
) -> FloatArray:
    """As `_fold_spread`: the variance that rows explain grows as folds have fewer of them."""
    found = []
    for _, left in splits:
        weight = np.zeros(n)
        weight[left] = 1.0
        found.append(values(weight))
    return np.asarray(np.array(found).var(axis=0, ddof=1) - drawn.var(axis=0, ddof=1) * len(splits))
