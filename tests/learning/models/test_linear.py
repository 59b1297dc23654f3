"""Linear: against logistic regression, against means in cells, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from consistruct.decisions.statistics import ClassProbabilities
from consistruct.exceptions import CapabilityError
from consistruct.learning import TaskLossClassifier
from consistruct.learning.models.linear import Linear
from consistruct.learning.models.prepared import Prepared
from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
from consistruct.learning.models.solvers.lbfgs import LBFGS
from consistruct.learning.statistics import TargetValues
from consistruct.losses import NDCG, CostMatrix, Hamming, Ordinal, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.structures import Full
from consistruct.surrogates import SURROGATES, LogSurrogate

X, Y = load_iris(return_X_y=True)
COSTS = CostMatrix([[0, 1, 1], [1, 0, 1], [1, 9, 0]], rows="pred")
TRAINABLE = list(SURROGATES)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def fitted(*arguments: Any, loss: Any = None, X: Any = X, y: Any = Y, **settings: Any) -> Linear:
    statistic = ClassProbabilities(ZeroOne(3) if loss is None else loss)
    return Linear(*arguments, **settings).fit(X, y, statistic, rng=rng())


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_log_loss_is_logistic_regression(alpha: float, sparse: bool) -> None:
    """alpha is against the mean over the rows: C = 1/(alpha·n) of scikit-learn's."""
    inputs = sp.csr_array(X) if sparse else X
    model = fitted("log", alpha=alpha, X=inputs)
    peer = LogisticRegression(C=1 / (alpha * len(Y)), tol=1e-10, max_iter=5000).fit(X, Y)
    np.testing.assert_allclose(model.expected(inputs), peer.predict_proba(X), atol=1e-4)
    assert (model.coef_.shape, model.intercept_.shape) == ((3, 4), (3,))


