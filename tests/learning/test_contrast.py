"""Contrast of scores: chosen by rows really left out, part of the weights, undone again."""

from typing import Any

import numpy as np
import pytest
from consistruct.learning.contrast import CONTRASTS, with_contrast, without_contrast

from consistruct import StructuredPredictor, TaskLossClassifier, losses
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    KernelFeatures,
    LinearFeatures,
)
from consistruct.learning.models.features.kernels import Kernel
from consistruct.learning.models.ridge import closed_form
from consistruct.learning.models.ridge.closed_form import ClosedForm
from consistruct.learning.models.solvers.score_map import ScoreMap
from consistruct.losses.base import dense_target
from consistruct.scores import Full
from consistruct.surrogates import QuadraticSurrogate
from tests.learning.estimators import classifier, predictor

ALPHA = [0.05, 0.2]  # strong: scores shrink


def rare_labels(n=60, T=4, seed=0):
    """Rare labels that two inputs tell apart, so that shrunk scores fall below one half."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    Y = (X @ rng.normal(size=(5, T)) + 0.3 * rng.normal(size=(n, T)) > 1.6).astype(np.int64)
    return X, Y


def solved(X, Y, loss, features, weight=None, intercept=True, **options):
    score_map = ScoreMap(features, fit_intercept=intercept)
    solver = ClosedForm(**{"alpha": ALPHA, **options})
    surrogate = QuadraticSurrogate(loss)
    result = solver.solve(
        surrogate, score_map, X, Y, sample_weight=weight, rng=np.random.default_rng(0)
    )
    return result, score_map


def refitted(K, y, weight, left, alpha, intercept):
    """Scores and mean target by the fit without `left` of the weight of each row in turn.

    Solved for expansion and intercept together, from the gradient of the weighted problem; the
    penalty N·alpha stays that of all rows, as in the leave-one-out formula.
    """
    n = len(y)
    theta, means = np.empty_like(y), np.zeros_like(y)
    for row in range(n):
        kept = weight.copy()
        kept[row] -= left[row]
        used = kept > 0
        w, inner, target = kept[used], K[np.ix_(used, used)], y[used]
        m = len(w)
        # W(Kc + b1 − y) + λc = 0 and 1ᵀW(Kc + b1 − y) = 0
        system = np.zeros((m + 1, m + 1))
        system[:m, :m] = w[:, None] * inner + weight.sum() * alpha * np.eye(m)
        system[:m, m] = w
        system[m, :m] = w @ inner
        system[m, m] = w.sum()
        right = np.vstack([w[:, None] * target, w @ target])
        if not intercept:
            system, right = system[:m, :m], right[:m]
        solution = np.linalg.solve(system, right)
        theta[row] = K[row, used] @ solution[:m] + (solution[m] if intercept else 0.0)
        if intercept:
            means[row] = w @ target / w.sum()
    return theta, means


@pytest.mark.parametrize("weights", ["none", "whole", "real"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("route", ["eigenvalues", "cholesky", "primal", "factors"])
@pytest.mark.parametrize("loss", [losses.Hamming(4), losses.FBeta(4, empty=1.0)], ids=repr)
def test_the_contrast_is_the_best_for_rows_that_are_really_left_out(
    monkeypatch, route, loss, intercept, weights
):
    X, Y = rare_labels()
    rng = np.random.default_rng(3)
    weight, left = {
        "none": (np.ones(len(X)), np.ones(len(X))),
        "whole": (rng.integers(1, 4, len(X)).astype(float), np.ones(len(X))),
        "real": ((real := rng.uniform(0.5, 2.0, len(X))), real),
    }[weights]
    features: FeatureMap = LinearFeatures(5)
    options: dict[str, Any] = {}
    K = X @ X.T
    if route in ("eigenvalues", "cholesky"):
        kernel = Kernel("rbf", 2.0)
        features, K = KernelFeatures(kernel, X), kernel(X, X)
        monkeypatch.setattr(closed_form, "EIGEN_ROWS", 10 if route == "cholesky" else 3072)
    elif route == "primal":
        options["alpha"] = [1.0, 2.0]
    elif route == "factors":
        monkeypatch.setattr(ClosedForm, "_few_penalties", lambda *_: True)
        options["alpha"] = "auto"
    result, _ = solved(
        X, Y, loss, features, None if weights == "none" else weight, intercept, **options
    )
    y = -dense_target(loss.target(Y))
    theta, mean = refitted(K, y, weight, left, result.alpha, intercept)
    decoder = QuadraticSurrogate(loss).score_space.decoder()
    expected = [
        np.average(loss(decoder(mean + c * (theta - mean)), Y), weights=weight) for c in CONTRASTS
    ]
    np.testing.assert_allclose(result.path["contrast_loss"], expected, atol=1e-9)
    assert result.contrast == CONTRASTS[int(np.argmin(np.round(expected, 12)))]
    if not intercept:
        assert result.contrast == 1.0  # a scale alone changes no decision
    elif route != "factors" and weights == "none":
        assert result.contrast > 1.0  # else this shows little


@pytest.mark.parametrize("alpha", [0.2, np.float64(0.2), np.float32(0.2), 1, np.int64(1)])
def test_one_penalty_given_in_any_type_leaves_scores_as_they_are(alpha):
    X, Y = rare_labels()
    kernel = KernelFeatures(Kernel("rbf", 2.0), X)
    assert solved(X, Y, losses.Hamming(4), kernel, alpha=[float(alpha)])[0].contrast > 1.0
    assert solved(X, Y, losses.Hamming(4), kernel, alpha=alpha)[0].contrast == 1.0


def test_rows_with_next_to_no_weight_decide_nothing():
    X, Y = rare_labels()
    decided, _ = solved(X, Y, losses.Hamming(4), LinearFeatures(5), alpha=[1e-3])
    assert decided.contrast == 1.0
    weight = np.ones(len(X) + 1)
    weight[-1] = 1e-12
    row, labels = X[:1] * 0.6, 1 - Y[:1]
    added, _ = solved(
        np.vstack([X, row]),
        np.vstack([Y, labels]),
        losses.Hamming(4),
        LinearFeatures(5),
        weight,
        alpha=[1e-3],
    )
    assert added.contrast == decided.contrast


@pytest.mark.parametrize("regularizer", ["gram", "weights"])
@pytest.mark.parametrize("scores", [None, "full"])
def test_estimators_hold_the_contrast_in_any_score_space(scores, regularizer):
    X, Y = rare_labels(150)
    loss = losses.Hamming(4)
    space = None if scores is None else Full(loss.predictions)
    solver = ClosedForm(alpha=ALPHA, regularizer=regularizer)
    model = predictor(loss, scores=space, features="linear", solver=solver).fit(X, Y)
    given = ClosedForm(alpha=model.model_.alpha_, regularizer=regularizer)
    plain = predictor(loss, scores=space, features="linear", solver=given).fit(X, Y)
    theta, centre = plain.score_parameters(X), plain.centre_
    expected = centre + model.contrast_ * (theta - centre)
    np.testing.assert_allclose(model.score_parameters(X), expected, atol=1e-9)
    np.testing.assert_allclose(
        model.predict_expected_loss(X),
        plain.surrogate_.expected_loss(theta, np.asarray(model.predict(X))),
        atol=1e-9,
    )


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


@pytest.mark.parametrize("selection", ["gcv", "surrogate"])
def test_without_a_task_loss_to_compare_scores_stay_as_they_are(selection):
    X, Y = rare_labels()
    kernel = KernelFeatures(Kernel("rbf", 2.0), X)
    one = {"alpha": [0.2]}
    assert solved(X, Y, losses.Hamming(4), kernel, **one)[0].contrast > 1.0
    assert solved(X, Y, losses.Hamming(4), kernel, selection=selection, **one)[0].contrast == 1.0


@pytest.mark.parametrize("contrast", [0.0, -1.0, "high", np.nan, np.array([1.0, 2.0])])
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
    model = classifier("hamming", solver=ClosedForm(alpha=ALPHA)).fit(X, Y)
    assert model.contrast_ > 1.0
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
