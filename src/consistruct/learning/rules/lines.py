"""Rules of greater least recall where rows tie: exact steps in the weights and prices of classes.

    d_i = argmax_c w_c p_i(c) − a_c        a_c is what predicting class c costs by itself

The Bayes decisions for weights of the classes are best on average over draws. Where many rows tie,
every single one of them misses that average, by as much as a group of equal rows weighs. A price
for every predicted class (two numbers per class, as macro-F1 has) lets a rule come closer.

One weight, or the prices of one or two classes, moved by t: every row changes its class at one t,
so that sorting these gives the recalls of all classes for every t at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from consistruct.learning.rules.counts import Counts
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Line", "exact_steps"]

SWEEPS = 4
MOST_LINES, MOST_ENTRIES = 4000, 8e6  # that are sorted, and probabilities in them
MANY_CLASSES = 12  # from which on prices move one at a time
SIZES = (0.02, 0.05, 0.1, 0.3)  # of the steps away from what was found
ORDER = (1.0, 1e-3, 1e-5)  # the least recall counts, then the second and the third
FARTHEST, APART, SMALL_GAIN = 50.0, 1e-9, 1e-9


@dataclass(frozen=True, eq=False)
class Line:
    """Rows that go from one class to another as t passes their threshold; arrays (n,)."""

    before: IntArray
    after: IntArray
    threshold: FloatArray

    def best(self, hits: FloatArray, true: FloatArray) -> tuple[float, float]:
        """(key of the recalls, t) where the key is largest; t lies between two thresholds.

        hits (n, k) is what a row adds to each class if predicted so, true (k,) what there is.
        """
        order, rows = np.argsort(self.threshold, kind="stable"), np.arange(len(self.before))
        t, before, after = self.threshold[order], self.before[order], self.after[order]
        moved = np.zeros((len(t) + 1, len(true)))
        moved[0] = np.bincount(self.before, hits[rows, self.before], minlength=len(true))
        moved[rows + 1, after] += hits[order, after]
        moved[rows + 1, before] -= hits[order, before]
        recalls = np.cumsum(moved, axis=0)[:, true > 0] / true[true > 0]
        cut = np.concatenate([[True], np.diff(t) > APART, [True]])
        keys = np.where(cut, _key(recalls), -np.inf)
        place = int(keys.argmax())
        ends = np.concatenate([[t[0] - 1.0], t, [t[-1] + 1.0]])
        return float(keys[place]), float(0.5 * (ends[place] + ends[place + 1]))


def _key(recalls: FloatArray) -> FloatArray:
    least = np.sort(recalls, axis=1)[:, : len(ORDER)]
    return np.asarray(least @ np.array(ORDER[: least.shape[1]]))


@dataclass(frozen=True, eq=False)
class _Place:
    """Weights and prices of the classes, (k,) each, and the key of their recalls."""

    weights: FloatArray
    prices: FloatArray
    key: float = -np.inf

    @property
    def costs(self) -> FloatArray:
        off = 1.0 - np.eye(len(self.weights))
        found = off * self.weights + self.prices[:, None]
        return np.asarray(found - found.min(axis=0))

    def line(self, columns: FloatArray, moved: IntArray, by_weight: bool) -> Line:
        """As one weight grows by a factor of exp(t), or the prices of some classes fall by t."""
        values = self.weights[:, None] * columns - self.prices[:, None]
        rest = np.delete(np.arange(len(columns)), moved)
        rows = np.arange(columns.shape[1])
        inside, outside = moved[values[moved].argmax(axis=0)], rest[values[rest].argmax(axis=0)]
        if not by_weight:
            ahead = values[outside, rows] - values[inside, rows]
            return Line(outside, inside, ahead)
        needed = np.maximum(values[outside, rows] + self.prices[moved[0]], 1e-300)
        has = np.maximum(self.weights[moved[0]] * columns[moved[0]], 1e-300)
        ahead = np.clip(np.log(needed) - np.log(has), -FARTHEST, FARTHEST)
        return Line(outside, inside, ahead)

    def stepped(self, moved: IntArray, by_weight: bool, t: float, key: float) -> _Place:
        weights, prices = self.weights.copy(), self.prices.copy()
        if by_weight:
            weights[moved] *= np.exp(t)
        else:
            prices[moved] -= t
        return _Place(weights / weights.max(), prices / weights.max(), key)


def exact_steps(
    rows: Counts, weights: FloatArray, goal: float, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Costs (k, k) of ever greater least recall, from weights (k,) that are good, up to `goal`.

    Steps along single lines until none helps, then again from a random place nearby.
    """
    k, true = rows.n_classes, rows.priors
    columns, hits = _sorts(rows)
    pairs = itertools.combinations(range(k), 2) if 3 < k <= MANY_CLASSES else ()
    singles = [(np.array([c]), by_weight) for c in range(k) for by_weight in (True, False)]
    directions = [*singles, *((np.array(pair), False) for pair in pairs)]
    left = min(MOST_LINES, int(MOST_ENTRIES / columns.size))
    best = _Place(weights / weights.max(), np.zeros(k))
    place = best
    while left > 0:
        for _ in range(SWEEPS):
            before = place.key
            for number in rng.permutation(len(directions))[:left]:
                moved, by_weight = directions[number]
                key, t = place.line(columns, moved, by_weight).best(hits, true)
                if key > place.key + SMALL_GAIN:
                    place = place.stepped(moved, by_weight, t, key)
            left -= len(directions)
            if left <= 0 or place.key <= before:
                break
        if place.key > best.key:
            best = place
            yield best.costs
            if _least_recall(rows, best.costs) >= goal:
                return
        size = rng.choice(SIZES)
        away = best.weights * np.exp(size * rng.normal(size=k))
        typical = 0.1 * size * float(np.mean(best.weights)) / k
        place = _Place(away, best.prices + typical * rng.normal(size=k))


def _sorts(rows: Counts) -> tuple[FloatArray, FloatArray]:
    """Probabilities of the sorts of rows, (k, m), and what all rows of a sort count, (m, k)."""
    found, which = np.unique(rows.probabilities, axis=0, return_inverse=True)
    hits = np.zeros(found.shape)
    np.add.at(hits, which, rows.counted)
    return np.ascontiguousarray(found.T), hits


def _least_recall(rows: Counts, costs: FloatArray) -> float:
    table = rows.confusion(rows.decide(costs)).sum(axis=0)
    present = rows.priors > 0
    return float(np.min(np.diagonal(table)[present] / rows.priors[present]))
