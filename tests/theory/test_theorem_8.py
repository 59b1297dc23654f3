"""Theorem 8: H(ε) ≤ ε²/2k with full scores, for pseudometric losses only."""

from __future__ import annotations

import math

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration import upper_bound
from consistruct.exceptions import ConsistructError
from consistruct.losses import Block, CostMatrix, Hamming, Mixed, Ordinal, Tree, ZeroOne


def metric(rng, k):
    """Distances between random points of the plane."""
    points = rng.random((k, 2))
    return np.linalg.norm(points[:, None] - points[None], axis=2)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_random_metrics(seed):
    loss = CostMatrix(metric(np.random.default_rng(seed), 5))
    curve = calibration_function(loss, "full")
    for share in (0.1, 0.5, 0.9, 1.0):
        eps = share * loss.max_value
        assert curve(eps) <= upper_bound(loss, eps=eps).value * (1 + 1e-9)


@pytest.mark.parametrize(
    "loss",
    [ZeroOne(5), Block((2, 3)), Mixed((2, 2), 0.3), Hamming(3), Ordinal(4), Tree((-1, 0, 0))],
)
def test_bounds_known_pseudometrics(loss):
    curve = calibration_function(loss, "full")
    eps = 0.7 * curve.max_eps
    bound = upper_bound(loss, eps=eps)
    assert bound.value == pytest.approx(eps**2 / (2 * loss.n_labels), rel=1e-12)
    assert curve(eps) <= bound.value * (1 + 1e-9)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[0, 1], [2, 0]], "is not symmetric"),
        ([[0, 1, 3], [1, 0, 1], [3, 1, 0]], "triangle inequality through label 1"),
        ([[0, 1], [1, 0.5]], "not zero on the diagonal"),
        ([[0, 1, 1], [1, 0, 1]], "2 predictions and 3 truths"),
    ],
)
def test_refuses_what_is_no_pseudometric(matrix, reason):
    with pytest.raises(ConsistructError, match=reason):
        upper_bound(CostMatrix(matrix), eps=0.1)


def test_the_hypothesis_is_needed():
    # one label is always worse by one: predicting it costs ⅛ however small ε is
    loss = CostMatrix([[0.0, 0.0], [1.0, 1.0]])
    assert calibration_function(loss, "full")(0.1) > 0.1**2 / (2 * 2)
    with pytest.raises(ConsistructError, match="pseudometric"):
        upper_bound(loss, eps=0.1)


def test_above_the_largest_loss_and_huge_sets():
    assert upper_bound(ZeroOne(3), eps=1.5).value == math.inf
    bound = upper_bound(Hamming(2000), eps=0.5)
    assert (bound.value, bound.side) == (0.0, "upper")
    assert bound.log == pytest.approx(math.log(0.125) - 2000 * math.log(2))
