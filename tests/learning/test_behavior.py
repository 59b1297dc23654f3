"""What users of the estimators see: names, shapes, weights, parameters, scores, errors."""

import logging

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from consistruct.exceptions import CapabilityError, LossSpecError
from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
from consistruct.losses import (
    Abstain,
    Block,
    CostMatrix,
    CostVectors,
    Hamming,
    Mixed,
    Ordinal,
    Tree,
)
from consistruct.metrics import TaskLossScorer
from tests.learning.estimators import classifier, predictor

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def linear(*arguments, **options):
    return classifier(*arguments, **{"features": "linear", "random_state": 0, **options})


def test_class_names_of_any_type():
    plain = linear().fit(X, y).predict(X)
    for labels in (NAMES[y], NAMES[y].astype(object), y * 10 - 5, y.astype(bool)):
        model = linear().fit(X, labels)
        codes = np.unique(labels, return_inverse=True)[1]
        expected = plain if len(model.classes_) == 3 else linear().fit(X, codes).predict(X)
        np.testing.assert_array_equal(model.predict(X), model.classes_[expected])
        assert model.predict(X).dtype == labels.dtype


def test_named_costs_map_true_labels_and_predictions():
    loss = CostMatrix(
        [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0.2, 0.2, 0.2]],
        pred_names=("setosa", "versicolor", "virginica", "ask"),
        true_names=("setosa", "versicolor", "virginica"),
        rows="pred",
    )
    model = linear(loss).fit(X, NAMES[y])
    assert {"setosa", "ask"} <= set(model.predict(X).tolist()) <= set(loss.pred_names or ())
    with pytest.raises(
        ValueError, match="y contains 'lily', which is not a class of CostMatrix; its classes"
    ):
        linear(loss).fit(X, np.where(y == 2, "lily", NAMES[y]))
    shuffled = CostMatrix(
        loss.M[:3][::-1, ::-1], NAMES[::-1].tolist(), NAMES[::-1].tolist(), rows="pred"
    )
    np.testing.assert_array_equal(
        linear(shuffled).fit(X, NAMES[y]).predict(X), linear().fit(X, NAMES[y]).predict(X)
    )


def test_sizes_come_from_y_and_wrong_ones_are_refused():
    assert linear("ordinal").fit(X, y).loss_ == Ordinal(3)
    assert linear("abstain::0.4").fit(X, y).loss_ == Abstain(3, 0.4)
    assert linear(Ordinal(5)).fit(X, y).loss_ == Ordinal(5)  # codes 0..4, two of them unseen
    with pytest.raises(
        ValueError, match=r"Ordinal\(5\) is over 5 classes, but y contains 3 different"
    ):
        linear(Ordinal(5)).fit(X, 10 * y)
    with pytest.raises(LossSpecError, match="unknown loss 'zero'"):
        linear("zero").fit(X, y)
    with pytest.raises(
        TypeError,
        match="loss must be a Loss, a spec such as 'zero_one' or a table of costs, got int",
    ):
        linear(3).fit(X, y)
    with pytest.raises(ValueError, match="is a loss over classes and needs y of shape"):
        predictor(Ordinal(3), features="linear").fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("labels", [NAMES[y], y, y + 5], ids=["names", "codes", "numbers"])
def test_abstaining_has_a_label_of_its_own(labels):
    predictions = linear("abstain::0.1").fit(X, labels).predict(X)
    extra = set(predictions.tolist()) - set(labels.tolist())
    assert extra == {"abstain" if labels.dtype.kind == "U" else 3 if labels[0] == 0 else -1}


def test_multilabel_matrices():
    features, labels = make_multilabel_classification(n_classes=4, random_state=0)
    model = linear("hamming").fit(features, labels)
    assert model.loss_ == Hamming(4)
    scores = model.decision_function(features)
    np.testing.assert_array_equal(model.predict(features), (scores > 0).astype(int))
    assert model.score(features, labels) == -np.mean(model.predict(features) != labels)
    np.testing.assert_array_equal(
        linear("hamming").fit(features, sp.csr_matrix(labels)).predict(features),
        model.predict(features),
    )


