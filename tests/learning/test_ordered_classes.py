"""Text has no order: a loss of distances needs to know which class is above which."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import consistruct as cs
from consistruct.learning import load, save
from consistruct.losses import CostMatrix, Ordinal, parse_loss
from consistruct.metrics import metric_value, task_loss

GRADES = np.array(["low", "mid", "high"])
RNG = np.random.default_rng(0)
CODES = np.arange(90) % 3
X = CODES[:, None] + 0.1 * RNG.standard_normal((90, 2))
TEXT = GRADES[CODES]
NOT_STATED = "needs the order of the classes, and text has none"


def classifier(loss):
    return cs.TaskLossClassifier(loss, cs.models.Ridge())


@pytest.mark.parametrize("loss", ["ordinal", "ordinal::2", "qwk", "kappa:linear"])
def test_text_without_an_order_is_refused(loss):
    with pytest.raises(ValueError, match=NOT_STATED):
        classifier(loss).fit(X, TEXT)


@pytest.mark.parametrize("loss", ["zero_one", "kappa", "macro-f1"])
def test_what_requests_no_order_takes_text(loss):
    assert classifier(loss).fit(X, TEXT).classes_.tolist() == ["high", "low", "mid"]


@pytest.mark.parametrize(
    "loss", ["ordinal:low,mid,high", "ordinal:low,mid,high:2", "qwk:low,mid,high"]
)
def test_the_loss_names_the_order(loss, tmp_path):
    model = classifier(loss).fit(X, TEXT)
    assert model.classes_.tolist() == sorted(GRADES)
    assert (model.predict(X) == TEXT).mean() > 0.9
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("loss", ["ordinal", "qwk"])
def test_an_ordered_categorical_states_it_itself(loss):
    y = pd.Categorical(TEXT, categories=["none", *GRADES], ordered=True)
    for given in (y, pd.Series(y)):
        model = classifier(loss).fit(X, given)
        assert model.classes_.tolist() == sorted(GRADES)  # those that occur
    unordered = pd.Categorical(TEXT, categories=GRADES)
    with pytest.raises(ValueError, match=NOT_STATED):
        classifier(loss).fit(X, unordered)


def test_the_same_model_as_with_numbers():
    by_name = classifier("ordinal:low,mid,high").fit(X, TEXT)
    by_number = classifier("ordinal").fit(X, CODES)
    assert by_name.predict(X).tolist() == GRADES[by_number.predict(X)].tolist()
    assert by_name.score(X, TEXT) == by_number.score(X, CODES)


def test_text_of_numbers_is_in_order_of_the_numbers():
    y = np.array(["9", "10", "11"])[CODES]
    model = classifier("ordinal").fit(X, y)
    assert model.classes_.tolist() == ["10", "11", "9"]
    assert model.task_losses(X, np.where(model.predict(X) == "9", "11", "9")).max() == 2


def test_single_letters_are_in_order():
    y = np.array(["A", "B", "C"])[CODES]
    assert classifier("ordinal").fit(X, y).classes_.tolist() == ["A", "B", "C"]


def test_two_classes_are_as_far_from_each_other_both_ways():
    assert classifier("ordinal").fit(X, TEXT == "low").score(X, TEXT == "low") == 0
    classifier("qwk").fit(X, np.where(TEXT == "low", "low", "rest"))


def test_a_name_that_the_loss_does_not_have():
    with pytest.raises(ValueError, match="y contains 'high', which is not"):
        classifier("ordinal:low,mid,top").fit(X, TEXT)
    with pytest.raises(ValueError, match="y contains 'high', which is not one of 'low', 'mid'"):
        classifier("qwk:low,mid,top").fit(X, TEXT)


def test_metrics_of_arrays():
    assert task_loss(["low"], ["high"], loss="ordinal:low,mid,high") == 2
    ordered = pd.Categorical(["low", "mid", "high"], categories=GRADES, ordered=True)
    assert task_loss(ordered, ["high", "mid", "high"], loss="ordinal") == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match=NOT_STATED):
        task_loss(["low", "mid"], ["high", "mid"], loss="ordinal")
    true, pred = TEXT, np.roll(TEXT, 1)
    expected = metric_value(CODES, np.roll(CODES, 1), metric="qwk")
    assert metric_value(true, pred, metric="qwk:low,mid,high") == pytest.approx(expected)
    with pytest.raises(ValueError, match=NOT_STATED):
        metric_value(true, pred, metric="qwk")


def test_a_loss_set_later_has_the_classes_of_the_fit():
    model = classifier("zero_one").fit(X, TEXT)  # high, low, mid
    for loss in ("ordinal", Ordinal(3)):
        with pytest.raises(ValueError, match=NOT_STATED):
            model.set_loss(loss)
    # names are matched with the classes, in whatever order they are
    assert task_loss(["high"], ["low"], loss=model.set_loss("ordinal:low,mid,high").loss_) == 2
    with pytest.raises(ValueError, match="fitted for 'high', 'low', 'mid'; give"):
        model.set_loss("ordinal:low,mid,top")
    table = pd.DataFrame([[0, 1, 9], [1, 0, 1], [2, 1, 0]], index=GRADES, columns=GRADES)
    model.set_loss(table, rows="pred")
    assert task_loss(["high"], ["low"], loss=model.loss_) == 9
    assert classifier("zero_one").fit(X, CODES).set_loss("ordinal").score(X, CODES) == 0


def test_specs():
    assert parse_loss("ordinal:low,mid,high:2") == Ordinal(3, 2.0, ("low", "mid", "high"))
    for spec in ("ordinal:a,b,a", "ordinal:a,,b", "qwk:a,b,a"):
        with pytest.raises(ValueError, match="names must be different and not empty"):
            (parse_loss if spec.startswith("ord") else classifier(spec).fit)(
                *([spec] if spec.startswith("ord") else [X, TEXT])
            )
    with pytest.raises(ValueError, match="names must be those of 3 classes, got 2"):
        Ordinal(3, names=("a", "b"))


def test_a_cost_matrix_does_not_lose_names():
    table = pd.DataFrame([[0, 1], [5, 0]], index=["b", "a"], columns=["b", "a"])
    with pytest.raises(TypeError, match="a plain matrix, got a data frame with names"):
        CostMatrix(table, rows="pred")
    assert CostMatrix(pd.DataFrame([[0, 1], [5, 0]]), rows="pred") == CostMatrix(
        [[0, 1], [5, 0]], rows="pred"
    )
    assert CostMatrix.from_frame(table, rows="pred").true_names == ("b", "a")
