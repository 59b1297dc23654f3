"""Check metrics of the mean confusion: value, gradient, and what `kind` states of mixtures."""

from __future__ import annotations

import numpy as np

from consistruct.losses.metrics import Metric
from consistruct.protocols import FloatArray
from consistruct.testing.contracts import Contracts, reports_errors
from consistruct.testing.members import check_member

__all__ = ["check_metric"]

ROUNDS = 8  # random confusions of each shape
# central differences: the error of the slope is STEP² by curvature and 1e-16/STEP by rounding
STEP = 1e-6


@reports_errors
def check_metric(metric: Metric, *, seed: int = 0) -> None:
    """Raise AssertionError unless the metric keeps its contracts.

    Its gradient is the slope of its value; counts and shares give the same value; values lie in
    the range, with the top for perfect predictions; what `kind` states of mixtures of two rules
    holds; and costs are non-negative with a least one of 0 for every true label.

    Parameters
    ----------
    metric : Metric
    seed : int
        Of the random confusions.

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
    """Draw a confusion without empty cells, of sum 1 for each of its tables."""
    table = rng.dirichlet(np.ones(shape[-1] ** 2), size=shape[0] if len(shape) == 3 else 1)
    # away from 0, where ratios and geometric means have no gradient to compare with
    return (table + 0.02).reshape(shape) / (1.0 + 0.02 * shape[-1] ** 2)


def _check_at(metric: Metric, confusion: FloatArray, rng: np.random.Generator) -> None:
    """Check value, gradient and costs at one confusion."""
    contracts = Contracts(metric)
    low, high = metric.value_range
    value, gradient = metric.value(confusion), metric.gradient(confusion)
    contracts.ensure(np.shape(gradient) == confusion.shape, "the gradient has another shape")
    contracts.ensure(low - 1e-12 <= value <= high + 1e-12, f"value {value} outside {low}..{high}")
    contracts.ensure(
        abs(metric.value(137.0 * confusion) - value) <= 1e-9,
        "counts and shares give different values",
    )
    # all true rows moved to the diagonal: the best that these true labels allow
    perfect = np.zeros_like(confusion)
    index = np.arange(confusion.shape[-1])
    perfect[..., index, index] = confusion.sum(axis=-2)
    contracts.ensure(
        abs(metric.value(perfect) - high) <= 1e-9,
        f"perfect predictions have value {metric.value(perfect)}, not {high}",
    )
    # in proportion to the cells, so that no step makes a share negative
    direction = rng.normal(size=confusion.shape) * confusion
    slope = (
        metric.value(confusion + STEP * direction) - metric.value(confusion - STEP * direction)
    ) / (2 * STEP)
    predicted = float(np.sum(gradient * direction))
    contracts.ensure(
        abs(slope - predicted) <= 1e-5 * (1.0 + abs(slope)),
        f"the gradient gives a slope of {predicted}, the value has {slope}",
    )
    costs = metric.costs(confusion)
    contracts.ensure(
        (costs >= 0).all() and (costs.min(axis=-2) == 0).all(),
        "costs are negative, or the least of a true label is not 0",
    )
    _check_kind(metric, confusion, rng)


def _check_kind(metric: Metric, confusion: FloatArray, rng: np.random.Generator) -> None:
    """Check `kind` against another rule on the same rows, and mixtures of both.

    A search uses it: linear and concave metrics have tangents that bound them, and a ratio has no
    value on a segment beyond its ends, so that no start leads into a local optimum.
    """
    contracts = Contracts(metric)
    # another rule predicts other classes for the same rows: columns keep their sums
    share = rng.dirichlet(np.ones(confusion.shape[-1]), size=confusion.sum(axis=-2).shape)
    true_labels = confusion.sum(axis=-2)[..., None, :]
    other = np.swapaxes(share, -1, -2) * true_labels
    ends = metric.value(confusion), metric.value(other)
    for part in (0.2, 0.5, 0.8):
        between = metric.value((1 - part) * confusion + part * other)
        chord = (1 - part) * ends[0] + part * ends[1]
        if metric.kind == "linear":
            contracts.ensure(abs(between - chord) <= 1e-9, "stated to be linear and is not")
        if metric.kind == "concave":
            contracts.ensure(between >= chord - 1e-9, "stated to be concave and is not")
        if metric.kind == "ratio":
            inside = min(ends) - 1e-9 <= between <= max(ends) + 1e-9
            contracts.ensure(inside, "stated to be a ratio, but a mixture lies outside both ends")
    if metric.kind in ("linear", "concave"):
        slope, constant = metric.majorant(confusion)
        bound = float(np.sum(slope * other)) + constant
        contracts.ensure(ends[1] <= bound + 1e-9, f"value {ends[1]} above the majorant {bound}")