def test_decision_function_agrees_with_predictions():
    for model in (linear("ordinal"), linear(surrogate="log", alpha=0.01)):
        scores = model.fit(X, y).decision_function(X)
        np.testing.assert_array_equal(scores.argmax(axis=1), model.predict(X))
    binary = linear().fit(X[:100], NAMES[y[:100]])
    np.testing.assert_array_equal(
        NAMES[(binary.decision_function(X[:100]) > 0).astype(int)], binary.predict(X[:100])
    )


def test_expected_losses_are_prices_of_decisions():
    """In the range of the loss; the prediction costs least but for near ties; right on average.

    Expected losses are matched with the losses that occurred, which decisions do not follow."""
    costs = CostMatrix([[0, 3, 3], [1, 0, 1], [2, 4, 0]], rows="pred")
    model = linear(costs).fit(X, y)
    prices = model.expected_losses(X)
    assert prices.shape == (150, 3)
    assert prices.min() >= 0.0
    assert prices.max() <= 4.0
    predicted = prices[np.arange(150), np.searchsorted(model.classes_, model.predict(X))]
    assert (predicted - prices.min(axis=1)).max() <= 0.1
    assert (predicted == prices.min(axis=1)).mean() >= 0.98
    np.testing.assert_allclose(model.predict_expected_loss(X), predicted)
    distribution = model.predict_proba(X)
    np.testing.assert_allclose(distribution.sum(axis=1), 1.0)
    np.testing.assert_allclose(prices, distribution @ costs.M.T)
    for label in range(3):
        occurred = costs(np.full(len(X), label), y).mean()
        assert prices[:, label].mean() == pytest.approx(occurred, rel=0.1)


def test_the_loss_can_be_changed_after_fitting():
    """Probabilities of classes serve every loss over them; targets only their own."""
    costly = CostMatrix([[0, 1, 1], [1, 0, 20], [1, 1, 0]], rows="pred")
    model = linear().fit(X, y)
    before = model.predict(X)
    changed = model.set_loss(costly)
    assert changed is model
    assert model.loss_ == costly
    prices = model.predict_proba(X) @ costly.M.T
    np.testing.assert_array_equal(model.predict(X), prices.argmin(axis=1))
    assert (model.predict(X) != before).any()
    assert model.set_loss("ordinal").loss_ == Ordinal(3)
    with pytest.raises(ValueError, match="not over the 3 classes"):
        model.set_loss(Ordinal(5))
    targets = classifier(features="linear", regularizer="weights").fit(X, y)
    with pytest.raises(CapabilityError, match="fit again with the new loss"):
        targets.set_loss(costly)


def test_unseen_true_labels_count_as_wrong():
    model = linear("ordinal").fit(X[:100], y[:100])
    np.testing.assert_array_equal(model.task_losses(X[:2], [7, 8]), [1.0, 1.0])
    assert model.score(X[100:], y[100:]) == -1.0
    parts = predictor("hamming", features="linear").fit(X[:100], np.column_stack([y, y])[:100])
    prediction = parts.predict(X[:1])[0]
    np.testing.assert_array_equal(parts.task_losses(X[:1], [[prediction[0], 9]]), [0.5])


def test_grid_search_over_fields_of_the_loss_and_settings_of_the_model():
    loss = Mixed(None, 0.4, assignment=(0, 1, 1))
    search = GridSearchCV(
        linear(loss), {"loss__eta": [0.1, 0.9]}, scoring=TaskLossScorer("zero_one")
    )
    assert search.fit(X, y).best_estimator_.loss_.eta == search.best_params_["loss__eta"]
    search = GridSearchCV(linear(), {"model__alpha": [1e-3, 1e3]})
    assert search.fit(X, y).best_params_ == {"model__alpha": 1e-3}
    model = linear(loss)
    assert model.get_params()["loss__eta"] == 0.4
    assert clone(model).set_params(loss__eta=0.7).loss == Mixed(None, 0.7, assignment=(0, 1, 1))
    assert model.loss is loss
    with pytest.raises(ValueError, match="Mixed has no field 'beta'; its fields are sizes, eta"):
        model.set_params(loss__beta=1.0)
    with pytest.raises(
        ValueError, match="loss__eta changes a field of a loss object, but loss is 'zero_one'"
    ):
        linear().set_params(loss__eta=1.0)


