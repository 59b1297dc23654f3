"""Label sets: a threshold for every label that makes a metric of all of them large.

All of them start from probabilities that are right on out-of-fold rows (`label_powers`).

macro    each label alone: the best cut of its own rows, then the costs there (F*/2 for F1)
micro    one threshold for all: the same fixed point, on pooled counts
budgets  one price for every predicted label, found by bisection: it couples the labels
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct.exceptions import ConsistructError
from consistruct.learning.rules.label_powers import fit_powers
from consistruct.losses.metrics import Constrained, Metric, RatioMetric
from consistruct.protocols import FloatArray, IntArray

__all__ = ["decide_labels", "label_confusion", "search_labels"]

LABEL_SHARE = 0.5  # counts by labels; the rest by probabilities, as for classes
RANKS = 160  # cuts that are tried for each label, closer among the likeliest rows
CHUNK = 4_000_000  # entries that are sorted at a time
ROUNDS = 50
STEPS = (1.0, 0.5, 0.25, 0.1, 0.03)
SMALL_GAIN = 1e-7


def search_labels(
    metric: Metric,
    chances: FloatArray,  # (n, T): probabilities of out-of-fold rows
    codes: IntArray,  # (n, T)
    weight: FloatArray,  # (n,), summing to one
    *,
    evidence: int | None = None,  # rows that the margins of constraints go by; n if None
) -> FloatArray:
    """Costs of every label, (T, 2, 2): rows are predictions, in units of the metric.

    They are for the probabilities as they are given; those that are right on out-of-fold rows find
    them, and their thresholds are carried back.
    """
    powers = fit_powers(chances, codes, weight)
    chances = powers(chances)
    confusions = _cuts(chances, codes, weight)
    if metric.conditions is not None:
        n = evidence or len(codes)
        costs = _within_budget(metric.conditions, confusions, chances, codes, weight, n)
    else:
        costs = _costs(metric, _picked(confusions, _climb(metric, confusions)))
    false, missed = costs[:, 1, 0] - costs[:, 0, 0], costs[:, 0, 1] - costs[:, 1, 1]
    total = false + missed
    plain = (false >= 0) & (missed >= 0) & (total > 0)  # a threshold within [0, 1]
    threshold = powers.undone(np.divide(false, total, where=plain, out=np.ones_like(total)))
    carried = np.zeros_like(costs)
    carried[:, 1, 0], carried[:, 0, 1] = threshold * total, (1.0 - threshold) * total
    return np.where(plain[:, None, None], carried, costs)


def decide_labels(costs: FloatArray, chances: FloatArray) -> NDArray[np.bool_]:
    """Labels whose prediction costs less in expectation, (n, T)."""
    yes = costs[:, 1, 0] * (1.0 - chances) + costs[:, 1, 1] * chances
    no = costs[:, 0, 0] * (1.0 - chances) + costs[:, 0, 1] * chances
    return np.asarray(yes < no)


def label_confusion(decisions: Any, codes: IntArray, weight: FloatArray) -> FloatArray:
    """Confusion of every label, (T, 2, 2), counted by the true labels."""
    yes, true = decisions.astype(np.float64), codes.astype(np.float64)
    weighted = weight[:, None] * yes
    hit, predicted = np.sum(weighted * true, axis=0), weighted.sum(axis=0)
    positive = weight @ true
    return _table(hit, predicted, positive, float(weight.sum()))


def _table(
    hit: FloatArray, predicted: FloatArray, positive: FloatArray, total: float = 1.0
) -> FloatArray:
    alarm, miss = predicted - hit, positive - hit
    rows = [np.stack([total - hit - alarm - miss, miss], axis=-1), np.stack([alarm, hit], axis=-1)]
    return np.maximum(np.stack(rows, axis=-2), 0.0)


def _cuts(chances: FloatArray, codes: IntArray, weight: FloatArray) -> FloatArray:
    """Confusions of every label at cuts after its r likeliest rows, (cuts, T, 2, 2)."""
    n, n_labels = chances.shape
    ranks = np.unique(np.rint(np.concatenate([[0], np.geomspace(1, n, RANKS)])).astype(np.int64))
    found = np.empty((len(ranks), n_labels, 2, 2))
    size = max(1, CHUNK // n)
    for start in range(0, n_labels, size):
        part = slice(start, start + size)
        order = np.argsort(-chances[:, part], axis=0, kind="stable")
        counted = (1.0 - LABEL_SHARE) * chances[:, part] + LABEL_SHARE * codes[:, part]
        hits = np.take_along_axis(weight[:, None] * counted, order, axis=0)
        hit = np.vstack([np.zeros(hits.shape[1]), np.cumsum(hits, axis=0)])
        share = np.vstack([np.zeros(hits.shape[1]), np.cumsum(weight[order], axis=0)])
        found[:, part] = _table(hit[ranks], share[ranks], hit[-1])
    return found


def _picked(confusions: FloatArray, chosen: IntArray) -> FloatArray:
    return np.asarray(confusions[chosen, np.arange(confusions.shape[1])])


def _climb(metric: Metric, confusions: FloatArray, price: float = 0.0) -> IntArray:
    """The cut of every label, (T,), for ψ minus a price for every predicted label."""
    predicted = confusions[:, :, 1].sum(axis=-1)  # (cuts, T)
    n_labels = confusions.shape[1]
    if isinstance(metric, RatioMetric) and metric.average == "macro":
        return np.asarray((metric.ratio(confusions)[0] - price * predicted).argmax(axis=0))
    best, chosen = -np.inf, np.zeros(n_labels, dtype=np.int64)
    for first in (len(confusions) // 4, len(confusions) // 2, 3 * len(confusions) // 4):
        mixture = confusions[first]
        value = -np.inf
        for _ in range(ROUNDS):
            slope = metric.gradient(mixture)
            gain = np.einsum("ctij,tij->ct", confusions, slope) - price * predicted / n_labels
            corner = gain.argmax(axis=0)
            picked = _picked(confusions, corner)
            reached = metric.value(picked) - price * picked[:, 1].sum() / n_labels
            if reached > best + SMALL_GAIN:
                best, chosen = reached, corner
            trials = [(1.0 - step) * mixture + step * picked for step in STEPS]
            values = [metric.value(t) - price * t[:, 1].sum() / n_labels for t in trials]
            number = int(np.argmax(values))
            if values[number] <= value + SMALL_GAIN:
                break
            mixture, value = trials[number], values[number]
    return chosen


def _costs(metric: Metric, confusion: FloatArray, price: float = 0.0) -> FloatArray:
    """−∇ψ of every label plus the price; a label that nothing speaks for is never predicted."""
    slope = -metric.gradient(confusion)
    slope[:, 1, :] += price / len(confusion)
    costs = slope - slope.min(axis=1, keepdims=True)
    # cut of 0 rows (or no true ones): the metric is flat there, and its threshold would be 0
    silent = confusion[:, 1, 1] <= 0.0
    costs[silent] = np.array([[0.0, 0.0], [1.0, 1.0]])
    return np.asarray(costs)


def _within_budget(
    metric: Constrained,
    confusions: FloatArray,
    chances: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    n: int,
) -> FloatArray:
    """The lowest price at which the budget holds with its margin, counted by the thresholds."""
    n_labels = confusions.shape[1]

    def attempt(price: float) -> tuple[FloatArray, bool]:
        picked = _picked(confusions, _climb(metric.metric, confusions, price))
        costs = _costs(metric.metric, picked, price)
        counted = label_confusion(decide_labels(costs, chances), codes, weight)
        spare = metric.spare(counted / n_labels, float(n))
        return costs, bool(spare.min() >= 0)

    found, held = attempt(0.0)
    low, high = 0.0, 0.0 if held else 1.0
    while not held:
        found, held = attempt(high)
        if not held:
            low, high = high, 4.0 * high
        if high > 1e9:
            raise ConsistructError(
                f"no thresholds keep the budget of {metric!r} with its margin on {n} out-of-fold "
                "rows; request less, use more rows, or lower confidence="
            )
    for _ in range(30 if high > 0 else 0):
        middle = 0.5 * (low + high)
        costs, held = attempt(middle)
        if held:
            found, high = costs, middle
        else:
            low = middle
    return found
