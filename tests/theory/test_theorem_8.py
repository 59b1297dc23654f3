"""Theorem 8: H(ε) ≤ ε²/2k with full scores is offered for pseudometric losses only.

That it holds there, and that the hypothesis is needed, is checked by theorem-upper-bound.
"""

from __future__ import annotations

import math

import pytest

from consistruct.calibration import upper_bound
from consistruct.exceptions import ConsistructError
from consistruct.losses import CostMatrix, Hamming, ZeroOne


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[0, 1], [2, 0]], "is not symmetric"),
        ([[0, 0], [1, 1]], "pseudometric"),  # where the bound fails, see theorem-upper-bound
        ([[0, 1, 3], [1, 0, 1], [3, 1, 0]], "triangle inequality through label 1"),
        ([[0, 1], [1, 0.5]], "not zero on the diagonal"),
        ([[0, 1, 1], [1, 0, 1]], "2 predictions and 3 true labels"),
    ],
)
def test_refuses_what_is_no_pseudometric(matrix, reason):
    with pytest.raises(ConsistructError, match=reason):
        upper_bound(CostMatrix(matrix, rows="pred"), eps=0.1)


def test_above_the_largest_loss_and_huge_sets():
    assert upper_bound(ZeroOne(3), eps=1.5).value == math.inf
    bound = upper_bound(Hamming(2000), eps=0.5)
    assert (bound.value, bound.side) == (0.0, "upper")
    assert bound.log == pytest.approx(math.log(0.125) - 2000 * math.log(2))
