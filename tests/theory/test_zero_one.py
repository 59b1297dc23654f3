"""0-1 loss with full scores: H(ε) = ε²/4k on [0, 1], k ≥ 2."""

from __future__ import annotations

import pytest

from consistruct import calibration_function
from consistruct.losses import ZeroOne
from tests.theory.numeric import assert_closed_form


@pytest.mark.parametrize("k", [2, 3, 7])
def test_zero_one(k):
    curve = calibration_function(ZeroOne(k))
    assert_closed_form(curve, lambda eps: eps**2 / (4 * k), [0.1, 0.5, 0.77, 1.0])
    assert curve.effective_classes == k
    assert (curve.max_eps, curve.consistency_level, curve.approximation_error) == (1.0, 0.0, 0.0)
