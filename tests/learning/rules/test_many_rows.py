"""Tables of many rows: the sample, the fast counts and the rule against slow ones on all rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from consistruct.learning.rules import prices
from consistruct.learning.rules import rule as rules
from consistruct.learning.rules.counts import Counts
from consistruct.learning.rules.offsets import PENALTY, fit_offsets
from consistruct.learning.rules.prices import priced_rules
from consistruct.learning.rules.rule import class_rule, searched_rows
from consistruct.learning.rules.sample import FEWEST, sampled_rows
from consistruct.learning.rules.search import cuts, search
from consistruct.losses.metrics import (
    Constrained,
    EqualRecall,
    FlaggedAtMost,
    FScore,
    RecallAtLeast,
    parse_metric,
)
from tests.learning.rules.drawn import drawn_classes

SMOOTH = ("macro-f1", "g-mean", "balanced-accuracy", "mcc", "qwk")


def test_a_sample_keeps_rare_classes_and_what_every_class_weighs():
    rng = np.random.default_rng(0)
    strata = rng.choice(5, 40_000, p=[0.6, 0.3, 0.09, 0.0095, 0.0005])
    weight = rng.uniform(0.5, 2.0, len(strata))
    weight[:3000] = 0.0
    rows, kept = sampled_rows(strata, weight, 6000, np.random.default_rng(1))
    assert 5000 < len(rows) < 7500
    assert (np.diff(rows) > 0).all()
    assert (rows >= 3000).all()  # no weight, no row
    sizes = np.bincount(strata[3000:])
    there = np.bincount(strata[rows], minlength=5)
    np.testing.assert_array_equal(there[sizes <= FEWEST], sizes[sizes <= FEWEST])
    assert (there >= np.minimum(sizes, 0.9 * FEWEST)).all()
    np.testing.assert_allclose(
        np.bincount(strata[rows], weights=kept), np.bincount(strata, weights=weight)
    )
    again = sampled_rows(strata, weight, 6000, np.random.default_rng(1))[0]
    np.testing.assert_array_equal(rows, again)


@pytest.mark.parametrize("k", [2, 7, 300])
def test_decisions_are_the_first_of_least_expected_cost(k):
    rng = np.random.default_rng(k)
    chances = rng.integers(1, 4, size=(500, k)) / 8.0  # ties
    rows = Counts(chances, rng.integers(k, size=500), np.full(500, 1 / 500))
    costs = rng.integers(0, 4, size=(k, k)).astype(float)
    slow = [int(np.argmin([chances[i] @ costs[c] for c in range(k)])) for i in range(500)]
    np.testing.assert_array_equal(rows.decide(costs), slow)
    weights = 2.0 ** rng.integers(-2, 3, size=k)
    np.testing.assert_array_equal(
        rows.decide_by_weights(weights), [int(np.argmax(weights * p)) for p in chances]
    )


def test_counts_of_groups_by_labels_alone():
    rng = np.random.default_rng(0)
    rows = drawn_classes(200, 3, 0)
    weight, groups = rng.dirichlet(np.ones(200)), rng.integers(2, size=200)
    rows = Counts(rows.probabilities, rows.codes, weight, groups, 2)
    costs = rng.random((2, 3, 3))
    slow = np.zeros((2, 3, 3))
    for p, y, w, g in zip(rows.probabilities, rows.codes, weight, groups, strict=True):
        slow[g, int((costs[g] @ p).argmin()), y] += w
    np.testing.assert_allclose(rows.observed(rows.decide(costs)), slow, atol=1e-15)


def test_cuts_know_their_confusions():
    rows = drawn_classes(300, 2, 1)
    for costs, counted, observed in cuts(rows):
        decisions = rows.decide(costs)
        np.testing.assert_allclose(counted, rows.confusion(decisions), atol=1e-12)
        np.testing.assert_allclose(observed, rows.observed(decisions), atol=1e-12)


def test_offsets_have_the_least_penalized_log_loss():
    rng = np.random.default_rng(2)
    rows, weight = drawn_classes(400, 3, 2), rng.uniform(0.5, 1.5, 400)
    wrong = rows.probabilities**1.6 * [3.0, 1.0, 1.0]
    wrong /= wrong.sum(axis=1, keepdims=True)
    found = fit_offsets(wrong, rows.codes, weight)
    logs, share = np.log(wrong + found.floor), weight * 400 / weight.sum()

    def lost(free):
        chosen = log_softmax(np.exp(free[0]) * logs + free[1:], axis=1)
        return -share @ chosen[np.arange(400), rows.codes] + 0.5 * PENALTY * free @ free

    slow = minimize(lost, np.zeros(4), method="Nelder-Mead", options={"fatol": 1e-10}).x
    assert found.power == pytest.approx(np.exp(slow[0]), abs=2e-3)
    np.testing.assert_allclose(found.offsets, slow[1:] - slow[1:].mean(), atol=5e-3)
    np.testing.assert_allclose(
        found.for_decisions(wrong), softmax(found.power * logs + found.offsets, axis=1), atol=1e-12
    )


def halves(rows, first):
    """The first rows and the others."""
    return rows.take(np.arange(first)), rows.take(np.arange(first, len(rows)))


def true_value(metric, rule, again, fresh):
    """The metric on new rows by their own probabilities, which are right: no noise of labels."""
    decisions = (again.for_decisions(fresh.probabilities) @ rule.T).argmin(axis=1)
    k = fresh.n_classes
    return metric.value(np.eye(k)[decisions].T @ fresh.probabilities)


@pytest.mark.parametrize("spec", [*SMOOTH, "min-recall"])
def test_a_rule_of_a_sample_is_as_good_on_new_rows(monkeypatch, spec):
    metric = parse_metric(spec)
    rows, fresh = halves(drawn_classes(360_000, 5, 4), 120_000)
    values = []
    for most in (20_000, 10**9):
        monkeypatch.setattr(rules, "MANY", most)
        monkeypatch.setattr(rules, "MORE", most)
        again, part = searched_rows(metric, rows.probabilities, rows.codes, rows.weight)
        assert len(part) == len(rows) or len(part) < 70_000
        found = search(metric, part, np.random.default_rng(0))
        values.append(true_value(metric, found.costs[0], again, fresh))
    assert values[0] >= values[1] - (0.01 if spec == "min-recall" else 5e-4)


@pytest.mark.parametrize("spec", ["macro-f1", "min-recall"])
def test_what_is_reported_of_a_rule_of_a_sample(monkeypatch, spec):
    """The estimate is that of new rows, the gap that of the search, and both are there again."""
    monkeypatch.setattr(rules, "MANY", 15_000)
    monkeypatch.setattr(rules, "MORE", 15_000)
    metric = parse_metric(spec)
    rows, fresh = halves(drawn_classes(140_000, 4, 5), 40_000)
    weight = np.ones(len(rows))
    rule, again = class_rule(metric, rows.probabilities, rows.codes, weight)
    reported = true_value(metric, np.asarray(rule.costs)[0], again, fresh)
    assert rule.estimate == pytest.approx(reported, abs=0.012)
    assert rule.gap is None or rule.gap < 0.002
    assert rule.after.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(rule.after.sum(axis=0), np.bincount(rows.codes) / 40_000)
    second, _ = class_rule(metric, rows.probabilities, rows.codes, weight)
    np.testing.assert_array_equal(rule.costs, second.costs)


def test_conditions_of_a_sample_have_the_margin_of_its_size(monkeypatch):
    rng = np.random.default_rng(6)
    groups = rng.integers(2, size=60_000)
    chance = 1 / (1 + np.exp(1.0 - np.where(groups == 1, 1.0, 2.5) * rng.normal(size=len(groups))))
    codes = (rng.random(len(groups)) < chance).astype(int)
    both = np.column_stack([1 - chance, chance])
    metric, weight = Constrained(FScore(), EqualRecall(0.1, 0)), np.ones(len(groups))
    _, every = searched_rows(metric, both, codes, weight, groups, 2)
    monkeypatch.setattr(rules, "MANY", 20_000)
    _, part = searched_rows(metric, both, codes, weight, groups, 2)
    assert every.effective > 40_000
    assert 15_000 < len(part) < 25_000
    assert part.effective <= len(part)
    found = search(metric, part, np.random.default_rng(0))
    decisions = (np.asarray(found.costs)[groups] * both[:, None]).sum(axis=2).argmin(axis=1)
    recalls = [decisions[(groups == g) & (codes == 1)].mean() for g in range(2)]
    assert abs(recalls[0] - recalls[1]) <= 0.1
    # one threshold takes one sort: all rows, and their margin
    _, rows = searched_rows(parse_metric("precision-at-recall:0.9"), both, codes, weight)
    assert len(rows) == 60_000


def test_prices_found_on_some_rows_are_level_with_those_of_all(monkeypatch):
    rows = drawn_classes(24_000, 4, 7)
    rare = int(rows.priors.argmin())
    metric = Constrained(
        FScore(average="macro"), (RecallAtLeast(0.7, rare), FlaggedAtMost(0.4, rare))
    )
    found = search(metric, rows, np.random.default_rng(0))
    assert metric.spare(rows.observed(rows.decide(found.costs)), rows.effective).min() >= 0
    slow = max(
        metric.value(counted[0])
        for _, counted, observed in priced_rules(metric, rows)
        if metric.spare(observed, rows.effective).min() >= 0
    )
    assert found.value >= slow - 0.002
    monkeypatch.setattr(prices, "MOST_TRIED", 0)  # as if none held: all rows are priced
    assert search(metric, rows, np.random.default_rng(0)).value == pytest.approx(slow)
