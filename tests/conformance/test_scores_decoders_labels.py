"""Score spaces, decoders and label sets against the public conformance checks."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from consistruct import decoding, labels, scores
from consistruct.decoding import DenseArgmax, Viterbi
from consistruct.labels import Classes, Product
from consistruct.scores import (
    Blocks,
    Chain,
    Dense,
    Matchings,
    Orthonormalised,
    PairDiscount,
    PairOrder,
    Positions,
    Separable,
    SetSizes,
)
from consistruct.testing import (
    check_decoder,
    check_huge_score_space,
    check_label_set,
    check_score_space,
)
from tests.conformance.catalogue import DECODERS, LABEL_SETS, RELATED, SPACES


@pytest.mark.parametrize("label_set", LABEL_SETS, ids=repr)
def test_label_set(label_set):
    check_label_set(label_set)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: repr(space)[:70])
def test_score_space(space):
    check_score_space(space)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: repr(space)[:70])
def test_what_a_score_space_says_of_itself(space):
    F = space.matrix()
    if space.one_per_label:
        assert np.array_equal(F, np.eye(len(F)))
    if space.separate_states is not None:  # a one for the state of each part
        parts = F.reshape(len(F), -1, space.separate_states)
        assert np.array_equal(parts.argmax(axis=2), space.predictions.enumerate())
        assert np.array_equal(parts.sum(axis=2), np.ones(parts.shape[:2]))


@pytest.mark.parametrize(("space", "others"), RELATED, ids=lambda value: repr(value)[:40])
def test_maps_between_spaces(space, others):
    check_score_space(space, others=others)


@pytest.mark.parametrize("case", DECODERS, ids=lambda case: repr(case[0])[:60])
def test_decoder(case):
    decoder, rows, predictions, forbidding = case
    check_decoder(decoder, rows, predictions, forbidding=forbidding)


@pytest.mark.parametrize(
    "space",
    [
        Separable(1000),
        Separable(201, 5),
        Chain(210, 2),
        Chain(100, 7),
        Blocks((2**201, 2**202)),
        Positions(np.arange(70, 0, -1)),
        Positions([1] * 5 + [0] * 50),
        PairOrder(60),
        PairDiscount(48),
        Matchings(50),
        SetSizes(250, 2.0, sizes=(1, 4)),
    ],
    ids=lambda space: repr(space)[:40],
)
def test_huge_score_space(space):
    check_huge_score_space(space)


def test_every_public_member_is_in_the_catalogue():
    not_members = {"Ragged", "ChainScores", "EffectiveClasses", "Predictable", "LossSpan"}
    # decisions from marginals are no argmax over scores: tested with the chain inference
    not_members |= {"ChainMarginals", "MarginalArgmax"}
    # decisions are not listed: compared with brute force in tests/decoding and tests/losses
    not_members |= {"BestDecision", "Decisions"}
    found = {
        type(member).__name__ for member in (*LABEL_SETS, *SPACES, *(case[0] for case in DECODERS))
    }
    public = {
        name
        for package in (labels, decoding, scores)
        for name in package.__all__
        if inspect.isclass(getattr(package, name))
    }
    assert public - not_members <= found


integer_matrices = hnp.arrays(
    np.int64,
    st.tuples(st.integers(1, 7), st.integers(1, 4)),
    elements=st.integers(-2, 2),
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(integer_matrices)
def test_any_dense_space(F):
    check_score_space(Dense(F))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(integer_matrices, st.data())
def test_any_measure(F, data):
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(F), max_size=len(F)))
    check_score_space(Dense(F, reference=weights))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_any_chain(T, n_states, seed):
    space = Chain(T, n_states)
    check_score_space(space, others=(Separable(T, n_states),), random_state=seed)
    check_decoder(Viterbi(T, n_states), space.matrix(), Product(T, n_states), random_state=seed)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(integer_matrices, st.integers(0, 2**32 - 1))
def test_any_dense_decoder(F, seed):
    check_decoder(DenseArgmax(F, Classes(len(F))), F, Classes(len(F)), random_state=seed)


def test_orthonormal_chain_never_builds_a_square_matrix():
    # width 21,900: a dense Gram or basis would take 3.8 GB
    space = Orthonormalised(Chain(200, 10))
    z = np.random.default_rng(0).standard_normal((1, space.width))
    label = space.decoder()(z)
    assert label.shape == (1, 200)
    assert np.isfinite(space.embed(label)).all()
