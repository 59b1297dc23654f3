"""Mixed loss with the scores of its blocks: 0 up to η/2, then one quadratic."""

from __future__ import annotations

import pytest

from consistruct import calibration_function
from consistruct.losses import Mixed
from consistruct.scores import Blocks
from tests.theory.numeric import assert_closed_form, numeric_interval


def formula(eps, b, s, eta):
    if eps <= eta / 2:
        return 0.0
    factor = ((eta / s + 1 - eta) / (1 - eta / 2)) ** 2
    return (eps - eta / 2) ** 2 / (4 * b) * factor


@pytest.mark.parametrize("eta", [0.0, 0.1, 0.4, 0.7, 0.95])
@pytest.mark.parametrize(("b", "s"), [(2, 2), (3, 2), (2, 4)])
def test_equal_blocks(b, s, eta):
    curve = calibration_function(Mixed((s,) * b, eta), Blocks((s,) * b))
    grid = [eps for eps in (0.04, 0.3, 0.6, 1.0) if abs(eps - eta / 2) > 1e-3]
    assert_closed_form(curve, lambda eps: formula(eps, b, s, eta), grid)
    assert curve.consistency_level == pytest.approx(eta / 2, abs=1e-12)
    assert curve.approximation_error == pytest.approx(eta, abs=1e-12)


@pytest.mark.parametrize("sizes", [(2, 3), (1, 2, 4)])
def test_unequal_blocks_by_blocks_against_all_labels(sizes):
    curve = calibration_function(Mixed(sizes, 0.3), Blocks(sizes))
    assert curve.method == "symmetric reduction"
    for eps in (0.3, 0.7, 1.0):
        low, high = curve.interval(eps)
        expected = numeric_interval(curve.loss, curve.scores, eps)[1]
        assert low <= expected * (1 + 1e-8)
        assert high >= expected * (1 - 1e-8)
        curve.certificate(eps).check()


def test_many_blocks_are_certified_by_orbits():
    curve = calibration_function(Mixed((2,) * 200, 0.2), Blocks((2,) * 200))
    assert curve(0.5) == pytest.approx(formula(0.5, 200, 2, 0.2), rel=1e-12)
    assert curve.approximation_error == 0.2
    certificate = curve.certificate(0.5)
    certificate.check()
    assert certificate.pair == (0, 2)


def test_blocks_of_two_to_the_250():
    b, s, eta = 3, 2**250, 0.2
    curve = calibration_function(Mixed((s,) * b, eta), Blocks((s,) * b))
    assert curve(0.5) == pytest.approx(formula(0.5, b, s, eta), rel=1e-12)
    certificate = curve.certificate(0.5)
    certificate.check()
    assert certificate.pair == (0, s)
    assert certificate.upper * 2.718281828459045**certificate.log_scale == pytest.approx(
        curve(0.5), rel=1e-8
    )
