"""Lemma 2 holds for ε > 0 only: at ε = 0 the pairs give .125 for a loss whose H(0) is 0."""

from __future__ import annotations

import pytest

from consistruct import calibration_function
from consistruct.calibration.methods.explicit.pair_solver import solve_pair
from consistruct.calibration.problem.listed import explicit_problem
from consistruct.losses import CostMatrix
from consistruct.structures import Full

LOSS = CostMatrix([[0.0, 0.0], [1.0, 1.0]], rows="pred")


def test_h_at_zero_is_zero():
    curve = calibration_function(LOSS, "full")
    assert curve(0.0) == 0.0
    assert curve.interval(0) == (0.0, 0.0)


def test_the_minimum_over_pairs_is_an_eighth_at_zero():
    # i = 0 always wins by one, so predicting j = 1 costs ¼·½ = .125 however small ε is
    problem = explicit_problem(LOSS, Full(2))
    value = solve_pair(problem.pair(0, 1), 0.0)
    assert value is not None
    assert value.upper * 0.5 == pytest.approx(0.125, rel=1e-9)
    assert calibration_function(LOSS, "full")(1e-6) == pytest.approx(0.125, rel=1e-6)
