from __future__ import annotations

import numpy as np
import pytest

from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.losses import (
    Block,
    CostMatrix,
    CostVectors,
    Hamming,
    Mixed,
    Ordinal,
    ZeroOne,
    mixture,
)
from consistruct.losses.algebra import Combination
from consistruct.losses.base import dense_target
from consistruct.structures import Blocks, Full, Ragged


def test_mixed_is_the_mixture_of_its_terms():
    combined = mixture([ZeroOne(6), Block((2, 4))], [0.3, 0.7])
    assert np.allclose(combined.matrix(), Mixed((2, 4), 0.3).matrix())
    assert combined.score_space == Full(6)
    assert combined.max_value == pytest.approx(1)


def test_nested_sums_are_flat_and_equal_losses_one_term():
    loss = 2 * (ZeroOne(3) + 0.5 * Ordinal(3)) + ZeroOne(3)
    assert loss.terms == ((3.0, ZeroOne(3)), (1.0, Ordinal(3)))
    assert repr(loss) == "3.0 * ZeroOne(3) + 1.0 * Ordinal(3)"
    assert loss == ZeroOne(3) * 3 + Ordinal(3)
    assert 2 * (3 * Hamming(2)) == 6 * Hamming(2)


def test_neither_space_spans_the_other():
    loss = Block((2, 2, 2)) + Block((3, 3))
    assert loss.score_space.rank == 4  # two partitions with one common constant
    assert loss.score_space.width == 4


def test_finer_blocks_carry_the_sum():
    loss = Block((1, 1, 2)) + Block((2, 2))
    assert loss.score_space == Blocks((1, 1, 2))
    F, U = loss.score_space.matrix(), dense_target(loss.target(np.arange(4)))
    assert np.allclose(loss.offset(np.arange(4)) + F @ U.T, loss.matrix())


def test_huge_sums():
    loss = 0.5 * Block((2**200, 2**200, 2**201)) + 0.5 * Block((2**201, 2**201))
    assert loss.score_space == Blocks((2**200, 2**200, 2**201))
    assert loss([0], [2**200]).tolist() == [0.5]
    assert loss.max_value == 1  # an upper bound, attained here
    crossing = Block((2**200, 2**201)) + Block((2**201, 2**200))
    with pytest.raises(ConsistructError, match=r"no score space of the terms .* expresses all"):
        _ = crossing.score_space


def test_families_combine():
    loss = 0.5 * Hamming(None, 3) + 0.5 * Hamming(None, 3)
    pred, true = Ragged.pack([[0, 1], [2]]), Ragged.pack([[0, 2], [1]])
    assert loss(pred, true).tolist() == [0.5, 1.0]
    assert loss.at(2) == 1.0 * Hamming(2, 3)
    with pytest.raises(ValueError, match="only over the same predictions"):
        Hamming(None, 3) + Hamming(None, 2)
    with pytest.raises(CapabilityError, match="choosing a size needs the capability 'at'"):
        (2 * ZeroOne(3)).at(3)


def test_cost_vectors_add():
    loss = CostVectors(2) + CostVectors(2, 3.0)
    assert loss([1], [[0.5, 2.0]]).tolist() == [4.0]
    assert loss.max_value == 4


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: ZeroOne(3) + ZeroOne(4),
            ValueError,
            "only over the same predictions, got ZeroOne",
        ),
        (lambda: ZeroOne(2) + CostVectors(2), ValueError, "only over the same true labels"),
        (lambda: ZeroOne(4) + Hamming(2), ValueError, "only over the same predictions"),
        (
            lambda: (
                CostMatrix([[0, 1]], true_names=("a", "b"), rows="pred")
                + CostMatrix([[0, 1]], true_names=("b", "a"), rows="pred")
            ),
            ValueError,
            "only over the same true labels",
        ),
        (lambda: -1 * ZeroOne(3), ValueError, "weight of a loss must be a finite number in"),
        (lambda: float("nan") * ZeroOne(3), ValueError, "weight of a loss must be a finite number"),
        (lambda: "2" * ZeroOne(3), TypeError, "weight of a loss must be a number, got '2'"),
        (lambda: ZeroOne(3) + 1, TypeError, "unsupported operand"),
        (lambda: Combination(()), ValueError, "a combination needs at least one loss"),
        (lambda: Combination(((1.0, "x"),)), TypeError, "only losses can be combined, got str"),
        (
            lambda: mixture([ZeroOne(2)], [0.5, 0.5]),
            ValueError,
            "one weight per loss, got 1 losses",
        ),
        (lambda: mixture([ZeroOne(2)], [0.5]), ValueError, "weights must sum to 1, got 0.5"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
