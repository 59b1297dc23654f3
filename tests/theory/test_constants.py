"""A constant added to a column changes nothing only if the scores contain it or are centered.

Squared ordinal loss with six labels at ε = 1: .1716 with F = (1, i, i²) or centered; F = (i, i²)
gives .1939 for the loss without its offset y², and 0 for the loss itself.
"""

from __future__ import annotations

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration.methods.explicit.pool import ExplicitPairs, PairPool
from consistruct.calibration.problem.listed import ExplicitProblem
from consistruct.losses import CostMatrix
from consistruct.structures import Centered, Dense

LABELS = np.arange(6.0)
SQUARED = (LABELS[:, None] - LABELS) ** 2
POWERS = np.column_stack([np.ones(6), LABELS, LABELS**2])


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (Dense(POWERS), 0.1716),
        (Dense(POWERS[:, 1:] - POWERS[:, 1:].mean(axis=0)), 0.1716),
        (Centered(Dense(POWERS[:, 1:])), 0.1716),
        (Centered(Dense(POWERS)), 0.1716),
        (Dense(POWERS[:, 1:]), 0.0),
    ],
    ids=["constant", "centered by hand", "Centered", "constant and Centered", "neither"],
)
def test_squared_ordinal(space, expected):
    curve = calibration_function(CostMatrix(SQUARED, rows="pred"), space)
    assert curve.interval(1.0)[0] == pytest.approx(expected, abs=5e-5)
    assert curve.interval(1.0)[1] == pytest.approx(expected, abs=5e-5)


def test_squared_ordinal_without_its_offset():
    # i² − 2iy is negative, so no loss, and the problem is put together by hand
    matrix = SQUARED - LABELS**2
    basis = np.linalg.svd(POWERS[:, 1:], full_matrices=False)[0] * np.sqrt(6)
    problem = ExplicitProblem(matrix, basis, basis.T @ matrix / 6, np.arange(6), True)
    np.testing.assert_allclose(problem.projected, matrix, atol=1e-10)
    assert PairPool(ExplicitPairs(problem)).point(1.0).upper == pytest.approx(0.1939, abs=5e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")
def test_constants_do_not_matter_with_the_constant_in_the_span(seed):
    rng = np.random.default_rng(seed)
    matrix, F = rng.random((5, 4)), np.column_stack([np.ones(5), rng.standard_normal((5, 2))])
    one = calibration_function(CostMatrix(matrix, rows="pred"), Dense(F))
    other = calibration_function(CostMatrix(matrix + rng.random(4) * 100, rows="pred"), Dense(F))
    for eps in np.array([0.5, 0.8, 0.99]) * one.max_eps:
        assert other.interval(eps)[1] == pytest.approx(one.interval(eps)[1], rel=1e-6, abs=1e-12)
    assert other.consistency_level == pytest.approx(one.consistency_level, abs=1e-8)
