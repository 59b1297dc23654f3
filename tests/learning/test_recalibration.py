"""Recalibration on left-out rows: chosen by rows really left out, for every model, in one place."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import consistruct as cs
from consistruct import losses
from consistruct.learning.models.features.feature_maps import Kernel
from consistruct.learning.models.probabilities import Probabilities
from consistruct.learning.models.ridge import closed_form
from consistruct.learning.models.ridge.model import Ridge
from consistruct.learning.recalibration import CONTRASTS, Contrast, Temperature, Unchanged
from consistruct.losses.base import dense_target
from tests.learning.estimators import classifier, predictor

ALPHA = [0.05, 0.2]  # strong: estimates shrink


def rare_labels(n=60, T=4, seed=0):
    """Rare labels that two inputs tell apart, so that shrunk estimates fall below one half."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    Y = (X @ rng.normal(size=(5, T)) + 0.3 * rng.normal(size=(n, T)) > 1.6).astype(np.int64)
    return X, Y


def refitted(K, y, weight, left, alpha, intercept):
    """Estimates and mean by the fit without `left` of the weight of each row in turn.

    Solved for expansion and intercept together, from the gradient of the weighted problem; the
    penalty N·alpha stays that of all rows, as in the leave-one-out formula.
    """
    n = len(y)
    estimates, means = np.empty_like(y), np.empty_like(y)
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
        estimates[row] = K[row, used] @ solution[:m] + (solution[m] if intercept else 0.0)
        means[row] = w @ target / w.sum()
    return estimates, means


@pytest.mark.parametrize("weights", ["none", "whole", "real"])
@pytest.mark.parametrize("route", ["eigenvalues", "cholesky", "primal"])
@pytest.mark.parametrize("loss", [losses.Hamming(4), losses.FBeta(4, empty=1.0)], ids=repr)
def test_the_contrast_is_the_best_for_rows_that_are_really_left_out(
    monkeypatch, route, loss, weights
):
    X, Y = rare_labels()
    rng = np.random.default_rng(3)
    weight, left = {
        "none": (np.ones(len(X)), np.ones(len(X))),
        "whole": (rng.integers(1, 4, len(X)).astype(float), np.ones(len(X))),
        "real": ((real := rng.uniform(0.5, 2.0, len(X))), real),
    }[weights]
    settings: dict[str, Any] = {"features": "linear", "alpha": [1.0, 2.0]}
    K = X @ X.T
    if route != "primal":
        settings = {"features": "rbf", "bandwidth": 2.0, "standardize": False, "alpha": ALPHA}
        K = Kernel("rbf", 2.0)(X, X)
        monkeypatch.setattr(closed_form, "EIGEN_ROWS", 10 if route == "cholesky" else 3072)
    model = predictor(loss, random_state=0, **settings)
    model.fit(X, Y, sample_weight=None if weights == "none" else weight)
    fitted = model.loss_
    y = dense_target(fitted.target(Y))
    estimates, mean = refitted(K, y, weight, left, model.model_.alpha_, True)
    decoder = fitted.score_space.decoder()
    expected = [
        np.average(fitted(decoder(-(mean + c * (estimates - mean))), Y), weights=weight)
        for c in CONTRASTS
    ]
    np.testing.assert_allclose(model.path_["contrast_loss"], expected, atol=1e-9)
    chosen: Any = model.recalibration_
    assert chosen.contrast == CONTRASTS[int(np.argmin(np.round(expected, 12)))]


def test_decisions_have_the_contrast_and_reports_do_not():
    X, Y = rare_labels(150)
    model = predictor(losses.Hamming(4), features="linear", alpha=ALPHA).fit(X, Y)
    contrast = model.recalibration_
    assert isinstance(contrast, Contrast)
    assert contrast.contrast > 1.0
    estimates = model.model_.expected(X)
    mean = dense_target(losses.Hamming(4).target(Y)).mean(axis=0)
    np.testing.assert_allclose(contrast.mean, mean)
    sharp = mean + contrast.contrast * (estimates - mean)
    pred = losses.Hamming(4).score_space.decoder()(-sharp)
    np.testing.assert_array_equal(model.predict(X), pred)
    embedded = losses.Hamming(4).score_space.embed(pred)
    plain = np.einsum("nw,nw->n", embedded, estimates) + 1.0
    np.testing.assert_allclose(model.predict_expected_loss(X), np.clip(plain, 0.0, 1.0), atol=1e-12)
    np.testing.assert_allclose(model.expected_target(X), estimates)


def test_any_model_is_recalibrated_with_folds():
    """A deep tree says 0 or 1 and is wrong for noisy labels: folds flatten it, and only folds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    tree = Probabilities(DecisionTreeClassifier(random_state=0))
    plain = cs.TaskLossClassifier(model=tree, random_state=0).fit(X, y)
    assert isinstance(plain.recalibration_, Unchanged)
    folded = cs.TaskLossClassifier(model=tree, cv=5, random_state=0).fit(X, y)
    assert isinstance(folded.recalibration_, Temperature)
    assert folded.recalibration_.power < 1.0
    new = rng.normal(size=(400, 3))
    truth = (new[:, 0] + rng.normal(size=400) > 0).astype(int)
    occurred = -folded.score(new, truth)
    assert abs(folded.predict_expected_loss(new).mean() - occurred) < 0.08
    assert abs(plain.predict_expected_loss(new).mean() - occurred) > 0.2


def test_probabilities_of_a_good_classifier_stay_as_they_are():
    X, y = load_iris(return_X_y=True)
    logistic = Probabilities(LogisticRegression(max_iter=1000))
    model = cs.TaskLossClassifier("ordinal", logistic).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), LogisticRegression(max_iter=1000).fit(X, y).predict_proba(X)
    )


def test_ridge_estimates_become_probabilities():
    """Left-out rows of ridge regression are too flat where classes are well apart."""
    X, y = load_iris(return_X_y=True)
    model = classifier(random_state=0).fit(X, y)
    assert isinstance(model.recalibration_, Temperature)
    assert model.recalibration_.power > 1.0
    law = model.predict_proba(X)
    assert law.min() > 0.0
    np.testing.assert_allclose(law.sum(axis=1), 1.0)
    losses_of = model.path_["log_loss"]
    place = np.unravel_index(losses_of.argmin(), losses_of.shape)
    assert model.recalibration_.power == model.path_["powers"][place[1]]


def test_few_rows_change_nothing():
    X, y = load_iris(return_X_y=True)
    rows = np.arange(0, 150, 15)
    assert isinstance(classifier().fit(X[rows], y[rows]).recalibration_, Unchanged)


def test_groups_leave_no_exact_left_out_rows():
    """Rows of a group know each other's labels: leave-one-out would leak, folds by group do not."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 5)
    X = rng.normal(size=(40, 4))[group] + 0.01 * rng.normal(size=(200, 4))
    y = rng.integers(2, size=40)[group]  # noise, the same within a group
    model = cs.TaskLossClassifier(model=Ridge("rbf"), cv=5, random_state=0)
    leaking = model.fit(X, y).predict_expected_loss(X).mean()
    honest = model.fit(X, y, groups=group).predict_expected_loss(X).mean()
    assert leaking < 0.1
    assert honest > 0.25
