"""Viterbi against enumeration: ragged batches, shared and per-edge scores, exact ties."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consistruct.exceptions import FamilyError
from consistruct.structures import Chain
from consistruct.structures.chains import ChainScores, viterbi


def best_by_enumeration(unary, edges):
    """Lexicographically smallest best sequence; edges is a list of T−1 matrices."""
    T, s = unary.shape
    best, winner = -np.inf, None
    for states in product(range(s), repeat=T):  # in lexicographic order
        value = sum(unary[t, states[t]] for t in range(T))
        value += sum(edges[t][states[t], states[t + 1]] for t in range(T - 1))
        if value > best:
            best, winner = value, states
    return list(winner) if winner is not None else None


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(1, 4),
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_packed_sequences_match_enumeration(s, lengths, shared, integers, seed):
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    shape = (s, s) if shared else (n, s, s)
    unary, edges = rng.standard_normal((n, s)), rng.standard_normal(shape)
    if integers:  # exact sums, many ties
        unary, edges = np.sign(unary), np.sign(edges)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    found = viterbi(ChainScores(unary, edges, offsets))
    assert found.lengths.tolist() == lengths
    for start, states in zip(offsets[:-1], found, strict=True):
        if len(states) == 0:
            continue
        own = [edges if shared else edges[start + t] for t in range(len(states))]
        expected = best_by_enumeration(unary[start : start + len(states)], own)
        assert states.tolist() == expected


def test_fixed_length_equals_packed():
    rng = np.random.default_rng(0)
    T, s, n = 6, 4, 5
    unary, edges = rng.standard_normal((n, T, s)), rng.standard_normal((n, T, s, s))
    theta = np.concatenate([unary.reshape(n, -1), edges[:, : T - 1].reshape(n, -1)], axis=1)
    packed = ChainScores(unary.reshape(n * T, s), edges.reshape(n * T, s, s), np.arange(n + 1) * T)
    fixed = Chain(T, s).decode(theta)
    assert np.array_equal(fixed.ravel(), viterbi(packed).values)
    attained = (Chain(T, s).embed(fixed) * theta).sum(axis=1)
    # the best of many random sequences is no better
    sampled = Chain(T, s).embed(rng.integers(s, size=(2000, T)))
    assert (attained[:, None] >= theta @ sampled.T - 1e-12).all()


def test_forbidden_transitions():
    stay = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    unary = np.array([[0.0, 1.0], [5.0, 0.0], [0.0, 3.0]])
    found = viterbi(ChainScores(unary, stay, np.array([0, 3])))
    assert found.values.tolist() == [0, 0, 0]  # 5 beats 4
    with pytest.raises(ValueError, match=r"every label is forbidden .* for example 1"):
        viterbi(ChainScores(np.zeros((3, 2)), np.full((2, 2), -np.inf), np.array([0, 1, 3])))


def test_entries_after_the_last_part_are_not_read():
    edges = np.zeros((2, 2, 2))
    edges[1] = np.nan
    scores = ChainScores(np.array([[0.0, 1.0], [2.0, 0.0]]), edges, np.array([0, 2]))
    assert viterbi(scores).values.tolist() == [1, 0]
    edges[0, 1, 1] = np.nan
    with pytest.raises(ValueError, match="edges must not contain NaN"):
        ChainScores(np.zeros((2, 2)), edges, np.array([0, 2]))


def test_an_empty_batch_and_empty_sequences():
    scores = ChainScores(np.zeros((0, 3)), np.zeros((3, 3)), np.array([0]))
    assert len(viterbi(scores)) == 0
    scores = ChainScores(np.zeros((0, 3)), np.zeros((3, 3)), np.array([0, 0, 0]))
    assert viterbi(scores).lengths.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ChainScores(np.zeros(3), np.zeros((1, 1)), [0, 3]),
            r"unary must contain numbers of shape \(N, s\)",
        ),
        (
            lambda: ChainScores(np.zeros((3, 2)), np.zeros((3, 3)), [0, 3]),
            r"edges must contain numbers of shape \(2, 2\)",
        ),
        (
            lambda: ChainScores(np.zeros((3, 2)), np.zeros((2, 2)), [0, 2]),
            "end at the number of parts 3",
        ),
        (
            lambda: ChainScores(np.full((1, 2), np.inf), np.zeros((2, 2)), [0, 1]),
            "unary must not contain NaN or",
        ),
        (
            lambda: Chain(None, 3).decode_packed(
                ChainScores(np.zeros((1, 2)), np.zeros((2, 2)), [0, 1])
            ),
            "unary must have 3 columns, one per state, got 2",
        ),
    ],
)
def test_bad_scores(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_family_takes_packed_scores_only():
    with pytest.raises(FamilyError, match="decode_packed takes ChainScores"):
        Chain(None, 2).decode(np.zeros((1, 4)))
