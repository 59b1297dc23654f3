"""What "auto" tries: a function of the sizes alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from consistruct.learning.selection.columns import Columns
from consistruct.learning.selection.portfolio import portfolio
from consistruct.learning.statistics import ClassProbabilities
from consistruct.losses import ZeroOne


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
