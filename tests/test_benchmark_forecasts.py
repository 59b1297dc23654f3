"""What the page on forecasts computes, on made-up cases; no data file is read."""

from __future__ import annotations

import numpy as np
from benchmarks.forecasts import Case, Outcome, classifier, judge, logistic, page


def outcome(found, low=0.1, high=0.2):
    return Outcome("made up", "0-1", "none", 100, 500, 200, 0.2, 0.15, low, high, found, 1.0)


def test_inside_and_width():
    assert outcome(0.1).inside
    assert not outcome(0.21).inside
    assert outcome(0.2).width == 0.5
    assert outcome(0.0).width == np.inf


def test_the_page_states_what_was_met():
    good = page([outcome(0.15, 0.12, 0.18)] * 45 + [outcome(0.3)] * 5)
    assert "| 45 of 50, 90.0% | yes |" in good
    assert good.count("**no**") == 5  # the five cases
    bad = page([outcome(0.15)] * 10 + [outcome(0.3)] * 5)
    assert "| at least 40 cases | 15 | **no** |" in bad
    assert "| 10 of 15, 66.7% | **no** |" in bad
    assert "| 0.667 of the loss | **no** |" in bad
    assert good.count("made up") == 50


def test_a_case_is_evaluated_on_rows_that_the_forecast_never_saw(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(400.0), rng.normal(size=400)])
    y = (X[:, 1] + rng.normal(size=400) > 0).astype(int)
    estimator = classifier("zero_one", logistic())
    seen = []
    score, read = type(estimator).score, type(estimator)._training

    def watched_read(self, X, y, *arguments, **options):
        seen.append(set(X[:, 0]))
        return read(self, X, y, *arguments, **options)

    def watched_score(self, X, y):
        seen.append(set(X[:, 0]))
        return score(self, X, y)

    monkeypatch.setattr(type(estimator), "_training", watched_read)
    monkeypatch.setattr(type(estimator), "score", watched_score)
    found = judge(Case("made up", "0-1", "logistic", estimator, X, y))
    pilot, everything, held_out = seen
    assert (len(pilot), len(everything), len(held_out)) == (56, 280, 120)
    assert pilot < everything
    assert not everything & held_out
    assert (found.pilot, found.rows, found.held_out) == (56, 280, 120)
    assert 0 <= found.low < found.forecast < found.high < 1
    assert 0 < found.found < 1
