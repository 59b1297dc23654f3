"""Expected losses are those that occur: tables, label sets and sequences, small and large."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import consistruct as cs
from consistruct.models import Probabilities, Ridge, Stack

COSTS = {0: {0: 0, 1: 3}, 1: {0: 1, 1: 0}}  # by prediction, then true label
TEST = 4000


def as_expected(model, X, y):
    """Whether expected and occurred losses differ by at most 5 % and two standard errors."""
    expected, occurred = model.predict_expected_loss(X), model.task_losses(X, y)
    error = (expected - occurred).std(ddof=1) / np.sqrt(len(occurred))
    gap, mean = expected.mean() - occurred.mean(), occurred.mean()
    return abs(
        gap
    ) <= 0.05 * mean + 2 * error, f"{expected.mean():.4f} for {mean:.4f} ± {error:.4f}"


def halves(n, seed):
    """Two classes distinguished by two columns together, the second of them rare."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.25).astype(int)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None], y


def one_column(place):
    """Logistic regression on one column: right about it, but not the whole true label."""
    column = ColumnTransformer([("column", "passthrough", [place])])
    return Probabilities(make_pipeline(column, LogisticRegression()))


def squares(n, seed):
    """A fine chessboard: the more rows, the surer its neighbors are, and rightly so."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.floor(16 * X).sum(axis=1).astype(int) % 2
    return X, np.where(rng.random(n) < 0.02, 1 - y, y)


def label_sets(n, seed):
    """Five labels, each on beyond a curve of its own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = np.sin(2 * X @ np.random.default_rng(0).normal(size=(4, 5))) + rng.normal(
        0, 0.3, (n, 5)
    )
    return X, (scores > 0.4).astype(int)


def sentences(n, seed):
    """Tags that follow one another, words that tell them with errors, and rare words."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        tags = [int(rng.integers(3))]
        for _ in range(int(rng.integers(4, 12))):
            tags.append((tags[-1] + int(rng.random() < 0.7)) % 3)
        reported = [tag if rng.random() < 0.8 else int(rng.integers(3)) for tag in tags]
        X.append([[f"w={one}", f"rare={rng.integers(3000)}"] for one in reported])
        y.append([f"T{tag}" for tag in tags])
    return X, y


@pytest.mark.parametrize("loss", ["zero_one", COSTS])
def test_small_tables(loss):
    """The mean of two models that are right is not sure enough."""
    stack = Stack([one_column(0), one_column(1)], combine="mean")
    rows = "pred" if isinstance(loss, dict) else None
    model = cs.TaskLossClassifier(loss, stack, random_state=0, rows=rows).fit(*halves(4500, 0))
    assert model.model_.weights_.min() > 0.2
    met, reported = as_expected(model, *halves(4500, 1))
    assert met, reported


@pytest.mark.parametrize("rows", [24_000, 60_000])
def test_large_tables(rows):
    """Compared by fits of about the size of the one that is used, or by that one."""
    neighbors = Stack([Probabilities(KNeighborsClassifier(5))])
    model = cs.TaskLossClassifier("zero_one", neighbors, random_state=0).fit(*squares(rows, 0))
    met, reported = as_expected(model, *squares(5 * TEST, 1))
    assert met, reported


def weak_columns(n, seed):
    """Twelve columns of which five matter a little: a path of penalties without a clear best."""
    X, y = make_classification(
        14_000, 12, n_informative=5, n_classes=3, flip_y=0.1, class_sep=0.7, random_state=seed
    )
    return (X[:n], y[:n]), (X[n:], y[n:])


@pytest.mark.parametrize("seed", [1, 2])
def test_tables_on_which_fits_choose_penalties_far_apart(seed):
    train, test = weak_columns(8000, seed)
    stack = Stack([Ridge("linear"), Probabilities(GaussianNB())])
    model = cs.TaskLossClassifier("zero_one", stack, random_state=0).fit(*train)
    met, reported = as_expected(model, *test)
    assert met, reported


@pytest.mark.parametrize("loss", ["hamming", "fbeta"])
def test_small_label_sets(loss):
    model = cs.StructuredPredictor(loss, Ridge(), random_state=0).fit(*label_sets(500, 0))
    met, reported = as_expected(model, *label_sets(TEST, 1))
    assert met, reported


def test_large_label_sets():
    landmarks = Stack([Ridge("nystroem", n_components=100)])
    model = cs.StructuredPredictor("hamming", landmarks, random_state=0).fit(*label_sets(8000, 0))
    met, reported = as_expected(model, *label_sets(TEST, 1))
    assert met, reported


@pytest.mark.parametrize("n", [150, 1500])
def test_sequences(n):
    model = cs.StructuredPredictor("hamming", random_state=0).fit(*sentences(n, 0))
    met, reported = as_expected(model, *sentences(2 * n, 1))
    assert met, reported


def test_marginals_are_as_sure_as_expected_losses():
    model = cs.StructuredPredictor("hamming", random_state=0).fit(*sentences(400, 0))
    X, _ = sentences(50, 2)
    right = [one.max(axis=1).mean() for one in model.predict_marginals(X)]
    assert all(np.allclose(one.sum(axis=1), 1.0) for one in model.predict_marginals(X))
    # the tags of the best sequence are the most probable ones, but for a few tokens
    assert np.mean(right) == pytest.approx(1.0 - model.predict_expected_loss(X).mean(), abs=0.01)
