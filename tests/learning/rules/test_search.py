"""The search against slow references: grids of cost matrices, every threshold, bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from consistruct.exceptions import ConsistructError
from consistruct.learning.rules.bounds import optimality_gap
from consistruct.learning.rules.counts import Counts
from consistruct.learning.rules.offsets import fit_offsets
from consistruct.learning.rules.search import search
from consistruct.losses.metrics import (
    METRICS,
    Constrained,
    EqualRecall,
    FlaggedAtMost,
    FScore,
    RecallAtLeast,
    RecallMean,
    parse_metric,
)
from tests.learning.rules.drawn import drawn_classes

CLASS_METRICS = tuple(  # of the registry, those for any number of classes
    spec
    for name, entry in METRICS.items()
    if name not in ("coverage", "equal-recall", "randomized")
    for spec in ("f-beta:0.5:macro" if name == "f-beta" else entry.spec.split(" or ")[0],)
    if parse_metric(spec).n_classes is None
)


def test_counts_are_half_of_the_model_and_half_of_labels():
    rows = drawn_classes(50, 3, 0)
    decisions = rows.decide(1.0 - np.eye(3))
    slow = np.zeros((3, 3))
    for i, d in enumerate(decisions):
        slow[d] += 0.5 * rows.probabilities[i] / 50
        slow[d, rows.codes[i]] += 0.5 / 50
    np.testing.assert_allclose(rows.confusion(decisions)[0], slow, atol=1e-12)
    np.testing.assert_array_equal(decisions, rows.probabilities.argmax(axis=1))


@pytest.mark.parametrize(("n", "seed"), [(8000, 1), (8000, 2), (8000, 3), (24_000, 4)])
@pytest.mark.parametrize("spec", CLASS_METRICS)
def test_no_grid_of_cost_matrices_does_better(spec, n, seed):
    """Weights of the classes and of what is predicted, on a grid, for three classes.

    On few rows a grid does better by fitting the noise of labels: 0.004 on 1500 of these. More than
    10,000 rows are searched on a part of them first.
    """
    rows, metric = drawn_classes(n, 3, seed), parse_metric(spec)
    found = search(metric, rows, np.random.default_rng(0))
    best = -np.inf
    levels = 2.0 ** np.arange(-3, 3.5, 0.75)
    for a, b in itertools.product(levels, levels):
        weights = np.array([1.0, a, b])
        for shift in ((0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 0.2), (0, 0.2, 0.2)):
            costs = (1.0 - np.eye(3)) * weights + np.array(shift)[:, None]
            best = max(best, metric.value(rows.confusion(rows.decide(costs))[0]))
    if spec == "qwk":  # costs that know the order
        distance = np.subtract.outer(np.arange(3), np.arange(3)) ** 2.0
        for stretch, center in itertools.product(np.linspace(0, 0.9, 19), np.linspace(0, 2, 21)):
            away = (np.arange(3) - center) ** 2
            costs = distance - stretch * away[:, None]
            best = max(best, metric.value(rows.confusion(rows.decide(costs))[0]))
    assert best - found.value <= 0.002


@pytest.mark.parametrize("spec", ["f1", "f-beta:2", "jaccard", "mcc", "g-mean", "kappa"])
def test_two_classes_get_the_best_threshold(spec):
    rows, metric = drawn_classes(400, 2, 2), parse_metric(spec)
    found = search(metric, rows, np.random.default_rng(0))
    values = [
        metric.value(rows.confusion((rows.probabilities[:, 1] > level).astype(int))[0])
        for level in np.append(rows.probabilities[:, 1], -1.0)
    ]
    assert found.value >= max(values) - 1e-3


@pytest.mark.parametrize("spec", ["g-mean", "min-recall", "balanced-accuracy"])
@pytest.mark.parametrize("seed", range(3))
def test_gap_of_concave_metrics_is_small_and_bounds_every_rule(spec, seed):
    rows, metric = drawn_classes(2000, 4, seed), parse_metric(spec)
    found = search(metric, rows, np.random.default_rng(0))
    bound, gap = optimality_gap(metric, rows, found.costs)
    assert 0 <= gap <= 0.01
    assert bound - gap == pytest.approx(found.value)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        costs = rng.random((4, 4)) * (1 - np.eye(4))
        assert metric.value(rows.confusion(rows.decide(costs))[0]) <= bound + 1e-9


def test_metrics_without_a_majorant_have_no_gap():
    rows = drawn_classes(200, 3, 0)
    costs = search(parse_metric("macro-f1"), rows, np.random.default_rng(0)).costs
    assert optimality_gap(parse_metric("macro-f1"), rows, costs) is None


def test_kappa_rounds_the_stretched_mean():
    """round(m + (μ − m)/κ) with m the mean grade, as theory has it for squared weights."""
    rows, metric = drawn_classes(4000, 5, 3), parse_metric("qwk")
    found = search(metric, rows, np.random.default_rng(0))
    grades = np.arange(5)
    mean, mu = rows.priors @ grades, rows.probabilities @ grades
    theory = np.clip(np.rint(mean + (mu - mean) / found.value), 0, 4).astype(int)
    assert (theory == rows.decide(found.costs)).mean() > 0.99
    assert metric.value(rows.confusion(theory)[0]) <= found.value + 1e-3


def test_large_tables_are_searched_on_a_part_first():
    rows = drawn_classes(20_000, 4, 4)
    found = search(parse_metric("macro-f1"), rows, np.random.default_rng(0))
    part = rows.take(np.arange(5000))
    there = search(parse_metric("macro-f1"), part, np.random.default_rng(0))
    value = parse_metric("macro-f1").value(rows.confusion(rows.decide(there.costs))[0])
    assert found.value >= value - 0.001


# --- constraints ---------------------------------------------------------------------------------


def two_groups(n: int, seed: int) -> Counts:
    """The second group is harder: its probabilities say less."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    chance = 1.0 / (1.0 + np.exp(1.0 - np.where(groups == 1, 1.0, 2.5) * rng.normal(size=n)))
    codes = (rng.random(n) < chance).astype(int)
    return Counts(np.column_stack([1 - chance, chance]), codes, np.full(n, 1 / n), groups, 2)


