"""Units do not matter: costs and inputs from 1e-150 to 1e150 give the same decisions.

Beyond that there is one clear line, and never a warning, an infinity or a silent loss.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import consistruct as cs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3)) + np.array([5.0, 0.0, -2.0])
Y = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=90), [4.5, 5.5])
COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [6.0, 3.0, 0.0]]) / 6.0


def fitted(X, costs=COSTS, **options):
    return cs.TaskLossClassifier(loss=cs.losses.CostMatrix(costs, rows="pred"), random_state=0).fit(
        X, Y, **options
    )


@pytest.fixture(scope="module")
def usual():
    return fitted(X)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-20, 1e20, 1e100, 1e150])
def test_costs_in_any_unit(usual, scale):
    model = fitted(X, COSTS * scale)
    np.testing.assert_array_equal(model.predict(X), usual.predict(X))
    expected = scale * usual.predict_expected_loss(X)
    found = model.predict_expected_loss(X)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * scale)
    assert model.score(X, Y) == pytest.approx(scale * usual.score(X, Y))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e154, 1e200, 1e300])
def test_costs_beyond_get_one_line(scale):
    message = "the largest of the costs must be between 1e-150 and 1e.150, got .*; divide all costs"
    with pytest.raises(ValueError, match=message):
        fitted(X, COSTS * scale)
    with pytest.raises(ValueError, match=message):
        cs.TaskLossClassifier(loss="zero_one").fit(X, Y, costs=scale * COSTS.T[Y])
    with pytest.raises(ValueError, match=message):
        cs.calibration_function(cs.losses.CostMatrix(COSTS * scale, rows="pred"))


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e150])
def test_costs_of_examples_in_any_unit(scale):
    usual = cs.TaskLossClassifier("zero_one", random_state=0).fit(X, Y, costs=COSTS.T[Y])
    model = cs.TaskLossClassifier("zero_one", random_state=0).fit(X, Y, costs=scale * COSTS.T[Y])
    np.testing.assert_array_equal(model.predict(X), usual.predict(X))


@pytest.mark.parametrize("scale", [1e-149, 1e-100, 1e-20, 1e20, 1e100, 1e149])
def test_inputs_in_any_unit(usual, scale):
    model = fitted(X * scale)
    np.testing.assert_array_equal(model.predict(X * scale), usual.predict(X))
    found, expected = model.predict_expected_loss(X * scale), usual.predict_expected_loss(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_columns_in_units_far_apart(usual):
    """Standardized columns are alike whatever their units; plain ones are not even seen."""
    units = np.array([1e-149, 1.0, 1e149])
    model = fitted(X * units)
    assert model.score(X * units, Y) == pytest.approx(usual.score(X, Y), abs=0.02)
    constant = fitted(X * [0.0, 1.0, 1e149])
    assert model.score(X * units, Y) > constant.score(X * [0.0, 1.0, 1e149], Y)


@pytest.mark.parametrize("scale", [1e-149, 1e149])
def test_sparse_inputs_in_any_unit(scale):
    pattern = sp.csr_array(
        np.where(RNG.random((90, 40)) < 0.2, 1.0, 0.0) + X[:, :1] * np.eye(90, 40)
    )
    usual, model = fitted(pattern), fitted(pattern * scale)
    np.testing.assert_array_equal(model.predict(pattern * scale), usual.predict(pattern))


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-160, 1e153, 1e200, 1e300])
def test_inputs_beyond_get_one_line(scale):
    with pytest.raises(ValueError, match=r"largest magnitude in X must be between 1e-150 and"):
        fitted(X * scale)


def test_inputs_of_a_prediction_beyond(usual):
    with pytest.raises(ValueError, match=r"the largest magnitude in X must be at most 1e.150, got"):
        usual.predict(X * 1e200)
    for scale in (0.0, 1e-300, 1e140):
        assert usual.predict(X * scale).shape == (90,)


def test_zeros_and_single_precision():
    assert fitted(np.zeros((90, 2))).predict(np.zeros((1, 2))).shape == (1,)
    small = (X * 1e-30).astype(np.float32)
    assert (fitted(small).predict(small) == fitted(X).predict(X)).mean() > 0.95


def test_text_is_no_integer():
    """It used to be judged as if every class were unknown: a score of −1."""
    model = cs.TaskLossClassifier(loss="zero_one").fit(X, Y)
    message = r"y contains text such as '.', but the classes are numbers, 0, 1, 2; convert y"
    with pytest.raises(ValueError, match=message):
        model.score(X, Y.astype(str))
    named = cs.TaskLossClassifier(loss="zero_one").fit(X, Y.astype(str))
    with pytest.raises(ValueError, match=r"y contains numbers such as ., but the classes are text"):
        named.score(X, Y)
    assert model.score(X, Y.astype(float)) == model.score(X, Y)
    assert model.score(X, np.full(90, 7)) == -1.0  # a class never seen is wrong, as documented


@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e60, 1e150])
@pytest.mark.parametrize("scores", [None, "full"])
def test_calibration_in_any_unit(scale, scores):
    """H of s·L at s·ε is s² times H of L at ε."""
    usual = cs.calibration_function(cs.losses.CostMatrix(COSTS, rows="pred"), scores)
    H = cs.calibration_function(cs.losses.CostMatrix(COSTS * scale, rows="pred"), scores)
    for eps in (0.1, 0.4):
        lower, upper = usual.interval(eps)
        found = H.log(eps * scale) - 2.0 * np.log(scale)
        assert np.log(lower) - 1e-5 <= found <= np.log(upper) + 1e-5
    assert H.consistency_level == pytest.approx(scale * usual.consistency_level, abs=1e-9 * scale)
    assert H.max_eps == pytest.approx(scale * usual.max_eps)
