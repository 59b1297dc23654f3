"""Stated intervals hold what comes, on simulated curves and on simulated tables."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import consistruct as cs
from consistruct.guarantees.forecasts import CurveData, PowerLaw

CURVES = 300
TABLES = 40


def test_intervals_hold_the_loss_of_curves_that_follow_the_power_law():
    """Curves drawn from the power law's priors: 90 % intervals must contain 90 %, up to chance."""
    rng = np.random.default_rng(0)
    sizes = np.array([50.0, 70.0, 100.0, 140.0, 200.0])
    inside = []
    for _ in range(CURVES):
        share, rate, level = rng.uniform(), rng.uniform(0.1, 1.5), rng.uniform(0.1, 0.5)
        covariance = (0.03 * level) ** 2 * (0.7 + 0.3 * np.eye(5))
        true_label = level * (1 - share + share * (sizes / 200.0) ** -rate)
        means = rng.multivariate_normal(true_label, covariance)
        power_law = PowerLaw(CurveData(sizes, means, covariance), drift=0.0)
        low, high = power_law.quantiles(1000.0, (0.05, 0.95))
        inside.append(low <= level * (1 - share + share * 5.0**-rate) <= high)
    # standard deviation of the share: 0.017
    assert 0.85 < np.mean(inside) < 0.95


def test_intervals_hold_the_loss_of_tables():
    """Logistic regression on tables whose loss at five times the rows is measured: 90 % stated."""
    inside, widths = [], []
    for seed in range(TABLES):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(80, 400)), int(rng.integers(2, 5))
        X, y = make_classification(
            5 * n + 3000,
            int(rng.integers(8, 30)),
            n_informative=6,
            n_redundant=0,
            n_classes=k,
            class_sep=float(rng.uniform(0.6, 1.6)),
            flip_y=float(rng.uniform(0.0, 0.2)),
            random_state=seed,
        )
        model = cs.TaskLossClassifier(
            "zero_one", cs.models.Probabilities(LogisticRegression(max_iter=500))
        )
        found = cs.forecast(model, X[:n], y[:n], random_state=seed).at(5 * n, measured_on=3000)
        loss = -model.fit(X[: 5 * n], y[: 5 * n]).score(X[5 * n :], y[5 * n :])
        inside.append(found.low <= loss <= found.high)
        widths.append((found.high - found.low) / loss)
    # at 90 % the share has a standard deviation of 0.047
    assert np.mean(inside) >= 0.8
    assert np.median(widths) < 0.9
