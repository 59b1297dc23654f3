"""Intervals hold the true label as often as they say, for few rows and rare errors too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from consistruct.learning.evaluation.intervals import (
    bootstrap_interval,
    loss_interval,
    mean_interval,
)
from consistruct.losses import ZeroOne


@pytest.mark.parametrize(("n", "p"), [(8, 0.5), (30, 0.05), (120, 0.01)])
def test_means_of_coins_by_all_outcomes(n, p):
    # exact: the interval depends on the number of errors alone
    missed = 0.0
    for errors in range(n + 1):
        values = np.repeat([1.0, 0.0], [errors, n - errors])
        found = mean_interval(values, bounds=(0, 1), confidence=0.9)
        chance = math.comb(n, errors) * p**errors * (1 - p) ** (n - errors)
        missed += chance * (not found.low <= p <= found.high)
        assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert missed <= 0.1


def test_no_errors_do_not_mean_none():
    found = mean_interval(np.zeros(200), bounds=(0, 1))
    exact = beta.ppf(0.975, 1, 200)  # Clopper and Pearson
    assert exact <= found.high <= 2 * exact
    assert found.low == 0.0


def test_bounds_scale_and_mirror():
    values = np.random.default_rng(0).random(50)
    plain = mean_interval(values, bounds=(0, 1))
    wide = mean_interval(10 * values - 3, bounds=(-3, 7))
    assert wide.low == pytest.approx(10 * plain.low - 3)
    assert wide.high == pytest.approx(10 * plain.high - 3)
    mirrored = mean_interval(1 - values, bounds=(0, 1))
    assert mirrored.low == pytest.approx(1 - plain.high)


def test_many_different_values_are_rounded_the_safe_way(monkeypatch):
    values = np.random.default_rng(1).random(3000)
    exact = mean_interval(values, bounds=(0, 1))
    monkeypatch.setattr("consistruct.learning.evaluation.intervals.FINE", 500)
    rounded = mean_interval(values, bounds=(0, 1))
    assert rounded.low <= exact.low
    assert rounded.high >= exact.high
    assert rounded.high - exact.high <= 1 / 250


def test_many_rows_cost_little_more_than_a_normal_approximation():
    values = np.random.default_rng(2).random(20000) < 0.2
    found = mean_interval(values, bounds=(0, 1))
    normal = 2 * 1.96 * values.std() / math.sqrt(20000)
    assert normal < found.high - found.low < 1.6 * normal


def test_losses_beyond_the_range_widen_it():
    assert loss_interval(ZeroOne(3), np.array([0.0, 2.0])).high > 1.0


def test_bad_input():
    with pytest.raises(ValueError, match="within their bounds"):
        mean_interval([2.0], bounds=(0, 1))
    with pytest.raises(ValueError, match="at least 1"):
        mean_interval([], bounds=(0, 1))
    with pytest.raises(ValueError, match="confidence"):
        mean_interval([0.5], bounds=(0, 1), confidence=1.0)
    with pytest.raises(ValueError, match="equally many rows"):
        bootstrap_interval(np.mean, [1, 2], [1])
    with pytest.raises(ValueError, match="at least one array"):
        bootstrap_interval(np.mean)
    assert mean_interval([1.0], bounds=(1, 1)).high == 1.0


def test_resampling_gives_the_standard_error_of_a_mean():
    values = np.random.default_rng(3).normal(size=400)
    found = bootstrap_interval(np.mean, values, n_resamples=3000)
    expected = 2 * 1.96 * values.std() / 20
    assert found.high - found.low == pytest.approx(expected, rel=0.1)
    assert found.estimate == pytest.approx(values.mean())
