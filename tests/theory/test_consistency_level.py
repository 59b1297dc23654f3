"""The consistency level by linear programming is where H stops being zero."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from consistruct import calibration_function
from consistruct.calibration.levels import _level_limits, consistency_level
from consistruct.calibration.pool import ExplicitPairs, PairPool
from consistruct.calibration.problem import explicit_problem
from consistruct.losses import CostMatrix
from consistruct.scores import Dense

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")


def by_bisection(loss, space):
    """Largest ε with H(ε) below rounding: H grows at least quadratically, so √ of the tolerance."""
    problem = explicit_problem(loss, space)
    pool = PairPool(ExplicitPairs(problem))
    low, high = 0.0, problem.max_eps
    for _ in range(22):
        middle = 0.5 * (low + high)
        if pool.point(middle).upper <= 1e-13:
            low = middle
        else:
            high = middle
    return low * problem.unit


@pytest.mark.parametrize("seed", range(5))
def test_random_inconsistent_scores(seed):
    rng = np.random.default_rng(seed)
    loss = CostMatrix(rng.random((5, 4)))
    space = Dense(rng.standard_normal((5, 2)))
    level = calibration_function(loss, space).consistency_level
    assert level > 0.01
    assert by_bisection(loss, space) == pytest.approx(level, abs=2e-5)
    curve = calibration_function(loss, space)
    assert curve(level * 0.999) == 0.0
    assert curve.interval(level * 0.5)[1] <= 1e-20
    certificate = curve.certificate(level * 0.5)  # a law under which the best scores predict j
    certificate.check()
    assert certificate.upper <= 1e-20
    assert curve(min(level * 1.01, curve.max_eps)) > 0.0


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_scales_with_the_loss(scale):
    rng = np.random.default_rng(7)
    matrix, F = rng.random((4, 4)), rng.standard_normal((4, 2))
    base = calibration_function(CostMatrix(matrix), F).consistency_level
    scaled = calibration_function(CostMatrix(matrix * scale), F).consistency_level
    assert scaled == pytest.approx(base * scale, rel=1e-9)


def test_zero_where_the_scores_express_the_loss():
    rng = np.random.default_rng(1)
    F = np.column_stack([np.ones(5), rng.random((5, 2))])
    loss = CostMatrix(F @ rng.random((3, 4)))
    curve = calibration_function(loss, F)
    assert curve.consistency_level == 0.0
    assert curve(1e-3) > 0.0


@pytest.mark.parametrize("seed", range(4))
def test_pruning_by_duality_loses_nothing(seed):
    """Against the linear programs of all pairs."""
    rng = np.random.default_rng(seed)
    loss = CostMatrix(rng.random((7, 6)))
    problem = explicit_problem(loss, Dense(rng.standard_normal((7, 3))))
    best = 0.0
    limits = _level_limits(problem)
    for i in range(problem.n_rows):
        for j in range(problem.n_rows):
            found = linprog(
                problem.loss[i] - problem.loss[j],
                A_ub=problem.projected[j] - problem.projected,
                b_ub=np.zeros(problem.n_rows),
                A_eq=np.ones((1, 6)),
                b_eq=[1.0],
            )
            if found.status == 0:
                assert -found.fun <= limits[i, j] + 1e-9
                best = max(best, -found.fun)
    assert consistency_level(problem)[0] == pytest.approx(best, abs=1e-8)
    assert (limits <= problem.pair_limits + 1e-12).all()
