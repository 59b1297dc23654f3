"""Theorem 7: H(ε) ≥ ε²/(2 diam²) = ε²/4k_eff for scores that express the loss, any measure."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration import lower_bound
from consistruct.exceptions import ConsistructError
from consistruct.losses import Block, CostMatrix, Hamming, ZeroOne
from consistruct.structures import Blocks, Dense, Full


@pytest.mark.parametrize(
    ("loss", "space", "k_eff"),
    [
        (ZeroOne(7), None, 7),
        (Block((3,) * 4), None, 4),
        (Hamming(9), None, 18),
        (Hamming(4, 3), None, 12),
        (Block((2, 3)), Full(5), 5),
    ],
)
def test_effective_classes(loss, space, k_eff):
    bound = lower_bound(loss, space, eps=0.3)
    assert bound.value == pytest.approx(0.09 / (4 * k_eff), rel=1e-12)
    assert bound.log == pytest.approx(np.log(bound.value), rel=1e-12)
    assert bound.side == "lower"


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_below_the_curve(seed):
    rng = np.random.default_rng(seed)
    U = rng.random((3, 4))
    F = rng.random((5, 3))
    loss = CostMatrix(F @ U, rows="pred")
    mu = rng.random(5) + 0.2
    space = Dense(F, reference=mu / mu.sum())
    curve = calibration_function(loss, space)
    for share in (0.2, 0.6, 1.0):
        eps = share * curve.max_eps
        assert lower_bound(loss, space, eps=eps).value <= curve.interval(eps)[1] * (1 + 1e-9)
    assert curve.consistency_level == 0.0


def test_diameter_by_hand():
    # two labels at ±1 under weights (¼, ¾): Ḡ = 1, (F_i − F_j)² / Ḡ = 4, so k_eff = 2
    space = Dense([[1.0], [-1.0]], reference=[0.25, 0.75])
    loss = CostMatrix([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ConsistructError, match="needs scores that express the loss"):
        lower_bound(loss, space, eps=0.5)
    both = Dense([[1.0, 1.0], [-1.0, 1.0]], reference=[0.25, 0.75])
    # full scores under μ: 1/μ_1 + 1/μ_2 = 4 + 4/3
    assert lower_bound(loss, both, eps=0.5).value == pytest.approx(0.25 / (2 * 16 / 3), rel=1e-12)


@pytest.mark.parametrize("eps", [-0.1, float("nan"), float("inf")])
def test_refuses_bad_eps(eps):
    with pytest.raises(ValueError, match="eps must be a finite number of at least 0"):
        lower_bound(ZeroOne(3), eps=eps)


def test_refuses_scores_that_merge_what_the_loss_tells_apart():
    with pytest.raises(ConsistructError, match="needs scores that express the loss"):
        lower_bound(ZeroOne(4), Blocks((2, 2)), eps=0.1)


def test_log_survives_underflow():
    bound = lower_bound(Hamming(3000), Full(Hamming(3000)), eps=0.5)
    assert bound.value == 0.0
    assert bound.log == pytest.approx(np.log(0.25 / 4) - 3000 * np.log(2), rel=1e-12)
