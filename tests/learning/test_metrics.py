import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import hamming_loss, mean_absolute_error, zero_one_loss
from sklearn.tree import DecisionTreeClassifier

from consistruct.losses import CostMatrix, Hamming, Ordinal
from consistruct.losses.base import dense_target
from consistruct.losses.registry import LOSSES
from consistruct.metrics import TaskLossScorer, task_loss
from tests.learning.estimators import classifier, predictor

X, y = load_iris(return_X_y=True)


def test_metrics_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    true, pred = rng.integers(4, size=(2, 50))
    weight = rng.random(50)
    assert task_loss(true, pred, loss="zero_one") == pytest.approx(zero_one_loss(true, pred))
    assert task_loss(true, pred, loss="ordinal", sample_weight=weight) == pytest.approx(
        mean_absolute_error(true, pred, sample_weight=weight)
    )
    bits = rng.integers(2, size=(2, 50, 6))
    assert task_loss(*bits, loss="hamming") == pytest.approx(hamming_loss(*bits))
    names = np.array(list("abcd"))
    assert task_loss(names[true], names[pred], loss="zero_one") == pytest.approx(
        zero_one_loss(true, pred)
    )


def test_true_label_comes_first():
    loss = CostMatrix([[0, 5], [1, 0]], rows="pred")  # predicting 0 for a true 1 costs 5
    assert task_loss([1], [0], loss=loss) == 5.0
    assert task_loss([0], [1], loss=loss) == 1.0


@pytest.mark.parametrize("name", LOSSES)
def test_there_is_a_scorer_for_every_loss(name):
    for loss in LOSSES[name].examples:
        rng = np.random.default_rng(1)
        y_true = loss.true_labels.sample(12, rng)
        features = rng.normal(size=(12, 2))
        model = predictor(loss, features="linear", alpha=0.1).fit(features, y_true)
        pred = model._codes(model._read(features))
        direct = loss(pred, y_true)
        assert TaskLossScorer(loss)(model, features, y_true) == pytest.approx(-direct.mean())
        # and through the decomposition, which is independent of the direct formula
        embedded = loss.score_space.embed(pred)
        values = (embedded * dense_target(loss.target(y_true))).sum(axis=1) + loss.offset(y_true)
        assert -values.mean() == pytest.approx(model.score(features, y_true))


def test_scorers_take_other_estimators():
    tree = DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert TaskLossScorer(Ordinal(3))(tree, X, y) == pytest.approx(
        -mean_absolute_error(y, tree.predict(X))
    )
    assert TaskLossScorer("ordinal")(tree, X, y) == pytest.approx(
        -mean_absolute_error(y, tree.predict(X))
    )


def test_scorers_count_unseen_true_labels_as_wrong():
    model = classifier(features="linear").fit(X[:100], y[:100])
    assert TaskLossScorer("zero_one")(model, X[100:], y[100:]) == -1.0


def test_errors():
    with pytest.raises(ValueError, match="must have the same length, got 2 and 1"):
        task_loss([0, 1], [0], loss="zero_one")
    with pytest.raises(ValueError, match="y_pred contains 7"):
        task_loss(np.array([0, 1]), np.array([0, 7]), loss=Ordinal(3))
    with pytest.raises(ValueError, match="y_pred must"):
        task_loss([[0, 1]], [[0, 1, 1]], loss=Hamming(2))
