"""The numeric route with no closed form, no structure and no symmetry in it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from consistruct.calibration.pool import ExplicitPairs, PairPool
from consistruct.calibration.problem import explicit_problem

__all__ = ["assert_closed_form", "numeric_interval"]


def numeric_interval(loss, space, eps, *, symmetric=False):
    """H(ε) by quadratic programs over all listed labels, pruned to nine digits."""
    problem = explicit_problem(loss, space)
    pool = PairPool(ExplicitPairs(problem, symmetric=symmetric), tolerance=1e-9)
    point = pool.point(eps / problem.unit)
    scale = math.exp(problem.log_scale)
    return point.lower * scale, point.upper * scale


def assert_closed_form(curve, formula, grid, *, relative=1e-8):
    """The engine's answer and the numeric one both equal the formula."""
    assert curve.method == "closed form"
    for eps in grid:
        expected = formula(eps)
        low, high = curve.interval(eps)
        assert low == pytest.approx(expected, rel=1e-12, abs=1e-20)
        assert high == pytest.approx(expected, rel=1e-12, abs=1e-20)
        low, high = numeric_interval(curve.loss, curve.scores, eps)
        assert low == pytest.approx(expected, rel=relative, abs=1e-18)
        assert high == pytest.approx(expected, rel=relative, abs=1e-18)
    pieces = curve.pieces
    for eps in grid:
        piece = next(p for p in pieces if p.low < eps <= p.high)
        assert piece(eps) == pytest.approx(formula(eps), rel=1e-12, abs=1e-20)
    assert np.isinf(curve(curve.max_eps * 1.01))
