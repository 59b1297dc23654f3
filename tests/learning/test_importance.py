"""What shuffling a column costs: against scikit-learn, and where the answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.inspection import permutation_importance as reference
from sklearn.linear_model import LogisticRegression

import consistruct as cs
from consistruct.metrics import permutation_importance
from consistruct.models import Chain, Items, Probabilities

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = (X[:, 0] + 0.5 * X[:, 2] > 0).astype(int)  # columns 1 and 3 say nothing


@pytest.fixture(scope="module")
def model():
    costs = cs.losses.CostMatrix([[0, 5], [1, 0]], rows="pred")
    return cs.TaskLossClassifier(costs, Probabilities(LogisticRegression())).fit(X, Y)


def test_it_is_scikit_learns_by_the_task_loss(model):
    found = permutation_importance(model, X, Y, n_repeats=20, random_state=0)
    other = reference(model, X, Y, n_repeats=20, random_state=1)  # score is minus the task loss
    spread = other.importances_std / np.sqrt(20) + found.error
    assert (np.abs(found.increase - other.importances_mean) <= 4 * spread + 1e-12).all()
    assert found.baseline == pytest.approx(-model.score(X, Y))


def test_columns_that_say_nothing_are_last(model):
    found = permutation_importance(model, X, Y, random_state=0)
    assert [name for name, _, _ in found.ranked()[:2]] == [0, 2]
    assert abs(found.increase[[1, 3]]).max() <= 4 * found.error.max()
    assert str(found).splitlines()[1].startswith("0 ")


@pytest.mark.parametrize("kind", [sp.csr_array, pd.DataFrame])
def test_tables_of_other_kinds_give_the_same(model, kind):
    other = cs.TaskLossClassifier(model.loss, model.model).fit(kind(X), Y)
    found = permutation_importance(other, kind(X), Y, random_state=3, n_repeats=8)
    plain = permutation_importance(model, X, Y, random_state=3, n_repeats=8)
    assert (np.abs(found.increase - plain.increase) <= 4 * (found.error + plain.error)).all()


def test_the_number_of_workers_changes_nothing(model):
    one = permutation_importance(model, X, Y, random_state=3)
    two = permutation_importance(model, X, Y, random_state=3, n_jobs=2)
    np.testing.assert_array_equal(one.increase, two.increase)


def test_weights_choose_the_rows(model):
    weight = (np.arange(400) < 100).astype(float)
    some = permutation_importance(model, X, Y, random_state=3, sample_weight=weight, n_repeats=30)
    assert some.baseline == pytest.approx(-model.score(X[:100], Y[:100]))


def test_mixed_types():
    table = pd.DataFrame({"color": np.where(Y, "red", "blue"), "size": X[:, 1]})
    est = cs.TaskLossClassifier(random_state=0, time_limit=0).fit(table, Y)
    found = permutation_importance(est, table, Y, random_state=0)
    assert found.ranked()[0][0] == "color"
    assert found.ranked()[0][1] > 0.3


def test_sequences_and_queries():
    tags = [list((x[:, 1] > 0).astype(int)) for x in np.split(X, 40)]
    chain = cs.StructuredPredictor("hamming", Chain(), random_state=0).fit(np.split(X, 40), tags)
    assert permutation_importance(chain, np.split(X, 40), tags).ranked()[0][0] == 1
    items = cs.StructuredPredictor("ndcg", Items("ridge", features="linear", alpha=0.1))
    grades = (X[:, 3] > 0.5).astype(int)
    groups = np.repeat(np.arange(40), 10)
    items.fit(X, grades, groups=groups)
    assert permutation_importance(items, X, grades, groups=groups).ranked()[0][0] == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [({"X": X[:, 0]}, r"table of shape \(n, d\)"), ({"n_repeats": 0}, "n_repeats must be")],
)
def test_bad_input(model, given, message):
    with pytest.raises(ValueError, match=message):
        permutation_importance(model, **{"X": X, "y": Y} | given)


def test_costs_of_each_example_are_what_counts():
    """All the money is in rows whose answer column 2 knows: column 0 costs nothing."""
    matters = RNG.random(400) < 0.5
    y_true = np.where(matters, X[:, 2] > 0, X[:, 0] > 0).astype(int)
    costs = np.zeros((400, 2, 2))
    costs[:, 0, 1] = costs[:, 1, 0] = np.where(matters, 7.0, 0.0)
    model = cs.TaskLossClassifier(model=Probabilities(LogisticRegression()))
    model.fit(X, y_true, costs=costs)
    found = permutation_importance(model, X, y_true, costs=costs, random_state=0)
    assert found.baseline == pytest.approx(-model.score(X, y_true, costs=costs))
    pred = model.predict(X, costs=costs)
    assert found.baseline == pytest.approx(costs[np.arange(400), pred, y_true].mean())
    assert found.ranked()[0][0] == 2
    with pytest.raises(ValueError, match="fitted with costs per example"):
        permutation_importance(model, X, y_true, random_state=0)
