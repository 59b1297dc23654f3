"""Kernel ridge by Cholesky factors against refits, eigenvalues and dense formulas."""

import numpy as np
import pytest

from consistruct.learning.models.features import feature_choice, feature_maps
from consistruct.learning.models.features.feature_maps import Kernel, KernelFeatures, ScoreMap
from consistruct.learning.models.ridge import closed_form
from consistruct.learning.models.ridge.closed_form import DualRidge
from consistruct.learning.models.ridge.kernel_cholesky import CholeskyRidge, choose_by_factors
from consistruct.learning.models.ridge.selection import (
    OutputPenalty,
    Selection,
    ValidationRows,
    out_of_fold_share,
)
from consistruct.learning.statistics import TargetValues
from consistruct.losses import Block, CostMatrix, Hamming, Tree, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.surrogates import QuadraticSurrogate
from tests.learning.estimators import ClosedScores, classifier

KERNEL = Kernel("rbf", 2.0)
LOSSES = [ZeroOne(3), Hamming(2), CostMatrix([[0, 1, 5], [2, 0, 1], [1, 1, 0]], rows="pred")]


def problem(loss, n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3.0
    return X, loss.true_labels.sample(n, rng), rng.integers(1, 4, size=n).astype(float)


def ridge(X, loss, true, weight, *, fit_intercept=True, largest=np.inf):
    """By default no penalty is large enough for float32."""
    return CholeskyRidge(
        KERNEL(X, X),
        loss.target(true),
        weight,
        OutputPenalty.gram(loss.score_space.width),
        fit_intercept=fit_intercept,
        largest_eigenvalue=largest,
    )


def refitted(X, y, weight, new, strength, fit_intercept):
    """min Σ w_i ‖y_i − Σ_j k(x_i, x_j)c_j − b‖² + λ tr(cᵀKc) by its stationary equations."""
    K, n = KERNEL(X, X), len(X)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K * weight[:, None] + strength * np.eye(n)
    system[:n, n] = weight
    system[n, :n] = weight @ K
    system[n, n] = weight.sum()
    right = np.vstack([weight[:, None] * y, weight @ y])
    if not fit_intercept:
        system, right = system[:n, :n], right[:n]
    solution = np.linalg.solve(system, right)
    return KERNEL(new, X) @ solution[:n] + (solution[n] if fit_intercept else 0.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", ["ones", "whole", "real"])
def test_leave_one_out_is_refitting_without_the_row(loss, fit_intercept, weights):
    X, true, weight = problem(loss, n=12)
    weight = {"ones": np.ones(12), "whole": weight, "real": weight + 0.25}[weights]
    y = dense_target(loss.target(true))
    found = ridge(X, loss, true, weight, fit_intercept=fit_intercept)
    alpha = 0.02
    theta, _, _ = found.leave_one_out(alpha, out_of_fold_share(weight))
    for i in range(12):
        rest = weight.copy()
        rest[i] -= weight[i] if weights == "real" else 1.0
        kept = rest > 0
        expected = refitted(
            X[kept], y[kept], rest[kept], X[i : i + 1], weight.sum() * alpha, fit_intercept
        )
        np.testing.assert_allclose(theta[i], expected[0], atol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_solution_and_intercept_are_the_stationary_point(fit_intercept):
    loss = Hamming(2)
    X, true, weight = problem(loss)
    found = ridge(X, loss, true, weight, fit_intercept=fit_intercept)
    expansion = found.expansion(0.02)
    new = X + 0.3
    theta = KERNEL(new, X) @ expansion + found.intercept(expansion)
    y = dense_target(loss.target(true))
    expected = refitted(X, y, weight, new, weight.sum() * 0.02, fit_intercept)
    np.testing.assert_allclose(theta, expected, atol=1e-9)


def test_single_precision_stays_close_where_the_penalty_allows_it():
    loss = ZeroOne(3)
    X, true, weight = problem(loss, n=200)
    largest = float(np.linalg.eigvalsh(KERNEL(X, X) * np.sqrt(np.outer(weight, weight)))[-1])
    share = out_of_fold_share(weight)
    exact, _, freedom = ridge(X, loss, true, weight).leave_one_out(1e-3, share)
    found = ridge(X, loss, true, weight, largest=largest)
    assert found._factor(1e-3)[0].dtype == np.float32
    assert found._factor(1e-9)[0].dtype == np.float64  # too small for seven digits
    single, _, single_freedom = found.leave_one_out(1e-3, share)
    np.testing.assert_allclose(single, exact, atol=2e-3)
    assert single_freedom == pytest.approx(freedom, rel=1e-3)


def test_generalized_cross_validation_by_its_definition():
    loss = Hamming(2)
    X, true, _ = problem(loss)
    n, alpha = len(X), 0.02
    centering = np.eye(n) - 1.0 / n
    K = centering @ KERNEL(X, X) @ centering
    hat = K @ np.linalg.inv(K + n * alpha * np.eye(n)) + 1.0 / n
    y = dense_target(loss.target(true))
    expected = ((y - hat @ y) ** 2).sum() / n / (1 - np.trace(hat) / n) ** 2
    found = ridge(X, loss, true, np.ones(n)).generalized_cross_validation(alpha)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("selection", ["task_loss", "surrogate", "gcv"])
@pytest.mark.parametrize("loss", [*LOSSES, Tree((-1, 0, 0, 1, 1, 2))], ids=repr)
def test_the_solver_chooses_and_predicts_as_with_eigenvalues(monkeypatch, selection, loss):
    X, true, weight = problem(loss, n=60)
    alphas = [1e-6, 1e-4, 1e-2, 1.0]
    results = []
    for limit in (3072, 10):
        monkeypatch.setattr(closed_form, "EIGEN_ROWS", limit)
        score_map = ScoreMap(KernelFeatures(KERNEL, X))
        found = ClosedScores(alpha=alphas, selection=selection).solve(
            QuadraticSurrogate(loss),
            score_map,
            X,
            true,
            sample_weight=weight,
            rng=np.random.default_rng(0),
        )
        results.append((found, score_map.apply(found.weights, X + 0.1)))
    (eigen, eigen_theta), (cholesky, cholesky_theta) = results
    assert cholesky.alpha == eigen.alpha
    for name, values in eigen.path.items():
        np.testing.assert_allclose(cholesky.path[name], values, rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(cholesky_theta, eigen_theta, atol=1e-6)


def test_one_given_penalty_is_factorized_once(monkeypatch):
    loss = ZeroOne(3)
    X, true, weight = problem(loss, n=60)
    monkeypatch.setattr(closed_form, "EIGEN_ROWS", 10)
    monkeypatch.setattr(closed_form, "DualRidge", None)  # nothing is decomposed
    score_map = ScoreMap(KernelFeatures(KERNEL, X))
    found = ClosedScores(alpha=0.02).solve(
        QuadraticSurrogate(loss),
        score_map,
        X,
        true,
        sample_weight=weight,
        rng=np.random.default_rng(0),
    )
    y = dense_target(loss.target(true))
    expected = -refitted(X, y, weight, X + 0.3, weight.sum() * 0.02, True)
    np.testing.assert_allclose(score_map.apply(found.weights, X + 0.3), expected, atol=1e-9)


@pytest.mark.parametrize("start", [1e-8, 1e-3, 10.0])
@pytest.mark.parametrize("selection", ["surrogate", "gcv"])
def test_the_walk_ends_where_both_neighbors_are_worse(start, selection):
    loss = ZeroOne(3)
    X, _, _ = problem(loss, n=80)
    true = (X[:, 0] > 3.0).astype(int) + (X[:, 1] > 3.5)
    weight = np.ones(80)
    surrogate = QuadraticSurrogate(loss)
    choice, estimates = choose_by_factors(
        ridge(X, loss, true, weight, largest=1e9),
        Selection(None, selection),
        start,
        ValidationRows.of(TargetValues(loss), true, weight),
    )
    alpha, path = choice.alpha, choice.path
    assert estimates.shape == (80, 3)
    scores = path["gcv" if selection == "gcv" else "surrogate_risk"]
    place = int(np.flatnonzero(path["alphas"] == alpha)[0])
    assert 0 < place < len(scores) - 1
    np.testing.assert_allclose(np.diff(np.log10(path["alphas"])), 0.5)  # no candidate is skipped
    assert scores[place] <= scores[[place - 1, place + 1]].min() + 1e-3
    whole = DualRidge(
        KERNEL(X, X), loss.target(true), weight, OutputPenalty.gram(3), fit_intercept=True
    )
    for tried in path["alphas"]:
        theta = whole.spectrum.leave_one_out(
            whole.rows, weight, weight, dense_target(loss.target(true)), float(tried)
        )
        risk = surrogate.value_and_gradient(-theta, true)[0].mean()
        if selection == "surrogate":
            at = int(np.flatnonzero(path["alphas"] == tried)[0])
            # at alpha = 1e-8 the kernel matrix has a condition number of about 1e10, and two
            # factorizations agree to 2e-6 on some processors
            assert scores[at] == pytest.approx(risk, rel=1e-5)


def test_a_singular_matrix_is_an_error_that_states_what_to_do():
    X = np.zeros((5, 2))
    found = ridge(X, ZeroOne(2), np.array([0, 1, 0, 1, 0]), np.ones(5))
    with pytest.raises(ValueError, match=r"alpha=0 is too small for a kernel matrix of 5 rows"):
        found.expansion(0.0)


def test_outputs_with_different_penalties_are_refused():
    loss = Block((1, 5, 3))
    X, true, weight = problem(loss)
    with pytest.raises(ValueError, match="outputs with equal penalties"):
        CholeskyRidge(
            KERNEL(X, X),
            loss.target(true),
            weight,
            OutputPenalty.weights(loss.score_space),
            fit_intercept=True,
            largest_eigenvalue=1.0,
        )


def test_auto_features_are_exact_above_the_number_of_landmarks(monkeypatch):
    monkeypatch.setattr(feature_maps, "DEFAULT_COMPONENTS", 20)
    monkeypatch.setattr(feature_choice, "EXACT_ROWS", 50)
    monkeypatch.setattr(closed_form, "EIGEN_ROWS", 30)
    X, true, _ = problem(ZeroOne(3), n=60)
    exact = classifier(random_state=0).fit(X[:50], true[:50])
    assert isinstance(exact.model_.feature_map_, KernelFeatures)
    assert len(exact.path_["alphas"]) < 21  # walked, not decomposed
    for options in ({"n_components": 20}, {"features": "nystroem"}, {"solver": "sgd"}):
        other = classifier(random_state=0, **options).fit(X[:50], true[:50])
        assert not isinstance(other.model_.feature_map_, KernelFeatures)
    above = classifier(random_state=0).fit(X, true)
    assert not isinstance(above.model_.feature_map_, KernelFeatures)
