"""Thresholds of label sets against every threshold, one by one."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.metrics import f1_score, jaccard_score

from consistruct.learning.rules.labels import decide_labels, label_confusion, search_labels
from consistruct.losses.metrics import Constrained, FlaggedAtMost, FScore, parse_metric
from tests.learning.rules.drawn import drawn_labels


def found(spec, chances, truths):
    metric = parse_metric(spec) if isinstance(spec, str) else spec
    weight = np.full(len(truths), 1.0 / len(truths))
    costs = search_labels(metric, chances, truths, weight)
    return costs, decide_labels(costs, chances)


def thresholds(costs):
    missed, false = costs[:, 0, 1] - costs[:, 1, 1], costs[:, 1, 0] - costs[:, 0, 0]
    return false / (false + missed)


def test_macro_f1_cuts_at_half_of_the_best_f1():
    chances, truths = drawn_labels(3000, 4, 0)
    costs, decisions = found("macro-f1", chances, truths)
    for label in range(4):
        values = [
            f1_score(truths[:, label], chances[:, label] > level)
            for level in np.linspace(0.02, 0.8, 30)
        ]
        assert thresholds(costs)[label] == pytest.approx(max(values) / 2, abs=0.03)
        assert f1_score(truths[:, label], decisions[:, label]) > max(values) - 0.02


def test_micro_f1_cuts_all_labels_alike():
    chances, truths = drawn_labels(3000, 8, 1)
    costs, decisions = found("micro-f1", chances, truths)
    assert np.ptp(thresholds(costs)) < 1e-9
    best = max(
        f1_score(truths, chances > level, average="micro") for level in np.linspace(0.05, 0.8, 30)
    )
    assert f1_score(truths, decisions, average="micro") > best - 0.005
    assert thresholds(costs)[0] == pytest.approx(best / 2, abs=0.02)


def test_macro_jaccard():
    chances, truths = drawn_labels(2000, 5, 2)
    _, decisions = found("macro-jaccard", chances, truths)
    plain = jaccard_score(truths, chances > 0.5, average="macro", zero_division=0)
    assert jaccard_score(truths, decisions, average="macro", zero_division=0) > plain


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_budgets_hold_with_a_margin_and_prefer_what_pays(average):
    chances, truths = drawn_labels(3000, 10, 3)
    free = found(FScore(average=average), chances, truths)[1]
    share = 0.5 * free.mean()
    metric = Constrained(FScore(average=average), FlaggedAtMost(share))
    _, decisions = found(metric, chances, truths)
    assert 0.8 * share < decisions.mean() < share
    # the same number of labels, cut at one threshold for all
    level = np.quantile(chances, 1.0 - decisions.mean())
    ours = f1_score(truths, decisions, average=average)
    assert ours >= f1_score(truths, chances > level, average=average) - 0.005


def test_labels_that_nothing_speaks_for_are_never_predicted():
    chances, truths = drawn_labels(300, 3, 4)
    chances[:, 1], truths[:, 1] = 0.0, 0
    _, decisions = found("macro-f1", chances, truths)
    assert not decisions[:, 1].any()
    assert decisions[:, 0].any()


def test_confusions_are_those_of_scikit_learn():
    from sklearn.metrics import multilabel_confusion_matrix

    chances, truths = drawn_labels(100, 4, 5)
    counts = label_confusion(chances > 0.3, truths, np.ones(100))
    slow = np.swapaxes(multilabel_confusion_matrix(truths, chances > 0.3), 1, 2)
    np.testing.assert_allclose(counts, slow)


def test_thousands_of_labels_take_seconds():
    chances, truths = drawn_labels(500, 4000, 6)
    start = time.process_time()
    found("macro-f1", chances, truths)
    assert time.process_time() - start < 10
