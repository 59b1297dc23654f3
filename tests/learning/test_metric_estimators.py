"""TaskLossClassifier for non-decomposable metrics."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, recall_score
from sklearn.model_selection import cross_val_score

import consistruct as cs
from consistruct.exceptions import CapabilityError, ConsistructError, LossSpecError
from consistruct.learning import load, save
from consistruct.losses import CostMatrix, LabelCosts
from consistruct.losses.metrics import (
    Constrained,
    EqualRecall,
    FScore,
    RecallAtLeast,
    RecallMean,
    parse_metric,
)
from consistruct.metrics import TaskLossScorer, metric_value

X, Y = make_classification(
    900, 8, n_informative=5, n_classes=3, weights=[0.75, 0.18], flip_y=0.1, random_state=0
)
NAMES = np.array(["common", "rare", "scarce"])[Y]
TRAIN, TEST = slice(0, 600), slice(600, None)
X_SETS, Y_SETS = make_multilabel_classification(600, 12, n_classes=5, random_state=0)


def logistic():
    return cs.models.Probabilities(LogisticRegression(max_iter=500))


def fitted(loss, y=NAMES, **options):
    return cs.TaskLossClassifier(loss, logistic(), random_state=0, **options).fit(
        X[TRAIN], y[TRAIN]
    )


def test_macro_f1_is_better_than_the_likeliest_class():
    model, plain = fitted("macro-f1"), fitted("zero_one")
    ours = f1_score(NAMES[TEST], model.predict(X[TEST]), average="macro")
    assert ours > f1_score(NAMES[TEST], plain.predict(X[TEST]), average="macro") + 0.02
    assert model.score(X[TEST], NAMES[TEST]) == pytest.approx(ours)
    assert model.metric_estimate_ == pytest.approx(ours, abs=0.15)  # classes of 40 rows
    assert model.metric_estimate_ > model.rule_.plain
    assert model.optimality_gap_ is None


def test_the_rule_is_the_bayes_decision_of_the_costs_found():
    model = fitted("g-mean")
    assert isinstance(model.loss_, CostMatrix)
    np.testing.assert_array_equal(model.loss_.M, model.decision_costs_)
    prices = model.predict_proba(X[TEST]) @ model.decision_costs_.T
    np.testing.assert_array_equal(model.predict(X[TEST]), model.classes_[prices.argmin(axis=1)])
    np.testing.assert_allclose(model.expected_losses(X[TEST]), prices, atol=1e-12)
    assert 0 <= model.optimality_gap_ <= 0.01


def test_the_estimate_is_honest():
    """Labels without any signal: the best of many rules looks better than chance, the estimate
    must not."""
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=(600, 3)), rng.integers(3, size=600)
    values = [
        cs.TaskLossClassifier("balanced-accuracy", logistic(), random_state=seed)
        .fit(noise, rng.permutation(y))
        .metric_estimate_
        for seed in range(5)
    ]
    assert np.mean(values) == pytest.approx(1 / 3, abs=0.03)


def test_out_of_fold_rows_of_the_model_are_used_where_it_has_them():
    model = cs.TaskLossClassifier("balanced-accuracy", cs.models.Ridge("linear", alpha=0.1))
    model.fit(X[:200], NAMES[:200])
    assert model.rule_.n_rows == 200
    assert model.score(X[TEST], NAMES[TEST]) > 0.4


def test_weights_count():
    weight = np.where(NAMES[TRAIN] == "common", 1.0, 3.0)
    model = cs.TaskLossClassifier("macro-f1", logistic(), random_state=0)
    weighted = clone(model).fit(X[TRAIN], NAMES[TRAIN], sample_weight=weight)
    twice = np.repeat(np.arange(600), weight.astype(int))
    share = weighted.rule_.before.sum(axis=0)
    np.testing.assert_allclose(share, np.unique(NAMES[twice], return_counts=True)[1] / len(twice))


def sure(spec):
    """With a margin that leaves chance no room on 300 rows."""
    metric = parse_metric(spec)
    return Constrained(metric.metric, metric.constraints, confidence=0.995, new_rows=300)


def test_two_classes_and_constraints():
    y = np.where(NAMES == "common", "no", "yes")
    model = fitted(sure("precision-at-recall:0.7"), y)
    assert recall_score(y[TEST], model.predict(X[TEST]), pos_label="yes") >= 0.7
    assert model.rule_.slack.shape == (1,)
    budget = fitted(sure("coverage:0.1:f1"), y)
    assert (budget.predict(X[TEST]) == "yes").mean() <= 0.1


def test_groups_are_read_from_their_column():
    pandas = pytest.importorskip("pandas")
    n = 3000
    rng = np.random.default_rng(0)
    group = rng.choice(["east", "west"], n)
    signal = rng.normal(size=n)
    y = (np.where(group == "west", 1.0, 3.0) * signal + rng.logistic(size=n) > 1.0).astype(int)
    frame = pandas.DataFrame({"signal": signal, "west": (group == "west") * 1.0})
    frame["both"] = frame.signal * frame.west
    model = cs.TaskLossClassifier(
        Constrained(FScore(), EqualRecall(0.2, "west"), new_rows=1000), logistic(), random_state=0
    ).fit(frame[:2000], y[:2000])
    assert model.decision_costs_.shape == (2, 2, 2)
    new = frame[2000:]
    recalls = [
        recall_score(y[2000:][new.west == g], model.predict(new)[new.west == g]) for g in (0, 1)
    ]
    assert abs(recalls[0] - recalls[1]) <= 0.2
    for method in (model.expected_losses, model.predict_expected_loss, model.decision_function):
        with pytest.raises(CapabilityError, match="one per group"):
            method(new)
    strange = new.copy()
    strange["west"] = 2.0
    with pytest.raises(ValueError, match=r"the group 2\.0, which was not seen in training"):
        model.predict(strange)
    with pytest.raises(ValueError, match="names the column 'north', which X does not have"):
        clone(model).set_params(loss="equal-recall:0.1:north").fit(frame, y)


@pytest.mark.parametrize("spec", ["macro-f1", "micro-f1", "macro-jaccard", "coverage:0.3:macro-f1"])
def test_label_sets(spec):
    model = cs.TaskLossClassifier(spec, logistic(), random_state=0)
    model.fit(X_SETS[:400], Y_SETS[:400])
    assert isinstance(model.loss_, LabelCosts)
    assert model.decision_costs_.shape == (5, 2, 2)
    pred = model.predict(X_SETS[400:])
    assert model.score(X_SETS[400:], Y_SETS[400:]) == pytest.approx(
        metric_value(Y_SETS[400:], pred, metric=spec)
    )
    scores = model.decision_function(X_SETS[400:])
    np.testing.assert_array_equal(scores > 0, pred == 1)
    if "coverage" in spec:
        assert pred.mean() <= 0.3
    else:
        assert model.metric_estimate_ > model.rule_.plain
    assert model.predict_expected_loss(X_SETS[400:]).shape == (200,)


def test_label_sets_by_least_squares():
    model = cs.TaskLossClassifier("macro-f1", cs.models.Ridge("linear", alpha=0.1))
    model.fit(X_SETS[:400], Y_SETS[:400])
    assert model.score(X_SETS[400:], Y_SETS[400:]) > 0.4


@pytest.mark.parametrize(
    ("loss", "X_", "y_"),
    [
        ("macro-f1", X, NAMES),
        ("min-recall", X, NAMES),
        (RecallMean(-1.0), X, NAMES),
        ("micro-f1", X_SETS, Y_SETS),
        ("precision-at-recall:0.7", X, (NAMES != "common").astype(int)),
    ],
)
def test_files_keep_the_rule(loss, X_, y_, tmp_path):
    model = cs.TaskLossClassifier(loss, logistic(), random_state=0).fit(X_[:500], y_[:500])
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(X_[500:]), model.predict(X_[500:]))
    assert again.rule_ == model.rule_
    assert again.score(X_[500:], y_[500:]) == model.score(X_[500:], y_[500:])


def test_scikit_learn_tools():
    model = cs.TaskLossClassifier("macro-f1", logistic(), random_state=0)
    assert clone(model).get_params()["loss"] == "macro-f1"
    assert cs.TaskLossClassifier(FScore(average="macro")).get_params()["loss__beta"] == 1.0
    ours = cross_val_score(model, X, NAMES, cv=2, scoring=TaskLossScorer("macro-f1"))
    np.testing.assert_allclose(ours, cross_val_score(model, X, NAMES, cv=2))
    first, second = fitted("macro-f1"), fitted("macro-f1")
    np.testing.assert_array_equal(first.decision_costs_, second.decision_costs_)


def test_another_loss_afterwards_forgets_the_metric():
    model = fitted("macro-f1").set_loss("zero_one")
    assert not hasattr(model, "metric_")
    assert model.score(X[TEST], NAMES[TEST]) == -(model.predict(X[TEST]) != NAMES[TEST]).mean()
    with pytest.raises(ValueError, match="fit again with loss='macro-f1'"):
        model.set_loss("macro-f1")


def test_metric_value_takes_labels_as_they_are():
    assert metric_value(["a", "b"], ["a", "b"], metric="mcc") == 1.0
    with pytest.raises(ValueError, match="same shape"):
        metric_value([0, 1], [0], metric="mcc")
    with pytest.raises(ValueError, match="is not a metric; use task_loss for losses"):
        metric_value([0, 1], [0, 1], metric="zero_one")


@pytest.mark.parametrize(
    ("loss", "y", "reported"),
    [
        ("f1", NAMES, "is for 2 classes"),
        ("mcc", Y_SETS[:600], "is for classes and needs y of shape"),
        ("macro-f1", np.zeros(600), "contains only 1 class"),
    ],
)
def test_labels_that_a_metric_does_not_take(loss, y, reported):
    with pytest.raises(ValueError, match=reported):
        cs.TaskLossClassifier(loss, logistic()).fit(X[: len(y)], y)


def test_other_ways_to_get_it_wrong():
    with pytest.raises(ConsistructError, match="at least 10 out-of-fold rows"):
        cs.TaskLossClassifier("macro-f1", logistic()).fit(X[:8], np.arange(8) % 2)
    ridge = cs.models.Ridge("linear", solver="sgd")
    with pytest.raises(ValueError, match="and partial_fit has none; use fit"):
        cs.TaskLossClassifier("macro-f1", ridge).partial_fit(X, NAMES)
    with pytest.raises(ValueError, match="replace the loss"):
        cs.TaskLossClassifier("macro-f1", logistic()).fit(X, Y, costs=np.ones((len(X), 3)))
    with pytest.raises(LossSpecError, match="a metric of the whole data set"):
        cs.StructuredPredictor("macro-f1", logistic()).fit(X, Y)
    hinge = cs.models.Linear("hinge", decoding="argmax", features="linear", solver="sgd")
    with pytest.raises(CapabilityError, match="only ranks predictions"):
        cs.TaskLossClassifier("macro-f1", hinge, random_state=0).fit(X[:100], Y[:100])
    with pytest.raises(ConsistructError, match="a class that was not seen in training"):
        fitted("macro-f1").score(X[:3], ["common", "rare", "unheard of"])


def test_conditions_name_classes_and_columns_that_are_there():
    far = Constrained(FScore(average="macro"), RecallAtLeast(0.5, label=7))
    with pytest.raises(ValueError, match=r"number 7, but y contains 3 classes, numbered 0..2"):
        fitted(far)
    with pytest.raises(ValueError, match=r"RecallAtLeast\(0.9, label=2\)"):
        fitted("precision-at-recall:0.9")
    frame = pd.DataFrame(np.tile(X[TRAIN], 2)[:, :15], columns=[f"c{i}" for i in range(15)])
    model = cs.TaskLossClassifier("equal-recall:0.1:sex", logistic())
    with pytest.raises(ValueError, match=r"c11 and 3 more"):
        model.fit(frame, Y[TRAIN] > 0)
