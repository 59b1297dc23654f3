"""Bounds for scores that do not express the loss: two-sided ≤ one-sided ≤ linear program ≤ H."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration import inconsistent_lower_bound
from consistruct.losses import CostMatrix, Mixed, ZeroOne
from consistruct.structures import Blocks, Dense

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")

VERSIONS = ("two-sided", "one-sided", "linear program")


@pytest.mark.parametrize("scale", [1e-6, 1.0])
@pytest.mark.parametrize("seed", range(8))
def test_order_of_the_bounds(seed, scale):
    rng = np.random.default_rng(seed)
    loss = CostMatrix(rng.random((4, 4)) * scale, rows="pred")
    mu = rng.random(4) + 0.3
    space = Dense(rng.standard_normal((4, 2)), reference=mu / mu.sum())
    curve = calibration_function(loss, space)
    for share in (0.6, 0.85, 1.0):
        eps = share * curve.max_eps
        bounds = [
            inconsistent_lower_bound(loss, space, eps=eps, version=version).value
            for version in VERSIONS
        ]
        chain = [*bounds, curve.interval(eps)[1]]
        for small, large in pairwise(chain):
            assert small <= large * (1 + 1e-8) + 1e-16 * scale**2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("eps", [0.05, 0.4, 1.0])
def test_exact_for_mixed_losses_with_block_scores(version, eps):
    loss, space = Mixed((2, 2, 2), 0.3), Blocks((2, 2, 2))
    bound = inconsistent_lower_bound(loss, space, eps=eps, version=version)
    expected = calibration_function(loss, space)(eps)
    assert bound.value == pytest.approx(expected, rel=1e-8, abs=1e-15)
    assert bound.eps == eps


def test_theorem_7_is_the_consistent_case():
    bound = inconsistent_lower_bound(ZeroOne(4), ZeroOne(4).score_space, eps=0.5)
    assert bound.value == pytest.approx(0.25 / 16, rel=1e-9)


def test_edges():
    space = Blocks((2, 2))
    assert inconsistent_lower_bound(ZeroOne(4), space, eps=0).value == 0.0
    assert inconsistent_lower_bound(ZeroOne(4), space, eps=1.5).value == np.inf
    with pytest.raises(ValueError, match="version must be 'two-sided', 'one-sided' or"):
        inconsistent_lower_bound(ZeroOne(4), space, eps=0.1, version="three-sided")
