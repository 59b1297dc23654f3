"""Mixtures of rules against every rule there is, where rows tie and all of them can be listed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import consistruct as cs
from consistruct.exceptions import CapabilityError
from consistruct.learning import load, save
from consistruct.learning.rules.bounds import optimality_gap
from consistruct.learning.rules.counts import Counts
from consistruct.learning.rules.mixtures import best_mixture, drawn_members
from consistruct.learning.rules.search import search
from consistruct.losses.metrics import (
    Constrained,
    FlaggedAtMost,
    Randomized,
    RecallMean,
    parse_metric,
)
from consistruct.report import learning_report
from consistruct.report.learning.wording import learning_sections

TENTHS = np.array([[5, 3, 2], [2, 6, 2], [4, 4, 2], [1, 2, 7], [8, 1, 1], [3, 3, 4]])


def tied() -> Counts:
    """Six sorts of rows, twenty of each, with classes exactly as often as the probabilities say."""
    codes = np.concatenate([np.repeat(np.arange(3), 2 * row) for row in TENTHS])
    chances = np.repeat(TENTHS / 10.0, 20, axis=0)
    return Counts(chances, codes, np.full(120, 1.0 / 120))


def every_rule() -> np.ndarray:
    """Recalls of all 3⁶ ways to decide the six sorts of rows, (729, 3)."""
    rules = np.array(list(itertools.product(range(3), repeat=6)))
    hits = np.stack([((rules == c) * TENTHS[:, c]).sum(axis=1) for c in range(3)], axis=1)
    return hits / TENTHS.sum(axis=0)


def test_the_best_mixture_is_that_of_all_rules_there_are():
    recalls = every_rule()
    best = linprog(
        np.append(np.zeros(len(recalls)), -1.0),
        A_ub=np.hstack([-recalls.T, np.ones((3, 1))]),
        b_ub=np.zeros(3),
        A_eq=np.append(np.ones(len(recalls)), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * len(recalls) + [(None, None)],
    )
    metric, rows = parse_metric("min-recall"), tied()
    found = search(metric, rows, np.random.default_rng(0))
    mixed = best_mixture(metric, rows, found.costs)
    assert metric.value(mixed.confusion) == pytest.approx(-best.fun, abs=1e-6)
    assert mixed.bound == pytest.approx(-best.fun, abs=1e-6)
    assert 2 <= len(mixed.shares) <= 3
    assert found.value <= recalls.min(axis=1).max() + 1e-12 < mixed.bound - 0.01
    drawn, single = (
        optimality_gap(metric, rows, mixed.costs, mixed.shares),
        optimality_gap(metric, rows, found.costs),
    )
    assert drawn is not None
    assert single is not None
    assert drawn[1] == pytest.approx(0, abs=1e-6)
    assert single[1] > 0.01


@pytest.mark.parametrize("power", [0.0, -1.0, None])
def test_the_bound_holds_for_every_rule(power):
    metric, rows = RecallMean(power), tied()
    found = search(metric, rows, np.random.default_rng(0))
    mixed = best_mixture(metric, rows, found.costs)
    codes = TENTHS.sum(axis=0) / 60.0
    values = [metric.value(np.diag(r * codes) + np.roll(np.diag((1 - r) * codes), 1, axis=0))
              for r in every_rule()]  # fmt: skip
    assert max(values) <= mixed.bound + 1e-9
    assert found.value <= metric.value(mixed.confusion) + 1e-9 <= mixed.bound + 2e-9


def test_draws_keep_their_shares_among_rows_alike():
    shares, alike = np.array([0.2, 0.5, 0.3]), np.full((20_000, 3), 1 / 3)
    drawn = drawn_members(shares, alike, 7)
    np.testing.assert_allclose(np.bincount(drawn) / 20_000, shares, atol=0.02)
    np.testing.assert_array_equal(drawn, drawn_members(shares, alike, 7))
    assert (drawn != drawn_members(shares, alike, 8)).mean() > 0.5
    several = np.random.default_rng(0).dirichlet(np.ones(3), 3000)
    alone = [int(drawn_members(shares, row[None], 7)[0]) for row in several]
    np.testing.assert_allclose(np.bincount(alone) / 3000, shares, atol=0.04)


def few_values(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(n, 2)).astype(float)
    logits = np.stack([0.8 * X[:, 0], X[:, 1], np.ones(n)], axis=1)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return X, (chances.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def classifier(loss):
    from sklearn.linear_model import LogisticRegression

    return cs.TaskLossClassifier(
        loss, cs.models.Probabilities(LogisticRegression()), random_state=0
    )


def test_an_estimator_draws_only_where_that_wins(tmp_path):
    X, y = few_values(1200)
    single = classifier("min-recall").fit(X[:800], y[:800])
    model = classifier("randomized:min-recall").fit(X[:800], y[:800])
    assert single.optimality_gap_ > 0.02
    assert model.optimality_gap_ <= 0.01
    assert model.metric_estimate_ > single.metric_estimate_ + 0.02
    assert model.score(X[800:], y[800:]) > single.score(X[800:], y[800:]) + 0.02
    assert model.decision_costs_.shape == (len(model.rule_.shares), 3, 3)
    again = classifier("randomized:min-recall").fit(X[:800], y[:800])
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(X), model.predict(X))
    report = learning_report(model, X[800:], y[800:], learning_curve=False, bandwidths=False)
    section = next(s for s in learning_sections(report) if s.key == "decisions")
    assert "drawn at random between a few" in section.details[0]
    with pytest.raises(CapabilityError, match="one per rule that is drawn"):
        model.expected_losses(X)
    rng = np.random.default_rng(1)  # no rows alike: one rule is as good
    X = rng.normal(size=(600, 3))
    y = (X + rng.normal(size=X.shape)).argmax(axis=1)
    smooth = classifier("randomized:min-recall").fit(X, y)
    assert len(smooth.rule_.shares) == 0
    assert smooth.decision_costs_.shape == (3, 3)
    assert smooth.expected_losses(X).shape == (600, 3)


def test_what_cannot_be_drawn():
    for spec in ("balanced-accuracy", "macro-f1", "randomized:g-mean"):
        with pytest.raises(ValueError, match="are for concave metrics such as min-recall"):
            Randomized(parse_metric(spec))
    with pytest.raises(TypeError, match="metric must be a Metric, got str"):
        Randomized("min-recall")
    with pytest.raises(ValueError, match="randomized names the metric"):
        parse_metric("randomized")
    with pytest.raises(ValueError, match="one rule, not one drawn at random"):
        Constrained(Randomized(RecallMean(None)), FlaggedAtMost(0.5))
