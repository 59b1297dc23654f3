"""Many outputs: the search by Cholesky against the eigenbasis."""

import numpy as np
import pytest
import scipy.sparse as sp

from consistruct.learning.models.features.feature_maps import LinearFeatures, ScoreMap
from consistruct.learning.models.ridge import penalty_search
from consistruct.learning.models.ridge.moments import Moments, accumulate
from consistruct.learning.models.ridge.penalty_search import (
    FactoredRidge,
    selection_rows,
    valley_search,
)
from consistruct.learning.statistics import TargetValues
from consistruct.losses import FBeta
from consistruct.surrogates import QuadraticSurrogate
from tests.learning.estimators import ClosedScores

rng = np.random.default_rng(0)
N, D, T = 700, 260, 20
X = sp.csr_array(rng.binomial(1, 0.05, size=(N, D)).astype(float))
Y = (X @ rng.normal(size=(D, T)) + rng.normal(size=(N, T)) > 1.2).astype(int)
Y[:, 0] = 1
SIZES = tuple(np.unique(Y.sum(axis=1)).tolist())
SURROGATE = QuadraticSurrogate(FBeta(T, sizes=SIZES))


def solve(solver, intercept=True):
    score_map = ScoreMap(LinearFeatures(D), fit_intercept=intercept)
    generator = np.random.default_rng(0)
    return solver.solve(SURROGATE, score_map, X, Y, rng=generator)


@pytest.mark.parametrize("selection", ["task_loss", "surrogate"])
@pytest.mark.parametrize("intercept", [True, False])
def test_search_agrees_with_the_eigenbasis(intercept, selection):
    assert SURROGATE.score_space.width >= D  # so that the search is what runs
    searched = solve(ClosedScores(selection=selection), intercept)
    assert 5 <= len(searched.path["alphas"]) <= 12
    tried = tuple(searched.path["alphas"].tolist())
    whole = solve(ClosedScores(alpha=tried, selection=selection), intercept)
    np.testing.assert_allclose(
        searched.path["surrogate_risk"], whole.path["surrogate_risk"], rtol=1e-8
    )
    np.testing.assert_allclose(searched.path["task_loss"], whole.path["task_loss"], atol=1e-12)
    assert searched.alpha == whole.alpha
    np.testing.assert_allclose(searched.weights, whole.weights, atol=1e-9)


def test_out_of_fold_rows_are_predicted_without_themselves():
    score_map = ScoreMap(LinearFeatures(D))
    weight = np.ones(N)
    rows = np.array([3, 50])
    passed, kept = accumulate(score_map, TargetValues(SURROGATE.loss), X, Y, weight, keep=rows)
    sums = Moments.from_sums(passed)
    kept_rows = kept - sums.mean_feature
    y = SURROGATE.target(Y).toarray()
    ridge = FactoredRidge(sums, fit_intercept=True)
    predicted = ridge.leave_one_out(kept_rows, np.ones(2), np.ones(2), y[rows], 0.05)
    dense = np.column_stack([X.toarray(), np.ones(N)])
    penalty = N * 0.05 * np.diag(np.append(np.ones(D), 0.0))
    for position, row in enumerate(rows):
        others = np.delete(np.arange(N), row)
        matrix = dense[others].T @ dense[others] + penalty
        weights = np.linalg.solve(matrix, dense[others].T @ y[others])
        np.testing.assert_allclose(predicted[position], dense[row] @ weights, atol=1e-9)


def test_single_precision_chooses_the_same(monkeypatch):
    """Large problems are searched in float32; the weights of what was chosen are float64."""
    plain = solve(ClosedScores())
    monkeypatch.setattr(penalty_search, "SINGLE_PRECISION_SIZE", 100)
    used = []
    choose = FactoredRidge._moments_for

    def recorded(ridge, strength):
        used.append(choose(ridge, strength)[0].dtype)
        return choose(ridge, strength)

    monkeypatch.setattr(FactoredRidge, "_moments_for", recorded)
    found = solve(ClosedScores())
    assert used.count(np.float32) >= 4
    assert found.alpha == plain.alpha
    for name, values in plain.path.items():
        np.testing.assert_allclose(found.path[name], values, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found.weights, plain.weights, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 21])
def test_valley_search_finds_the_bottom(n):
    for bottom in range(n):
        tried: list[int] = []

        def value(position, bottom=bottom, tried=tried):
            tried.append(position)
            return abs(position - bottom) ** 1.5

        assert valley_search(value, n) == bottom
        assert all(0 <= position < n for position in tried)


def test_rows_are_few_where_one_penalty_is_expensive():
    assert selection_rows(300, 300, 2048) == 2048
    assert selection_rows(1836, 2386, 2048) < 700
    assert selection_rows(10**5, 10**5, 2048) == 512
    assert selection_rows(10**5, 10**5, 100) == 100