def cells(loss: Any, n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """One column per cell: linear scores can then be anything in each of three cells."""
    generator = np.random.default_rng(seed)
    return np.eye(3)[np.arange(n) % 3], loss.true_labels.sample(n, generator)


@pytest.mark.parametrize("name", [n for n in TRAINABLE if SURROGATES[n].cls(COSTS).has_link])
@pytest.mark.parametrize("loss", [ZeroOne(3), COSTS, Ordinal(3, 2.0)], ids=repr)
def test_links_lead_to_the_mean_in_each_cell(name: str, loss: Any) -> None:
    """Without a penalty and with free scores the minimizer tells the mean target, by its link."""
    inputs, true = cells(loss)
    model = Linear(name, alpha=0.0, fit_intercept=False, solver=LBFGS(tol=1e-9)).fit(
        inputs, true, ClassProbabilities(loss), rng=rng()
    )
    statistic = model.statistic_
    targets = dense_target(loss.target(true))
    F = loss.score_space.matrix()
    for cell in range(3):
        rows = np.arange(len(true)) % 3 == cell
        mean = F @ targets[rows].mean(axis=0)  # E[L(c, y)] − E[offset] for every prediction c
        found = F @ statistic.target(model.expected(inputs[rows][:1]))[0]
        np.testing.assert_allclose(found - found[0], mean - mean[0], atol=2e-3)
    expected = isinstance(statistic, ClassProbabilities)
    assert expected == hasattr(model.surrogate_, "probabilities")


def test_label_sets_by_the_log_loss_over_all_sets() -> None:
    loss = Hamming(2)
    inputs, true = cells(loss)
    model = Linear(alpha=0.0, fit_intercept=False).fit(inputs, true, TargetValues(loss), rng=rng())
    mean = dense_target(loss.target(true[::3])).mean(axis=0)
    np.testing.assert_allclose(model.expected(inputs[:1])[0], mean, atol=1e-3)


@pytest.mark.parametrize("name", TRAINABLE)
@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_every_surrogate_that_can_be_trained_learns_iris(name: str, solver: str) -> None:
    surrogate = SURROGATES[name].cls(ZeroOne(3))
    decoding = "bayes" if surrogate.has_link else "argmax"
    if solver == "lbfgs" and not surrogate.smooth:
        with pytest.raises(CapabilityError, match="use solver='sgd'"):
            fitted(name, solver=solver, decoding=decoding)
        return
    model = fitted(name, solver=solver, decoding=decoding, standardize=True)
    pred = model.decisions(X)
    assert (pred == Y).mean() > 0.75  # linear-regret is flat near its minimum
    assert model.estimates == surrogate.has_link
    assert model.decides == (decoding == "argmax")


@pytest.mark.parametrize("decoding", ["bayes", "argmax"])
def test_a_transformer_in_front_keeps_the_decoding(decoding: str) -> None:
    model = Linear("log", alpha=0.1, decoding=decoding)
    plain = TaskLossClassifier(COSTS, model).fit(StandardScaler().fit_transform(X), Y)
    prepared = TaskLossClassifier(COSTS, Prepared(StandardScaler(), model)).fit(X, Y)
    assert prepared.model_.decides == (decoding == "argmax")
    assert (prepared.predict(X) == plain.predict(StandardScaler().fit_transform(X))).all()


def test_models_that_only_rank_say_so() -> None:
    model = TaskLossClassifier(
        "zero_one", Linear("hinge", decoding="argmax", solver="sgd"), random_state=0
    ).fit(X, Y)
    assert (model.predict(X) == Y).mean() > 0.8
    with pytest.raises(CapabilityError, match="only ranks"):
        model.predict_expected_loss(X)
    with pytest.raises(ValueError, match="'hinge' only ranks predictions; use decoding='argmax'"):
        fitted("hinge", solver="sgd")


def test_argmax_follows_scores_and_bayes_the_costs() -> None:
    greedy = TaskLossClassifier(COSTS, Linear("log", decoding="argmax", alpha=0.01)).fit(X, Y)
    careful = TaskLossClassifier(COSTS, Linear("log", alpha=0.01)).fit(X, Y)
    distribution = careful.model_.expected(X)
    np.testing.assert_array_equal(greedy.predict(X), distribution.argmax(axis=1))
    assert careful.task_losses(X, Y).mean() < greedy.task_losses(X, Y).mean()
    np.testing.assert_allclose(careful.predict_proba(X).sum(axis=1), 1.0)


def test_probabilities_serve_another_loss() -> None:
    model = TaskLossClassifier("zero_one", Linear("log", alpha=0.01)).fit(X, Y)
    direct = TaskLossClassifier(COSTS, Linear("log", alpha=0.01)).fit(X, Y)
    model.set_loss(COSTS)
    np.testing.assert_array_equal(model.predict(X), direct.predict(X))


def test_features_and_standardized_inputs() -> None:
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(
        fitted(alpha=0.1, standardize=True).expected(X),
        fitted(alpha=0.1, X=scaled).expected(scaled),
        atol=1e-5,
    )
    np.testing.assert_allclose(
        fitted(alpha=0.1, features=StandardScaler()).expected(X),
        fitted(alpha=0.1, X=scaled).expected(scaled),
        atol=1e-5,
    )
    for features in ("rbf", "auto", "nystroem", "random"):
        model = fitted(features=features)
        assert (model.decisions(X) == Y).mean() > 0.9


def test_scores_of_another_space() -> None:
    loss = Hamming(2)
    inputs, true = cells(loss)
    given = (inputs, true, TargetValues(loss))
    settings: Any = {"alpha": 0.01}
    by_name = Linear(scores="full", **settings).fit(*given, rng=rng())
    by_space = Linear(scores=Full(loss), **settings).fit(*given, rng=rng())
    by_array = Linear(scores=np.eye(4), **settings).fit(*given, rng=rng())
    np.testing.assert_array_equal(by_name.weights_, by_space.weights_)
    np.testing.assert_allclose(by_name.expected(inputs), by_array.expected(inputs), atol=1e-6)
    with pytest.raises(ValueError, match="scores must be None, 'full', a score space or an array"):
        Linear(scores="half").fit(*given, rng=rng())


def test_partial_fit_goes_on() -> None:
    model, generator = Linear(solver="sgd"), rng()
    statistic = ClassProbabilities(ZeroOne(3))
    for _ in range(20):
        model.partial_fit(X, Y, statistic, rng=generator)
    assert model.n_iter_ == 20
    assert (model.decisions(X) == Y).mean() > 0.9
    assert Linear(solver=AveragedSGD()).can_stream
    assert not Linear().can_stream
    with pytest.raises(ValueError, match="partial_fit needs solver='sgd', got 'lbfgs'"):
        Linear().partial_fit(X, Y, statistic, rng=generator)


def test_streams_through_the_estimator() -> None:
    model = TaskLossClassifier("zero_one", Linear(solver="sgd"), random_state=0)
    for _ in range(20):
        model.partial_fit(X, Y, classes=[0, 1, 2])
    assert (model.predict(X) == Y).mean() > 0.9


def test_a_weight_of_two_is_a_row_twice() -> None:
    weight = np.where(np.arange(len(Y)) < 40, 2.0, 1.0)
    statistic = ClassProbabilities(ZeroOne(3))
    weighted = Linear(alpha=0.01).fit(X, Y, statistic, sample_weight=weight, rng=rng())
    doubled = fitted(alpha=0.01, X=np.vstack([X, X[:40]]), y=np.concatenate([Y, Y[:40]]))
    np.testing.assert_allclose(weighted.expected(X), doubled.expected(X), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"surrogate": "nonsense"}, "surrogate must be one of"),
        ({"decoding": "viterbi"}, "decoding must be 'bayes' or 'argmax', got 'viterbi'"),
        ({"solver": "closed_form"}, "solver must be one of sgd, paper_sgd, lbfgs"),
        ({"alpha": [0.1, 1.0]}, "alpha must be one number or 'auto' for iterative solvers"),
        ({"alpha": -1.0}, "alpha must be a finite number"),
        ({"solver": "paper_sgd", "surrogate": "quadratic", "alpha": 5.0}, "has no penalty but"),
        ({"features": "wild"}, "features must be one of"),
        # settings that would have no effect
        ({"kernel": "laplace"}, "kernel='laplace' has an effect only with features 'auto'"),
        ({"bandwidth": 2.0}, "bandwidth=2.0 has an effect only with a kernel"),
        ({"n_components": 5}, "n_components=5 has an effect only with features 'auto', 'nystroem'"),
        (
            {"features": "rbf", "degree": 4},
            "degree=4 has an effect only with the polynomial kernel",
        ),
        ({"coef0": 4.0}, "coef0=4.0 has an effect only with the polynomial kernel"),
        ({"features": StandardScaler(), "standardize": True}, "standardize=True has an effect"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(**settings)


def test_an_offset_that_depends_on_the_true_label_needs_a_distribution_of_true_labels() -> None:
    loss = NDCG(2)
    inputs, true = cells(loss)
    with pytest.raises(ValueError, match=r"for NDCG\(2\), 'quadratic' only ranks"):
        Linear("quadratic").fit(inputs, true, TargetValues(loss), rng=rng())
    model = Linear("quadratic", decoding="argmax", alpha=0.0, fit_intercept=False)
    model.fit(inputs, true, TargetValues(loss), rng=rng())
    F, targets = loss.score_space.matrix(), dense_target(loss.target(true))
    labels = loss.predictions.enumerate()
    best = labels[(targets[::3].mean(axis=0) @ F.T).argmin()]
    np.testing.assert_array_equal(model.decisions(inputs[:1])[0], best)
    with pytest.raises(CapabilityError, match="only ranks predictions; use 'log' or Ridge"):
        model.expected(inputs)


def test_the_class_of_a_surrogate_is_as_good_as_its_name() -> None:
    one, two = fitted("log", alpha=0.1), fitted(LogSurrogate, alpha=0.1)
    np.testing.assert_array_equal(one.weights_, two.weights_)
