"""Surrogates: gradients by finite differences, consistency by minimizing, enumeration as oracle."""

import inspect

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

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
from consistruct.structures import Blocks, Full
from consistruct.surrogates import SURROGATES, QuadraticSurrogate, make_surrogate

LOSSES = [
    ZeroOne(4),
    Block((1, 3, 2)),
    Mixed((2, 2), 0.4),
    Hamming(3),
    Hamming(2, 3),
    Ordinal(5),
    Ordinal(5, 2.0),
    CostMatrix([[0, 2, 1], [3, 0, 1], [1, 1, 0]], rows="pred"),
    Tree((-1, 0, 0, 1, 1, 2)),
]


def smooth():
    return [name for name, entry in SURROGATES.items() if entry.cls.smooth]


def kinked():
    return [name for name, entry in SURROGATES.items() if not entry.cls.smooth]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("name", smooth())
def test_gradient_agrees_with_finite_differences(name, loss):
    surrogate = make_surrogate(name, loss)
    rng = np.random.default_rng(0)
    theta = 0.5 * rng.normal(size=(4, surrogate.score_space.width))
    true = loss.true_labels.sample(4, rng)
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
@pytest.mark.parametrize("name", kinked())
def test_subgradients_are_slopes_of_lines_below(name, loss):
    surrogate = make_surrogate(name, loss)
    rng = np.random.default_rng(0)
    true = np.repeat(loss.true_labels.sample(1, rng), 40, axis=0)
    grid = rng.integers(-4, 5, size=(40, surrogate.score_space.width))  # many ties
    theta = 0.25 * loss.max_value * grid
    values, slopes = surrogate.value_and_gradient(theta, true)
    lines = values[:, None] + slopes @ theta.T - np.einsum("nw,nw->n", slopes, theta)[:, None]
    assert (lines <= values[None] + 1e-8).all()


def listed(loss, true):
    """L(c, y) for all predictions c of each true label, by the direct formula, (n, k)."""
    every = loss.predictions.enumerate()
    return np.stack(
        [loss(np.repeat(every[[c]], len(true), axis=0), true) for c in range(len(every))], axis=1
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_margins_follow_their_definition(loss):
    rng = np.random.default_rng(11)
    true = loss.true_labels.sample(5, rng)
    L = listed(loss, true)
    f = rng.normal(size=L.shape)
    own = f[np.arange(5), loss.predictions.index(true)]
    hinge = make_surrogate("hinge", loss).value_and_gradient(f, true)[0]
    np.testing.assert_allclose(hinge, (L + f).max(axis=1) - own, atol=1e-12)
    soft = make_surrogate("softmax-margin", loss).value_and_gradient(f, true)[0]
    np.testing.assert_allclose(soft, np.log(np.exp(L + f).sum(axis=1)) - own, atol=1e-12)
    decided = loss(make_surrogate("hinge", loss).decode(f), true)
    assert (decided <= hinge + 1e-12).all()  # the hinge is above the loss of the decision
    assert (hinge <= soft).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_max_min_margin_is_the_value_of_the_dual_game(loss):
    """min over mixed predictions α of max_y (αᵀL)_y + f_y: the other side of the game."""
    L, k = loss.matrix(), loss.n_labels
    rng = np.random.default_rng(12)
    f = rng.normal(size=(3, k))
    true = loss.true_labels.sample(3, rng)
    values, slopes = make_surrogate("max-min-margin", loss).value_and_gradient(f, true)
    for row in range(3):
        found = linprog(
            np.append(np.zeros(k), 1.0),
            A_ub=np.column_stack([L.T, -np.ones(k)]),
            b_ub=-f[row],
            A_eq=np.append(np.ones(k), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0, None)] * k + [(None, None)],
        )
        own = loss.predictions.index(true[[row]])[0]
        assert values[row] == pytest.approx(found.fun - f[row, own], abs=1e-8)
        distribution = slopes[row].copy()
        distribution[own] += 1
        assert distribution.sum() == pytest.approx(1)
        assert distribution.min() > -1e-9


