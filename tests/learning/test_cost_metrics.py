"""Costs of each example: against loops written from the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consistruct.metrics import example_losses, profit_curve, savings


def drawn(seed: int, n: int, k: int):
    """True labels, predictions, positive costs with a free diagonal, and rounded expectations."""
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0.5, 5.0, size=(n, k, k))
    costs[:, np.arange(k), np.arange(k)] = 0.0
    expected = rng.integers(0, 6, size=(n, k)).astype(float)  # many ties
    return rng.integers(k, size=n), rng.integers(k, size=n), costs, expected


cases = given(seed=st.integers(0, 10**6), n=st.integers(2, 25), k=st.integers(2, 4))


@cases
@settings(max_examples=50, deadline=None)
def test_losses_and_savings_are_sums_over_examples(seed, n, k):
    true, pred, costs, _ = drawn(seed, n, k)
    paid = [costs[i][pred[i]][true[i]] for i in range(n)]
    np.testing.assert_allclose(example_losses(true, pred, costs, rows="pred"), paid)
    alike = min(sum(costs[i][c][true[i]] for i in range(n)) for c in range(k))
    if alike > 0:
        assert savings(true, pred, costs, rows="pred") == pytest.approx(1 - sum(paid) / alike)


@cases
@settings(max_examples=50, deadline=None)
def test_profit_curve_is_what_acting_on_the_best_gains(seed, n, k):
    true, _, costs, expected = drawn(seed, n, k)
    base = seed % k
    weight = np.random.default_rng(seed).integers(0, 3, size=n).astype(float)
    weight[0] = 1.0
    curve = profit_curve(true, expected, costs, base=base, sample_weight=weight, rows="pred")
    others = [c for c in range(k) if c != base]
    for share, profit, least in zip(curve.share, curve.profit, curve.expected_gain, strict=True):
        gain = mass = 0.0
        for i in range(n):
            action = min(others, key=lambda c: expected[i, c])
            if expected[i, base] - expected[i, action] >= least:
                gain += weight[i] * (costs[i, base, true[i]] - costs[i, action, true[i]])
                mass += weight[i]
        assert share == pytest.approx(mass / weight.sum())
        assert profit == pytest.approx(gain / weight.sum())
    assert curve.share[0] == 0.0
    assert curve.share[-1] == pytest.approx(1.0)


@cases
@settings(max_examples=50, deadline=None)
def test_the_chosen_point_is_that_of_least_expected_cost(seed, n, k):
    true, _, costs, _ = drawn(seed, n, k)
    chance = np.random.default_rng(seed).dirichlet(np.ones(k), size=n)
    expected = np.einsum("ict,it->ic", costs, chance)
    curve = profit_curve(true, expected, costs, rows="pred")
    if np.isnan(curve.savings).any():
        return
    assert curve.savings[curve.chosen] == pytest.approx(
        savings(true, expected.argmin(axis=1), costs, rows="pred")
    )
    assert curve.profit[curve.best] == curve.profit.max()


def test_the_order_of_rows_does_not_matter():
    true, _, costs, expected = drawn(3, 40, 3)
    order = np.random.default_rng(0).permutation(40)
    one = profit_curve(true, expected, costs, rows="pred")
    two = profit_curve(true[order], expected[order], costs[order], rows="pred")
    np.testing.assert_allclose(one.profit, two.profit, atol=1e-12)
    np.testing.assert_array_equal(one.expected_gain, two.expected_gain)


def test_names_of_labels():
    costs = np.array([[[0.0, 4.0], [1.0, 0.0]]] * 2)
    true, pred = np.array(["no", "yes"]), np.array(["yes", "no"])
    assert example_losses(true, pred, costs, rows="pred").tolist() == [1.0, 4.0]
    assert example_losses(true, pred, costs, labels=["yes", "no"], rows="pred").tolist() == [
        4.0,
        1.0,
    ]
    assert profit_curve(true, [[1.0, 2.0]] * 2, costs, base="yes", rows="pred").base == "yes"


def test_a_class_that_is_not_present_keeps_its_place():
    costs = np.ones((2, 3, 3)) - np.eye(3)
    assert example_losses([0, 2], [0, 0], costs, rows="pred").tolist() == [0.0, 1.0]


def test_gains_have_a_profit_but_no_savings():
    costs = np.array([[[0.0, 0.0], [1.0, -5.0]]] * 2)
    curve = profit_curve([1, 0], [[0.0, -1.0], [0.0, 1.0]], costs, base=0, rows="pred")
    assert curve.profit.tolist() == [0.0, 2.5, 2.0]
    assert np.isnan(curve.savings).all()
    with pytest.raises(ValueError, match="share of a positive cost"):
        savings([1, 0], [1, 0], costs, rows="pred")


COSTS = np.ones((2, 2, 2)) - np.eye(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: savings([0, 1], [0], COSTS, rows="pred"), "of one length"),
        (lambda: savings([], [], np.ones((0, 2, 2)), rows="pred"), "nothing to judge"),
        (lambda: savings([0, 1], [0, 1], COSTS[:1], rows="pred"), r"shape \(2, 2, 2\)"),
        (lambda: savings([0, 1], [0, 1], COSTS[0], rows="pred"), r"shape \(2, 2, 2\)"),
        (lambda: savings([0, 1], [0, 1], COSTS * np.nan, rows="pred"), "finite"),
        (lambda: savings(["a", "b"], ["a", "c"], COSTS, rows="pred"), "pass labels="),
        (lambda: savings([0, 1], [0, 3], COSTS, labels=[0, 1], rows="pred"), "y_pred contains 3"),
        (lambda: savings([0, 1], [0, 1], COSTS, labels=[0, 0], rows="pred"), "each once"),
        (lambda: savings([0, 1], [0, 1], COSTS, sample_weight=[0, 0], rows="pred"), "not all zero"),
        (lambda: profit_curve([0, 1], [0.1, 0.2], COSTS, rows="pred"), "expected must have shape"),
        (lambda: profit_curve([0, 1], np.ones((2, 3)), COSTS, rows="pred"), "3 columns"),
        (
            lambda: profit_curve([0, 1], np.full((2, 2), np.inf), COSTS, rows="pred"),
            "must be finite",
        ),
        (
            lambda: profit_curve([0, 1], np.ones((2, 2)), COSTS, base="x", rows="pred"),
            "base is 'x'",
        ),
    ],
)
def test_bad_input_is_reported_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
