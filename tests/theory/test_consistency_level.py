"""The consistency level by linear programming is where H stops being zero."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from consistruct import calibration_function
from consistruct.calibration.methods.explicit.pool import ExplicitPairs, PairPool
from consistruct.calibration.problem.listed import explicit_problem
from consistruct.calibration.proofs.provers.levels import _limits
from consistruct.losses import CostMatrix, Mixed
from consistruct.structures import Blocks, Dense

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
    loss = CostMatrix(rng.random((5, 4)), rows="pred")
    space = Dense(rng.standard_normal((5, 2)))
    level = calibration_function(loss, space).consistency_level
    assert level > 0.01
    assert by_bisection(loss, space) == pytest.approx(level, abs=2e-5)
    curve = calibration_function(loss, space)
    assert curve(level * 0.999) == 0.0
    assert curve.interval(level * 0.5)[1] <= 1e-20
    # a distribution under which the best scores predict j
    certificate = curve.certificate(level * 0.5)
    certificate.check()
    assert certificate.upper <= 1e-20
    assert curve(min(level * 1.01, curve.max_eps)) > 0.0


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_scales_with_the_loss(scale):
    rng = np.random.default_rng(7)
    matrix, F = rng.random((4, 4)), rng.standard_normal((4, 2))
    base = calibration_function(CostMatrix(matrix, rows="pred"), F).consistency_level
    scaled = calibration_function(CostMatrix(matrix * scale, rows="pred"), F).consistency_level
    assert scaled == pytest.approx(base * scale, rel=1e-9)


def test_zero_where_the_scores_express_the_loss():
    rng = np.random.default_rng(1)
    F = np.column_stack([np.ones(5), rng.random((5, 2))])
    loss = CostMatrix(F @ rng.random((3, 4)), rows="pred")
    curve = calibration_function(loss, F)
    assert curve.consistency_level == 0.0
    assert curve(1e-3) > 0.0


@pytest.mark.parametrize("seed", range(4))
def test_pruning_by_duality_loses_nothing(seed):
    """Against the linear programs of all pairs."""
    rng = np.random.default_rng(seed)
    loss = CostMatrix(rng.random((7, 6)), rows="pred")
    space = Dense(rng.standard_normal((7, 3)))
    problem = explicit_problem(loss, space)
    H = calibration_function(loss, space)
    prover = H._method.prover
    rows = prover.rows
    L = np.array([prover.problem.loss[c] for c in rows], dtype=object)
    P = np.array([prover.problem.projected[c] for c in rows], dtype=object)
    limits = {(i, j): float(x / prover.problem.unit) for x, i, j in _limits(L, P)}
    best = 0.0
    for i in range(problem.n_rows):
        for j in range(problem.n_rows):
            found = linprog(
                problem.loss[i] - problem.loss[j],
                A_ub=problem.projected[j] - problem.projected,
                b_ub=np.zeros(problem.n_rows),
                A_eq=np.ones((1, 6)),
                b_eq=[1.0],
            )
            if found.status == 0 and i != j:
                assert -found.fun * problem.unit <= limits[i, j] + 1e-9
                best = max(best, -found.fun * problem.unit)
    low, high = H.consistency_interval
    assert low <= H.consistency_level <= high <= low + 1e-12
    assert low == pytest.approx(best, abs=1e-8)
    assert H.consistency_reason is None


def test_the_interval_holds_the_exact_level():
    """η/2 for blocks of two; the entries of the matrix are floats, and the true label is theirs."""
    loss = Mixed((2, 2, 2), 0.2)
    matrix = CostMatrix(loss.matrix(), rows="pred")
    H = calibration_function(matrix, Dense(Blocks((2, 2, 2)).matrix()))
    within, across = (Fraction(float(x)) for x in (loss.matrix()[0, 1], loss.matrix()[0, 2]))
    assert across == 1
    low, high = H.consistency_interval
    assert Fraction(low) <= within / 2 <= Fraction(high)
    assert high - low <= 1e-15
    lower, upper = H.interval(math.nextafter(high, 1))
    assert 0 <= lower <= upper
    assert H.interval(low)[1] == 0.0
    assert H.interval(1.01 * high)[0] > 0


@pytest.mark.parametrize("seed", range(6))
def test_distribution_and_multipliers_prove_both_ends(seed):
    """The lower end is attained by a distribution that lets j win, in fractions."""
    rng = np.random.default_rng(100 + seed)
    L = rng.integers(0, 5, (5, 4)).astype(float)
    F = np.column_stack([np.ones(5), rng.integers(-2, 3, (5, 2))])
    H = calibration_function(CostMatrix(L, rows="pred"), Dense(F))
    level = H._method._level
    if level.pair is None:
        assert H.consistency_level == 0.0
        return
    problem = H._method.prover.problem
    i, j = level.pair
    assert sum(level.distribution) == 1
    assert min(level.distribution) >= 0
    expected = [
        sum(q * x for q, x in zip(level.distribution, row, strict=True))
        for row in problem.projected
    ]
    assert all(expected[c] >= expected[j] for c in H._method.prover.rows)
    gap = (
        sum(q * g for q, g in zip(level.distribution, problem.gap(i, j), strict=True))
        / problem.unit
    )
    assert gap == level.lower <= level.upper
    assert float(level.upper - level.lower) <= 1e-12 * float(level.upper)
