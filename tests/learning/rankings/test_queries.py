"""Queries as a kind of example: packing, taking some, ranks, losses."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from consistruct._validation import to_dense
from consistruct.learning.encoding.queries import (
    centered,
    orders_of_ranks,
    orders_of_scores,
    pack_queries,
    ranks_of_orders,
)
from consistruct.learning.encoding.rankings import Queries, read_queries, takes_queries
from consistruct.losses import NDCG
from consistruct.structures import Ragged

rng = np.random.default_rng(0)
IDS = rng.permutation(np.repeat(["a", "b", "c", "d"], [2, 3, 1, 4]))  # items do not stand together
X = rng.normal(size=(10, 2))
GRADES = rng.integers(0, 3, size=10)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_taking_queries(make):
    batch = pack_queries(make(X), IDS)
    names = list(dict.fromkeys(IDS.tolist()))  # in order of their first item
    some = batch.take([2, 0])
    assert len(some) == 2
    expected = np.concatenate([X[names[2] == IDS], X[names[0] == IDS]])
    np.testing.assert_array_equal(to_dense(some.packed_items), expected)
    packed = to_dense(batch.packed_items)
    np.testing.assert_array_equal(packed, np.concatenate([X[name == IDS] for name in names]))


def test_orders_and_ranks_are_inverse():
    scores = Ragged.pack([[0.1, 0.5, 0.3], [1.0], [2.0, 2.0]])
    orders = orders_of_scores(scores)
    assert orders == Ragged.pack([[1, 2, 0], [0], [0, 1]])  # equal scores in the order of the data
    ranks = ranks_of_orders(orders)
    assert ranks == Ragged.pack([[3, 1, 2], [1], [1, 2]])
    assert orders_of_ranks(ranks) == orders


def test_predictions_stand_where_the_items_do():
    batch = pack_queries(X, IDS)
    kind = Queries(NDCG(None, n_grades=3))
    scores = rng.normal(size=10)
    codes = orders_of_scores(batch.pack(scores))
    ranks = kind.present(batch, codes)
    for name in "abcd":
        own = name == IDS
        np.testing.assert_array_equal(ranks[own], 1 + np.argsort(np.argsort(-scores[own])))
    losses = kind.losses(batch, codes, GRADES)
    for query, name in enumerate(dict.fromkeys(IDS.tolist())):
        own = name == IDS
        loss = NDCG(int(own.sum()), n_grades=3)
        assert losses[query] == loss([np.argsort(-scores[own])], [GRADES[own]])[0]


def test_lists_stay_lists():
    queries = [X[:3], X[3:]]
    batch = pack_queries(queries)
    kind = Queries(NDCG(None, n_grades=3))
    ranks = kind.present(batch, orders_of_scores(batch.pack(np.arange(10.0))))
    assert [rank.tolist() for rank in ranks] == [[3, 2, 1], [7, 6, 5, 4, 3, 2, 1]]
    assert kind.take(batch, [1]).listed


class Reader(BaseEstimator):  # type: ignore[misc]
    loss = "ndcg"


def test_reading_queries():
    model = SimpleNamespace(takes_missing=False)
    weight = np.array([1.0, 0.0, 2.0, 1.0])
    examples = read_queries(Reader(), model, X, GRADES, IDS, weight)
    assert len(examples) == 4
    assert examples.kind.loss == NDCG(None, n_grades=int(GRADES.max()) + 1)
    part = examples.take(np.array([1, 3]))
    assert part.codes == examples.codes.take([1, 3])
    assert len(part.inputs) == 2
    np.testing.assert_array_equal(part.weight, [0.0, 1.0])
    missing = X.copy()
    missing[4, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        read_queries(Reader(), model, missing, GRADES, IDS, None)
    welcome = SimpleNamespace(takes_missing=True)
    assert np.isnan(read_queries(Reader(), welcome, missing, GRADES, IDS, None).inputs.items[4, 0])


def test_which_data_are_queries():
    assert takes_queries("ndcg", X, GRADES, IDS)
    assert takes_queries(NDCG(None), [X[:3], X[3:]], [GRADES[:3], GRADES[3:]])
    assert not takes_queries("hamming", X, GRADES, IDS)
    assert not takes_queries(NDCG(2), X, np.zeros((10, 2)))


def test_centering():
    values = rng.normal(size=(10, 2))
    offsets = np.array([0, 3, 4, 10])
    parts = [values[a:b] - values[a:b].mean(axis=0) for a, b in pairwise(offsets)]
    np.testing.assert_allclose(centered(values, offsets), np.concatenate(parts), atol=1e-15)
