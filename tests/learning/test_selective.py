"""Selective curves against their definition; paired comparison of models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import consistruct as cs
from consistruct.learning.evaluation.comparison import _exchange_test
from consistruct.metrics import selective_curve

RIDGE = cs.models.Ridge(features="linear", alpha=0.01)


def test_risk_at_each_coverage_is_the_mean_of_the_surest_rows():
    rng = np.random.default_rng(0)
    losses, doubt = rng.random(200), rng.random(200)
    curve = selective_curve(losses, doubt, n_points=20)
    order = np.argsort(doubt)
    for coverage, risk in zip(curve.coverage, curve.risk, strict=True):
        assert risk == pytest.approx(losses[order[: round(200 * coverage)]].mean())
    assert curve.at(1.0) == pytest.approx(losses.mean()) == curve.random_area
    assert curve.area.estimate == pytest.approx(curve.risk.mean())
    assert curve.best_area <= curve.area.low <= curve.area.estimate <= curve.area.high
    assert (curve.low <= curve.high).all()
    assert curve.as_dict()["area"] == curve.area.estimate


def test_rows_of_equal_doubt_have_no_order():
    losses = np.array([1.0, 0.0, 1.0, 0.0])
    flat = selective_curve(losses, np.zeros(4), n_points=4)
    np.testing.assert_allclose(flat.risk, 0.5)
    np.testing.assert_allclose(selective_curve(losses[::-1], np.zeros(4), n_points=4).risk, 0.5)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="both have shape"):
        selective_curve([1.0, 0.0], [1.0])


def test_the_exchange_test_is_that_of_all_signs():
    gap = np.array([0.3, -0.1, 0.5, 0.2, 0.0, 0.4])
    kept = gap[gap != 0]
    sums = [abs(np.dot(signs, kept)) for signs in itertools.product([-1, 1], repeat=len(kept))]
    exact = np.mean([total >= kept.sum() - 1e-12 for total in sums])
    assert _exchange_test(gap, np.random.default_rng(0)) == pytest.approx(exact, abs=0.02)
    assert _exchange_test(np.zeros(5), np.random.default_rng(0)) == 1.0


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=900) > 0).astype(int)
    full = cs.TaskLossClassifier("zero_one", RIDGE).fit(X[:200], y[:200])
    blind = cs.TaskLossClassifier("zero_one", RIDGE)
    blind.fit(X[:200] * [0, 1, 1, 1], y[:200])
    return full, blind, X[200:], y[200:]


def test_models_are_compared_row_by_row(models):
    full, blind, X, y = models
    found = cs.compare({"full": full, "blind": blind, "same": full}, X, y)
    gap = (blind.task_losses(X, y) - full.task_losses(X, y)).mean()
    assert [row.name for row in found.rows] == ["full", "blind", "same"]
    assert found.rows[1].difference.estimate == pytest.approx(gap)
    assert found.rows[1].difference.low > 0
    assert found.rows[1].p_value < 0.001
    assert found.rows[2].p_value == 1.0
    assert found.rows[2].difference.low <= 0 <= found.rows[2].difference.high
    assert found.n == 700
    assert "blind" in str(found)
    assert found.as_dict()["full"]["mean_loss"] == pytest.approx(full.task_losses(X, y).mean())


def test_what_cannot_be_compared(models):
    full, _, X, y = models
    other = cs.TaskLossClassifier("ordinal:2:2", RIDGE).fit(X, y)
    with pytest.raises(ValueError, match="same loss"):
        cs.compare([full, other], X, y)
    with pytest.raises(ValueError, match="at least two"):
        cs.compare([full], X, y)
    with pytest.raises(TypeError, match="has no task loss"):
        cs.compare([full, np.mean], X, y)
    with pytest.raises(TypeError, match="dict of name"):
        cs.compare(full, X, y)
