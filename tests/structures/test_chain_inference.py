"""Forward-backward and decoding from marginals, against enumeration and a log-space recursion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consistruct.structures import Chain
from consistruct.structures import _chain_kernels as kernels
from consistruct.structures.chains import (
    ChainScores,
    augmented_scores,
    boundary_scores,
    chain_marginals,
    viterbi,
)
from tests.structures.chain_reference import enumerate_posterior, log_space_posterior, score_all


def random_chain(rng, lengths, s, *, shared, spread=1.0, forbidden=0.0):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(offsets[-1])
    unary = spread * rng.normal(size=(n, s))
    edges = spread * rng.normal(size=(s, s) if shared else (n, s, s))
    if forbidden:
        edges[rng.random(edges.shape) < forbidden] = -np.inf
        edges[..., 0, 0] = 0.0  # staying in state 0 is always possible
    return ChainScores(unary, edges, offsets)


def by_sequence(scores):
    n_parts, s = scores.unary.shape
    edges = scores.edges
    if edges.ndim == 2:
        edges = np.broadcast_to(edges, (n_parts, s, s))
    for start, stop in zip(scores.offsets[:-1], scores.offsets[1:], strict=True):
        yield scores.unary[start:stop], edges[start:stop]


def assert_matches(scores, reference, *, weights=None, tolerance=1e-11):
    distribution = chain_marginals(scores, weights)
    w = np.ones(len(distribution.log_partition)) if weights is None else weights
    expected = [
        (0.0, u, np.zeros((0, *e.shape[1:]))) if len(u) == 0 else reference(u, e)
        for u, e in by_sequence(scores)
    ]
    np.testing.assert_allclose(
        distribution.log_partition, [e[0] for e in expected], rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(
        distribution.unary, np.concatenate([e[1] for e in expected]), rtol=0, atol=tolerance
    )
    pairs = np.concatenate([weight * e[2] for weight, e in zip(w, expected, strict=True)])
    if scores.edges.ndim == 2:
        pairs = pairs.sum(axis=0)
    np.testing.assert_allclose(
        distribution.edges, pairs, rtol=0, atol=tolerance * len(scores.unary)
    )


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1e4])
def test_agrees_with_enumeration(shared, spread):
    rng = np.random.default_rng(1)
    scores = random_chain(rng, [3, 1, 5, 0, 4], 3, shared=shared, spread=spread)
    assert_matches(scores, enumerate_posterior, weights=rng.random(5))


@pytest.mark.parametrize("shared", [True, False])
def test_agrees_with_the_log_space_recursion_on_long_sequences(shared):
    rng = np.random.default_rng(2)
    scores = random_chain(rng, [400, 7, 50], 6, shared=shared, spread=3.0)
    assert_matches(scores, log_space_posterior, tolerance=1e-10)


@given(
    data=st.data(),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    s=st.integers(1, 3),
    shared=st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_any_scores_agree_with_enumeration(data, lengths, s, shared):
    score = st.one_of(
        st.floats(-5, 5),
        st.sampled_from([-1e4, 1e4, 0.0, 1e-40, -1e-310, -745.2, 709.8, -np.inf]),
    )
    n = sum(lengths)
    unary = np.array(data.draw(st.lists(score, min_size=n * s, max_size=n * s))).reshape(n, s)
    m = (1 if shared else n) * s * s
    edges = np.array(data.draw(st.lists(score, min_size=m, max_size=m)))
    unary[:, 0] = np.maximum(unary[:, 0], -2e4)
    edges = edges.reshape((s, s) if shared else (n, s, s))
    edges[..., 0, 0] = np.maximum(edges[..., 0, 0], -2e4)  # one sequence stays possible
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    assert_matches(ChainScores(unary, edges, offsets), enumerate_posterior, tolerance=1e-9)


def test_mass_lost_by_underflow_would_win_later():
    # State 0 leads by e^750 at the first part and loses e^200 at each later one; no crossing.
    # α underflows for state 1 although it holds all the mass in the end.
    unary = np.zeros((6, 2))
    unary[0] = [0.0, -750.0]
    unary[1:, 0] = -200.0
    edges = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    scores = ChainScores(unary, edges, np.array([0, 6]))
    distribution = chain_marginals(scores)
    assert distribution.log_partition[0] == pytest.approx(-750.0)
    np.testing.assert_allclose(distribution.unary, np.tile([0.0, 1.0], (6, 1)), atol=1e-12)
    assert_matches(scores, enumerate_posterior)


def test_the_scaled_pass_refuses_what_it_cannot_do():
    # the same problem, requested of the linear-space kernel alone: it must say so, not answer
    unary = np.zeros((6, 2))
    unary[0] = [0.0, -750.0]
    unary[1:, 0] = -200.0
    exp_edges = np.eye(2)[None]
    alpha, message, scale, vector = kernels.workspace(6, 2)
    pairwise = np.zeros((1, 2, 2))
    answer = kernels._scaled_posterior(
        unary, exp_edges, exp_edges, np.zeros(1), True, 1.0,
        alpha, message, scale, vector, np.empty((6, 2)), pairwise,
    )  # fmt: skip
    assert np.isnan(answer)
    assert not pairwise.any()


def test_float32_subnormal_scores_are_taken_as_they_are():
    tiny: Any = np.full((4, 3), 1e-42, dtype=np.float32)
    scores = ChainScores(tiny, -tiny[:3], np.array([0, 4]))
    assert_matches(scores, enumerate_posterior)


def test_log_partition_has_the_marginals_as_gradient():
    rng = np.random.default_rng(3)
    scores = random_chain(rng, [4, 3], 3, shared=True)
    distribution = chain_marginals(scores)
    h = 1e-6
    for index in np.ndindex(*scores.unary.shape):
        shifted = scores.unary.copy()
        shifted[index] += h
        up = chain_marginals(ChainScores(shifted, scores.edges, scores.offsets))
        shifted[index] -= 2 * h
        down = chain_marginals(ChainScores(shifted, scores.edges, scores.offsets))
        slope = (up.log_partition - down.log_partition).sum() / (2 * h)
        assert distribution.unary[index] == pytest.approx(slope, abs=1e-8)
    for index in np.ndindex(*scores.edges.shape):
        shifted = scores.edges.copy()
        shifted[index] += h
        up = chain_marginals(ChainScores(scores.unary, shifted, scores.offsets))
        shifted[index] -= 2 * h
        down = chain_marginals(ChainScores(scores.unary, shifted, scores.offsets))
        slope = (up.log_partition - down.log_partition).sum() / (2 * h)
        assert distribution.edges[index] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("shared", [True, False])
def test_forbidden_transitions_have_no_probability(shared):
    rng = np.random.default_rng(4)
    scores = random_chain(rng, [5, 4, 6], 3, shared=shared, forbidden=0.4)
    distribution = chain_marginals(scores)
    forbidden = np.isneginf(scores.edges)
    assert forbidden.any()
    assert (distribution.edges[forbidden] == 0).all()
    assert_matches(scores, enumerate_posterior)


def test_a_sequence_without_any_allowed_states_is_named():
    edges = np.full((2, 2), -np.inf)
    scores = ChainScores(np.zeros((5, 2)), edges, np.array([0, 1, 2, 5]))
    with pytest.raises(ValueError, match=r"every sequence of states is forbidden .* sequence 2"):
        chain_marginals(scores)
    unary = np.zeros((3, 2))
    unary[1] = -np.inf
    with pytest.raises(ValueError, match="sequence 1"):
        chain_marginals(ChainScores(unary, np.zeros((2, 2)), np.array([0, 1, 2, 3])))


def test_weights_are_checked():
    scores = ChainScores(np.zeros((2, 2)), np.zeros((2, 2)), np.array([0, 2]))
    with pytest.raises(ValueError, match=r"one finite number per sequence, shape \(1,\)"):
        chain_marginals(scores, [1.0, 2.0])


def test_the_most_probable_states_have_the_least_expected_hamming_loss():
    rng = np.random.default_rng(5)
    for _ in range(20):
        scores = random_chain(rng, [4], 3, shared=True, spread=2.0)
        (unary, edges), *_ = by_sequence(scores)
        states, value = score_all(unary, edges)
        p = np.exp(value - np.logaddexp.reduce(value))
        expected = np.array([(p * (states != guess).mean(axis=1)).sum() for guess in states])
        chosen = chain_marginals(scores).unary.argmax(axis=1)
        position = int(np.flatnonzero((states == chosen).all(axis=1))[0])
        assert expected[position] == pytest.approx(expected.min(), abs=1e-12)


def test_loss_augmented_decoding_maximizes_score_plus_cost():
    rng = np.random.default_rng(6)
    for _ in range(20):
        scores = random_chain(rng, [4], 3, shared=True)
        cost = rng.random((4, 3))
        (unary, edges), *_ = by_sequence(scores)
        states, value = score_all(unary, edges)
        value = value + cost[np.arange(4), states].sum(axis=1)
        best = viterbi(augmented_scores(scores, cost)).values
        np.testing.assert_array_equal(best, states[value.argmax()])
    with pytest.raises(ValueError, match=r"shape of the unary scores \(4, 3\)"):
        augmented_scores(scores, cost[:2])


def test_start_and_end_scores_reach_first_and_last_parts_only():
    unary = np.zeros((4, 2))
    offsets = np.array([0, 3, 3, 4])
    out = boundary_scores(unary, offsets, np.array([1.0, 2.0]), np.array([10.0, 20.0]))
    np.testing.assert_array_equal(out, [[1, 2], [0, 0], [10, 20], [11, 22]])
    assert not unary.any()
    assert boundary_scores(unary, offsets, None, None) is unary


def test_wrong_number_of_states_is_refused():
    scores = ChainScores(np.zeros((2, 2)), np.zeros((2, 2)), np.array([0, 2]))
    with pytest.raises(ValueError, match="unary must have 3 columns"):
        Chain(None, 3).decode_packed(scores)