def test_sparsemax_is_the_largest_value_over_a_grid_of_distributions():
    f = np.random.default_rng(13).normal(size=(4, 3))
    steps = np.arange(201)
    one, other = np.meshgrid(steps, steps)
    grid = np.stack([one, other, 200 - one - other], axis=-1).reshape(-1, 3)
    grid = grid[grid[:, 2] >= 0] / 200
    best = (f @ grid.T - 0.5 * (grid**2).sum(axis=1)).max(axis=1)
    surrogate = module.SparsemaxSurrogate(ZeroOne(3))
    values, _ = surrogate.value_and_gradient(f, [0, 1, 2, 0])
    np.testing.assert_allclose(values, 0.5 + best - f[np.arange(4), [0, 1, 2, 0]], atol=1e-4)
    p = surrogate.probabilities(f)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    nearest = grid[((f[:, None] - grid) ** 2).sum(axis=-1).argmin(axis=1)]
    np.testing.assert_allclose(p, nearest, atol=0.01)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_quadratic_is_the_mean_square_over_labels(loss):
    surrogate = QuadraticSurrogate(loss)
    rng = np.random.default_rng(1)
    true = loss.true_labels.sample(3, rng)
    every = loss.predictions.enumerate()
    F, weights = loss.score_space.matrix(), loss.predictions.weights()
    L = np.stack([loss(np.repeat(every[[c]], 3, axis=0), true) for c in range(len(every))], axis=1)
    theta = rng.normal(size=(3, surrogate.score_space.width))
    direct = 0.5 * (theta @ F.T + L - loss.offset(true)[:, None]) ** 2 @ weights
    np.testing.assert_allclose(surrogate.value_and_gradient(theta, true)[0], direct, atol=1e-12)


@pytest.mark.parametrize(
    "loss",
    [ZeroOne(3), Ordinal(4), CostMatrix([[0, 5, 1], [2, 0, 2], [1, 9, 0]], rows="pred")],
    ids=repr,
)
@pytest.mark.parametrize(
    ("name", "decoding"),
    [
        ("quadratic", "argmax"),
        ("logistic", "argmax"),
        ("exponential", "argmax"),
        ("square", "bayes"),
        ("log", "bayes"),
        ("sparsemax", "bayes"),
        ("linear-regret", "argmax"),
        ("linear-regret", "bayes"),
    ],
)
def test_minimizer_of_the_surrogate_decodes_to_the_bayes_decision(name, decoding, loss):
    surrogate = make_surrogate(name, loss)
    rng = np.random.default_rng(2)
    every = loss.true_labels.enumerate()
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
    true = np.tile(loss.true_labels.sample(1, rng), (40_000, 1))
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
    assert concrete == {entry.cls for entry in SURROGATES.values()}
    assert all(entry.cls.name == name for name, entry in SURROGATES.items())


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="surrogate must be one of quadratic, logistic"):
        make_surrogate("perceptron", ZeroOne(3))
    with pytest.raises(TypeError, match="or a surrogate class, got float"):
        make_surrogate(1.5, ZeroOne(3))
    with pytest.raises(ValueError, match="scores must cover the 3 predictions"):
        QuadraticSurrogate(ZeroOne(3), Full(4))
    with pytest.raises(CapabilityError, match="true_label_as_prediction"):
        make_surrogate("log", CostVectors(3)).value_and_gradient(
            np.zeros((1, 3)), [[0.0, 1.0, 1.0]]
        )
    with pytest.raises(ConsistructError, match="has no estimate from one sampled label"):
        make_surrogate("log", ZeroOne(2)).sampled_value_and_gradient(
            np.zeros((1, 2)), [0], np.random.default_rng(0)
        )
    with pytest.raises(ValueError, match="decoding must be 'argmax' or 'bayes'"):
        QuadraticSurrogate(ZeroOne(2)).decode(np.zeros((1, 2)), "max")


@pytest.mark.parametrize("name", ["hinge", "softmax-margin", "max_min_margin"])
def test_scores_that_only_rank_name_what_is_missing(name):
    surrogate = make_surrogate(name, ZeroOne(3))
    theta = np.array([[0.0, 2.0, 1.0]])
    assert not surrogate.has_link
    assert surrogate.decode(theta).tolist() == [1]
    with pytest.raises(CapabilityError, match=r"'expected_target'.*use decoding='argmax'"):
        surrogate.decode(theta, "bayes")
    with pytest.raises(CapabilityError, match="true_label_as_prediction"):
        make_surrogate(name, CostVectors(3)).value_and_gradient(theta, [[0.0, 1.0, 1.0]])


def test_default_scores_are_those_of_the_analysis():
    """Squared ordinal loss has rank 3: what needs one score per label gets it."""
    loss = Ordinal(5, 2.0)
    for name, entry in SURROGATES.items():
        if name in ("spo-plus", "perturbed-fenchel-young"):  # of decisions only
            continue
        assert make_surrogate(name, loss).score_space == entry.cls.default_scores(loss)
        assert make_surrogate(name, loss).score_space.rank == (3 if name == "quadratic" else 5)
    assert make_surrogate("log", Hamming(3)).score_space == Hamming(3).score_space
    assert make_surrogate("logistic", Hamming(40)).score_space == Hamming(40).score_space


def test_a_class_of_ones_own_is_a_surrogate():
    class Cubic(module.BaseSurrogate):
        def value_and_gradient(self, theta, true):
            return (np.abs(theta) ** 3).sum(axis=1), 3 * theta * np.abs(theta)

    surrogate = make_surrogate(Cubic, ZeroOne(3))
    assert surrogate.name == "Cubic"
    assert surrogate.smooth
    assert not surrogate.has_link
