"""Item targets are those of the quadratic surrogate, up to a constant per query."""

import numpy as np
import pytest

from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.item_targets import (
    ItemTargets,
    contrast_weights,
    item_targets,
)
from consistruct.losses import (
    NDCG,
    ExpectedRankUtility,
    MeanAveragePrecision,
    PairwiseDisagreement,
    PrecisionAt,
)
from consistruct.losses.base import dense_target
from consistruct.structures import Positions, Ragged
from consistruct.structures.orders import linear_discount
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
    assert [loss.needs_pairs for loss in ITEM_LOSSES] == [False] * 5 + [True] * 2


# --- the statistic ---------------------------------------------------------------------------


def packed(n_queries, n, n_grades, seed=0):
    grades = np.random.default_rng(seed).integers(0, n_grades, size=(n_queries, n))
    return Ragged(grades.ravel(), np.arange(n_queries + 1) * n)


@pytest.mark.parametrize("loss", [loss for loss in ITEM_LOSSES if not loss.needs_pairs], ids=repr)
def test_decoding_the_mean_target_is_the_bayes_decision(loss):
    """The order of least mean loss over a few true labels, by enumeration."""
    n = 4
    statistic, member = ItemTargets(loss), loss.at(n)
    codes = packed(5, n, loss.n_grades, seed=3)
    chances = np.array([0.3, 0.1, 0.25, 0.15, 0.2])
    values = statistic.values(codes).values.reshape(5, n)
    decided = statistic.decode(Ragged(chances @ values, np.array([0, n])))
    every = member.predictions.enumerate()
    costs = [
        chances @ member(np.tile(order, (5, 1)), codes.values.reshape(5, n)) for order in every
    ]
    mine = chances @ member(np.tile(decided.values, (5, 1)), codes.values.reshape(5, n))
    assert mine == pytest.approx(min(costs), abs=1e-12)


@pytest.mark.parametrize("loss", ITEM_LOSSES, ids=repr)
def test_squared_error_is_the_excess_of_the_surrogate(loss):
    n = 4
    space = item_space(loss, n)
    statistic, codes = ItemTargets(loss), packed(6, n, loss.n_grades)
    error = codes.with_values(np.random.default_rng(1).normal(size=6 * n))
    gaps = error.values.reshape(6, n)
    gaps = gaps - gaps.mean(axis=1, keepdims=True)
    expected = 0.5 * np.einsum("ni,ij,nj->n", gaps, space.gram().dense(), gaps)
    np.testing.assert_allclose(statistic.squared_error(error), expected, atol=1e-12)
    _, weight = item_targets(loss, codes)
    np.testing.assert_array_equal(contrast_weights(loss, codes.lengths), weight)


def test_estimates_are_centered_in_each_query_by_projection():
    statistic = ItemTargets(NDCG(None))
    estimates = Ragged.pack([[1.0, 3.0], [2.0], [0.0, 0.5, 1.0]])
    projected = statistic.project(estimates)
    np.testing.assert_allclose(projected.values, [-1, 1, 0, -0.5, 0, 0.5])
    assert statistic.project(projected) == projected
    assert statistic.decode(projected) == statistic.decode(estimates)
    assert statistic.target(estimates) is estimates


def test_what_item_targets_cannot_tell():
    statistic = ItemTargets(NDCG(None))
    estimates = Ragged.pack([[1.0, 3.0]])
    for ask in (
        lambda: statistic.expected_loss(estimates, statistic.decode(estimates)),
        lambda: statistic.expected_losses(estimates),
        lambda: statistic.offset(estimates),
    ):
        with pytest.raises(CapabilityError, match="comparable only within a query"):
            ask()
    assert statistic.with_loss(NDCG(None)) is statistic
    with pytest.raises(CapabilityError, match="fit again with the new loss"):
        statistic.with_loss(NDCG(None, 5))
