"""Chain surrogates against their definitions by enumeration, and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct.exceptions import CapabilityError
from consistruct.structures import Ragged
from consistruct.structures.chains import ChainScores, boundary_scores
from consistruct.surrogates import SURROGATES
from consistruct.surrogates.chains import (
    ChainHinge,
    ChainLogLoss,
    ChainQuadratic,
    ChainSoftmaxMargin,
)
from consistruct.surrogates.registry import chain_surrogate
from tests.structures.chain_reference import score_all

CHAIN_SURROGATES = {
    name: entry.chain for name, entry in SURROGATES.items() if entry.chain is not None
}
LENGTHS = [3, 1, 0, 4]
S = 3


def definition(name, cost, unary, edges, true):
    """The formula of each surrogate over all sequences of states."""
    if len(true) == 0:
        return 0.0
    states, scores = score_all(unary, edges)
    (own,) = scores[(states == true).all(axis=1)]
    augmented = scores + cost * (states != true).sum(axis=1)
    if name == "log":
        return np.logaddexp.reduce(scores) - own
    if name == "hinge":
        return augmented.max() - own
    if name == "softmax-margin":
        return np.logaddexp.reduce(augmented) - own
    return unary.shape[1] / 2 * augmented.var()


def problem(shared, seed=0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
    n = int(offsets[-1])
    unary = rng.normal(size=(n, S))
    edges = rng.normal(size=(S, S) if shared else (n, S, S))
    return unary, edges, Ragged(rng.integers(S, size=n), offsets), rng.random(len(LENGTHS))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", sorted(CHAIN_SURROGATES))
def test_values_follow_the_definition(name, shared):
    unary, edges, true, _ = problem(shared)
    surrogate = CHAIN_SURROGATES[name](part_cost=1.7)
    result = surrogate.value_and_gradient(ChainScores(unary, edges, true.offsets), true)
    full = np.broadcast_to(edges, (len(unary), S, S))
    expected = [
        definition(name, 1.7, unary[i:j], full[i:j], true.values[i:j])
        for i, j in zip(true.offsets[:-1], true.offsets[1:], strict=True)
    ]
    np.testing.assert_allclose(result.values, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", sorted(CHAIN_SURROGATES))
def test_gradients_are_slopes(name, shared):
    unary, edges, true, weights = problem(shared, seed=1)
    start, end = np.array([0.3, -0.2, 0.1]), np.array([-0.5, 0.4, 0.2])
    surrogate = CHAIN_SURROGATES[name]()

    def total(unary, edges, start, end):
        scores = ChainScores(boundary_scores(unary, true.offsets, start, end), edges, true.offsets)
        return weights @ surrogate.value_and_gradient(scores, true, weights).values

    parts = [unary, edges, start, end]
    result = surrogate.value_and_gradient(
        ChainScores(boundary_scores(unary, true.offsets, start, end), edges, true.offsets),
        true,
        weights,
    )
    h = 1e-6
    for position, gradient in enumerate([result.unary, result.edges, result.start, result.end]):
        slopes = np.empty_like(gradient)
        for index in np.ndindex(*gradient.shape):
            moved = [part.copy() for part in parts]
            moved[position][index] += h
            up = total(*moved)
            moved[position][index] -= 2 * h
            slopes[index] = (up - total(*moved)) / (2 * h)
        np.testing.assert_allclose(gradient, slopes, atol=2e-8)


@pytest.mark.parametrize("name", ["log", "hinge", "softmax-margin"])
def test_forbidden_transitions_are_never_pushed(name):
    unary, edges, true, _ = problem(True, seed=2)
    seen = np.zeros((S, S), dtype=bool)
    for row in true:
        seen[row[:-1], row[1:]] = True
    assert not seen.all()
    edges = np.where(seen, edges, -np.inf)
    result = CHAIN_SURROGATES[name]().value_and_gradient(
        ChainScores(unary, edges, true.offsets), true
    )
    assert np.isfinite(result.values).all()
    assert (result.edges[~seen] == 0).all()


def test_margin_surrogates_bound_the_number_of_wrong_labels_and_each_other():
    unary, edges, true, _ = problem(True, seed=3)
    scores = ChainScores(unary, edges, true.offsets)
    hinge = ChainHinge().value_and_gradient(scores, true).values
    soft = ChainSoftmaxMargin().value_and_gradient(scores, true).values
    log = ChainLogLoss().value_and_gradient(scores, true).values
    filled = true.lengths > 0
    assert (soft[filled] > hinge[filled]).all()
    assert (soft[filled] > log[filled]).all()


def test_extreme_scores_stay_finite():
    unary, edges, true, _ = problem(True, seed=4)
    scores = ChainScores(1e4 * unary, 1e4 * edges, true.offsets)
    for name in CHAIN_SURROGATES:
        result = CHAIN_SURROGATES[name]().value_and_gradient(scores, true)
        assert np.isfinite(result.values).all()
        assert np.isfinite(result.unary).all()
        assert np.isfinite(result.edges).all()


def test_bad_input_is_named():
    unary, edges, true, _ = problem(True, seed=5)
    scores = ChainScores(unary, edges, true.offsets)
    with pytest.raises(ValueError, match="same lengths"):
        ChainLogLoss().value_and_gradient(scores, Ragged.pack([[0], [1]]))
    with pytest.raises(ValueError, match=r"states in 0\.\.2, got 3 in sequence 0"):
        ChainLogLoss().value_and_gradient(scores, true.with_values(np.full(8, 3)))
    with pytest.raises(ValueError, match="one finite number per sequence"):
        ChainLogLoss().value_and_gradient(scores, true, [1.0])
    forbidden = edges.copy()
    last = true[3]
    forbidden[last[0], last[1]] = -np.inf
    with pytest.raises(ValueError, match=r"true states of sequence \d are forbidden"):
        ChainLogLoss().value_and_gradient(ChainScores(unary, forbidden, true.offsets), true)
    with pytest.raises(ValueError, match="quadratic surrogate needs finite scores"):
        ChainQuadratic().value_and_gradient(ChainScores(unary, forbidden, true.offsets), true)
    with pytest.raises(ValueError, match="'exponential' does not work on chains: it sums"):
        chain_surrogate("exponential")
    with pytest.raises(ValueError, match="surrogate must be one of quadratic, log, hinge"):
        chain_surrogate("perceptron")
    with pytest.raises(TypeError, match="a name or a chain surrogate class, got 3"):
        chain_surrogate(3)
    with pytest.raises(ValueError, match="part_cost must be a finite number"):
        ChainHinge(part_cost=0.0)


def test_the_registry_names_chain_surrogates_like_the_listed_ones():
    for name, cls in CHAIN_SURROGATES.items():
        assert cls.name == name
        assert cls.smooth == SURROGATES[name].cls.smooth
    assert chain_surrogate("softmax_margin") == ChainSoftmaxMargin()
    assert chain_surrogate(ChainHinge) == ChainHinge()
    for entry in SURROGATES.values():
        assert entry.on_chains == (not entry.not_on_chains)


def expected_costs(p, states, n_states):
    """κ = 1: P(y_t ≠ a) of every part and state, from the probabilities of all sequences."""
    return np.stack(
        [1 - np.array([p @ (states[:, t] == a) for a in range(n_states)]) for t in range(3)]
    )


@pytest.mark.parametrize("shared", [True, False])
def test_expected_target_of_the_log_loss_is_one_minus_the_marginals(shared):
    unary, edges, _, _ = problem(shared, seed=6)
    unary, edges = unary[:3], edges if shared else edges[:3]
    scores = ChainScores(unary, edges, np.array([0, 3]))
    states, values = score_all(unary, np.broadcast_to(edges, (3, S, S)))
    p = np.exp(values - np.logaddexp.reduce(values))
    expected = expected_costs(p, states, S)
    np.testing.assert_allclose(ChainLogLoss().expected_target(scores), expected, atol=1e-12)
    np.testing.assert_allclose(ChainLogLoss(2.0).expected_target(scores), 2 * expected, atol=1e-12)
    decoded = ChainLogLoss().decode(scores, "bayes").values
    np.testing.assert_array_equal(decoded, expected.argmin(axis=1))
    best = ChainLogLoss().decode(scores).values
    np.testing.assert_array_equal(best, states[values.argmax()])


@pytest.mark.parametrize("shared", [True, False])
def test_expected_target_of_the_quadratic_one_is_exact_at_its_minimum(shared):
    """Minus the expected loss of a distribution, spread over unary and edge scores at random."""
    rng = np.random.default_rng(7)
    T = 4
    distribution = rng.dirichlet(np.ones(S), size=T)  # P(y_t = a)
    unary = -(1 - distribution)
    edges = np.zeros((S, S) if shared else (T, S, S))
    for a in range(S):  # a function of one end, moved from the unary scores into the edges
        moved = rng.normal()
        if shared:
            edges[a, :] += moved
            unary[:-1, a] -= moved
        else:
            edges[1, a, :] += moved
            unary[1, a] -= moved
            edges[0, :, a] += 2 * moved
            unary[1, a] -= 2 * moved
    scores = ChainScores(unary, edges, np.array([0, T]))
    np.testing.assert_allclose(
        ChainQuadratic().expected_target(scores), 1 - distribution, atol=1e-12
    )
    decoded = ChainQuadratic().decode(scores, "bayes").values
    np.testing.assert_array_equal(decoded, distribution.argmax(axis=1))
    np.testing.assert_array_equal(
        ChainQuadratic().decode(scores).values, distribution.argmax(axis=1)
    )


@pytest.mark.parametrize("cls", [ChainHinge, ChainSoftmaxMargin])
def test_margins_on_chains_tell_no_expected_loss(cls):
    unary, edges, true, _ = problem(True, seed=8)
    scores = ChainScores(unary, edges, true.offsets)
    assert not cls().has_link
    with pytest.raises(CapabilityError, match="'expected_target'"):
        cls().decode(scores, "bayes")
    with pytest.raises(ValueError, match="decoding must be 'argmax' or 'bayes'"):
        cls().decode(scores, "viterbi")
