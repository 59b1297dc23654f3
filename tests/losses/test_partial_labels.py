"""Candidate sets as true labels."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct.exceptions import LossSpecError, TooManyLabelsError
from consistruct.losses import (
    CostMatrix,
    CostVectors,
    Hamming,
    Ordinal,
    PartialLabels,
    ZeroOne,
    parse_loss,
)
from consistruct.losses.base import dense_target
from consistruct.structures import Full, Ragged

M = np.random.default_rng(0).random((4, 5))


@pytest.mark.parametrize(
    ("reduce", "by_hand"), [("infimum", np.min), ("average", np.mean), ("supremum", np.max)]
)
def test_values_by_hand(reduce, by_hand):
    loss = PartialLabels(CostMatrix(M, rows="pred"), reduce)
    masks = loss.true_labels.enumerate()
    expected = [[by_hand(M[row, mask.astype(bool)]) for mask in masks] for row in range(4)]
    assert loss.matrix() == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize("reduce", ["infimum", "average", "supremum"])
def test_lists_of_candidates_say_the_same_as_masks(reduce):
    loss = PartialLabels(Ordinal(5), reduce)
    masks = loss.true_labels.sample(20, np.random.default_rng(1))
    lists = Ragged.pack([np.flatnonzero(mask) for mask in masks])
    pred = np.random.default_rng(2).integers(0, 5, size=20)
    assert loss(pred, lists) == pytest.approx(loss(pred, masks))
    assert dense_target(loss.target(lists)) == pytest.approx(dense_target(loss.target(masks)))
    assert loss.offset(lists) == pytest.approx(loss.offset(masks))


def test_infimum_over_hamming_needs_full_scores():
    # MATH 6: over Hamming(3) the rank goes from 4 to 8
    assert Hamming(3).score_space.rank == 4
    assert PartialLabels(Hamming(3), "average").score_space.rank == 4
    assert PartialLabels(Hamming(3), "infimum").score_space.rank == 8


def test_average_works_for_bases_that_cannot_be_listed():
    loss = PartialLabels(Hamming(200), "average")
    rng = np.random.default_rng(0)
    candidates = [rng.integers(0, 2, size=(m, 200)) for m in (3, 1, 4)]
    packed = Ragged.pack(candidates)
    pred = rng.integers(0, 2, size=(3, 200))
    expected = [
        np.mean([(p != y).mean() for y in c]) for p, c in zip(pred, candidates, strict=True)
    ]
    assert loss(pred, packed) == pytest.approx(expected)
    target = dense_target(loss.target(packed))
    embedded = loss.score_space.embed(pred)
    assert loss.offset(packed) + (embedded * target).sum(axis=1) == pytest.approx(expected)
    # the majority of the candidates is the Bayes decision
    decided = loss.score_space.decode(-target)
    assert np.array_equal(decided[0], (candidates[0].mean(axis=0) > 0.5).astype(int))


def test_many_true_labels_use_full_scores():
    loss = PartialLabels(ZeroOne(20))
    assert isinstance(loss.score_space, Full)
    true = np.eye(20, dtype=int)[:3]
    assert loss.score_space.decode(-loss.target(true)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: PartialLabels(ZeroOne(3), "mean"),
            ValueError,
            "reduce must be 'infimum', 'average'",
        ),
        (lambda: PartialLabels(3), TypeError, "loss must be a consistruct loss, got int"),
        (
            lambda: PartialLabels(CostVectors(3)),
            ValueError,
            "a base loss with finitely many true labels",
        ),
        (
            lambda: PartialLabels(Hamming(None)),
            ValueError,
            "a base loss with finitely many true labels",
        ),
        (
            lambda: PartialLabels(ZeroOne(3))([0], [[0, 0, 0]]),
            ValueError,
            "got a set of size 0 at row 0",
        ),
        (
            lambda: PartialLabels(ZeroOne(3))([0], [[0, 1]]),
            ValueError,
            r"true must have shape \(n, 3\)",
        ),
        (
            lambda: PartialLabels(ZeroOne(3))([0], Ragged.pack([[3]])),
            ValueError,
            r"true must be in 0\.\.2, got 3",
        ),
        (
            lambda: PartialLabels(ZeroOne(3))([0, 1], Ragged.pack([[1], []])),
            ValueError,
            "example 1 has no candidates",
        ),
        (
            lambda: PartialLabels(ZeroOne(3))([0, 1], Ragged.pack([[1]])),
            ValueError,
            "the same length, got 2 and 1",
        ),
        (
            lambda: PartialLabels(Hamming(20)).score_space,
            TooManyLabelsError,
            "use reduce='average', which keeps the scores",
        ),
        (
            lambda: PartialLabels(Hamming(20)).true_labels,
            TooManyLabelsError,
            "candidates of each example as a packed list",
        ),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_specs():
    assert parse_loss("partial-labels:infimum:zero-one:5") == PartialLabels(ZeroOne(5))
    assert parse_loss("partial_labels:average:hamming:3x2") == PartialLabels(Hamming(3), "average")
    with pytest.raises(LossSpecError, match="names the reduction and the base loss; write for"):
        parse_loss("partial-labels:zero-one:5")
