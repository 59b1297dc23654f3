"""Does a metric of the mean confusion keep its contracts?"""

from __future__ import annotations

import numpy as np

from consistruct.losses.metrics import Metric
from consistruct.protocols import FloatArray
from consistruct.testing.contracts import ensure, reports_errors
from consistruct.testing.members import check_member

__all__ = ["check_metric"]

ROUNDS = 8
STEP = 1e-6


@reports_errors
def check_metric(metric: Metric, *, seed: int = 0) -> None:
    """Raise AssertionError unless the metric keeps its contracts.

    Its gradient is the slope of its value; counts and shares give the same value; values lie in
    the range, with the top for perfect predictions; what `kind` states of mixtures of two rules
    holds; and costs are non-negative with a least one of 0 for every true label.

    Examples
    --------
    >>> from consistruct.losses.metrics import RecallMean
    >>> from consistruct.testing import check_metric
    >>> check_metric(RecallMean(0.0))
    """
    check_member(metric)
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 5) if metric.n_classes is None else (metric.n_classes,)
    shapes: list[tuple[int, ...]] = [(k, k) for k in sizes]
    shapes += [(1, 2, 2), (4, 2, 2)] if metric.labels else []
    for shape in shapes:
        for _ in range(ROUNDS):
            _check_at(metric, _confusion(shape, rng), rng)


def _confusion(shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    table = rng.dirichlet(np.ones(shape[-1] ** 2), size=shape[0] if len(shape) == 3 else 1)
    return (table + 0.02).reshape(shape) / (1.0 + 0.02 * shape[-1] ** 2)


def _check_at(metric: Metric, confusion: FloatArray, rng: np.random.Generator) -> None:
    low, high = metric.value_range
    value, gradient = metric.value(confusion), metric.gradient(confusion)
    ensure(np.shape(gradient) == confusion.shape, metric, "the gradient has another shape")
    ensure(low - 1e-12 <= value <= high + 1e-12, metric, f"value {value} outside {low}..{high}")
    ensure(
        abs(metric.value(137.0 * confusion) - value) <= 1e-9,
        metric,
        "counts and shares give different values",
    )
    perfect = np.zeros_like(confusion)
    index = np.arange(confusion.shape[-1])
    perfect[..., index, index] = confusion.sum(axis=-2)
    ensure(
        abs(metric.value(perfect) - high) <= 1e-9,
        metric,
        f"perfect predictions have value {metric.value(perfect)}, not {high}",
    )
    direction = rng.normal(size=confusion.shape) * confusion
    slope = (
        metric.value(confusion + STEP * direction) - metric.value(confusion - STEP * direction)
    ) / (2 * STEP)
    predicted = float(np.sum(gradient * direction))
    ensure(
        abs(slope - predicted) <= 1e-5 * (1.0 + abs(slope)),
        metric,
        f"the gradient gives a slope of {predicted}, the value has {slope}",
    )
    costs = metric.costs(confusion)
    ensure(
        bool((costs >= 0).all() and (costs.min(axis=-2) == 0).all()),
        metric,
        "costs are negative, or the least of a true label is not 0",
    )
    _check_kind(metric, confusion, rng)


def _check_kind(metric: Metric, confusion: FloatArray, rng: np.random.Generator) -> None:
    """Against another rule on the same rows, and mixtures of both."""
    share = rng.dirichlet(np.ones(confusion.shape[-1]), size=confusion.sum(axis=-2).shape)
    true_labels = confusion.sum(axis=-2)[..., None, :]
    other = np.swapaxes(share, -1, -2) * true_labels
    ends = metric.value(confusion), metric.value(other)
    for part in (0.2, 0.5, 0.8):
        between = metric.value((1 - part) * confusion + part * other)
        chord = (1 - part) * ends[0] + part * ends[1]
        if metric.kind == "linear":
            ensure(abs(between - chord) <= 1e-9, metric, "stated to be linear and is not")
        if metric.kind == "concave":
            ensure(between >= chord - 1e-9, metric, "stated to be concave and is not")
        if metric.kind == "ratio":
            inside = min(ends) - 1e-9 <= between <= max(ends) + 1e-9
            ensure(inside, metric, "stated to be a ratio, but a mixture lies outside both ends")
    if metric.kind in ("linear", "concave"):
        slope, constant = metric.majorant(confusion)
        bound = float(np.sum(slope * other)) + constant
        ensure(ends[1] <= bound + 1e-9, metric, f"value {ends[1]} above the majorant {bound}")
