"""Exact steps of the least recall against every place on a line, and every rule that there is."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct.learning.rules.bounds import optimality_gap
from consistruct.learning.rules.counts import Counts
from consistruct.learning.rules.lines import ORDER, _Place, exact_steps
from consistruct.learning.rules.search import search
from consistruct.losses.metrics import parse_metric
from tests.learning.rules.drawn import drawn_classes


def coarse(n: int, k: int, seed: int, levels: float = 6.0) -> Counts:
    """Rows of few sorts: probabilities in steps, many of them alike."""
    rows = drawn_classes(n, k, seed, spread=1.0)
    steps = np.rint(levels * rows.probabilities) + 0.5
    return Counts(steps / steps.sum(axis=1, keepdims=True), rows.codes, rows.weight)


def key(rows: Counts, place: _Place) -> float:
    """By the costs of the place, row by row."""
    decisions = [int(np.argmin(place.costs @ p)) for p in rows.probabilities]
    hits = np.zeros(rows.n_classes)
    for row, decision in enumerate(decisions):
        hits[decision] += rows.counted[row, decision]
    return float(np.sort(hits / rows.priors)[:3] @ ORDER)


@pytest.mark.parametrize(
    ("moved", "by_weight"), [([0], True), ([2], True), ([2], False), ([1, 3], False)]
)
def test_a_line_knows_the_best_of_all_its_places(moved, by_weight):
    rows, rng = coarse(200, 4, 0), np.random.default_rng(1)
    place = _Place(rng.uniform(0.3, 1.0, 4), 0.02 * rng.normal(size=4))
    moved = np.array(moved)
    found, t = place.line(rows.columns, moved, by_weight).best(rows.counted, rows.priors)
    assert key(rows, place.stepped(moved, by_weight, t, 0.0)) == pytest.approx(found)
    for other in np.linspace(-1.5, 1.5, 201):
        assert key(rows, place.stepped(moved, by_weight, other, 0.0)) <= found + 1e-12


def test_steps_go_up_and_end_at_the_goal():
    rows, metric = coarse(400, 5, 2), parse_metric("min-recall")
    values = [
        metric.value(rows.confusion(rows.decide(costs))[0])
        for costs in exact_steps(rows, 1.0 / rows.priors, 1.0, np.random.default_rng(0))
    ]
    assert (np.diff(values) >= -1e-9).all()
    goal = 0.5 * (values[0] + values[-1])
    less = list(exact_steps(rows, 1.0 / rows.priors, goal, np.random.default_rng(0)))
    assert len(less) <= len(values)
    assert metric.value(rows.confusion(rows.decide(less[-1]))[0]) >= goal


@pytest.mark.parametrize(("levels", "seed"), [(6, 0), (6, 2), (6, 3), (10, 1), (10, 3)])
def test_one_rule_comes_near_the_bound_where_rows_tie(levels, seed):
    """Not (6, 1): a row of its rarest class, which has eight, is worth 0.06."""
    rows, metric = coarse(800, 6, seed, levels), parse_metric("min-recall")
    assert len(np.unique(rows.probabilities, axis=0)) < 800
    found = search(metric, rows, np.random.default_rng(0))
    bound, gap = optimality_gap(metric, rows, found.costs)
    assert gap <= 0.01
    assert found.value <= bound + 0.005
    again = search(metric, rows, np.random.default_rng(0))
    np.testing.assert_array_equal(found.costs, again.costs)


def test_classes_without_rows_do_not_count():
    rows = coarse(300, 4, 3)
    kept = rows.codes != 2
    chances = rows.probabilities[kept].copy()
    chances[:, 2] = 0.0
    part = Counts(chances, rows.codes[kept], np.full(kept.sum(), 1.0 / kept.sum()))
    steps = list(exact_steps(part, np.array([1.0, 1.0, 0.01, 1.0]), 1.0, np.random.default_rng(0)))
    assert parse_metric("min-recall").value(part.confusion(part.decide(steps[-1]))[0]) > 0.2
