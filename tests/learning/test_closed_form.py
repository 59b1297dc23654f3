"""The closed form against dense normal equations, brute-force refits and itself in other forms."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from consistruct.decisions.statistics import ClassProbabilities
from consistruct.learning import TaskLossClassifier
from consistruct.learning.models import Ridge
from consistruct.learning.models.features import feature_maps
from consistruct.learning.models.features.approximations import NystroemFeatures
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    Kernel,
    KernelFeatures,
    LinearFeatures,
    ScoreMap,
)
from consistruct.learning.models.ridge.closed_form import ClosedForm
from consistruct.losses import Block, CostMatrix, Hamming, Mixed, Tree, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.surrogates import QuadraticSurrogate
from tests.learning.estimators import ClosedScores

LOSSES = [ZeroOne(4), Hamming(3), Block((1, 2, 1)), Mixed((2, 2), 0.3), Tree((-1, 0, 0, 1, 1, 2))]


def problem(loss, n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3.0  # a mean that the intercept has to take up
    true = loss.true_labels.sample(n, rng)
    weight = rng.integers(1, 4, size=n).astype(float)
    return X, true, weight


def naive(X, loss, true, weight, alpha, *, gram=False, intercept=True):
    """Normal equations of the whole problem, vectorized over the outputs: one dense solve."""
    U = dense_target(loss.target(true))
    n = len(X)
    Z = np.column_stack([X, np.ones(n)]) if intercept else X
    N, width = weight.sum(), U.shape[1]
    G = loss.score_space.gram().dense()
    penalty = np.eye(Z.shape[1])
    if intercept:
        penalty[-1, -1] = 0.0
    second = (Z * weight[:, None]).T @ Z / N
    cross = (Z * weight[:, None]).T @ -U / N
    # gradient: second·W·G − cross·G + α·penalty·W·(G or I) = 0
    right = G if gram else np.eye(width)
    system = np.kron(second, G) + alpha * np.kron(penalty, right)
    return np.linalg.lstsq(system, (cross @ G).ravel(), rcond=1e-13)[0].reshape(Z.shape[1], width)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("regularizer", ["gram", "weights"])
@pytest.mark.parametrize("intercept", [True, False])
def test_scores_solve_the_naive_normal_equations(loss, form, regularizer, intercept):
    X, true, weight = problem(loss)
    score_map = ScoreMap(LinearFeatures(5), fit_intercept=intercept)
    surrogate = QuadraticSurrogate(loss)
    solver = ClosedScores(alpha=0.2, form=form, regularizer=regularizer)
    found = solver.solve(
        surrogate, score_map, X, true, sample_weight=weight, rng=np.random.default_rng(0)
    )
    expected = naive(X, loss, true, weight, 0.2, gram=regularizer == "gram", intercept=intercept)
    Z = np.column_stack([X, np.ones(len(X))]) if intercept else X
    F = loss.score_space.matrix()
    scores = score_map.apply(found.weights, X) @ F.T
    expected_scores = Z @ expected @ F.T
    if intercept and regularizer == "weights":  # a constant in all scores is not determined
        scores = scores - scores.mean(axis=1, keepdims=True)
        expected_scores = expected_scores - expected_scores.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("sparse", [False, True])
def test_chunks_do_not_change_the_result(monkeypatch, loss, sparse):
    X, true, weight = problem(loss)
    inputs = sp.csr_array(np.where(X > 3.5, X, 0.0)) if sparse else X
    score_map = ScoreMap(LinearFeatures(5))
    run = lambda: ClosedScores(form="primal").solve(  # noqa: E731
        QuadraticSurrogate(loss),
        score_map,
        inputs,
        true,
        sample_weight=weight,
        rng=np.random.default_rng(0),
    )
    whole = run()
    monkeypatch.setattr(feature_maps, "CHUNK_BYTES", 8 * 5 * 7)  # seven rows at a time
    assert len(list(score_map.chunks(inputs))) == (6 if sparse else 9)  # sparse: by entries
    chunked = run()
    assert chunked.alpha == pytest.approx(whole.alpha)
    np.testing.assert_allclose(chunked.weights, whole.weights, atol=1e-9)


def test_sparse_inputs_give_what_dense_ones_give():
    X, true, weight = problem(ZeroOne(4), n=30, d=50)
    X = np.where(X > 3.8, X, 0.0)
    for form in ("primal", "dual"):
        results = [
            ClosedScores(alpha=0.1, form=form)
            .solve(
                QuadraticSurrogate(ZeroOne(4)),
                ScoreMap(LinearFeatures(50)),
                inputs,
                true,
                sample_weight=weight,
                rng=np.random.default_rng(0),
            )
            .weights
            for inputs in (X, sp.csr_array(X))
        ]
        np.testing.assert_allclose(results[0], results[1], atol=1e-9)


@pytest.mark.parametrize(
    "loss",
    [ZeroOne(3), Hamming(2), CostMatrix([[0, 1, 5], [2, 0, 1], [1, 1, 0]], rows="pred")],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["primal", "dual", "kernel"])
@pytest.mark.parametrize("regularizer", ["gram", "weights"])
@pytest.mark.parametrize("whole_weights", [True, False])
def test_leave_one_out_is_refitting(loss, kind, regularizer, whole_weights):
    X, true, weight = problem(loss, n=14, d=3)
    if not whole_weights:
        weight = weight + 0.25
    kernel = Kernel("rbf", 2.0)
    linear = LinearFeatures(3)
    features: FeatureMap = KernelFeatures(kernel, X) if kind == "kernel" else linear
    form: Any = "auto" if kind == "kernel" else kind
    score_map, surrogate = ScoreMap(features), QuadraticSurrogate(loss)
    alphas = [0.01, 0.3]
    solver = ClosedScores(alpha=alphas, form=form, regularizer=regularizer)
    path = solver.solve(
        surrogate, score_map, X, true, sample_weight=weight, rng=np.random.default_rng(0)
    ).path
    for position, alpha in enumerate(alphas):
        task = risk = 0.0
        for i in range(len(X)):
            # whole weights: one repetition is left out; others: the row
            rest = weight.copy()
            rest[i] -= 1.0 if whole_weights else weight[i]
            kept = rest > 0
            # the penalty N·α stays the same while N falls
            refit = ClosedScores(
                alpha=alpha * weight.sum() / rest.sum(), form=form, regularizer=regularizer
            )
            inner: FeatureMap = KernelFeatures(kernel, X[kept]) if kind == "kernel" else linear
            inner_map = ScoreMap(inner)
            found = refit.solve(
                surrogate,
                inner_map,
                X[kept],
                true[kept],
                sample_weight=rest[kept],
                rng=np.random.default_rng(0),
            )
            theta = inner_map.apply(found.weights, X[i : i + 1])
            task += weight[i] * loss(surrogate.decode(theta), true[i : i + 1])[0]
            risk += weight[i] * surrogate.value_and_gradient(theta, true[i : i + 1])[0][0]
        assert path["task_loss"][position] == pytest.approx(task / weight.sum(), abs=1e-12)
        assert path["surrogate_risk"][position] == pytest.approx(risk / weight.sum(), rel=1e-6)


def test_weights_count_repetitions():
    X, true, weight = problem(ZeroOne(3), n=25)
    rows = np.repeat(np.arange(25), weight.astype(int))
    for features in (LinearFeatures(5), None):
        results = []
        for inputs, labels, sample_weight in ((X, true, weight), (X[rows], true[rows], None)):
            map_ = ScoreMap(features or KernelFeatures(Kernel("rbf", 2.0), inputs))
            found = ClosedScores().solve(
                QuadraticSurrogate(ZeroOne(3)),
                map_,
                inputs,
                labels,
                sample_weight=sample_weight,
                rng=np.random.default_rng(0),
            )
            results.append((found.alpha, map_.apply(found.weights, X)))
        assert results[0][0] == pytest.approx(results[1][0])
        np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-7)


def test_generalized_cross_validation_by_its_definition():
    X, true, _ = problem(Hamming(2), n=40)
    alphas = np.array([0.01, 0.1, 1.0])
    found = ClosedScores(alpha=list(alphas), selection="gcv", form="primal").solve(
        QuadraticSurrogate(Hamming(2)),
        ScoreMap(LinearFeatures(5)),
        X,
        true,
        rng=np.random.default_rng(0),
    )
    Y = -dense_target(Hamming(2).target(true))
    centered = X - X.mean(axis=0)
    for alpha, value in zip(alphas, found.path["gcv"], strict=True):
        hat = (
            centered @ np.linalg.solve(centered.T @ centered + 40 * alpha * np.eye(5), centered.T)
            + 1 / 40
        )
        residual = Y - hat @ Y
        expected = (residual**2).sum() / 40 / (1 - np.trace(hat) / 40) ** 2
        assert value == pytest.approx(expected, rel=1e-9)
    assert found.alpha == alphas[found.path["gcv"].argmin()]


def test_float32_products_stay_close_to_float64():
    loss = ZeroOne(4)
    X, true, _ = problem(loss, n=5000, d=40)
    surrogate, score_map = QuadraticSurrogate(loss), ScoreMap(LinearFeatures(40))
    exact = ClosedScores(alpha=0.01).solve(
        surrogate, score_map, X, true, rng=np.random.default_rng(0)
    )
    single = ClosedScores(alpha=0.01).solve(
        surrogate, score_map, X.astype(np.float32), true, rng=np.random.default_rng(0)
    )
    np.testing.assert_allclose(single.weights, exact.weights, atol=2e-5)


def test_memory_mapped_inputs_are_read_in_chunks(tmp_path, monkeypatch):
    X, true, _ = problem(ZeroOne(4), n=1000, d=20)
    mapped = np.memmap(tmp_path / "inputs.bin", dtype=np.float32, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    monkeypatch.setattr(feature_maps, "CHUNK_BYTES", 4 * 20 * 100)
    reading = np.memmap(tmp_path / "inputs.bin", dtype=np.float32, mode="r", shape=X.shape)
    largest = 0

    class Watched(LinearFeatures):
        def transform(self, part):
            nonlocal largest
            largest = max(largest, len(part))
            return super().transform(part)

    results = [
        ClosedScores().solve(
            QuadraticSurrogate(ZeroOne(4)),
            ScoreMap(Watched(20)),
            inputs,
            true,
            rng=np.random.default_rng(0),
        )
        for inputs in (reading, np.asarray(reading).copy())
    ]
    assert largest == 100
    np.testing.assert_array_equal(results[0].weights, results[1].weights)


def test_nystroem_with_all_landmarks_is_the_exact_kernel():
    X, true, weight = problem(Tree((-1, 0, 0, 1, 1, 2)), n=40)
    surrogate = QuadraticSurrogate(Tree((-1, 0, 0, 1, 1, 2)))
    kernel = Kernel("rbf", 3.0)
    theta = []
    for features in (KernelFeatures(kernel, X), NystroemFeatures(kernel, X)):
        score_map = ScoreMap(features)
        found = ClosedScores(alpha=1e-3).solve(
            surrogate, score_map, X, true, sample_weight=weight, rng=np.random.default_rng(0)
        )
        theta.append(score_map.apply(found.weights, X + 0.1))
    np.testing.assert_allclose(theta[0], theta[1], atol=1e-6)


def test_out_of_fold_estimates_are_those_of_refits():
    """Of every row at the chosen penalty, also where only a sample of rows chose it."""
    loss = CostMatrix([[0, 1, 5], [2, 0, 1], [1, 1, 0]], rows="pred")
    X, true, weight = problem(loss, n=20, d=3)
    weight = weight + 0.5
    statistic = ClassProbabilities(loss)
    values = statistic.values(true).toarray()
    for features in (LinearFeatures(3), KernelFeatures(Kernel("rbf", 2.0), X)):
        for selection in ("task_loss", "gcv"):
            found = ClosedForm(selection=selection).solve(
                statistic,
                ScoreMap(features),
                X,
                true,
                alpha=[0.02, 0.5],
                sample_weight=weight,
                rng=np.random.default_rng(0),
            )
            np.testing.assert_array_equal(found.out_of_fold.rows, np.arange(20))
            phi = features.transform(X)
            for i in (0, 7, 19):
                kept = np.arange(20) != i
                w = weight[kept]
                # kernel features: weights are expansion coefficients, penalized by the kernel
                penalty = phi[np.ix_(kept, kept)] if phi.shape[1] == 20 else np.eye(3)
                Z = phi[np.ix_(kept, kept)] if phi.shape[1] == 20 else phi[kept]
                z = phi[i, kept] if phi.shape[1] == 20 else phi[i]
                mean_z, mean_y = w @ Z / w.sum(), w @ values[kept] / w.sum()
                Zc, yc = Z - mean_z, values[kept] - mean_y
                system = (Zc * w[:, None]).T @ Zc + weight.sum() * found.alpha * penalty
                coef = np.linalg.lstsq(system, (Zc * w[:, None]).T @ yc, rcond=None)[0]
                expected = mean_y + (z - mean_z) @ coef
                np.testing.assert_allclose(found.out_of_fold.expected[i], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": -1.0}, "alpha must be a finite number in"),
        ({"alpha": "best"}, "alpha must be 'auto', a non-negative number or a list"),
        ({"alpha": []}, "alpha must not be an empty list"),
        ({"selection": "cv"}, "selection must be one of 'auto', 'task_loss', 'surrogate'"),
        ({"regularizer": "l1"}, "regularizer must be one of 'gram', 'weights', got 'l1'"),
        ({"form": "both"}, "form must be one of 'auto', 'primal', 'dual', got 'both'"),
    ],
)
def test_wrong_arguments(arguments, message):
    X, true, _ = problem(ZeroOne(4))
    with pytest.raises(ValueError, match=message):
        ClosedScores(**arguments).solve(
            QuadraticSurrogate(ZeroOne(4)),
            ScoreMap(LinearFeatures(5)),
            X,
            true,
            rng=np.random.default_rng(0),
        )


def test_products_beyond_floats_are_one_clear_line():
    X = (1e25 * np.random.default_rng(0).normal(size=(80, 3))).astype(np.float32)
    ridge = Ridge("linear", solver="closed_form", standardize=False)
    with pytest.raises(ValueError, match="divide the columns of X by their largest values"):
        TaskLossClassifier("zero_one", ridge).fit(X, np.arange(80) % 2)
