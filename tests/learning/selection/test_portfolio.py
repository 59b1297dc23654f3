"""What "auto" tries: a function of the sizes alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from consistruct.decisions.statistics import ClassProbabilities
from consistruct.learning.selection.columns import Columns
from consistruct.learning.selection.portfolio import (
    ROUNDS_OF_TARGETS,
    SECOND_BOOSTER,
    portfolio,
)
from consistruct.learning.statistics import TargetValues
from consistruct.losses import Hamming, ZeroOne


@pytest.mark.parametrize(
    ("n", "k", "trees"),
    [(5000, 3, 150), (5001, 3, 50), (10_000, 3, 50), (10_001, 3, 18), (10_001, 30, 50)],
)
def test_forests_are_as_large_as_boosting_is_slow(n, k, trees):
    """Above 10,000 rows a forest of 50 took three classes beyond five times boosting's time."""
    assert forest(np.zeros((2, 4)), n, k).n_estimators == trees


def test_sparse_tables_keep_their_forest():
    assert forest(sp.csr_array(np.eye(2)), 20_000, 2).n_estimators == 50


def forest(X, n, k):
    tried = portfolio(ClassProbabilities(ZeroOne(k)), Columns.of(X), n)
    (found,) = (one.model for one in tried if one.name == "extra trees, larger leaves")
    return found.estimator


@pytest.mark.parametrize(
    ("n", "k", "least"),
    [(5000, 2, None), (5001, 2, SECOND_BOOSTER), (5001, 3, None)],
)
def test_a_second_booster_of_two_classes_waits_for_the_first(n, k, least):
    tried = portfolio(ClassProbabilities(ZeroOne(k)), Columns.of(np.zeros((2, 4))), n)
    found = [one.after_rounds for one in tried if one.name == "histogram boosting"]
    assert found == ([] if least is None else [least])


def test_categories_always_have_a_second_booster():
    table = np.array([["red", 1.0], ["blue", 2.0]], dtype=object)
    tried = portfolio(ClassProbabilities(ZeroOne(2)), Columns.of(table), 10_000)
    assert [one.after_rounds for one in tried if one.name == "histogram boosting"] == [0]


@pytest.mark.parametrize(("n", "labels", "found"), [(5000, 5, 0), (5001, 5, 1), (5001, 80, 0)])
def test_few_targets_of_many_rows_may_have_a_second_booster(n, labels, found):
    tried = portfolio(TargetValues(Hamming(labels)), Columns.of(np.zeros((2, 4))), n)
    second = [one for one in tried if one.name == "histogram boosting"]
    assert len(second) == found
    assert all(one.after_rounds == ROUNDS_OF_TARGETS // 2 for one in second)
