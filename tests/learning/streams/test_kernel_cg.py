"""Conjugate gradients on landmarks against the normal equations, solved densely."""

import numpy as np
import pytest

import consistruct as cs
from consistruct.learning import load, save
from consistruct.learning.models import Ridge
from consistruct.learning.models.ridge import kernel_cg
from consistruct.learning.models.ridge.kernel_cg import KernelCG

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 6))
Y = (np.sin(2 * X[:, :3]) + 0.4 * RNG.normal(size=(N, 3))).argmax(axis=1)
WEIGHT = RNG.uniform(0.2, 3.0, size=N)


def estimator(solver="cg", **settings):
    given = {"bandwidth": 2.0, "n_components": 60, "alpha": 1e-4, "standardize": False} | settings
    ridge = Ridge("nystroem", kernel="rbf", solver=solver, **given)
    return cs.TaskLossClassifier("zero_one", ridge, random_state=0)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_normal_equations_are_solved(intercept, monkeypatch):
    monkeypatch.setattr(kernel_cg, "CHUNK_BYTES", 1)  # 256 rows at a time
    model = estimator(KernelCG(tol=1e-10, max_iter=100), fit_intercept=intercept)
    model = model.fit(X, Y, WEIGHT).model_
    landmarks = model.feature_map_.support
    assert landmarks.shape == (60, 6)
    distance = ((X[:, None] - landmarks) ** 2).sum(axis=2)
    kernel = np.exp(-distance / 8.0)
    gram = np.exp(-((landmarks[:, None] - landmarks) ** 2).sum(axis=2) / 8.0)
    target = np.eye(3)[Y]
    mean_k = WEIGHT @ kernel / WEIGHT.sum() if intercept else np.zeros(60)
    mean_y = WEIGHT @ target / WEIGHT.sum() if intercept else np.zeros(3)
    left = ((kernel - mean_k) * WEIGHT[:, None]).T @ (kernel - mean_k)
    left += WEIGHT.sum() * 1e-4 * gram
    right = ((kernel - mean_k) * WEIGHT[:, None]).T @ (target - mean_y)
    a = np.linalg.solve(left, right)
    expected = kernel @ a + (mean_y - mean_k @ a)
    np.testing.assert_allclose(model.expected(X), expected, atol=1e-6)


def test_few_steps_are_enough_and_float32_will_do():
    double = estimator().fit(X, Y)
    assert double.model_.n_iter_ < KernelCG().max_iter  # the tolerance was met
    exact = estimator("closed_form").fit(X, Y)
    gap = np.abs(double.model_.expected(X) - exact.model_.expected(X))
    assert gap.max() < 1e-3
    single = estimator().fit(X.astype(np.float32), Y)
    assert np.abs(single.model_.expected(X) - double.model_.expected(X)).max() < 1e-3


def test_the_penalty_is_chosen_on_some_rows(monkeypatch):
    monkeypatch.setattr(kernel_cg, "SELECTION_ROWS", 200)
    model = estimator(alpha="auto", standardize="auto").fit(X, Y)
    assert 1e-9 < model.model_.alpha_ < 1.0
    assert model.score(X, Y) > -0.45


def test_saved_and_loaded(tmp_path):
    model = estimator(KernelCG(max_iter=5)).fit(X, Y)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


def test_what_it_is_not_for():
    with pytest.raises(ValueError, match="features='nystroem'"):
        cs.TaskLossClassifier("zero_one", Ridge("linear", solver="cg")).fit(X, Y)
    with pytest.raises(ValueError, match="tol"):
        KernelCG(tol=0.0)
