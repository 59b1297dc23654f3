"""Generalized cross-validation from the moments: against dense formulas, and when it is used."""

import numpy as np
import pytest

from consistruct.learning.models.features.feature_maps import LinearFeatures, ScoreMap
from consistruct.learning.models.ridge import closed_form
from consistruct.learning.models.ridge.gcv_path import TridiagonalPath
from consistruct.learning.models.ridge.moments import Moments, accumulate
from consistruct.learning.models.ridge.selection import OutputPenalty
from consistruct.learning.statistics import TargetValues
from consistruct.losses import Block, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.surrogates import QuadraticSurrogate
from tests.learning.estimators import ClosedScores


def problem(loss, n=50, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3.0
    return X, loss.true_labels.sample(n, rng), rng.integers(1, 4, size=n).astype(float)


def centered(X, y, weight, fit_intercept):
    if not fit_intercept:
        return X, y
    return X - weight @ X / weight.sum(), y - weight @ y / weight.sum()


def path_of(X, y, weight, penalty, fit_intercept):
    Xc, yc = centered(X, y, weight, fit_intercept)
    return TridiagonalPath(
        (Xc * weight[:, None]).T @ Xc,
        (Xc * weight[:, None]).T @ yc,
        float(weight.sum()),
        float(weight @ (yc**2).sum(axis=1)),
        fit_intercept,
        penalty,
        float(np.finfo(np.float64).eps),
    )


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_solution_and_score_by_their_definitions(d, fit_intercept, alpha):
    loss = ZeroOne(3)
    X, true, weight = problem(loss, d=d)
    y = -dense_target(loss.target(true))
    found = path_of(X, y, weight, OutputPenalty.gram(3), fit_intercept)
    Xc, yc = centered(X, y, weight, fit_intercept)
    N = weight.sum()
    inverse = np.linalg.inv((Xc * weight[:, None]).T @ Xc + N * alpha * np.eye(d))
    coef = inverse @ (Xc * weight[:, None]).T @ yc
    np.testing.assert_allclose(found.coefficients(alpha), coef, atol=1e-10)
    squares = float(weight @ ((yc - Xc @ coef) ** 2).sum(axis=1))
    freedom = np.trace(inverse @ (Xc * weight[:, None]).T @ Xc) + fit_intercept
    expected = squares / N / (1 - freedom / N) ** 2
    assert found.generalized_cross_validation(alpha) == pytest.approx(expected, rel=1e-9)


def test_outputs_with_different_penalties():
    loss = Block((1, 5, 3))
    X, true, weight = problem(loss)
    y = -dense_target(loss.target(true))
    penalty = OutputPenalty.weights(loss.score_space)
    assert len(np.unique(penalty.factor)) > 1
    found = path_of(X, y, weight, penalty, True).coefficients(0.05)
    Xc, yc = centered(X, y, weight, True)
    second, cross = (Xc * weight[:, None]).T @ Xc, (Xc * weight[:, None]).T @ yc
    rotation = np.eye(3) if penalty.rotation is None else penalty.rotation
    columns = [
        np.linalg.solve(second + weight.sum() * 0.05 * factor * np.eye(5), cross @ direction)
        for factor, direction in zip(penalty.factor, rotation.T, strict=True)
    ]
    np.testing.assert_allclose(found, np.column_stack(columns) @ rotation.T, atol=1e-10)


def test_a_singular_matrix_is_an_error_that_states_what_to_do():
    X = np.ones((10, 2))
    found = path_of(X, np.ones((10, 1)), np.ones(10), OutputPenalty.gram(1), False)
    with pytest.raises(ValueError, match="alpha=0 is too small: the features are dependent"):
        found.solution(0.0)


def solve(solver, loss, X, true):
    return solver.solve(
        QuadraticSurrogate(loss),
        ScoreMap(LinearFeatures(X.shape[1])),
        X,
        true,
        rng=np.random.default_rng(0),
    )


def test_given_penalties_below_rounding_are_decomposed_instead():
    loss = ZeroOne(3)
    X, true, _ = problem(loss)
    X = np.column_stack([X, X[:, 0]])  # dependent: the solution of least norm shares the weight
    found = solve(ClosedScores(alpha=0.0, form="primal"), loss, X, true).weights
    np.testing.assert_allclose(found[0], found[5], atol=1e-8)


def test_auto_selects_by_gcv_where_rows_abound(monkeypatch):
    loss = ZeroOne(3)
    X, true, _ = problem(loss, n=400)
    assert "task_loss" in solve(ClosedScores(), loss, X, true).path
    monkeypatch.setattr(closed_form, "LEAVE_ONE_OUT_ROWS", 300)
    assert "gcv" in solve(ClosedScores(), loss, X, true).path
    assert "task_loss" in solve(ClosedScores(selection="task_loss"), loss, X, true).path
    monkeypatch.setattr(closed_form, "ROWS_PER_FEATURE", 100)
    assert "task_loss" in solve(ClosedScores(), loss, X, true).path


def test_gcv_agrees_with_leave_one_out_where_it_is_used():
    """32 rows a feature: the chosen penalties differ in leave-one-out risk by next to nothing."""
    loss = ZeroOne(3)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1600, 50))
    true = (X[:, :3] + 1.5 * rng.normal(size=(1600, 3))).argmax(axis=1)
    path = solve(ClosedScores(selection="surrogate"), loss, X, true).path
    by_gcv = solve(ClosedScores(selection="gcv"), loss, X, true)
    np.testing.assert_allclose(by_gcv.path["alphas"], path["alphas"])
    risk = path["surrogate_risk"]
    chosen = risk[np.isclose(path["alphas"], by_gcv.alpha, rtol=1e-9)]
    assert chosen <= 1.001 * risk.min()
    ratio = by_gcv.path["gcv"] / risk  # a constant (½ and the Gram operator of this loss)
    np.testing.assert_allclose(ratio, ratio.mean(), rtol=0.01)


@pytest.mark.parametrize("mean", [0.0, 0.5, 3.0, 1e4])
def test_products_keep_their_digits_with_and_without_a_shift(mean):
    loss = ZeroOne(3)
    X, true, weight = problem(loss, n=300)
    X = X - X.mean(axis=0) + mean * X.std(axis=0)
    passed, rows = accumulate(
        ScoreMap(LinearFeatures(5)), TargetValues(loss), X, true, weight, keep=np.arange(7)
    )
    sums = Moments.from_sums(passed)
    kept_rows = rows + passed.shift - sums.mean_feature
    Xc, yc = centered(X, dense_target(loss.target(true)), weight, True)
    scale = np.sqrt(np.outer(*2 * (np.diag(Xc.T @ Xc),)))
    assert (np.abs(sums.second_moment - (Xc * weight[:, None]).T @ Xc) < 1e-10 * scale).all()
    np.testing.assert_allclose(sums.cross_moment, (Xc * weight[:, None]).T @ yc, atol=1e-6)
    np.testing.assert_allclose(kept_rows, Xc[:7], atol=1e-9 * max(mean, 1.0))
    np.testing.assert_allclose(sums.mean_feature, weight @ X / weight.sum(), rtol=1e-10, atol=1e-12)
