"""What is tried for label sets and orders, and how much of each is taken."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import consistruct as cs
from consistruct.learning.selection.averaging import QuadraticRisk, greedy_weights
from consistruct.learning.selection.columns import Columns
from consistruct.learning.selection.portfolio import portfolio
from consistruct.learning.statistics import TargetValues


def tried(X, n, labels=4):
    found = portfolio(TargetValues(cs.losses.Hamming(labels)), Columns.of(X), n)
    return {one.name: one.reason if one.model is None else "tried" for one in found}


def test_boosting_is_tried_where_it_is_affordable():
    X = np.random.default_rng(0).normal(size=(50, 30))
    assert tried(X, 1000)["boosting"] == "tried"
    assert tried(X, 299)["boosting"] == "299 rows are too few for it"
    assert "too large with 600 outputs" in tried(X, 4000, labels=300)["boosting"]
    wide = np.zeros((50, 3000))
    assert "too long on 4000 rows and 3000 columns" in tried(wide, 4000)["boosting"]
    assert tried(X, 200_000)["boosting"] == "tried"  # one split of a sample, then one fit
    assert "sparse" in tried(sp.csr_array(X), 1000)["boosting"]


def test_orders_that_follow_thresholds_are_learned_by_trees():
    """The order flips with the quadrant of two columns out of ten: no kernel sees that soon."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 10))
    flips = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    orders = np.where(flips[:, None], [0, 1, 2], [2, 1, 0])
    est = cs.StructuredPredictor("kendall", random_state=0).fit(X[:350], orders[:350])
    weights = {entry["name"]: entry["weight"] for entry in est.portfolio_}
    assert weights["boosting"] + weights["extra trees"] > 0.5
    loss = cs.losses.Kendall(3)
    alone = cs.StructuredPredictor("kendall", "ridge", random_state=0).fit(X[:350], orders[:350])
    ours, ridge = (
        float(np.mean(loss(np.asarray(one.predict(X[350:])), orders[350:]))) for one in (est, alone)
    )
    assert ours < 0.7 * ridge


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_a_weak_model_with_errors_of_its_own_gets_a_small_share(share):
    """Half of it would do harm; the best share by the quadratic risk is what it gets."""
    rng = np.random.default_rng(2)
    loss = cs.losses.Hamming(3)
    codes = rng.integers(0, 2, (4000, 3))
    statistic = TargetValues(loss)
    criterion = QuadraticRisk(statistic, codes, np.ones(len(codes)))
    target = criterion.target
    strong = target + 0.3 * rng.normal(size=target.shape)
    weak = target + 0.3 * np.sqrt((1 - share) / share) * rng.normal(size=target.shape)
    weights, alone, _ = greedy_weights([strong, weak], criterion)
    assert alone[0] < alone[1]
    assert criterion((strong + weak) / 2) > alone[0]
    assert weights.sum() == pytest.approx(1)
    assert weights[1] == pytest.approx(share, abs=0.07)
    mixed = criterion(weights[0] * strong + weights[1] * weak)
    assert mixed < 0.96 * alone[0]
