"""Item targets are those of the quadratic surrogate, up to a constant per query."""

import numpy as np
import pytest

from consistruct.labels import Ragged
from consistruct.learning.models.items import item_targets, needs_pairs
from consistruct.losses import (
    NDCG,
    ExpectedRankUtility,
    MeanAveragePrecision,
    PairwiseDisagreement,
    PrecisionAt,
)
from consistruct.losses.base import dense_target
from consistruct.scores import Positions
from consistruct.scores.positions import linear_discount
from consistruct.surrogates import QuadraticSurrogate

ITEM_LOSSES = [
    NDCG(None, n_grades=4),
    NDCG(None, 2, n_grades=3, gain="linear", discount="reciprocal"),
    PrecisionAt(None, 2),
    ExpectedRankUtility(None, 3.0, n_grades=3),
    PairwiseDisagreement(None),
    PairwiseDisagreement(None, 4),
    MeanAveragePrecision(None),
]


def item_space(loss, n):
    """The scores of single items that the loss is projected on."""
    if isinstance(loss, MeanAveragePrecision):
        return loss.at(n).sortable_scores()
    if isinstance(loss, PairwiseDisagreement):
        return Positions(linear_discount(n))
    return loss.at(n).score_space


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("loss", ITEM_LOSSES, ids=repr)
def test_targets_are_those_of_the_surrogate(loss, n):
    space = item_space(loss, n)
    rng = np.random.default_rng(0)
    grades = rng.integers(0, loss.n_grades, size=(20, n))
    targets, weight = item_targets(loss, Ragged(grades.ravel(), np.arange(21) * n))
    if space.rank == 1:  # all orders cost the same: there is nothing to learn
        assert not weight.any()
        return
    surrogate = QuadraticSurrogate(loss.at(n), space)
    expected = -dense_target(surrogate.target(grades))
    expected -= expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(targets.reshape(20, n), expected, atol=1e-12)
    contrast = np.zeros(n)
    contrast[:2] = 1, -1
    np.testing.assert_allclose(weight, space.gram().dense()[0] @ contrast, rtol=1e-12)


def test_queries_of_all_lengths_are_treated_apart():
    loss = NDCG(None, n_grades=3)
    grades = Ragged.pack([[1, 0, 2], [2], [0, 1], [2, 2, 0]])
    targets, weight = item_targets(loss, grades)
    for query in range(4):
        part = slice(grades.offsets[query], grades.offsets[query + 1])
        alone, own = item_targets(loss, Ragged.pack([grades[query]]))
        np.testing.assert_array_equal(targets[part], alone)
        assert weight[query] == own[0]
    assert weight[1] == 0.0  # one item has one order


def test_a_cut_off_at_the_last_item_tells_nothing():
    _, weight = item_targets(PrecisionAt(None, 3), Ragged.pack([[0, 1], [1, 0, 1], [1, 0, 0, 1]]))
    assert weight.tolist()[:2] == [0.0, 0.0]
    assert weight[2] > 0


def test_which_losses_need_pairs():
    assert [needs_pairs(loss) for loss in ITEM_LOSSES] == [False] * 5 + [True] * 2