def test_pandas_in_and_pipelines():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = linear().fit(frame, pd.Series(NAMES[y]))
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="X lacks the column 'a'"):
        model.predict(frame.rename(columns={"a": "z"}))
    pipeline = make_pipeline(StandardScaler(), linear()).set_output(transform="pandas")
    assert pipeline.fit(frame, y).score(frame, y) > -0.2
    inner = classifier(features=PolynomialFeatures(2).set_output(transform="pandas"))
    assert inner.fit(frame, y).score(frame, y) > -0.05


def test_class_weight_shifts_decisions():
    light = linear(class_weight={0: 1, 1: 1, 2: 0.01}).fit(X, y).predict(X)
    assert (light == 2).sum() < (linear().fit(X, y).predict(X) == 2).sum()
    balanced = linear(class_weight="balanced").fit(X[:110], y[:110])
    weights = np.where(y[:110] == 2, 110 / 30, 110 / 150)
    by_hand = linear().fit(X[:110], y[:110], sample_weight=weights)
    np.testing.assert_allclose(balanced.model_.coef_, by_hand.model_.coef_)


@pytest.mark.parametrize("labels", [y, np.column_stack([y, y > 0])], ids=["classes", "parts"])
def test_partial_fit_in_batches_learns(labels):
    loss = "zero_one" if labels.ndim == 1 else Hamming(2, 3)
    make = classifier if labels.ndim == 1 else predictor
    settings = {"features": "linear", "standardize": True, "random_state": 0}
    model = make(loss, solver=AveragedSGD(batch_size=4), **settings)
    order = np.random.default_rng(0).permutation(150)
    first = {"classes": [0, 1, 2]} if labels.ndim == 1 else {}
    for _ in range(8):
        for batch in np.array_split(order, 3):
            model.partial_fit(X[batch], labels[batch], **first)
    assert model.model_.n_iter_ == 24
    closed = make(loss, **settings).fit(X, labels)
    assert model.score(X, labels) > closed.score(X, labels) - 0.05


def test_partial_fit_announces_what_it_needs():
    model = linear(solver="sgd").partial_fit(X[:100], y[:100])
    with pytest.raises(
        ValueError, match="which was not among the classes of the first call of partial_fit"
    ):
        model.partial_fit(X, y)
    with pytest.raises(AttributeError, match="partial_fit"):
        linear(solver="closed_form").partial_fit  # noqa: B018
    assert not hasattr(linear(surrogate="log"), "partial_fit")


def test_structured_labels_of_other_shapes():
    costs = np.abs(np.subtract.outer(y, np.arange(3))).astype(float)
    model = predictor(CostVectors(3, 2.0), features="linear").fit(X, costs)
    ordinal = predictor("ordinal", features="linear", regularizer="weights").fit(X, y)
    assert model.score(X, costs) == pytest.approx(ordinal.score(X, y), abs=0.05)
    names = np.array(["B", "I", "O"])[np.column_stack([y, y, 2 - y])]
    parts = predictor(features="linear").fit(X, names)
    assert parts.loss_ == Hamming(3, 3)
    assert set(np.unique(parts.predict(X))) <= {"B", "I", "O"}
    with pytest.raises(ValueError, match=r"y must contain states in 0\.\.1, got 2"):
        predictor(Hamming(2)).fit(X, np.column_stack([y, y]))


