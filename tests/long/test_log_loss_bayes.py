"""Log loss with Bayes decoding: H(ε) ≥ ε²/(2 Lmax²) for every loss, on 200 random ones."""

from __future__ import annotations

import numpy as np
import pytest

import consistruct as cs


def random_loss(rng):
    shape = rng.integers(2, 6, size=2)
    kind = rng.integers(3)
    if kind == 0:
        return rng.random(shape)
    if kind == 1:
        return rng.lognormal(size=shape)
    return rng.integers(0, 4, size=shape).astype(float)


@pytest.mark.parametrize("seed", range(200))
def test_bayes_decoding_is_calibrated_at_least_like_pinsker(seed):
    rng = np.random.default_rng(seed)
    L = random_loss(rng)
    H = cs.calibration_function(
        cs.losses.CostMatrix(L, rows="pred"), surrogate="log", decoding="bayes"
    )
    assert H.consistency_level == 0
    if H.max_eps == 0:
        return
    for share in (0.1, 0.6, 1.0):
        eps = share * H.max_eps
        (point,) = H.curve([eps])
        assert point.lower >= eps**2 / (2 * L.max() ** 2) * (1 - 1e-9)
        assert point.status == "certified"
        H.certificate(eps).check()
