"""Thresholds of label sets against every threshold, one by one."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.metrics import f1_score, jaccard_score

from consistruct.learning.rules.label_powers import (
    FLOOR,
    OFFSET_PENALTY,
    SLOPE_PENALTY,
    fit_powers,
)
from consistruct.learning.rules.labels import decide_labels, label_confusion, search_labels
from consistruct.losses.metrics import Constrained, FlaggedAtMost, FScore, parse_metric
from tests.learning.rules.drawn import drawn_labels


def found(spec, chances, codes):
    metric = parse_metric(spec) if isinstance(spec, str) else spec
    weight = np.full(len(codes), 1.0 / len(codes))
    costs = search_labels(metric, chances, codes, weight)
    return costs, decide_labels(costs, chances)


def thresholds(costs):
    missed, false = costs[:, 0, 1] - costs[:, 1, 1], costs[:, 1, 0] - costs[:, 0, 0]
    return false / (false + missed)


def test_macro_f1_cuts_at_half_of_the_best_f1():
    chances, codes = drawn_labels(3000, 4, 0)
    costs, decisions = found("macro-f1", chances, codes)
    for label in range(4):
        values = [
            f1_score(codes[:, label], chances[:, label] > level)
            for level in np.linspace(0.02, 0.8, 30)
        ]
        assert thresholds(costs)[label] == pytest.approx(max(values) / 2, abs=0.03)
        assert f1_score(codes[:, label], decisions[:, label]) > max(values) - 0.02


def test_micro_f1_cuts_all_labels_alike():
    chances, codes = drawn_labels(3000, 8, 1)
    costs, decisions = found("micro-f1", chances, codes)
    powers = fit_powers(chances, codes, np.ones(3000))
    assert np.ptp(powers(thresholds(costs)[None])) < 1e-9  # one threshold on right probabilities
    best = max(
        f1_score(codes, chances > level, average="micro") for level in np.linspace(0.05, 0.8, 30)
    )
    assert f1_score(codes, decisions, average="micro") > best - 0.005
    assert thresholds(costs).mean() == pytest.approx(best / 2, abs=0.02)


def test_macro_jaccard():
    chances, codes = drawn_labels(2000, 5, 2)
    _, decisions = found("macro-jaccard", chances, codes)
    plain = jaccard_score(codes, chances > 0.5, average="macro", zero_division=0)
    assert jaccard_score(codes, decisions, average="macro", zero_division=0) > plain


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_budgets_hold_with_a_margin_and_prefer_what_pays(average):
    chances, codes = drawn_labels(3000, 10, 3)
    free = found(FScore(average=average), chances, codes)[1]
    share = 0.5 * free.mean()
    metric = Constrained(FScore(average=average), FlaggedAtMost(share))
    _, decisions = found(metric, chances, codes)
    assert 0.8 * share < decisions.mean() < share
    # the same number of labels, cut at one threshold for all
    level = np.quantile(chances, 1.0 - decisions.mean())
    ours = f1_score(codes, decisions, average=average)
    assert ours >= f1_score(codes, chances > level, average=average) - 0.005


def test_labels_that_nothing_speaks_for_are_never_predicted():
    chances, codes = drawn_labels(300, 3, 4)
    chances[:, 1], codes[:, 1] = 0.0, 0
    _, decisions = found("macro-f1", chances, codes)
    assert not decisions[:, 1].any()
    assert decisions[:, 0].any()


def test_confusions_are_those_of_scikit_learn():
    from sklearn.metrics import multilabel_confusion_matrix

    chances, codes = drawn_labels(100, 4, 5)
    counts = label_confusion(chances > 0.3, codes, np.ones(100))
    slow = np.swapaxes(multilabel_confusion_matrix(codes, chances > 0.3), 1, 2)
    np.testing.assert_allclose(counts, slow)


def test_thousands_of_labels_take_seconds():
    chances, codes = drawn_labels(500, 4000, 6)
    start = time.process_time()
    found("macro-f1", chances, codes)
    assert time.process_time() - start < 10


def test_powers_are_penalized_logistic_regressions_of_each_label():
    chances, codes = drawn_labels(300, 3, 5)
    chances = chances**2  # wrong
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 300)
    powers = fit_powers(chances, codes, weight)
    logits = np.log(np.clip(chances, FLOOR, 1 - FLOOR) / (1 - np.clip(chances, FLOOR, 1 - FLOOR)))
    share = weight * 300 / weight.sum()
    for label in range(3):

        def lost(free, z=logits[:, label], y=codes[:, label]):
            scores = free[0] * z + free[1]
            logs = np.logaddexp(0.0, scores) - y * scores
            shrunk = SLOPE_PENALTY * (free[0] - 1) ** 2 + OFFSET_PENALTY * free[1] ** 2
            return share @ logs + 0.5 * shrunk

        slow = minimize(lost, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8}).x
        assert [powers.slope[label], powers.offset[label]] == pytest.approx(slow, abs=1e-3)


def test_thresholds_are_those_of_right_probabilities():
    """A model that is too sure, and on the low side, gets the decisions of one that is right."""
    chances, codes = drawn_labels(4000, 5, 6)
    _, right = found("macro-f1", chances, codes)
    wrong = expit(1.7 * logit(chances) - 0.8)
    costs, decisions = found("macro-f1", wrong, codes)
    assert np.mean(right != decisions) < 0.005
    powers = fit_powers(wrong, codes, np.ones(4000))
    level = thresholds(costs)
    np.testing.assert_allclose(powers.undone(powers(level[None])[0]), level, atol=1e-9)
    np.testing.assert_array_equal(
        powers.undone(np.array([0.0, 1.0, 0.0, 1.0, 1.0])), [0, 1, 0, 1, 1]
    )
