"""Surrogates: gradients by finite differences, consistency by minimising, enumeration as oracle."""

import inspect

import numpy as np
import pytest
from scipy.optimize import minimize

import consistruct.surrogates as module
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.losses import (
    Abstain,
    Block,
    CostMatrix,
    CostVectors,
    Hamming,
    Mixed,
    Ordinal,
    Tree,
    ZeroOne,
)
from consistruct.losses.base import dense_target
from consistruct.scores import Blocks, Full
from consistruct.surrogates import SURROGATES, QuadraticSurrogate, make_surrogate

LOSSES = [
    ZeroOne(4),
    Block((1, 3, 2)),
    Mixed((2, 2), 0.4),
    Hamming(3),
    Hamming(2, 3),
    Ordinal(5),
    Ordinal(5, 2.0),
    CostMatrix([[0, 2, 1], [3, 0, 1], [1, 1, 0]]),
    Tree((-1, 0, 0, 1, 1, 2)),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("name", SURROGATES)
def test_gradient_agrees_with_finite_differences(name, loss):
    surrogate = make_surrogate(name, loss)
    rng = np.random.default_rng(0)
    theta = 0.5 * rng.normal(size=(4, surrogate.score_space.width))
    true = loss.truths.sample(4, rng)
    _, gradient = surrogate.value_and_gradient(theta, true)
    numeric = np.empty_like(gradient)
    for column in range(theta.shape[1]):
        step = np.zeros_like(theta)
        step[:, column] = 1e-6
        above = surrogate.value_and_gradient(theta + step, true)[0]
        below = surrogate.value_and_gradient(theta - step, true)[0]
        numeric[:, column] = (above - below) / 2e-6
    np.testing.assert_allclose(gradient, numeric, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_quadratic_is_the_mean_square_over_labels(loss):
    surrogate = QuadraticSurrogate(loss)
    rng = np.random.default_rng(1)
    true = loss.truths.sample(3, rng)
    every = loss.predictions.enumerate()
    F, weights = loss.score_space.matrix(), loss.predictions.weights()
    L = np.stack([loss(np.repeat(every[[c]], 3, axis=0), true) for c in range(len(every))], axis=1)
    theta = rng.normal(size=(3, surrogate.score_space.width))
    direct = 0.5 * (theta @ F.T + L - loss.offset(true)[:, None]) ** 2 @ weights
    np.testing.assert_allclose(surrogate.value_and_gradient(theta, true)[0], direct, atol=1e-12)


@pytest.mark.parametrize(
    "loss", [ZeroOne(3), Ordinal(4), CostMatrix([[0, 5, 1], [2, 0, 2], [1, 9, 0]])], ids=repr
)
@pytest.mark.parametrize(
    ("name", "decoding"),
    [("quadratic", "argmax"), ("logistic", "argmax"), ("exponential", "argmax"), ("square", "bayes"), ("log", "bayes")],
)  # fmt: skip
def test_minimiser_of_the_surrogate_decodes_to_the_bayes_decision(name, decoding, loss):
    surrogate = make_surrogate(name, loss)
    rng = np.random.default_rng(2)
    every = loss.truths.enumerate()
    L = loss.matrix()
    for _ in range(5):
        q = rng.dirichlet(np.ones(len(every)))

        def risk(theta, q=q):
            tiled = np.tile(theta, (len(q), 1))
            values, slopes = surrogate.value_and_gradient(tiled, every)
            return q @ values, q @ slopes

        found = minimize(
            risk,
            np.zeros(surrogate.score_space.width),
            jac=True,
            method="BFGS",
            options={"gtol": 1e-9},
        )
        decision = loss.predictions.index(surrogate.decode(found.x[None], decoding))[0]
        assert (L @ q)[decision] <= (L @ q).min() + 1e-6
        expected = surrogate.expected_loss(found.x[None], loss.predictions.unindex([decision]))
        np.testing.assert_allclose(expected, (L @ q)[decision], atol=1e-5)


@pytest.mark.parametrize("name", ["logistic", "exponential", "square"])
def test_sampled_gradient_is_unbiased(name):
    loss = Hamming(3)
    surrogate = make_surrogate(name, loss)
    rng = np.random.default_rng(3)
    theta = np.tile(0.3 * rng.normal(size=(1, surrogate.score_space.width)), (40_000, 1))
    true = np.tile(loss.truths.sample(1, rng), (40_000, 1))
    value, gradient = surrogate.sampled_value_and_gradient(theta, true, rng)
    exact_value, exact = surrogate.value_and_gradient(theta[:1], true[:1])
    error = gradient.std(axis=0) / np.sqrt(len(theta))
    assert (np.abs(gradient.mean(axis=0) - exact[0]) <= 5 * error).all()
    assert abs(value.mean() - exact_value[0]) <= 5 * value.std() / np.sqrt(len(theta))


def test_target_in_a_larger_and_in_a_smaller_space():
    loss = Mixed((2, 2), 0.4)
    larger = QuadraticSurrogate(Block((2, 2)), Full(4))
    true = np.array([0, 3])
    np.testing.assert_allclose(
        dense_target(larger.target(true)) @ Full(4).matrix().T + 1.0,
        Block((2, 2)).matrix()[:, true].T,
    )
    smaller = QuadraticSurrogate(loss, Blocks((2, 2)))
    F = Blocks((2, 2)).matrix()
    # uniform μ: ordinary least squares of L without its offset 1
    projected = np.linalg.pinv(F) @ (loss.matrix()[:, true] - 1.0)
    np.testing.assert_allclose(smaller.target(true), projected.T, atol=1e-12)


def test_log_bayes_decision_is_the_least_expected_loss():
    loss = Abstain(3, 0.3)
    surrogate = make_surrogate("log", loss)
    theta = np.random.default_rng(4).normal(size=(50, surrogate.score_space.width))
    scores = theta @ surrogate.score_space.matrix().T
    p = np.exp(scores[:, :3])
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(
        surrogate.decode(theta, "bayes"), (p @ loss.matrix().T).argmin(axis=1)
    )


def test_every_concrete_surrogate_is_registered():
    concrete = {
        cls
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, module.BaseSurrogate) and not inspect.isabstract(cls)
    }
    assert concrete == set(SURROGATES.values())
    assert all(cls.name == name for name, cls in SURROGATES.items())


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="surrogate must be one of exponential, log"):
        make_surrogate("hinge", ZeroOne(3))
    with pytest.raises(ValueError, match="scores must cover the 3 predictions"):
        QuadraticSurrogate(ZeroOne(3), Full(4))
    with pytest.raises(CapabilityError, match="truth_as_prediction"):
        make_surrogate("log", CostVectors(3)).value_and_gradient(
            np.zeros((1, 3)), [[0.0, 1.0, 1.0]]
        )
    with pytest.raises(ConsistructError, match="has no estimate from one sampled label"):
        make_surrogate("log", ZeroOne(2)).sampled_value_and_gradient(
            np.zeros((1, 2)), [0], np.random.default_rng(0)
        )
    with pytest.raises(ValueError, match="decoding must be 'argmax' or 'bayes'"):
        QuadraticSurrogate(ZeroOne(2)).decode(np.zeros((1, 2)), "max")
