"""`classes_` is sorted and every column follows it, whatever the order of the loss's names is."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consistruct as cs
from consistruct.losses import CostMatrix
from consistruct.metrics import TaskLossScorer

X, CODES = load_iris(return_X_y=True)
X = X + np.random.default_rng(0).normal(scale=0.4, size=X.shape)
BINARY = X[50:], CODES[50:] - 1
COSTS = np.array([[0.0, 1.0, 2.0], [4.0, 0.0, 1.0], [9.0, 3.0, 0.0]])  # M[prediction, true label]
ORDERS = {2: (1, 0), 3: (2, 0, 1)}


def classifier(names, order, model=None):
    """A classifier whose loss lists the same costs by `names` in the given order."""
    order = list(order)
    names = tuple(str(names[place]) for place in order)
    loss = CostMatrix(COSTS[np.ix_(order, order)], names, names, rows="pred")
    model = cs.models.Probabilities(LogisticRegression(max_iter=1000)) if model is None else model
    return cs.TaskLossClassifier(loss, model)


def data(k, names):
    inputs, codes = BINARY if k == 2 else (X, CODES)
    return inputs, np.array(names)[codes]


CASES = {
    "numbers": (2, [0, 1]),
    "words": (2, ["benign", "malignant"]),
    "three": (3, [0, 1, 2]),
    "three words": (3, ["a", "b", "c"]),
}


@pytest.mark.parametrize("case", CASES)
def test_columns_follow_sorted_classes(case):
    k, names = CASES[case]
    inputs, y = data(k, names)
    usual = classifier(names, range(k)).fit(inputs, y)
    other = classifier(names, ORDERS[k]).fit(inputs, y)
    np.testing.assert_array_equal(other.classes_, np.unique(y))
    np.testing.assert_array_equal(other.predict(inputs), usual.predict(inputs))
    for method in ("predict_proba", "decision_function", "expected_losses"):
        np.testing.assert_allclose(
            getattr(other, method)(inputs), getattr(usual, method)(inputs), atol=2e-3
        )
    least = other.expected_losses(inputs).argmin(axis=1)
    np.testing.assert_array_equal(other.classes_[least], other.predict(inputs))
    assert other.score(inputs, y) == pytest.approx(usual.score(inputs, y))


@pytest.mark.parametrize("case", CASES)
def test_every_scorer_that_applies_agrees(case):
    k, names = CASES[case]
    inputs, y = data(k, names)
    plain = LogisticRegression(max_iter=1000).fit(inputs, y)
    usual = classifier(names, range(k)).fit(inputs, y)
    other = classifier(names, ORDERS[k]).fit(inputs, y)
    applied = []
    for name in get_scorer_names():
        scorer = get_scorer(name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                scorer(plain, inputs, y)
                expected = scorer(usual, inputs, y)
            except Exception:  # not for these labels
                continue
            applied.append(name)
            assert scorer(other, inputs, y) == pytest.approx(expected, abs=2e-3), name
    assert {"accuracy", "neg_log_loss", "roc_auc_ovr"} <= set(applied)
    assert k == 3 or "roc_auc" in applied


def metas(base):
    logistic = LogisticRegression(max_iter=1000)
    return {
        "calibrated": CalibratedClassifierCV(base, cv=3),
        "calibrated ensemble": CalibratedClassifierCV(base, cv=3, method="isotonic"),
        "voting": VotingClassifier([("a", base), ("b", logistic)], voting="soft"),
        "stacking": StackingClassifier([("a", base), ("b", logistic)], cv=3),
        "bagging": BaggingClassifier(base, n_estimators=3, random_state=0),
        "search": GridSearchCV(base, {"cv": [None]}, scoring="neg_log_loss", cv=3),
        "pipeline": make_pipeline(StandardScaler(), base),
    }


BINARY_METAS = {
    "tuned": lambda base: TunedThresholdClassifierCV(base, scoring="balanced_accuracy", cv=3),
    "fixed": lambda base: FixedThresholdClassifier(base, threshold=0.3),
    "fixed score": lambda base: FixedThresholdClassifier(
        base, threshold=0.0, response_method="decision_function"
    ),
}


@pytest.mark.filterwarnings("ignore:y contains numbers")
@pytest.mark.parametrize("meta", [*metas(None), *BINARY_METAS])
def test_meta_estimators_agree(meta):
    k, names = CASES["words" if meta in BINARY_METAS else "three words"]
    inputs, y = data(k, names)
    found = []
    for order in (range(k), ORDERS[k]):
        base = classifier(names, order)
        wrapped = BINARY_METAS[meta](base) if meta in BINARY_METAS else metas(base)[meta]
        found.append(clone(wrapped).fit(inputs, y))
    agree = found[0].predict(inputs) == found[1].predict(inputs)
    assert agree.mean() > 0.98
    np.testing.assert_array_equal(found[1].classes_, np.unique(y))
    if hasattr(found[0], "predict_proba"):
        chances = [model.predict_proba(inputs) for model in found]
        np.testing.assert_allclose(chances[1], chances[0], atol=2e-2)


@pytest.mark.parametrize("meta", [OneVsRestClassifier, OneVsOneClassifier])
def test_reductions_to_two_classes_agree(meta):
    found = [meta(classifier([0, 1], order)).fit(X, CODES).predict(X) for order in ((0, 1), (1, 0))]
    assert (found[0] == found[1]).mean() > 0.98


def test_cross_validated_area_with_unsorted_names():
    inputs, y = data(2, ["benign", "malignant"])
    model = classifier(["benign", "malignant"], (1, 0))
    assert cross_val_score(model, inputs, y, scoring="roc_auc", cv=3).mean() > 0.9
    assert cross_val_score(model, inputs, y, scoring="neg_log_loss", cv=3).mean() > -0.5


def test_ordered_losses_and_metrics_keep_their_order_inside():
    y = np.array(["low", "mid", "high"])[CODES]
    model = cs.models.Probabilities(LogisticRegression(max_iter=1000))
    for loss in ("ordinal:low,mid,high", "qwk:low,mid,high"):
        fitted = cs.TaskLossClassifier(loss, model).fit(X, y)
        assert fitted.classes_.tolist() == ["high", "low", "mid"]
        chances = fitted.predict_proba(X)
        assert (fitted.classes_[chances.argmax(axis=1)] == y).mean() > 0.85
        prices = fitted.expected_losses(X)
        assert (fitted.classes_[prices.argmin(axis=1)] == fitted.predict(X)).all()


def test_costs_of_decisions_for_a_metric_are_by_sorted_classes():
    y = np.array(["low", "mid", "high"])[CODES]
    noisy = X + np.random.default_rng(1).normal(scale=3.0, size=X.shape)
    kept = (CODES != 2) | (np.arange(len(CODES)) % 3 == 0)
    model = cs.TaskLossClassifier(
        "qwk:low,mid,high", cs.models.Probabilities(LogisticRegression(max_iter=1000))
    )
    model.fit(noisy[kept], y[kept])
    costs = model.decision_costs_
    assert len(np.unique(costs.round(6))) > 2
    prices = model.predict_proba(noisy) @ costs.T
    np.testing.assert_allclose(model.expected_losses(noisy), prices, atol=1e-9)


def test_numbers_in_place_of_names_are_places_among_the_sorted_names():
    by_name = classifier("abc", ORDERS[3]).fit(X, np.array(list("abc"))[CODES])
    with pytest.warns(UserWarning, match="0 = 'a', 1 = 'b', 2 = 'c'"):
        by_number = classifier("abc", ORDERS[3]).fit(X, CODES)
    assert by_number.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(np.array(list("abc"))[by_number.predict(X)], by_name.predict(X))
    with pytest.raises(ValueError, match="places among the sorted names would be 0 = 'high'"):
        cs.TaskLossClassifier("ordinal:low,mid,high", "ridge").fit(X, CODES)


def test_an_order_of_numbers_is_kept():
    grades = pd.Categorical(np.array([7, 3, 5])[CODES], categories=[7, 3, 5], ordered=True)
    shifted = pd.Categorical(np.array([2, 0, 1])[CODES], categories=[2, 0, 1], ordered=True)
    for y in (grades, shifted):
        first, _, last = y.categories
        model = cs.TaskLossClassifier("ordinal", "ridge").fit(X, y)
        assert model.classes_.tolist() == sorted(y.categories)
        losses = model.task_losses(X, np.where(model.predict(X) == first, last, first))
        assert losses.max() == 2


def test_set_loss_without_names_is_over_sorted_classes():
    inputs, y = data(3, ["a", "b", "c"])
    usual = classifier("abc", range(3)).fit(inputs, y)
    other = classifier("abc", ORDERS[3]).fit(inputs, y)
    plain = CostMatrix([[0, 1, 1], [8, 0, 1], [1, 1, 0]], rows="pred")
    named = CostMatrix(plain.M, tuple("abc"), tuple("abc"), rows="pred")
    ordinal = cs.losses.Ordinal(3, names=("a", "b", "c"))
    for loss in (plain, named, ordinal, "zero_one", "abstain::0.3"):
        decisions = [model.set_loss(loss).predict(inputs) for model in (usual, other)]
        assert (decisions[0] == decisions[1]).mean() > 0.98
        assert other.score(inputs, y) == pytest.approx(usual.score(inputs, y), abs=0.03)


def test_task_loss_scorer_matches_names():
    inputs, y = data(3, ["a", "b", "c"])
    usual = classifier("abc", range(3))
    other = classifier("abc", ORDERS[3]).fit(inputs, y)
    scores = [TaskLossScorer(model.loss)(other, inputs, y) for model in (usual, other)]
    assert scores[0] == pytest.approx(other.score(inputs, y))
    assert scores[1] == pytest.approx(other.score(inputs, y))


def test_costs_of_examples_are_in_the_order_of_the_classes():
    inputs, y = data(3, ["a", "b", "c"])
    other = classifier("abc", ORDERS[3]).fit(inputs, y)
    tensor = np.repeat(COSTS[None], len(y), axis=0)
    other.set_params(rows="pred")
    np.testing.assert_array_equal(other.predict(inputs, costs=tensor), other.predict(inputs))
    losses = other.task_losses(inputs, y, costs=tensor)
    np.testing.assert_allclose(losses, other.task_losses(inputs, y))


def test_saved_models_keep_the_order(tmp_path):
    inputs, y = data(3, ["a", "b", "c"])
    model = classifier("abc", ORDERS[3]).fit(inputs, y)
    cs.learning.save(model, tmp_path / "model")
    again = cs.learning.load(tmp_path / "model")
    np.testing.assert_array_equal(again.classes_, ["a", "b", "c"])
    np.testing.assert_array_equal(again.predict_proba(inputs), model.predict_proba(inputs))


@pytest.mark.parametrize("meta", ["calibrated", "voting", "bagging", "stacking"])
@pytest.mark.filterwarnings("ignore:y contains numbers")
def test_meta_estimators_of_two_classes_pay_the_costs_of_the_names(meta):
    names = ["benign", "malignant"]
    inputs, y = data(2, names)
    found = [metas(classifier(names, order))[meta].fit(inputs, y) for order in ((0, 1), (1, 0))]
    for method in ("predict", "predict_proba"):
        usual, other = (getattr(model, method)(inputs) for model in found)
        if method == "predict":
            assert (usual == other).mean() > 0.98
        else:
            np.testing.assert_allclose(other, usual, atol=2e-2)
    parts = [getattr(model, "estimators_", [None])[0] for model in found]
    if meta in ("voting", "bagging"):  # the costs of the part's own decisions, not only its chances
        assert (parts[0].predict(inputs) == parts[1].predict(inputs)).mean() > 0.98
