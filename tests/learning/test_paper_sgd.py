"""The paper's algorithm against a literal transcription, and the kernel trick against it."""

import numpy as np
import pytest

from consistruct.decisions.statistics import ClassProbabilities
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.features.feature_maps import (
    Kernel,
    KernelFeatures,
    LinearFeatures,
    ScoreMap,
)
from consistruct.learning.models.solvers.paper_sgd import PaperSGD
from consistruct.learning.statistics import TargetValues
from consistruct.losses import Hamming, Ordinal, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.surrogates import QuadraticSurrogate, make_surrogate


def literal(X, loss, true, order, step, radius):
    """Equation (rkhsSgdStep): W is (width, d), the average is over the points of the gradients."""
    F, mu = loss.score_space.matrix(), loss.predictions.weights()
    U = dense_target(loss.target(true))
    W = np.zeros((F.shape[1], X.shape[1]))
    visited = []
    for i in order:
        visited.append(W)
        scores = F @ W @ X[i]
        slope = mu * (scores + F @ U[i])  # ∇Φ over the labels
        W = W - step * np.outer(F.T @ slope, X[i])
        W = W * min(1.0, radius / max(np.linalg.norm(W), 1e-300))
    return np.mean(visited, axis=0)


@pytest.mark.parametrize("loss", [ZeroOne(3), Hamming(2), Ordinal(4)], ids=repr)
@pytest.mark.parametrize("radius", [None, 0.3])
@pytest.mark.parametrize("kernel", [False, True])
def test_iterates_are_the_papers(loss, radius, kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    true = loss.true_labels.sample(80, rng)
    # the polynomial kernel of degree one is the inner product
    features = KernelFeatures(Kernel("poly", 1.0, 1, 0.0), X) if kernel else LinearFeatures(3)
    score_map = ScoreMap(features, fit_intercept=False)
    found = PaperSGD(radius=radius).solve(
        QuadraticSurrogate(loss), score_map, X, true, rng=np.random.default_rng(1)
    )
    order = np.random.default_rng(1).permutation(80)
    expected = literal(X, loss, true, order, float(found.path["step"]), float(found.path["radius"]))
    np.testing.assert_allclose(score_map.apply(found.weights, X), X @ expected.T, atol=1e-10)
    assert found.n_iter == 80


def test_kernel_trick_with_intercept_and_repeated_examples():
    rng = np.random.default_rng(2)
    X, true = rng.normal(size=(20, 3)), rng.integers(3, size=20)
    theta = [
        (score_map := ScoreMap(features)).apply(
            PaperSGD(n_steps=100, radius=0.5)
            .solve(QuadraticSurrogate(ZeroOne(3)), score_map, X, true, rng=np.random.default_rng(3))
            .weights,
            X,
        )
        for features in (KernelFeatures(Kernel("poly", 1.0, 1, 0.0), X), LinearFeatures(3))
    ]
    np.testing.assert_allclose(theta[0], theta[1], atol=1e-10)


def test_constants_are_the_papers():
    """0-1 over k classes: σ_min(F) = 1, so D = √k·√k and M = D·R²/k + R/√k."""
    X = np.array([[3.0, 4.0], [0.0, 1.0]])
    found = PaperSGD(n_steps=50).solve(
        QuadraticSurrogate(ZeroOne(4)),
        ScoreMap(LinearFeatures(2), fit_intercept=False),
        X,
        [0, 1],
        rng=np.random.default_rng(0),
    )
    D, R = 4.0, 5.0
    M = D * R**2 / 4 + R / 2
    assert float(found.path["radius"]) == pytest.approx(D)
    assert float(found.path["gradient_bound"]) == pytest.approx(M)
    assert float(found.path["step"]) == pytest.approx(2 * D / (M * np.sqrt(50)))


def test_other_surrogates_need_a_bound():
    with pytest.raises(ValueError, match="pass gradient_bound for LogSurrogate"):
        PaperSGD().solve(
            make_surrogate("log", ZeroOne(2)),
            ScoreMap(LinearFeatures(1)),
            np.zeros((2, 1)),
            [0, 1],
            rng=np.random.default_rng(0),
        )


def test_targets_are_minus_the_scores_of_the_quadratic_surrogate():
    rng = np.random.default_rng(2)
    X, true = rng.normal(size=(20, 3)), rng.integers(3, size=20)
    score_map = ScoreMap(LinearFeatures(3))
    found = [
        PaperSGD(radius=0.5).solve(objective, score_map, X, true, rng=np.random.default_rng(3))
        for objective in (TargetValues(ZeroOne(3)), QuadraticSurrogate(ZeroOne(3)))
    ]
    np.testing.assert_array_equal(found[0].weights, -found[1].weights)


def test_a_penalty_is_refused_not_ignored():
    given = (ScoreMap(LinearFeatures(1)), np.zeros((2, 1)), [0, 1])
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="has no penalty but a ball of radius D"):
        PaperSGD().solve(QuadraticSurrogate(ZeroOne(2)), *given, alpha=5.0, rng=rng)
    with pytest.raises(CapabilityError, match="pass a surrogate, or TargetValues"):
        PaperSGD().solve(ClassProbabilities(ZeroOne(2)), *given, rng=rng)
