"""Hamming loss with separable scores: H(ε) = ε²/4sT; ε²/8T for two states."""

from __future__ import annotations

import pytest

from consistruct import calibration_function
from consistruct.losses import Hamming
from tests.theory.numeric import assert_closed_form


@pytest.mark.parametrize(("T", "s"), [(1, 2), (2, 2), (4, 2), (1, 4), (2, 3), (3, 3)])
def test_hamming_own(T, s):
    curve = calibration_function(Hamming(T, s))
    assert_closed_form(curve, lambda eps: eps**2 / (4 * s * T), [0.25, 0.7, 1.0])
    assert curve.effective_classes == s * T
    curve.certificate(0.7).check()


def test_a_thousand_parts():
    assert calibration_function(Hamming(1000))(0.5) == pytest.approx(0.25 / 8000, rel=1e-12)
