"""Mixed loss η·(0-1) + (1−η)·block with full scores: two quadratics for equal blocks."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.losses import Mixed
from tests.theory.numeric import assert_closed_form, numeric_interval


def formula(eps, b, s, eta):
    k = b * s
    if eta >= 0.5 or eps <= eta / (1 - eta):
        return eps**2 / (4 * k)
    second = eta * (eps + 1) * (s - 1) * (2 * eps - eps * eta - eta) / (4 * k * (s + 1))
    return eps**2 * s / (2 * k * (s + 1)) - second


@pytest.mark.parametrize(("b", "s", "eta"), [(2, 2, 0.1), (3, 2, 0.3), (2, 3, 0.45), (2, 3, 0.6)])
def test_equal_blocks(b, s, eta):
    curve = calibration_function(Mixed((s,) * b, eta), "full")
    assert_closed_form(curve, lambda eps: formula(eps, b, s, eta), [0.1, 0.4, 0.8, 1.0])
    curve.certificate(0.8).check()


@pytest.mark.parametrize("eta", [0.1, 0.4])
@pytest.mark.parametrize("sizes", [(2, 3), (1, 2, 4)])
def test_unequal_blocks_by_orbits_against_all_labels(sizes, eta):
    curve = calibration_function(Mixed(sizes, eta), "full")
    assert curve.method == "symmetric reduction"
    for eps in (0.15, 0.5, 0.9, 1.0):
        low, high = curve.interval(eps)
        expected = numeric_interval(curve.loss, curve.scores, eps)[1]
        assert low <= expected * (1 + 1e-8)
        assert high >= expected * (1 - 1e-8)
        assert high - low <= 1e-6 * high
        curve.certificate(eps).check()
    pieces = curve.pieces
    for eps in np.linspace(0.013, 1.0, 17):
        piece = next(p for p in pieces if p.low < eps <= p.high)
        low, high = curve.interval(eps)
        assert low * (1 - 1e-6) <= piece(eps) <= high * (1 + 1e-6)


def test_the_two_quadratics_meet():
    b, s, eta = 2, 3, 0.3
    bend = eta / (1 - eta)
    assert formula(bend, b, s, eta) == pytest.approx(formula(bend + 1e-12, b, s, eta), rel=1e-9)
