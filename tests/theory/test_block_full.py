"""Block loss with full scores: H(ε) = ε²/4k · min_v 2s_v/(s_v+1)."""

from __future__ import annotations

import pytest

from consistruct import calibration_function
from consistruct.losses import Block
from tests.theory.numeric import assert_closed_form


@pytest.mark.parametrize("sizes", [(2, 2), (3, 5), (4, 2, 3), (1, 4)])
def test_block_full(sizes):
    k = sum(sizes)
    factor = min(2 * s / (s + 1) for s in sizes)
    curve = calibration_function(Block(sizes), "full")
    assert_closed_form(curve, lambda eps: eps**2 / (4 * k) * factor, [0.2, 0.6, 1.0])
    curve.certificate(0.6).check()


def test_one_block_has_no_excess_risk():
    assert calibration_function(Block((4,)), "full").max_eps == 0.0
