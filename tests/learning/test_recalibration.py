"""Recalibration on out-of-fold rows, really unseen, for every model, in one place."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import consistruct as cs
from consistruct import losses
from consistruct.decisions.recalibration import Temperature, Unchanged
from consistruct.decisions.statistics import ClassProbabilities
from consistruct.learning import load, save
from consistruct.learning.models.features.feature_maps import Kernel
from consistruct.learning.models.probabilities import Probabilities
from consistruct.learning.models.ridge import closed_form
from consistruct.learning.models.ridge.model import Ridge
from consistruct.learning.recalibration import CONTRASTS, Contrast, Slope, recalibrate
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
def test_the_contrast_is_the_best_for_rows_that_are_really_out_of_fold(
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
    decode = fitted.score_space.decode
    expected = [
        np.average(fitted(decode(-(mean + c * (estimates - mean))), Y), weights=weight)
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
    pred = losses.Hamming(4).score_space.decode(-sharp)
    np.testing.assert_array_equal(model.predict(X), pred)
    embedded = losses.Hamming(4).score_space.embed(pred)
    matched = contrast.before  # with the losses that occurred, whatever the contrast is
    assert isinstance(matched, Slope)
    reported = mean + matched.slope * (estimates - mean)
    expected = np.einsum("nw,nw->n", embedded, reported) + 1.0
    np.testing.assert_allclose(model.predict_expected_loss(X), np.clip(expected, 0.0, 1.0))
    np.testing.assert_allclose(model.expected_target(X), reported)


def test_any_model_is_recalibrated_with_folds():
    """A deep tree predicts 0 or 1, wrong for noisy labels: folds flatten it, and only folds."""
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
    y_true = (new[:, 0] + rng.normal(size=400) > 0).astype(int)
    occurred = -folded.score(new, y_true)
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
    """Out-of-fold rows of ridge regression are too flat where classes are well apart."""
    X, y = load_iris(return_X_y=True)
    model = classifier(random_state=0).fit(X, y)
    assert isinstance(model.recalibration_, Temperature)
    assert model.recalibration_.power > 1.0
    distribution = model.predict_proba(X)
    assert distribution.min() > 0.0
    np.testing.assert_allclose(distribution.sum(axis=1), 1.0)
    losses_of = model.path_["log_loss"]
    place = np.unravel_index(losses_of.argmin(), losses_of.shape)
    assert model.recalibration_.power == model.path_["powers"][place[1]]


def test_few_rows_change_nothing():
    X, y = load_iris(return_X_y=True)
    rows = np.arange(0, 150, 15)
    assert isinstance(classifier().fit(X[rows], y[rows]).recalibration_, Unchanged)


def test_groups_leave_no_exact_out_of_fold_rows():
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


# --- decisions between classes ---


def noisy_grades(weighted=False, k=12, n=600):
    """Many classes, distinguished badly: estimates of a strong penalty keep to the middle."""
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(k, 6))
    y = rng.integers(k, size=n)
    X = centers[y] + 0.9 * rng.normal(size=(n, 6))
    weight = rng.uniform(0.5, 1.5, n) if weighted else np.ones(n)
    return X, y, weight


def nearest_distribution(v):
    """The nearest distribution of one row: max(v − t, 0) of sum one, t by halving."""
    low, high = v.min() - 1.0, v.max()
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(v - high, 0)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_contrast_between_classes_is_the_best_of_those_that_are_proven(weighted):
    X, y, weight = noisy_grades(weighted)
    model = classifier("ordinal", features="linear", alpha=0.5, random_state=0)
    model.fit(X, y, sample_weight=weight if weighted else None)
    left = model.model_.out_of_fold()
    assert len(left.rows) == len(X)
    chosen: Any = model.recalibration_
    assert isinstance(chosen, Contrast)
    temperature = getattr(chosen.before, "before", chosen.before)  # reports may have a power more
    power, floor = temperature.power, temperature.floor
    distribution = (np.maximum(left.expected, 0) + floor) ** power
    distribution /= distribution.sum(axis=1, keepdims=True)
    distance = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    cost = np.empty((len(CONTRASTS), len(X)))
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        mean = np.bincount(y[others], weights=weight[others], minlength=12) / weight[others].sum()
        for j, contrast in enumerate(CONTRASTS):
            stretched = nearest_distribution(mean + contrast * (distribution[i] - mean))
            cost[j, i] = distance[(distance @ stretched).argmin(), y[i]]
    task = np.average(cost, axis=1, weights=weight)
    np.testing.assert_allclose(model.path_["contrast_loss"], task, atol=1e-9)
    proven = []
    for j in range(len(CONTRASTS)):
        gains = cost[0] - cost[j]
        gain = np.average(gains, weights=weight)
        error = np.sqrt((weight**2 * (gains - gain) ** 2).sum()) / weight.sum()
        one_mistake = 11 * (weight**2).sum() / weight.sum() ** 2
        proven.append(gain if gain > error + one_mistake else 0.0)
    assert chosen.contrast == CONTRASTS[int(np.argmax(proven))] > 1.0


def test_decisions_between_classes_have_the_contrast_and_reports_do_not(tmp_path):
    X, y, _ = noisy_grades()
    model = classifier("ordinal", features="linear", alpha=0.5, random_state=0).fit(X, y)
    contrast: Any = model.recalibration_
    distribution = model.predict_proba(X)
    np.testing.assert_allclose(distribution, contrast.before.for_reports(model.model_.expected(X)))
    distance = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    mean = np.bincount(y, minlength=12) / len(y)
    decided = contrast.before.for_decisions(model.model_.expected(X))
    stretched = mean + contrast.contrast * (decided - mean)
    prices = np.array([nearest_distribution(row) for row in stretched]) @ distance
    np.testing.assert_array_equal(model.predict(X), prices.argmin(axis=1))
    np.testing.assert_allclose(model.expected_losses(X), distribution @ distance, atol=1e-12)
    assert (model.predict(X) != (distribution @ distance).argmin(axis=1)).any()

    save(model, tmp_path / "model.consistruct")
    found = load(tmp_path / "model.consistruct")
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_array_equal(found.predict_proba(X), distribution)

    # it was chosen for one loss, and another starts without it
    model.set_loss(losses.ZeroOne(12))
    np.testing.assert_array_equal(model.predict_proba(X), distribution)
    np.testing.assert_array_equal(model.predict(X), distribution.argmax(axis=1))


@pytest.mark.parametrize(("greatest", "proven"), [(1.0, True), (1000.0, False)])
def test_a_contrast_must_gain_more_than_one_mistake_of_the_greatest_cost(greatest, proven):
    """The expensive mistake occurs in no row, and nothing shows what the contrast does to it."""
    costs = 1.0 - np.eye(3)
    costs[0, 2] = greatest
    y_true = np.repeat([0, 1], [150, 40])
    distribution = np.array([[0.9, 0.1, 0.0], [0.6, 0.4, 0.0]])[y_true]
    found, compared = recalibrate(
        ClassProbabilities(losses.CostMatrix(costs, rows="pred")),
        distribution,
        y_true,
        np.ones(190),
        np.array([150.0, 40.0, 0.0]) / 190,
    )
    assert compared["contrast_loss"][0] == pytest.approx(40 / 190)
    assert compared["contrast_loss"][-1] == 0.0
    assert isinstance(found, Contrast) == proven
