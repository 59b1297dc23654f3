"""Contrast of scores: chosen by rows really left out, part of the weights, undone again."""

import numpy as np
import pytest

from consistruct import StructuredPredictor, TaskLossClassifier, losses
from consistruct.learning import ClosedForm, closed_form
from consistruct.learning.contrast import CONTRASTS, with_contrast, without_contrast
from consistruct.learning.feature_maps import KernelFeatures, LinearFeatures
from consistruct.learning.kernels import Kernel
from consistruct.learning.score_map import ScoreMap
from consistruct.losses.base import dense_target
from consistruct.surrogates import QuadraticSurrogate

ALPHA = [0.05, 0.2]  # strong: scores shrink


def rare_labels(n=60, T=4, seed=0):
    """Rare labels that two inputs tell apart, so that shrunk scores fall below one half."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    Y = (X @ rng.normal(size=(5, T)) + 0.3 * rng.normal(size=(n, T)) > 1.6).astype(np.int64)
    return X, Y


def solved(X, Y, loss, features, **options):
    score_map = ScoreMap(features)
    solver = ClosedForm(**{"alpha": ALPHA, **options})
    result = solver.solve(QuadraticSurrogate(loss), score_map, X, Y, rng=np.random.default_rng(0))
    return result, score_map


def refitted(K, y, rows, alpha):
    """Scores by the fit without each of `rows`, from the normal equations of the rest."""
    n = len(K)
    theta = np.empty((len(rows), y.shape[1]))
    for position, row in enumerate(rows):
        kept = np.arange(n) != row
        inner, mean = K[np.ix_(kept, kept)], y[kept].mean(axis=0)
        centring = np.eye(n - 1) - 1.0 / (n - 1)
        # λ stays that of all rows: the leave-one-out formula leaves the penalty alone
        matrix = centring @ inner @ centring + n * alpha * np.eye(n - 1)
        dual = np.linalg.solve(matrix, centring @ (y[kept] - mean))
        column = K[kept, row] - inner.mean(axis=0)
        theta[position] = mean + (centring @ column) @ dual
    return theta


@pytest.mark.parametrize("route", ["eigenvalues", "cholesky", "primal", "factors"])
@pytest.mark.parametrize("loss", [losses.Hamming(4), losses.FBeta(4, empty=1.0)], ids=repr)
def test_the_contrast_is_the_best_for_rows_that_are_really_left_out(monkeypatch, route, loss):
    X, Y = rare_labels()
    features = LinearFeatures(5)
    options, K = {}, X @ X.T
    if route in ("eigenvalues", "cholesky"):
        kernel = Kernel("rbf", 2.0)
        features, K = KernelFeatures(kernel, X), kernel(X, X)
        monkeypatch.setattr(closed_form, "EIGEN_ROWS", 10 if route == "cholesky" else 3072)
    elif route == "primal":
        options["alpha"] = [1.0, 2.0]
    elif route == "factors":
        monkeypatch.setattr(ClosedForm, "_few_penalties", lambda *_: True)
        options["alpha"] = "auto"
    result, _ = solved(X, Y, loss, features, **options)
    y = -dense_target(loss.target(Y))
    theta = refitted(K, y, np.arange(len(X)), result.alpha)
    decoder = QuadraticSurrogate(loss).score_space.decoder()
    mean = y.mean(axis=0)
    expected = [loss(decoder(mean + c * (theta - mean)), Y).mean() for c in CONTRASTS]
    np.testing.assert_allclose(result.path["contrast_loss"], expected, atol=1e-9)
    assert result.contrast == CONTRASTS[int(np.argmin(expected))]
    assert route == "factors" or result.contrast > 1.0  # else this shows little


def test_the_weights_hold_the_contrast():
    X, Y = rare_labels()
    loss = losses.Hamming(4)
    found, score_map = solved(X, Y, loss, LinearFeatures(5), alpha=0.1, contrast=2.5)
    plain, _ = solved(X, Y, loss, LinearFeatures(5), alpha=0.1)
    assert (plain.contrast, found.contrast) == (1.0, 2.5)
    mean = -dense_target(loss.target(Y)).mean(axis=0)
    theta = score_map.apply(plain.weights, X)
    np.testing.assert_allclose(
        score_map.apply(found.weights, X), mean + 2.5 * (theta - mean), atol=1e-12
    )
    back = without_contrast(with_contrast(theta, mean, 2.5), mean, 2.5)
    np.testing.assert_allclose(back, theta, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"alpha": 0.1}, {"selection": "gcv"}, {"selection": "surrogate"}]
)
def test_without_a_task_loss_to_compare_scores_stay_as_they_are(options):
    X, Y = rare_labels()
    result, _ = solved(X, Y, losses.Hamming(4), LinearFeatures(5), **options)
    assert result.contrast == 1.0


@pytest.mark.parametrize("contrast", [0.0, -1.0, "high", np.nan])
def test_wrong_contrasts(contrast):
    with pytest.raises((ValueError, TypeError), match="contrast"):
        ClosedForm(contrast=contrast)


@pytest.mark.parametrize("estimator", [TaskLossClassifier, StructuredPredictor])
def test_expected_losses_are_those_of_the_regression(estimator):
    """The contrast changes decisions; what a decision costs is still read off the regression."""
    X, Y = rare_labels(200)
    fixed = {"features": "linear", "loss": "hamming"}
    model = estimator(solver=ClosedForm(alpha=0.2, contrast=3.0), **fixed).fit(X, Y)
    plain = estimator(solver=ClosedForm(alpha=0.2), **fixed).fit(X, Y)
    assert (model.contrast_, plain.contrast_) == (3.0, 1.0)
    answers = model.predict(X)
    assert (answers != plain.predict(X)).any()
    theta = plain.score_parameters(X)
    expected = plain.surrogate_.expected_loss(theta, np.asarray(answers))
    np.testing.assert_allclose(model.predict_expected_loss(X), expected, atol=1e-9)


def test_decisions_are_the_best_scores():
    X, Y = rare_labels(200)
    model = TaskLossClassifier("hamming", solver=ClosedForm(alpha=ALPHA)).fit(X, Y)
    assert model.contrast_ > 1.0
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
