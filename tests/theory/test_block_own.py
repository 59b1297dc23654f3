"""Block loss with block scores: H(ε) = ε²/4k · min_{u≠v} 2 s_u s_v/(s_u+s_v)."""

from __future__ import annotations

from itertools import combinations

import pytest

from consistruct import calibration_function
from consistruct.losses import Block
from tests.theory.numeric import assert_closed_form


@pytest.mark.parametrize("sizes", [(3, 3), (2, 2, 2), (3, 5), (4, 2, 3), (1, 5), (1, 1, 6)])
def test_block_own(sizes):
    k = sum(sizes)
    factor = min(2 * u * v / (u + v) for u, v in combinations(sizes, 2))
    curve = calibration_function(Block(sizes))
    assert_closed_form(curve, lambda eps: eps**2 / (4 * k) * factor, [0.2, 0.6, 1.0])
    curve.certificate(0.6).check()


@pytest.mark.parametrize("b", [2, 5])
def test_equal_blocks_cost_as_much_as_that_many_classes(b):
    curve = calibration_function(Block((7,) * b))
    assert curve(0.5) == pytest.approx(0.25 / (4 * b), rel=1e-12)
    assert curve.effective_classes == b
