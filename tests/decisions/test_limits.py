"""Limits on a batch against all ways to decide it."""

from itertools import product

import numpy as np
import pytest

import consistruct as cs
from consistruct.decisions.limits import limited, read_limits
from consistruct.losses import Abstain, CostMatrix

NAMES = np.array(["pay", "review", "reject"])


def cheapest(losses, most):
    n, k = losses.shape
    allowed = (
        losses[np.arange(n), way].sum()
        for way in map(list, product(range(k), repeat=n))
        if (np.bincount(way, minlength=k) <= most).all()
    )
    return min(allowed)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("most", [(6, 1, 6), (6, 2, 1), (1, 2, 3), (2, 2, 2), (6, 0, 6), (6, 0, 0)])
def test_no_way_within_the_limits_is_cheaper(most, seed):
    losses = np.random.default_rng(seed).integers(0, 6, (6, 3)).astype(float)  # with many ties
    most = np.array(most)
    codes = limited(losses, losses.argmin(axis=1), most)
    assert (np.bincount(codes, minlength=3) <= most).all()
    assert losses[np.arange(6), codes].sum() == cheapest(losses, most)


def test_limits_that_hold_anyway_change_nothing():
    losses = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    codes = np.array([0, 1, 1])
    assert limited(losses, codes, np.array([3, 2])) is codes


def test_counts_and_shares():
    assert read_limits({"review": 0.29}, NAMES, 100).tolist() == [100, 29, 100]
    assert read_limits({"review": 1, "reject": 1.0}, NAMES, 10).tolist() == [10, 1, 10]
    assert read_limits({3: 2}, np.arange(4), 9).tolist() == [9, 9, 9, 2]
    for limits, reason in [
        ({"other": 3}, "no prediction"),
        ({"review": -1}, "number of rows"),
        ({"review": 1.5}, "share"),
        ({"review": True}, "share"),
        ({"review": float("nan")}, "share"),
        ({"pay": 2, "review": 2, "reject": 2}, "leave room for 6 decisions"),
    ]:
        with pytest.raises(ValueError, match=reason):
            read_limits(limits, NAMES, 10)


def test_a_limit_is_reported_and_shows_in_the_gap():
    p = np.random.default_rng(3).dirichlet(np.ones(3), 40)
    free = cs.decide(Abstain(3, 0.2), p)
    few = cs.decide(Abstain(3, 0.2), p, limits={3: 5})
    wanted, given = (free.labels == 3).sum(), (few.labels == 3).sum()
    assert wanted > 5 == given
    assert (few.gap < 0).sum() == wanted - 5
    assert f"at most 5 of 40 rows, {wanted} without" in few.notes[0]
    price = few.expected_loss.mean() - free.expected_loss.mean()
    assert f"{price:.4g}" in few.notes[-1]
    # whoever is left to abstain gains most from it
    gains = (1.0 - p.max(axis=1)) - 0.2
    assert set(np.flatnonzero(few.labels == 3)) == set(np.argsort(-gains)[:5])


def test_several_limits_of_many_rows():
    costs = CostMatrix([[0, 20], [5, 2], [9, 0]], tuple(NAMES), ("good", "bad"), rows="pred")
    p = np.random.default_rng(4).beta(1, 3, 3000)
    given, limits = np.column_stack([1 - p, p]), {"review": 200, "reject": 0.05}
    found = cs.decide(costs, given, classes=["good", "bad"], limits=limits)
    counts = {name: int((found.labels == name).sum()) for name in NAMES}
    assert counts["review"] <= 200
    assert counts["reject"] <= 150
    # by hand: of two prices for a review and a rejection, none reaches less (weak duality)
    losses = given @ costs.M.T
    bounds = [
        (losses + np.array([0.0, a, b])).min(axis=1).sum() - 200 * a - 150 * b
        for a, b in product(np.linspace(0, 12, 61), repeat=2)
    ]
    assert max(bounds) <= found.expected_loss.sum() + 1e-9
    assert found.expected_loss.sum() - max(bounds) < 0.01 * found.expected_loss.sum()
