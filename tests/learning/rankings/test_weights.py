"""Weights of learners of items: against the same rule, query by query."""

from itertools import product

import numpy as np
import pytest

from consistruct.learning.encoding.queries import centered, pack_queries
from consistruct.learning.models.items import portfolio
from consistruct.learning.models.items.learners import training_queries
from consistruct.learning.models.items.portfolio import resampled_weights
from consistruct.losses import NDCG

LOSS = NDCG(None, n_grades=3)


def queries_of(n=12, length=5, seed=0):
    rng = np.random.default_rng(seed)
    batch = pack_queries(rng.normal(size=(n * length, 1)), np.repeat(np.arange(n), length))
    return training_queries(
        batch.packed_items, batch.pack(rng.integers(0, 3, n * length)), LOSS, None
    )


def noisy(queries, *sizes, seed=1):
    """Scores of learners that are off by so much, (k, N)."""
    rng = np.random.default_rng(seed)
    problem = queries.problem
    unit = problem.targets.std()
    wrong = [
        problem.targets + unit * size * rng.normal(size=len(problem.targets)) for size in sizes
    ]
    return np.array([centered(one, problem.offsets) for one in wrong])


def slow_criterion(scores, queries, numbers):
    offsets, risk, task = queries.problem.offsets, 0.0, 0.0
    for query in numbers:
        rows = slice(offsets[query], offsets[query + 1])
        gaps = scores[rows] - queries.problem.targets[rows]
        risk += 0.5 * queries.problem.weight[query] * float(gaps @ gaps)
        order = np.argsort(-scores[rows], kind="stable")
        task += float(NDCG(len(order), n_grades=3)(order[None], queries.grades[query][None])[0])
    n = len(numbers)
    return risk / n * np.sqrt(task / n + 1e-3 / np.sqrt(len(queries)))


def test_weights_are_the_mean_of_the_best_of_random_quarters(monkeypatch):
    monkeypatch.setattr(portfolio, "SAMPLES", 10)
    monkeypatch.setattr(portfolio, "LEAST_WEIGHT", 0.0)
    queries = queries_of()
    columns = noisy(queries, 0.8, 1.0, 1.2)
    weights, alone = resampled_weights(columns, queries, np.random.default_rng(7))
    for place, column in enumerate(columns):
        assert alone[place] == pytest.approx(slow_criterion(column, queries, range(12)))
    grid = [np.array(w) / 4 for w in product(range(5), repeat=3) if sum(w) == 4]
    rng, expected = np.random.default_rng(7), np.zeros(3)
    for _ in range(10):
        some = rng.choice(12, 3, replace=False)
        expected += min(grid, key=lambda w: slow_criterion(w @ columns, queries, some)) / 10
    np.testing.assert_allclose(weights, expected, atol=1e-12)


def test_clear_differences_decide_and_equal_learners_share():
    queries = queries_of(60)
    clear, _ = resampled_weights(noisy(queries, 0.1, 9.0), queries, np.random.default_rng(0))
    np.testing.assert_array_equal(clear, [1.0, 0.0])
    equal, _ = resampled_weights(noisy(queries, 1.0, 1.0, 1.0), queries, np.random.default_rng(0))
    assert equal.sum() == pytest.approx(1.0)
    assert (equal > 0.15).all()


def test_one_learner_and_two_queries():
    queries = queries_of(2)
    weights, alone = resampled_weights(noisy(queries, 1.0), queries, np.random.default_rng(0))
    assert weights.tolist() == [1.0]
    assert alone.shape == (1,)