def test_losses_change_the_decisions_they_should():
    """Versicolor (1) where virginica (2) is true is made expensive: it must become rarer."""
    costly = CostMatrix([[0, 1, 1], [1, 0, 20], [1, 1, 0]], rows="pred")
    plain, careful = linear().fit(X, y), linear(costly).fit(X, y)
    errors = [((model.predict(X) == 1) & (y == 2)).sum() for model in (plain, careful)]
    assert errors[1] < errors[0]
    assert careful.score(X, y) > -np.mean(costly(plain.predict(X), y))
    blocks = linear(Block((1, 2))).fit(X, y).predict(X)
    assert set(blocks) == {0, 1}  # the first label stands for its block
    tree = Tree((-1, 0, 0, 2, 2))
    assert linear(tree).fit(X, y).loss_ == tree


def test_verbose_speaks_through_logging(caplog):
    with caplog.at_level(logging.INFO, logger="consistruct"):
        linear(verbose=1).fit(X, y)
    assert "leave-one-out task loss" in caplog.text
    caplog.clear()
    linear().fit(X, y)
    assert not caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"surrogate": "log", "decoding": "max"}, "decoding must be"),
        ({"surrogate": "newest"}, "surrogate must be one of"),
        ({"solver": "newton"}, "solver must be 'auto', 'moments', one of closed_form, cg, sgd"),
        ({"regularizer": "l1"}, "regularizer must be one of"),
        ({"solver": "sgd", "regularizer": "weights"}, "needs solver='closed_form'"),
        ({"time_limit": 5.0}, "ends the trial of several models, but Ridge is one; omit it"),
        ({"n_jobs": 0}, "n_jobs must be None, a number of workers such as 2, or -1 .* got 0"),
        ({"n_jobs": "2"}, "n_jobs must be None, .* got '2'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        linear(**options).fit(X, y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.where(y == 0, None, NAMES[y]), "y is missing in 50 rows .*drop these rows"),
        (y.astype(object), r"contains int; drop .* y.astype\(int\)"),
        ([["a"], ["b", "c"], []] * 50, "lists of different lengths; .*MultiLabelBinarizer"),
        (np.eye(3, dtype=int)[y], "'zero_one' is a loss over classes .* such as 'hamming'"),
    ],
)
def test_labels_of_no_use_are_refused_with_a_remedy(labels, message):
    with pytest.raises(ValueError, match=message):
        linear().fit(X, labels)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.where(y == 0, None, NAMES[y]), "all words or all numbers, got NoneType and str"),
        (np.zeros(len(y)), "all rows are of one group"),
    ],
)
def test_groups_that_cannot_be_held_out(groups, message):
    with pytest.raises(ValueError, match=message):
        linear(cv=3).fit(X, y, groups=groups)


def test_words_in_a_table_for_numbers_name_the_ways_out():
    table = pd.DataFrame(X, columns=list("abcd")).assign(town="Ulm")
    message = r"contains words .*'Ulm'.*model='auto', .* or Prepared\(transformer, Ridge\(\)\)"
    with pytest.raises(ValueError, match=message):
        linear().fit(table, y)


def test_folds_that_can_be_read_once_are_refused():
    with pytest.raises(TypeError, match=r"read only once; pass list\(cv\)"):
        linear(cv=KFold(3).split(X)).fit(X, y)


def test_another_loss_may_have_other_predictions():
    """`set_loss` with a loss that may abstain: predicting crashed."""
    model = linear().fit(X, NAMES[y])
    assert "abstain" in model.set_loss("abstain::0.05").predict(X)
    named = np.append(NAMES, "abstain")[model.expected_losses(X).argmin(axis=1)]
    np.testing.assert_array_equal(model.predict(X), named)
    assert "abstain" not in model.set_loss("zero_one").predict(X)


def test_results_repeat_with_the_same_seed():
    for options in (
        {"solver": "sgd"},
        {"n_components": 30},
        {"features": "random", "n_components": 50},
    ):
        models = [
            classifier(random_state=3, bandwidth="median", **options).fit(X, y) for _ in range(2)
        ]
        np.testing.assert_array_equal(models[0].model_.coef_, models[1].model_.coef_)
