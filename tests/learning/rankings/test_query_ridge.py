"""Ridge within queries against dense normal equations and against fits without the query."""

import numpy as np
import pytest
import scipy.sparse as sp

from consistruct.learning.models.features.approximations import NystroemFeatures
from consistruct.learning.models.features.feature_maps import Kernel, KernelFeatures, LinearFeatures
from consistruct.learning.models.items import query_ridge
from consistruct.learning.models.items.query_ridge import (
    QueryProblem,
    QueryRidge,
    leave_one_query_out,
    out_of_fold_scores,
)
from consistruct.losses import NDCG
from consistruct.structures import Ragged

rng = np.random.default_rng(0)
LENGTHS = np.array([3, 2, 5, 4, 3, 6, 2, 3])
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
N = int(LENGTHS.sum())
X = rng.normal(size=(N, 4))
GRADES = Ragged(rng.integers(0, 3, size=N), OFFSETS)
EVERY = np.arange(len(LENGTHS))


def centered(values):
    return np.concatenate([part - part.mean(axis=0) for part in np.split(values, OFFSETS[1:-1])])


TARGETS = centered(rng.normal(size=N))
WEIGHT = rng.uniform(0.5, 2.0, size=len(LENGTHS))
PROBLEM = QueryProblem(X, OFFSETS, TARGETS, WEIGHT)


def dense_solution(features, alpha, queries=EVERY):
    """w by the normal equations, query by query."""
    size = features.shape[1]
    matrix, moments = np.zeros((size, size)), np.zeros(size)
    for query in queries:
        part = slice(OFFSETS[query], OFFSETS[query + 1])
        rows = features[part] - features[part].mean(axis=0)
        matrix += WEIGHT[query] * rows.T @ rows
        moments += WEIGHT[query] * rows.T @ TARGETS[part]
    total = WEIGHT @ LENGTHS
    return np.linalg.solve(matrix + total * alpha * np.eye(size), moments)


@pytest.mark.parametrize("inputs", [X, sp.csr_array(X)], ids=["dense", "sparse"])
@pytest.mark.parametrize("chunk_bytes", [64, 2**25])
def test_weights_solve_the_normal_equations(inputs, chunk_bytes, monkeypatch):
    monkeypatch.setattr(query_ridge, "CHUNK_BYTES", chunk_bytes)
    problem = QueryProblem(inputs, OFFSETS, TARGETS, WEIGHT)
    ridge = QueryRidge(problem, LinearFeatures(4), EVERY)
    for alpha in (1e-3, 0.1, 10.0):
        np.testing.assert_allclose(ridge.weights(alpha), dense_solution(X, alpha), rtol=1e-9)


def test_more_features_than_items():
    wide = rng.normal(size=(N, 3 * N))
    problem = QueryProblem(wide, OFFSETS, TARGETS, WEIGHT)
    ridge = QueryRidge(problem, LinearFeatures(3 * N), EVERY)
    np.testing.assert_allclose(ridge.weights(0.1), dense_solution(wide, 0.1), atol=1e-12)


def test_kernel_expansions_and_landmarks_at_all_items_agree():
    kernel = Kernel("rbf", 1.5)
    expansion, landmarks = KernelFeatures(kernel, X), NystroemFeatures(kernel, X)
    new = rng.normal(size=(6, 4))
    exact = expansion.transform(new) @ QueryRidge(PROBLEM, expansion, EVERY).weights(0.02)
    other = landmarks.transform(new) @ QueryRidge(PROBLEM, landmarks, EVERY).weights(0.02)
    # up to a constant, which changes no order
    np.testing.assert_allclose(exact - exact[0], other - other[0], atol=1e-7)


@pytest.mark.parametrize("features", [LinearFeatures(4), KernelFeatures(Kernel("rbf", 2.0), X)])
def test_leaving_out_a_query_is_fitting_without_it(features):
    alphas = np.array([0.01, 0.3])
    ridge = QueryRidge(PROBLEM, features, EVERY)
    loss = NDCG(None, n_grades=3)
    path = leave_one_query_out(ridge, PROBLEM, loss, GRADES, alphas)
    columns = features.transform(X)
    for position, alpha in enumerate(alphas):
        scores = out_of_fold_scores(ridge, PROBLEM, alpha)
        task, risk = [], []
        for query in EVERY:
            others = np.delete(EVERY, query)
            # N stays that of all queries: the penalty Nα is what is held fixed
            if isinstance(features, LinearFeatures):
                weights = dense_solution(X, alpha, others)
            else:
                weights = kernel_solution(columns, alpha, others)
            part = slice(OFFSETS[query], OFFSETS[query + 1])
            theta = columns[part] @ weights
            order = np.argsort(-theta, kind="stable")
            task.append(loss.at(LENGTHS[query])(order[None], GRADES[int(query)][None])[0])
            np.testing.assert_allclose(scores[int(query)], theta - theta.mean(), atol=1e-9)
            error = theta - theta.mean() - TARGETS[part]
            risk.append(0.5 * WEIGHT[query] * error @ error)
        assert path.task_loss[position] == pytest.approx(np.mean(task))
        assert path.surrogate_risk[position] == pytest.approx(np.mean(risk), rel=1e-7)


def kernel_solution(kernel, alpha, queries):
    """Expansion c that minimizes Σ v‖P(t − Kc)‖² + Nα cᵀKc over the given queries."""
    matrix, moments = np.zeros((N, N)), np.zeros(N)
    for query in queries:
        part = slice(OFFSETS[query], OFFSETS[query + 1])
        rows = kernel[part] - kernel[part].mean(axis=0)
        matrix += WEIGHT[query] * rows.T @ rows
        moments += WEIGHT[query] * rows.T @ TARGETS[part]
    total = WEIGHT @ LENGTHS
    return np.linalg.lstsq(matrix + total * alpha * kernel, moments, rcond=None)[0]


def test_null_risk_is_that_of_no_order():
    ridge = QueryRidge(PROBLEM, LinearFeatures(4), EVERY)
    path = leave_one_query_out(ridge, PROBLEM, NDCG(None, n_grades=3), GRADES, np.array([1e9]))
    assert path.surrogate_risk[0] == pytest.approx(path.null_risk, rel=1e-6)


def test_a_query_that_is_interpolated_leaves_finite_scores_and_changes_no_other():
    """Without a penalty a column that one query alone has fits it exactly: its leverage is 1."""
    own = np.zeros((N, 5))
    own[:, :3] = X[:, :3]
    own[1, 3], own[2, 4] = 1.0, 1.0  # query 0 has three items
    problem = QueryProblem(own, OFFSETS, TARGETS, WEIGHT)
    scores = out_of_fold_scores(QueryRidge(problem, LinearFeatures(5), EVERY), problem, 0.0)
    assert np.isfinite(scores.values).all()
    for query in EVERY[1:]:
        others = np.delete(EVERY, query)
        weights = dense_solution(own, 0.0, others)
        theta = own[OFFSETS[query] : OFFSETS[query + 1]] @ weights
        np.testing.assert_allclose(scores[int(query)], theta - theta.mean(), atol=1e-8)