def spare(metric, rows, found):
    """Of the tightest condition, by labels alone."""
    observed = rows.observed(rows.decide(found.costs))
    return metric.spare(observed, len(rows)).min()


def test_recall_holds_with_a_margin_and_costs_as_little_as_possible():
    rows = drawn_classes(2000, 2, 5)
    metric = parse_metric("precision-at-recall:0.9")
    found = search(metric, rows, np.random.default_rng(0))
    confusion = rows.observed(rows.decide(found.costs))[0]
    recall = confusion[1, 1] / confusion[:, 1].sum()
    assert 0.9 < recall < 0.95
    assert spare(metric, rows, found) >= 0
    stricter = Constrained(metric.metric, metric.constraints, confidence=0.999)
    assert search(stricter, rows, np.random.default_rng(0)).value < found.value
    larger = Constrained(metric.metric, metric.constraints, new_rows=10**9)
    assert search(larger, rows, np.random.default_rng(0)).value > found.value


def test_several_classes_under_two_constraints():
    rows = drawn_classes(4000, 3, 6)
    rare = int(rows.priors.argmin())
    metric = Constrained(
        FScore(average="macro"), (RecallAtLeast(0.8, rare), FlaggedAtMost(0.5, rare))
    )
    free = search(metric.metric, rows, np.random.default_rng(0))
    assert metric.slack(free.confusion).min() < 0
    found = search(metric, rows, np.random.default_rng(0))
    assert spare(metric, rows, found) >= 0
    assert found.value <= free.value


def test_recalls_of_groups_are_brought_together():
    rows = two_groups(6000, 7)
    metric = Constrained(FScore(), EqualRecall(0.1, 0))
    free = search(
        FScore(), Counts(rows.probabilities, rows.codes, rows.weight), np.random.default_rng(0)
    )
    blind = rows.confusion(rows.decide(np.repeat(free.costs, 2, axis=0)))
    assert metric.slack(blind).min() < 0
    found = search(metric, rows, np.random.default_rng(0))
    assert spare(metric, rows, found) >= 0
    assert found.costs.shape == (2, 2, 2)
    assert found.value > 0.8 * free.value


def test_what_cannot_be_met_is_refused():
    rows = drawn_classes(60, 2, 9)
    with pytest.raises(ConsistructError, match="no decision rule meets the constraints"):
        search(parse_metric("precision-at-recall:0.99"), rows, np.random.default_rng(0))


def test_slopes_of_constraints_are_those_of_their_slack():
    rng = np.random.default_rng(0)
    confusions = rng.dirichlet(np.ones(18)).reshape(2, 3, 3)
    for part in (RecallAtLeast(0.9, 2), FlaggedAtMost(0.1, 0), EqualRecall(0.05, 0, 1)):
        direction = rng.normal(size=confusions.shape) * confusions
        ahead, behind = (part.slack(confusions + s * direction) for s in (1e-6, -1e-6))
        reported = np.tensordot(part.gradient(confusions), direction, axes=3)
        np.testing.assert_allclose((ahead - behind) / 2e-6, reported, atol=1e-6)


# --- recalibration -------------------------------------------------------------------------------


def test_offsets_undo_a_shift_and_a_power():
    rows = drawn_classes(20_000, 3, 10)
    wrong = rows.probabilities**2.0 * np.array([4.0, 1.0, 0.5])
    wrong /= wrong.sum(axis=1, keepdims=True)
    found = fit_offsets(wrong, rows.codes, rows.weight)
    assert found.power == pytest.approx(0.5, abs=0.05)
    assert np.abs(found.for_decisions(wrong) - rows.probabilities).mean() < 0.02


def test_offsets_leave_right_probabilities_and_shrink_small_classes():
    rows = drawn_classes(5000, 3, 11)
    found = fit_offsets(rows.probabilities, rows.codes, rows.weight)
    assert np.abs(found.for_decisions(rows.probabilities) - rows.probabilities).mean() < 0.02
    few = drawn_classes(25, 3, 12)
    shifted = few.probabilities * np.array([1.0, 1.0, 20.0])
    shifted /= shifted.sum(axis=1, keepdims=True)
    assert np.ptp(fit_offsets(shifted, few.codes, few.weight).offsets) < 0.7 * np.log(20.0)


def test_recall_mean_stages_lead_to_the_least_recall():
    assert [stage.power for stage in RecallMean(None).stages] == [0.0, -2.0, -8.0, -32.0]
