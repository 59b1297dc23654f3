"""F-beta in the estimators: set sizes come from y, targets stay sparse, prediction stays small."""

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import fbeta_score
from sklearn.model_selection import GridSearchCV

import consistruct as cs
from consistruct.learning import estimator as base
from consistruct.learning import load, save
from consistruct.losses import FBeta
from consistruct.metrics import TaskLossScorer, task_loss
from tests.learning.estimators import predictor

X, Y = make_multilabel_classification(
    300, n_features=12, n_classes=6, n_labels=2, random_state=0, allow_unlabeled=True
)


def example_f(true, pred, beta=1.0):
    return fbeta_score(true, pred, beta=beta, average="samples", zero_division=1.0)


@pytest.mark.parametrize("loss", ["fbeta", "fbeta:6", "fbeta::2", FBeta(6), FBeta(6, 0.5)])
@pytest.mark.parametrize("face", [cs.StructuredPredictor, cs.TaskLossClassifier])
def test_sizes_are_filled_from_y(loss, face):
    quick = cs.models.Ridge(features="linear")
    model = face(loss, quick, random_state=0).fit(X[:200], Y[:200])
    assert model.loss_.sizes == tuple(np.unique(Y[:200].sum(axis=1)).tolist())
    pred = model.predict(X[200:])
    assert model.score(X[200:], Y[200:]) == pytest.approx(
        example_f(Y[200:], pred, model.loss_.beta) - 1
    )


def test_given_sizes_are_kept():
    loss = FBeta(6, sizes=range(7))
    assert predictor(loss).fit(X, Y).loss_ == loss
    with pytest.raises(ValueError, match="y must contain sets of size 1, got a set of size"):
        predictor(FBeta(6, sizes=(1,))).fit(X, Y)


def test_f_beta_is_better_at_its_own_loss():
    f1 = predictor("fbeta", random_state=0).fit(X[:200], Y[:200])
    hamming = predictor("hamming", random_state=0).fit(X[:200], Y[:200])
    test = slice(200, None)
    assert example_f(Y[test], f1.predict(X[test])) > example_f(Y[test], hamming.predict(X[test]))
    recall = predictor("fbeta::3", random_state=0).fit(X[:200], Y[:200])
    assert recall.predict(X[test]).sum() > f1.predict(X[test]).sum()


def test_sets_of_unseen_sizes_are_scored():
    small = Y.sum(axis=1) <= 2
    model = predictor("fbeta", random_state=0).fit(X[small], Y[small])
    expected = 1 - example_f(Y, model.predict(X))
    assert -model.score(X, Y) == pytest.approx(expected)
    assert TaskLossScorer("fbeta")(model, X, Y) == pytest.approx(-expected)
    assert TaskLossScorer(FBeta(6))(model, X, Y) == pytest.approx(-expected)
    assert task_loss(Y, model.predict(X), loss="fbeta") == pytest.approx(expected)
    assert task_loss(0 * Y, 0 * Y, loss="fbeta") == 0.0


def test_targets_stay_sparse():
    T = 400
    y_true = np.zeros((50, T), dtype=int)
    y_true[np.arange(50), np.arange(50) % T] = 1
    target: Any = FBeta(T, sizes=(1, 2, 3)).target(y_true)
    assert bool(sp.issparse(target))  # a plain bool: the type stays as it is
    assert target.nnz == 50


def test_predictions_do_not_depend_on_chunks(monkeypatch):
    model = predictor("fbeta", random_state=0).fit(X, Y)
    pred, losses = model.predict(X), model.task_losses(X, Y)
    expected = model.predict_expected_loss(X)
    monkeypatch.setattr(base, "CHUNK_BYTES", 1)  # a row at a time
    np.testing.assert_array_equal(model.predict(X), pred)
    np.testing.assert_array_equal(model.task_losses(X, Y), losses)
    np.testing.assert_allclose(model.predict_expected_loss(X), expected, atol=1e-12)


def test_grid_search_and_model_files(tmp_path):
    search = GridSearchCV(
        predictor(FBeta(6), features="linear"), {"loss__beta": [0.5, 1.0]}, cv=2
    ).fit(X, Y)
    assert search.best_params_["loss__beta"] in (0.5, 1.0)
    save(search.best_estimator_, tmp_path / "f.safetensors")
    again = load(tmp_path / "f.safetensors")
    np.testing.assert_array_equal(again.predict(X), search.best_estimator_.predict(X))
    assert again.loss_ == search.best_estimator_.loss_


def test_streams_keep_the_sizes_of_the_first_batch():
    order = np.argsort(-Y.sum(axis=1))
    model = predictor("fbeta", features="linear", solver="sgd")
    model.partial_fit(X[order[100:]], Y[order[100:]])
    with pytest.raises(ValueError, match="add that size to sizes"):
        model.partial_fit(X[order[:100]], Y[order[:100]])
    every = predictor(FBeta(6, sizes=range(7)), features="linear", solver="sgd")
    every.partial_fit(X[order[100:]], Y[order[100:]]).partial_fit(X[order[:100]], Y[order[:100]])
    assert every.score(X, Y) > -0.6


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        ("fbeta", 2 * Y, "y must contain sets as 0/1 vectors, got 2"),
        (FBeta(6), 2 * Y, "y must contain sets as 0/1 vectors, got 2"),
        (
            "fbeta",
            np.zeros_like(Y),
            "y contains only empty sets; F-beta needs some labels to learn from",
        ),
        ("fbeta:5", Y, "(n, 5)"),
        (FBeta(5), Y, "(n, 5)"),
        ("fbeta::0", Y, "beta must be"),
        ("fbeta::-1", Y, "beta must be"),
    ],
)
def test_bad_input(loss, y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        predictor(loss).fit(X, y)


def test_flat_labels_are_refused():
    with pytest.raises(ValueError, match=r"shape \(n, 1\)|must have shape"):
        predictor("fbeta").fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="beta must be"):
        FBeta(3, 0.0)
