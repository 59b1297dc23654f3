"""Boosted trees of items: the surrogate within queries, stages, grades as targets."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from consistruct.learning.encoding.queries import centered, pack_queries
from consistruct.learning.models.boosting.growing import QueryRows, SquareRows
from consistruct.learning.models.features.feature_maps import FeatureOptions
from consistruct.learning.models.items import boosted
from consistruct.learning.models.items.boosted import BoostedLearner, item_bins
from consistruct.learning.models.items.landmark_ridge import LandmarkRidge
from consistruct.learning.models.items.learners import training_queries
from consistruct.learning.models.items.model import Items
from consistruct.learning.models.items.regressors import RegressorLearner
from consistruct.learning.models.items.ridge import RidgeLearner
from consistruct.losses import NDCG

LOSS = NDCG(None, n_grades=4)


def rng_of(seed):
    return np.random.default_rng(seed)


def queries_of(n_queries=40, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(n_queries), rng.integers(2, 12, size=n_queries))
    X = rng.normal(size=(len(owners), columns))
    worth = 1.5 * (X[:, 0] > 0.3) - X[:, 1] + 0.3 * rng.normal(size=len(X))
    batch = pack_queries(X, owners)
    grades = batch.pack(np.clip(np.round(worth + 1), 0, 3).astype(int))
    return training_queries(batch.packed_items, grades, LOSS, None)


def learned(queries, seed=0, **settings):
    items = queries.problem.items
    learner = BoostedLearner(len(items), item_bins(items, np.random.default_rng(0)), **settings)
    return learner.fit(queries, np.random.default_rng(seed))


def rows_within():
    rng = np.random.default_rng(1)
    owners = np.array([0, 0, 0, 2, 2, 1, 1, 1, 1])
    weight = np.array([2.0, 1.0, 0.5])[owners]
    targets = rng.normal(size=(9, 2))
    for query in range(3):
        targets[owners == query] -= targets[owners == query].mean(axis=0)
    return QueryRows(targets, weight, owners), rng.normal(size=(9, 2))


def slow_loss(rows, scores):
    """Query by query."""
    total = 0.0
    for query in np.unique(rows.queries):
        own = rows.queries == query
        gaps = rows.targets[own] - (scores[own] - scores[own].mean(axis=0))
        total += 0.5 * rows.weight[own][0] * (gaps**2).sum()
    return total


def test_the_loss_within_queries_and_its_slope():
    rows, scores = rows_within()
    assert rows.mean(scores) == pytest.approx(slow_loss(rows, scores) / rows.weight.sum())
    down, bend = np.empty((9, 2)), np.empty((9, 2))
    rows.gradients(scores, down, bend)
    for place in np.ndindex(9, 2):
        step = np.zeros((9, 2))
        step[place] = 1e-3
        ahead, behind = slow_loss(rows, scores + step), slow_loss(rows, scores - step)
        assert down[place] == pytest.approx((behind - ahead) / 2e-3, abs=1e-8)
        second = (ahead + behind - 2 * slow_loss(rows, scores)) / 1e-6
        assert second <= bend[place] * (1 + 1e-6)
    assert not rows.start().any()


def test_constants_of_queries_change_nothing_and_parts_are_parts():
    rows, scores = rows_within()
    moved = scores + np.array([[5.0, -1.0], [0.0, 3.0], [2.0, 2.0]])[rows.queries]
    assert rows.mean(moved) == pytest.approx(rows.mean(scores))
    plain = SquareRows(rows.targets, rows.weight)
    assert plain.mean(moved) > 2 * rows.mean(moved)
    some = np.array([3, 4, 0, 1, 2])
    part = rows.take(some)
    expected = slow_loss(part, scores[some]) / part.weight.sum()
    assert part.mean(scores[some]) == pytest.approx(expected)


def test_columns_that_differ_between_queries_do_less_harm(monkeypatch):
    """A column is the worth plus a number of the query: only differences within queries tell."""
    rng = np.random.default_rng(3)
    owners = np.repeat(np.arange(200), 8)
    worth = rng.normal(size=len(owners))
    X = np.column_stack(
        [worth + 1.5 * rng.normal(size=200)[owners], worth + rng.normal(size=len(owners))]
    )
    batch = pack_queries(X, owners)
    grades = batch.pack(np.clip(np.round(worth + 1), 0, 3).astype(int))
    queries = training_queries(batch.packed_items, grades, LOSS, None)
    train, test = queries.take(np.arange(120)), queries.take(np.arange(120, 200)).problem

    def risk():
        scores = learned(train).scores(test.items, test.offsets)
        return ((centered(scores, test.offsets) - test.targets) ** 2).sum()

    within = risk()
    monkeypatch.setattr(boosted, "QueryRows", lambda *given: SquareRows(*given[:2]))
    assert within < 0.9 * risk()


@pytest.mark.parametrize("of_grades", [False, True])
def test_fewer_trees_are_the_first_ones(monkeypatch, of_grades):
    queries = queries_of()
    items, offsets = queries.problem.items, queries.problem.offsets
    many = learned(queries, of_grades=of_grades)
    staged = many.after((30, 60), items)
    np.testing.assert_allclose(staged[:, 0], many.at(30).scores(items, offsets), atol=1e-12)
    np.testing.assert_allclose(staged[:, 1], many.at(60).scores(items, offsets), atol=1e-12)
    monkeypatch.setattr(boosted, "STAGES", (30,))
    shorter = learned(queries, of_grades=of_grades)
    np.testing.assert_allclose(shorter.scores(items, offsets), staged[:, 0], atol=1e-12)
    assert many.at(30).stage == 30


def test_more_items_get_more_trees():
    bins = item_bins(np.zeros((2, 1)), np.random.default_rng(0))
    assert BoostedLearner(20_000, bins).stages == boosted.STAGES
    assert BoostedLearner(20_001, bins).stages == boosted.MANY_STAGES


def test_trees_learn_targets_and_grades():
    queries = queries_of()
    problem = queries.problem
    null = problem.item_weight @ problem.targets**2
    for of_grades in (False, True):
        found = learned(queries, of_grades=of_grades).scores(problem.items, problem.offsets)
        gaps = centered(found, problem.offsets) - problem.targets
        assert problem.item_weight @ gaps**2 < 0.3 * null


def test_grades_are_scaled_to_the_targets():
    queries = queries_of()
    problem = queries.problem
    grades = centered(queries.grades.values.astype(float), problem.offsets)
    factor = np.linalg.lstsq(
        (np.sqrt(problem.item_weight) * grades)[:, None], problem.scaled_targets, rcond=None
    )[0]
    for share in (0.0, 0.5, 1.0):
        found = queries.toward_grades(share).problem.targets
        expected = (1 - share) * problem.targets + share * factor * grades
        np.testing.assert_allclose(found, expected, atol=1e-12)
    none = queries.grades.with_values(0 * queries.grades.values)
    alike = training_queries(problem.items, none, LOSS, None)
    assert not alike.toward_grades(1.0).problem.targets.any()


def test_only_learners_that_are_averaged_with_others_see_grades():
    """Alone, a model is consistent; beside others, boosting of the targets is."""
    queries = queries_of()
    shares = {one.name: one.grade_share for one in Items()._learners(queries, 3, rng_of(0))}
    assert shares == {
        "linear": 0.5,
        "ridge": 0.5,
        "forest": 0.5,
        "boosting": 0.0,
        "boosting of grades": 1.0,
    }
    assert Items("ridge")._ridge().grade_share == 0.0


def test_what_is_fitted_to_mixed_targets_is_the_fit_of_them():
    queries = queries_of()
    mixed = queries.toward_grades(0.5)
    items, offsets = queries.problem.items, queries.problem.offsets
    linear = FeatureOptions(features="linear")
    for one in (RidgeLearner, LandmarkRidge):
        options = linear if one is RidgeLearner else FeatureOptions(n_components=20)
        own = one(options, grade_share=0.5).fit_and_leave_out(queries, rng_of(1))
        given = one(options).fit_and_leave_out(mixed, rng_of(1))
        np.testing.assert_array_equal(
            own[0].scores(items, offsets), given[0].scores(items, offsets)
        )
        np.testing.assert_array_equal(own[1].values, given[1].values)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    grown = RegressorLearner(tree, grade_share=0.5).fit(queries, rng_of(1)).scores(items, offsets)
    expected = RegressorLearner(tree).fit(mixed, rng_of(1)).scores(items, offsets)
    np.testing.assert_array_equal(grown, expected)
