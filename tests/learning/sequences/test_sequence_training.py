"""Steps, solvers and averages of chain training, against gradients and optima found otherwise."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from consistruct.learning.encoding.tokens import PackedTokens
from consistruct.learning.models.chain.chain_weights import ChainWeights
from consistruct.learning.models.chain.risk import ChainRisk, minimize
from consistruct.learning.models.chain.sgd import (
    AVERAGING_POWER,
    ChainSGD,
    Steps,
    TrainingState,
)
from consistruct.learning.models.chain.token_maps import TokenMap
from consistruct.learning.models.chain.training_set import TrainingSet
from consistruct.learning.models.solvers.lbfgs import LBFGS
from consistruct.structures import Ragged
from consistruct.surrogates import SURROGATES
from consistruct.surrogates.chains import ChainLogLoss, ChainQuadratic
from consistruct.surrogates.registry import chain_surrogate

S, D = 3, 5


def make_data(sparse: bool = False, n: int = 12, seed: int = 0, window: int = 0) -> TrainingSet:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, size=n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    features = rng.normal(size=(offsets[-1], D)) * (rng.random((offsets[-1], D)) < 0.6)
    states = rng.integers(S, size=offsets[-1])
    features[np.arange(len(states)), states] += 1.0
    matrix = sp.csr_array(features.astype(np.float32)) if sparse else features
    weights = rng.random(n) + 0.5
    return TrainingSet(
        PackedTokens(matrix, offsets), states, weights / weights.mean(), TokenMap(D, window)
    )


def new_state(per_edge: bool = False) -> TrainingState:
    return TrainingState.zeros(D, S, per_edge=per_edge)


def random_model(d: int, seed: int = 1, per_edge: bool = False) -> ChainWeights:
    rng = np.random.default_rng(seed)
    return ChainWeights(
        rng.normal(size=(d, S)).astype(np.float32),
        rng.normal(size=S),
        rng.normal(size=(S, S)),
        rng.normal(size=S),
        rng.normal(size=S),
        rng.normal(size=(d if per_edge else 0, S * S)).astype(np.float32),
    )


def full_gradient(
    surrogate: Any, data: TrainingSet, model: ChainWeights
) -> tuple[float, list[np.ndarray]]:
    """Weighted value and gradient over all data, put together from the packed surrogate."""
    tokens = data.tokens
    raw = tokens.features.toarray() if tokens.is_sparse else tokens.features
    phi = data.token_map.transform(raw, tokens.offsets).astype(np.float64)
    result = surrogate.value_and_gradient(
        model.scores(phi, tokens.offsets), Ragged(data.states, tokens.offsets), data.weights
    )
    bias = result.unary.sum(axis=0)
    edges, edge_weights = result.edges, np.zeros((0, S * S))
    if model.per_edge:  # the long way: token by token, but for the last of each sequence
        edges, edge_weights = np.zeros((S, S)), np.zeros((phi.shape[1], S * S))
        for row in range(len(tokens)):
            for t in range(tokens.offsets[row], tokens.offsets[row + 1] - 1):
                edges += result.edges[t]
                edge_weights += np.outer(phi[t + 1], result.edges[t])
    gradient = [phi.T @ result.unary, bias, edges, result.start, result.end, edge_weights]
    return float(data.weights @ result.values), gradient


# sparse windows are made before training, see test_tokens
@pytest.mark.parametrize("per_edge", [False, True])
@pytest.mark.parametrize(("sparse", "window"), [(False, 0), (False, 1), (True, 0)])
@pytest.mark.parametrize("name", [name for name, entry in SURROGATES.items() if entry.on_chains])
def test_one_step_on_everything_is_the_gradient(
    name: str, sparse: bool, window: int, per_edge: bool
) -> None:
    data = make_data(sparse, window=window)
    surrogate = chain_surrogate(name)
    model = random_model(data.n_features, per_edge=per_edge)
    problem = ChainSGD(surrogate, data, new_state(), Steps(batch_size=len(data.tokens)))
    moved = model.copy()
    step = 1e-3
    value = problem._visit(per_edge)(moved, np.arange(len(data.tokens)), step, 2 * step)
    expected_value, gradient = full_gradient(surrogate, data, model)
    assert value == pytest.approx(expected_value, rel=1e-5)
    for before, after, slope, size in zip(
        model.arrays(), moved.arrays(), gradient, [1, 2, 2, 2, 2, 0.5], strict=True
    ):
        np.testing.assert_allclose(after - before, -size * step * slope, atol=2e-6)


@pytest.mark.parametrize("per_edge", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_batches_visit_every_sequence_once(sparse: bool, per_edge: bool) -> None:
    # without steps the value of a pass is the value over all data, whatever the batches
    data = make_data(sparse)
    model = random_model(D, per_edge=per_edge)
    expected, _ = full_gradient(ChainLogLoss(), data, model)
    for batch in (1, 5, 12, 50):
        problem = ChainSGD(ChainLogLoss(), data, new_state(), Steps(batch_size=batch))
        order = np.random.default_rng(0).permutation(len(data.tokens))
        value = problem._visit(per_edge)(model, order, 0.0, 0.0)
        assert value == pytest.approx(expected, rel=1e-5)


def test_boundaries_can_be_omitted() -> None:
    for sparse in (False, True):
        data = make_data(sparse)
        problem = ChainSGD(ChainLogLoss(), data, new_state(), Steps(boundaries=False, batch_size=2))
        problem.epoch(np.random.default_rng(0))
        assert not problem.state.model.start.any()
        assert not problem.state.model.end.any()
        assert problem.state.model.edges.any()


def test_sparse_and_dense_training_agree() -> None:
    results = []
    for sparse in (False, True):
        data = make_data(sparse)
        rng = np.random.default_rng(3)
        problem = ChainSGD(ChainLogLoss(), data, new_state(), Steps(batch_size=3))
        for _ in range(4):
            problem.epoch(rng)
        results.append(problem.state)
    for dense, sparse_ in zip(
        results[0].average.arrays(), results[1].average.arrays(), strict=True
    ):
        np.testing.assert_allclose(dense, sparse_, atol=1e-4)
    np.testing.assert_allclose(results[0].history, results[1].history, rtol=1e-4)


def test_features_of_value_one_take_the_short_path_to_the_same_place() -> None:
    data = make_data(True)
    data.tokens.features.data[:] = 1.0
    first = ChainSGD(ChainLogLoss(), data, new_state(), Steps(batch_size=2))
    first.epoch(np.random.default_rng(0))
    dense = TrainingSet(
        PackedTokens(data.tokens.features.toarray(), data.tokens.offsets),
        data.states,
        data.weights,
        data.token_map,
    )
    second = ChainSGD(ChainLogLoss(), dense, new_state(), Steps(batch_size=2))
    second.epoch(np.random.default_rng(0))
    np.testing.assert_allclose(first.state.model.weights, second.state.model.weights, atol=1e-5)


def test_the_average_has_weights_that_grow_with_a_power() -> None:
    snapshots = [random_model(D, seed) for seed in range(6)]
    average = ChainWeights.zeros(D, S)
    for k, model in enumerate(snapshots, start=1):
        average.move_toward(model, (AVERAGING_POWER + 1) / (k + AVERAGING_POWER))
    # Shamir and Zhang: the weight of snapshot k is proportional to k (k+1) … (k+power−1)
    weight = np.array([np.prod(np.arange(k, k + AVERAGING_POWER)) for k in range(1, 7)], float)
    weight /= weight.sum()
    expected = sum(w * model.weights for w, model in zip(weight, snapshots, strict=True))
    np.testing.assert_allclose(average.weights, expected, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("per_edge", [False, True])
def test_lbfgs_finds_a_point_without_slope(per_edge: bool, sparse: bool) -> None:
    """(1/N) Σ w Φ + (α/2)‖(W, V)‖²: the scale of alpha that tables have too."""
    data = make_data(sparse)
    mask = ChainWeights.zeros(0, S)
    risk = ChainRisk(ChainLogLoss(), data, mask, alpha=0.05, per_edge=per_edge)
    model, n_iter, value = minimize(risk, LBFGS(max_iter=500, tol=1e-9))
    total, gradient = full_gradient(ChainLogLoss(), data, model)
    n = data.weights.sum()
    penalty = 0.025 * ((model.weights**2).sum() + (model.edge_weights**2).sum())
    assert value == pytest.approx(total / n + penalty, rel=1e-6)
    np.testing.assert_allclose(gradient[0] / n + 0.05 * model.weights, 0.0, atol=1e-6)
    np.testing.assert_allclose(gradient[5] / n + 0.05 * model.edge_weights, 0.0, atol=1e-6)
    assert n_iter > 5


@pytest.mark.parametrize("name", ["log", "softmax_margin", "quadratic"])
@pytest.mark.parametrize("per_edge", [False, True])
def test_the_slope_of_the_risk_is_its_difference_quotient(name: str, per_edge: bool) -> None:
    data, rng = make_data(), np.random.default_rng(0)
    surrogate = chain_surrogate(name)
    risk = ChainRisk(
        surrogate, data, ChainWeights.zeros(0, S), alpha=0.3, boundaries=False, per_edge=per_edge
    )
    point, direction = rng.normal(size=(2, int(risk.ends[-1])))
    slope = risk(point)[1] @ direction
    h = 1e-5
    quotient = (risk(point + h * direction)[0] - risk(point - h * direction)[0]) / (2 * h)
    # boundaries are not learned, but random points have them: take their part out
    still = np.zeros_like(direction)
    still[risk.ends[2] : risk.ends[4]] = direction[risk.ends[2] : risk.ends[4]]
    quotient -= (risk(point + h * still)[0] - risk(point - h * still)[0]) / (2 * h)
    assert slope == pytest.approx(quotient, rel=1e-5, abs=1e-7)


def test_lbfgs_refuses_the_hinge() -> None:
    risk = ChainRisk(chain_surrogate("hinge"), make_data(), ChainWeights.zeros(0, S), alpha=1.0)
    with pytest.raises(ValueError, match="lbfgs' needs a differentiable surrogate"):
        minimize(risk, LBFGS())


@pytest.mark.parametrize("alpha", [0.0, 0.02])
@pytest.mark.parametrize("per_edge", [False, True])
def test_stochastic_training_comes_close_to_lbfgs(per_edge: bool, alpha: float) -> None:
    data = make_data(n=200)
    risk = ChainRisk(ChainLogLoss(), data, ChainWeights.zeros(0, S), alpha=alpha, per_edge=per_edge)
    _, _, best = minimize(risk, LBFGS(max_iter=300, decrease=1e-8))
    rng = np.random.default_rng(0)
    state = new_state(per_edge)
    state.alpha = alpha
    problem = ChainSGD(ChainLogLoss(), data, state, Steps(0.2, 0.02, batch_size=1))
    for _ in range(30):
        problem.epoch(rng)

    def value(model: ChainWeights) -> float:
        flat = np.concatenate([array.ravel() for array in model.arrays()]).astype(np.float64)
        return risk(flat)[0]

    assert best <= value(problem.state.average) + 1e-6
    zero = value(new_state(per_edge).model)
    assert value(problem.state.average) - best < 0.02 * (zero - best)


def test_quadratic_training_is_least_squares_on_one_hot_tags() -> None:
    # Sequences of one token have no transitions: (s/2)·Var is ½‖centered θ − centered one-hot‖².
    rng = np.random.default_rng(0)
    n = 300
    X = rng.normal(size=(n, D))
    states = (X[:, :S] + 0.5 * rng.normal(size=(n, S))).argmax(axis=1)
    data = TrainingSet(PackedTokens(X, np.arange(n + 1)), states, np.ones(n), TokenMap(D))
    risk = ChainRisk(ChainQuadratic(), data, ChainWeights.zeros(0, S), alpha=0.0, boundaries=False)
    model, *_ = minimize(risk, LBFGS(max_iter=500, tol=1e-11))
    design = np.column_stack([X, np.ones(n)])
    expected = np.linalg.lstsq(design, np.eye(S)[states], rcond=None)[0]
    centered = expected - expected.mean(axis=1, keepdims=True)
    ours = np.vstack([model.weights, model.bias])
    np.testing.assert_allclose(ours - ours.mean(axis=1, keepdims=True), centered, atol=1e-5)


def test_an_explosion_halves_the_step_and_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    data = make_data(n=60)
    problem = ChainSGD(ChainQuadratic(), data, new_state(), Steps(300.0))
    with caplog.at_level(logging.WARNING):
        problem.epoch(np.random.default_rng(0))
    state = problem.state
    assert state.step_factor < 1.0
    assert "exploded in epoch 1" in caplog.text
    assert all(np.isfinite(array).all() for array in state.average.arrays())


def test_a_penalty_shrinks_the_weights() -> None:
    data = make_data(n=60)
    norms = []
    for alpha in (0.0, 20.0 / 60):
        state = new_state()
        state.alpha = alpha
        problem = ChainSGD(ChainLogLoss(), data, state, Steps())
        rng = np.random.default_rng(0)
        for _ in range(5):
            problem.epoch(rng)
        norms.append(np.linalg.norm(problem.state.average.weights))
    assert norms[1] < 0.8 * norms[0]
