"""The cost matrix whose Bayes decisions make a metric large on out-of-fold rows.

The best rule for ψ is the Bayes decision for the costs −∇ψ(C*) at its own confusion C*. So costs
have few free numbers (two per class for macro-F1, one per class for means of recalls, one in all
for weighted kappa), which is what lets them be found on few rows; free k x k matrices overfit.

* any number of classes: Frank–Wolfe with line search over mixtures of rules, from several starts;
  the metric is counted for every single rule on the way, and the best of them is kept. For ratios
  this is Dinkelbach's iteration, for concave metrics it converges;
* two classes: thresholds are tried one by one as well;
* constraints: thresholds for two classes, else a climb with prices for the conditions (`prices`).
  Conditions are counted by labels alone: a model that is wrong about a recall must not guarantee
  it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from consistruct.exceptions import ConsistructError
from consistruct.learning.rules.balance import CLOSE, ROUGHLY, balanced_weights
from consistruct.learning.rules.counts import Counts
from consistruct.learning.rules.lines import exact_steps
from consistruct.learning.rules.mixtures import least_recall_drawn
from consistruct.learning.rules.prices import few_priced_rules, priced_rules
from consistruct.learning.rules.sample import sampled_rows
from consistruct.losses.metrics import Constrained, Metric
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Found", "search"]

ROUNDS = 40
STEPS = (1.0, 0.5, 0.25, 0.1, 0.04, 0.015, 0.005)
STARTS = 4  # random ones, beside zero-one costs and two shares of the prior shift
SMALL_GAIN = 1e-7
MOST_ROWS = 10_000  # for all starts; the best ones go on with every row
KEPT = 2
MOST_CUTS = 400
TIED = 0.005  # least recall that single rounds of the game stay below their best mixture
WITHIN = 0.002  # of that mixture is enough: more would be the noise of labels


@dataclass(frozen=True, eq=False)
class Found:
    """A rule and what is known of it on the rows that it was found on.

    Attributes
    ----------
    costs : (g, k, k) array
        Rows are predictions; one matrix per group of rows, mostly one in all.
    confusion : (g, k, k) array
        As counted: half by probabilities, half by labels.
    value : float
        The metric there, which the search made large.
    """

    costs: FloatArray
    confusion: FloatArray
    value: float


def search(metric: Metric, rows: Counts, rng: np.random.Generator) -> Found:
    """The rule with the largest metric, of those that meet the constraints with their margin."""
    if len(rows) <= MOST_ROWS or metric.conditions is not None:
        return _best(metric, rows, _rules(metric, rows, starts(rows, rng), rng))[0]
    few = rows.take(*sampled_rows(rows.codes, rows.weight, MOST_ROWS, rng))
    first = [] if metric.worst_class else starts(few, rng)  # the game finds it alone
    leading = _best(metric, few, _rules(metric, few, first, rng), KEPT)
    going_on = [found.costs for found in leading]
    return _best(metric, rows, _rules(metric, rows, going_on, rng, near=going_on[0][0]))[0]


class Tried(NamedTuple):
    """Costs (g, k, k), and where they are known their confusions: as counted, by labels alone."""

    costs: FloatArray
    counted: FloatArray | None = None
    observed: FloatArray | None = None


def _rules(
    metric: Metric,
    rows: Counts,
    first: list[FloatArray],
    rng: np.random.Generator,
    near: FloatArray | None = None,
) -> Iterator[Tried]:
    """What is tried: costs (g, k, k) each; `near` are those found on fewer rows."""
    if metric.conditions is not None:
        if rows.n_classes == 2 and rows.groups is None:
            yield from cuts(rows)  # every rule is a threshold
        else:
            yield from (Tried(*rule) for rule in _priced(metric.conditions, rows, rng))
        return
    if rows.n_classes == 2:
        yield from cuts(rows)
    for start in first:
        if metric.worst_class and near is not None:  # the game goes on, which is enough
            yield Tried(start)
            continue
        yield from climb(metric, rows, start)
    if metric.worst_class:
        off = 1.0 - np.eye(rows.n_classes)
        balanced = list(balanced_weights(rows, near, CLOSE if first else ROUGHLY))
        yield from (Tried((off * w)[None], C[None]) for w, C in balanced)
        best, reached = max(balanced, key=lambda pair: metric.value(pair[1]))
        drawn = least_recall_drawn([C for _, C in balanced])
        if drawn - metric.value(reached) > TIED:
            goal = drawn - WITHIN
            yield from (Tried(costs[None]) for costs in exact_steps(rows, best, goal, rng))


def _priced(
    metric: Constrained, rows: Counts, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    if len(rows) <= MOST_ROWS:
        return priced_rules(metric, rows)
    strata = rows.codes if rows.groups is None else rows.groups * rows.n_classes + rows.codes
    few = rows.take(*sampled_rows(strata, rows.weight, MOST_ROWS, rng))
    return few_priced_rules(metric, rows, few)


def _best(metric: Metric, rows: Counts, rules: Iterator[Tried], number: int = 1) -> list[Found]:
    """The best `number` of different rules; ties go to the first."""
    leading: list[Found] = []
    closest, missing = -np.inf, 0
    for costs, known, observed in rules:
        confusion = rows.confusion(rows.decide(costs)) if known is None else known
        if metric.conditions is not None:
            observed = rows.observed(rows.decide(costs)) if observed is None else observed
            spare = metric.conditions.spare(observed, rows.effective)
            if spare.min(initial=np.inf) < 0:
                closest, missing = max(closest, float(spare.min())), missing + 1
                continue
        value = metric.value(confusion.sum(axis=0))
        room = len(leading) < number or value > leading[-1].value + SMALL_GAIN
        if room and all(abs(value - other.value) > SMALL_GAIN for other in leading):
            leading.append(Found(costs, confusion, value))
            leading = sorted(leading, key=lambda found: -found.value)[:number]
    if not leading:
        raise ConsistructError(
            f"no decision rule meets the constraints of {metric!r} with its margin on the "
            f"{len(rows)} out-of-fold rows (of {missing} that were tried, the closest falls short "
            f"by {-closest:.3g}); request less, use more rows, or lower confidence="
        )
    return leading


def starts(rows: Counts, rng: np.random.Generator) -> list[FloatArray]:
    """Costs to start from: 0-1, weights by rarity, and random weights of the classes."""
    k = rows.n_classes
    rarity = 1.0 / np.maximum(rows.priors, 1e-12)
    weights = [np.ones(k), np.sqrt(rarity), rarity]
    weights += [rarity ** rng.uniform(0, 1) * rng.lognormal(0.0, 0.5, k) for _ in range(STARTS)]
    return [((1.0 - np.eye(k)) * (w / w.max()))[None] for w in weights]


def climb(metric: Metric, rows: Counts, costs: FloatArray) -> Iterator[Tried]:
    """Costs (1, k, k) on the way up from one start, and their confusions."""
    counted = rows.confusion(rows.decide(costs))
    yield Tried(costs, counted)
    mixture = counted.sum(axis=0)
    for stage in (*metric.stages, metric):
        value = stage.value(mixture)
        for _ in range(ROUNDS):
            costs = stage.costs(mixture)[None]
            counted = rows.confusion(rows.decide(costs))
            yield Tried(costs, counted)
            corner = counted.sum(axis=0)
            trials = [(1.0 - step) * mixture + step * corner for step in STEPS]
            values = [stage.value(trial) for trial in trials]
            best = int(np.argmax(values))
            if values[best] <= value + SMALL_GAIN:
                break
            mixture, value = trials[best], values[best]


def cuts(rows: Counts, most: int = MOST_CUTS) -> Iterator[Tried]:
    """Two classes: thresholds between probabilities that occur, counted by sums from the top."""
    order = np.argsort(-rows.probabilities[:, 1], kind="stable")
    chance, codes, weight = rows.probabilities[order, 1], rows.codes[order], rows.weight[order]
    ends = np.concatenate([[0], np.flatnonzero(np.diff(chance)) + 1, [len(chance)]])
    if len(ends) > most:
        ends = ends[np.rint(np.linspace(0, len(ends) - 1, most)).astype(np.int64)]
    padded = np.concatenate([[1.0], chance, [0.0]])
    levels = 0.5 * (padded[ends] + padded[ends + 1])
    counted = _from_the_top(rows.counted[order], ends)
    observed = _from_the_top(weight[:, None] * (codes[:, None] == np.arange(2)), ends)
    for level, by_both, by_labels in zip(levels, counted, observed, strict=True):
        yield Tried(np.array([[[0.0, 1.0 - level], [level, 0.0]]]), by_both, by_labels)


def _from_the_top(
    masses: FloatArray,  # (n, 2): of both true labels, the likeliest row first
    ends: IntArray,  # (m,): how many rows are predicted as 1
) -> FloatArray:
    """Confusions, (m, 1, 2, 2)."""
    above = np.vstack([np.zeros(2), np.cumsum(masses, axis=0)])
    return np.stack([above[-1] - above[ends], above[ends]], axis=1)[:, None]
