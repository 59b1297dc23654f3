"""When the quadratic surrogate is kernel ridge regression on the targets, and when it is not."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from consistruct.learning.models.features.feature_maps import Kernel, KernelFeatures, ScoreMap
from consistruct.losses import Block, Hamming, Ordinal, Tree, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.surrogates import QuadraticSurrogate
from tests.learning.estimators import ClosedScores

BANDWIDTH = 0.7


def data(loss, n=40):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), loss.true_labels.sample(n, rng), rng.normal(size=(200, 2))


def ours(loss, regularizer, alpha):
    X, true, new = data(loss)
    score_map = ScoreMap(KernelFeatures(Kernel("rbf", BANDWIDTH), X), fit_intercept=False)
    solver = ClosedScores(alpha=alpha, regularizer=regularizer)
    found = solver.solve(QuadraticSurrogate(loss), score_map, X, true, rng=np.random.default_rng(0))
    return score_map.apply(found.weights, new)


def kernel_ridge(loss, alpha):
    """scikit-learn's kernel ridge on −u; its penalty is N times ours."""
    X, true, new = data(loss)
    model = KernelRidge(alpha=alpha * len(X), kernel="rbf", gamma=0.5 / BANDWIDTH**2)
    return model.fit(X, -dense_target(loss.target(true))).predict(new)


def decode(loss, theta):
    return loss.predictions.index(loss.score_space.decode(theta))


@pytest.mark.parametrize(
    "loss",
    [ZeroOne(4), Block((1, 5, 3)), Hamming(3), Ordinal(5, 2.0), Tree((-1, 0, 0, 1, 1, 2))],
    ids=repr,
)
def test_gram_penalty_is_kernel_ridge_for_every_loss(loss):
    np.testing.assert_allclose(ours(loss, "gram", 0.01), kernel_ridge(loss, 0.01), atol=1e-8)


@pytest.mark.parametrize("loss", [ZeroOne(4), Block((2, 2, 2)), Hamming(3)], ids=repr)
def test_weight_penalty_is_kernel_ridge_where_the_centered_eigenvalues_are_equal(loss):
    """ZeroOne: Ḡ = I/k, so α·k. Hamming: a unit contrast of two states is ±1/√2, so Ḡ = ½, 2α."""
    factor = {"ZeroOne(4)": 4.0, "Block(sizes=(2, 2, 2))": 3.0, "Hamming(3)": 2.0}[repr(loss)]
    np.testing.assert_array_equal(
        decode(loss, ours(loss, "weights", 0.02)), decode(loss, kernel_ridge(loss, 0.02 * factor))
    )


@pytest.mark.parametrize("loss", [Block((1, 5, 3))], ids=repr)
def test_weight_penalty_is_not_kernel_ridge_where_they_differ(loss):
    """Ḡ = diag(1, 5, 3)/9: no single penalty of kernel ridge gives the same predictions."""
    mine = decode(loss, ours(loss, "weights", 0.05))
    disagreements = [
        (mine != decode(loss, kernel_ridge(loss, alpha))).sum()
        for alpha in 0.05 * np.geomspace(0.1, 100, 61)
    ]
    assert min(disagreements) >= 5


def test_without_penalty_both_penalties_agree():
    loss = Block((1, 5, 3))
    np.testing.assert_array_equal(
        decode(loss, ours(loss, "weights", 0.0)), decode(loss, ours(loss, "gram", 0.0))
    )
