"""Items: regressors and portfolios of them, out-of-fold estimates, settings, missing values."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import PredefinedSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.item_targets import ItemTargets
from consistruct.learning.encoding.queries import centered, pack_queries
from consistruct.learning.models.items import out_of_fold, regressors
from consistruct.learning.models.items.learners import training_queries
from consistruct.learning.models.items.model import Items
from consistruct.losses import NDCG, MeanAveragePrecision

rng = np.random.default_rng(0)
LENGTHS = rng.integers(1, 12, size=40)
IDS = np.repeat(np.arange(40), LENGTHS)
X = rng.normal(size=(len(IDS), 4))
WORTH = 1.5 * (X[:, 0] > 0.3) - X[:, 1] + 0.3 * rng.normal(size=len(IDS))
STEPS = np.clip(np.round(WORTH + 1), 0, 3).astype(int)
LOSS = NDCG(None, n_grades=4)
STATISTIC = ItemTargets(LOSS)
BATCH = pack_queries(X, IDS)
GRADES = BATCH.pack(STEPS)
SMALL_TREE = DecisionTreeRegressor(max_depth=3, random_state=0)
TELLING = np.flatnonzero([len(np.unique(row)) > 0 and len(row) > 1 for row in GRADES])


def fitted(model, batch=BATCH, grades=GRADES, statistic=STATISTIC, seed=0, **arguments):
    return clone(model).fit(batch, grades, statistic, rng=np.random.default_rng(seed), **arguments)


def task_loss(model, batch=BATCH, grades=GRADES):
    return LOSS(STATISTIC.decode(model.expected(batch)), grades).mean()


def test_a_regressor_is_fitted_on_centered_targets_weighted_by_query():
    model = fitted(Items(SMALL_TREE))
    queries = training_queries(BATCH.packed_items, GRADES, LOSS, None)
    problem = queries.problem
    alone = clone(SMALL_TREE).fit(problem.items, problem.targets, problem.item_weight)
    expected = -centered(alone.predict(BATCH.packed_items), BATCH.offsets)
    np.testing.assert_allclose(model.expected(BATCH).values, expected, atol=1e-12)
    # −targets are values of the statistic
    np.testing.assert_allclose(
        -problem.targets, STATISTIC.values(GRADES.take(queries.numbers)).values
    )


def test_weights_reach_the_last_step_of_a_pipeline():
    weight = rng.integers(1, 4, size=40).astype(float)
    model = fitted(Items(make_pipeline(StandardScaler(), Ridge(1e-6))), sample_weight=weight)
    repeated = np.repeat(np.arange(40), weight.astype(int))
    again = fitted(Items(Ridge(1e-6)), BATCH.take(repeated), GRADES.take(repeated))
    np.testing.assert_allclose(
        model.expected(BATCH).values, again.expected(BATCH).values, atol=1e-5
    )


def test_a_regressor_without_weights_refuses_them():
    near = Items(KNeighborsRegressor())
    assert task_loss(fitted(near)) < 0.2
    assert task_loss(fitted(near, sample_weight=np.full(40, 2.0))) < 0.2  # all alike
    with pytest.raises(ValueError, match="KNeighborsRegressor does not support sample_weight"):
        fitted(near, sample_weight=np.arange(1.0, 41.0))


@pytest.mark.parametrize("model", ["trees", "auto"])
def test_seeds_decide_everything(model):
    one, other = fitted(Items(model)), fitted(Items(model, n_jobs=2))
    assert one.expected(BATCH) == other.expected(BATCH)
    for mine, theirs in zip(one.portfolio_, other.portfolio_, strict=True):
        assert {**mine, "seconds": 0} == {**theirs, "seconds": 0}


def test_the_portfolio_states_what_it_tried():
    model = fitted(Items())
    names = [line["name"] for line in model.portfolio_]
    assert names == ["linear", "ridge", "forest", "boosting", "boosting of grades"]
    weights = np.array([line["weight"] for line in model.portfolio_])
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()
    # ridge is one fit, trees are the mean of five
    assert len(model.members_) == (weights > 0) @ [1, 1, 5, 5, 5]
    assert model.weights_.sum() == pytest.approx(1.0)
    n = len(model.out_of_fold().rows)
    for line in model.portfolio_:
        assert line["status"] == ("used" if line["weight"] > 0 else "not used")
        assert line["seconds"] > 0
        alone = line["surrogate_risk"] * np.sqrt(line["task_loss"] + 1e-3 / np.sqrt(n))
        assert line["criterion"] == pytest.approx(alone)
    (line,) = fitted(Items(SMALL_TREE)).portfolio_
    assert (line["name"], line["weight"]) == ("DecisionTreeRegressor", 1.0)


def test_trees_find_thresholds_and_ridge_does_not():
    many = np.random.default_rng(5)
    ids = np.repeat(np.arange(120), 8)
    inputs = many.normal(size=(len(ids), 6))
    grades = ((inputs[:, 0] > 0.5) ^ (inputs[:, 1] > 0)).astype(int)
    train, test = (
        pack_queries(inputs[ids < 90], ids[ids < 90]),
        pack_queries(inputs[ids >= 90], ids[ids >= 90]),
    )
    codes, new = train.pack(grades[ids < 90]), test.pack(grades[ids >= 90])
    found = {
        name: task_loss(fitted(model, train, codes), test, new)
        for name, model in {
            "linear": Items("ridge", features="linear"),
            "trees": Items("trees"),
            "auto": Items(),
        }.items()
    }
    assert found["trees"] < 0.5 * found["linear"]
    assert found["auto"] < 0.5 * found["linear"]


def test_linear_scores_are_found():
    """Precision of one item is linear in its worth: nothing is gained by a kernel."""
    many = np.random.default_rng(6)
    ids = np.repeat(np.arange(60), 5)
    inputs = many.normal(size=(300, 8))
    chance = 1 / (1 + np.exp(-2 * inputs @ many.normal(size=8)))
    batch = pack_queries(inputs, ids)
    grades = batch.pack((many.random(300) < chance).astype(int))
    (member,) = fitted(Items("ridge"), batch, grades).members_
    assert type(member.feature_map).__name__ == "LinearFeatures"


# --- left out --------------------------------------------------------------------------------


def test_out_of_fold_by_folds_is_fitting_without_them():
    split = PredefinedSplit(np.arange(len(TELLING)) % 3)
    model = fitted(Items(SMALL_TREE, cv=split))
    left = model.out_of_fold()
    np.testing.assert_array_equal(left.rows, TELLING)
    for fold in range(3):
        outside = TELLING[np.arange(len(TELLING)) % 3 != fold]
        inside = TELLING[np.arange(len(TELLING)) % 3 == fold]
        alone = fitted(Items(SMALL_TREE), BATCH.take(outside), GRADES.take(outside))
        expected = alone.expected(BATCH.take(inside))
        mine = left.expected.take(np.searchsorted(left.rows, inside))
        np.testing.assert_allclose(mine.values, expected.values, atol=1e-12)


def test_out_of_fold_of_ridge_is_fitting_without_the_query():
    """With the penalty Nα held: N is that of all queries."""
    ridge = Items("ridge", features="linear", alpha=0.1)
    left = fitted(ridge).out_of_fold()
    queries = training_queries(BATCH.packed_items, GRADES, LOSS, None)
    total = queries.problem.total_weight
    for place, query in enumerate(TELLING.tolist()):
        others = np.delete(np.arange(40), query)
        part = training_queries(
            BATCH.take(others).packed_items, GRADES.take(others), LOSS, None
        ).problem
        alone = fitted(
            Items("ridge", features="linear", alpha=0.1 * total / part.total_weight),
            BATCH.take(others),
            GRADES.take(others),
        )
        expected = alone.expected(BATCH.take([query]))
        np.testing.assert_allclose(left.expected[place], expected.values, atol=1e-9)


def test_a_regressor_alone_leaves_nothing_out():
    with pytest.raises(CapabilityError, match="out_of_fold"):
        fitted(Items(SMALL_TREE)).out_of_fold()


def test_given_folds_also_compare_ridge():
    model = fitted(Items(cv=3, features="linear"))
    assert model.portfolio_[0]["name"] == "ridge"
    np.testing.assert_array_equal(model.out_of_fold().rows, TELLING)


def test_fits_on_folds_are_averaged_and_compared_out_of_fold():
    model = fitted(Items("trees"))
    weights = [line["weight"] for line in model.portfolio_ if line["weight"] > 0]
    queries = training_queries(BATCH.packed_items, GRADES, LOSS, None)
    parts = out_of_fold.query_folds(queries, None, np.random.default_rng(0))
    left = model.out_of_fold()
    for fold, (_, outside) in enumerate(parts):
        part = BATCH.take(TELLING[outside])
        scores = sum(
            weight * model.members_[5 * place + fold].scores(part.items, part.offsets)
            for place, weight in enumerate(weights)
        )
        mine = left.expected.take(outside).values
        np.testing.assert_allclose(mine, -centered(scores, part.offsets), atol=1e-12)
    every = sum(
        weight * member.scores(BATCH.packed_items, BATCH.offsets)
        for weight, member in zip(model.weights_, model.members_, strict=True)
    )
    expected = -centered(every, BATCH.offsets)
    np.testing.assert_allclose(model.expected(BATCH).values, expected, atol=1e-12)


def test_larger_data_get_fewer_folds(monkeypatch):
    monkeypatch.setattr(out_of_fold, "SMALL", 50)
    model = fitted(Items("trees"))
    assert len(model.members_) == 3 * sum(line["weight"] > 0 for line in model.portfolio_)
    np.testing.assert_array_equal(model.out_of_fold().rows, TELLING)


# --- missing values, sparse inputs, settings -------------------------------------------------


def test_missing_values_pass_to_trees():
    holes = X.copy()
    holes[rng.random(X.shape) < 0.1] = np.nan
    batch = pack_queries(holes, IDS)
    for model in (Items("trees"), Items(), Items(HistGradientBoostingRegressor(max_iter=20))):
        assert model.takes_missing
        found = fitted(model, batch)
        assert found.takes_missing
        assert task_loss(found, batch) < 0.15
        assert not {"linear", "ridge"} & {line["name"] for line in found.portfolio_}
    assert not Items("ridge").takes_missing
    assert not Items(Ridge()).takes_missing
    # what was fitted decides: ridge among the members takes none
    assert not fitted(Items("ridge", features="linear")).takes_missing


def test_sparse_items():
    batch = pack_queries(sp.csr_array(X), IDS)
    assert task_loss(fitted(Items(), batch), batch) < 0.1
    assert task_loss(fitted(Items(SMALL_TREE), batch), batch) < 0.15


def test_trees_of_many_items_see_some_of_them(monkeypatch):
    monkeypatch.setattr(regressors, "TREE_ITEMS", 60)
    assert regressors.forest(100, 4, 5).regressor.max_samples is None
    learner = regressors.forest(len(X), 4, 5)
    assert learner.regressor.max_samples == 60
    queries = training_queries(BATCH.packed_items, GRADES, LOSS, None)
    grown = learner.fit(queries, np.random.default_rng(0)).regressor
    assert all(tree.tree_.weighted_n_node_samples[0] > 0 for tree in grown.estimators_)
    assert max(int(tree.tree_.n_node_samples[0]) for tree in grown.estimators_) <= 60


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"model": "forest"}, ValueError, "must be 'auto', 'ridge', 'trees' or a scikit-learn"),
        ({"model": LogisticRegression()}, TypeError, "or a scikit-learn regressor, got Logistic"),
        ({"model": Ridge}, TypeError, "or a scikit-learn regressor, got <class"),
        ({"model": "trees", "alpha": 0.1}, ValueError, "only with model='auto' or 'ridge'"),
        ({"model": SMALL_TREE, "kernel": "rbf"}, ValueError, "only with model='auto' or 'ridge'"),
        (
            {"model": "trees", "features": StandardScaler()},
            ValueError,
            "has an effect only with model=",
        ),
        ({"model": "ridge", "time_limit": 5.0}, ValueError, "only with model='auto' or 'trees'"),
        ({"features": "linear", "bandwidth": 2.0}, ValueError, "has an effect only with a kernel"),
        ({"features": "rbf", "kernel": "poly"}, ValueError, "with features 'auto', 'nystroem' or"),
        ({"features": StandardScaler(), "standardize": True}, ValueError, "with built-in features"),
        ({"degree": 2}, ValueError, "degree=2 has an effect only with the polynomial kernel"),
        ({"alpha": 0.1, "selection": "surrogate"}, ValueError, "several penalties to choose from"),
        ({"selection": "risk"}, ValueError, "selection must be 'task_loss' or 'surrogate'"),
        ({"scores": "pairs"}, ValueError, "must be None or 'items', got 'pairs'"),
        ({"cv": 1}, ValueError, "cv must be at least 2 folds"),
        ({"time_limit": -1.0}, ValueError, "time_limit"),
    ],
)
def test_bad_settings(settings, error, message):
    with pytest.raises(error, match=message):
        fitted(Items(**settings))


def test_losses_that_need_pairs_are_refused():
    statistic = ItemTargets(MeanAveragePrecision(None))
    relevant = GRADES.with_values((GRADES.values > 1).astype(int))
    with pytest.raises(CapabilityError, match="needs a score per pair of items"):
        fitted(Items("trees"), BATCH, relevant, statistic)
    fitted(Items("trees", scores="items"), BATCH, relevant, statistic)


def test_one_query_that_tells_anything():
    one, grades = BATCH.take([TELLING[0]]), GRADES.take([TELLING[0]])
    with pytest.raises(ValueError, match="compared by leaving out queries, but only one query"):
        fitted(Items("trees"), one, grades)
    fitted(Items("ridge", features="linear", alpha=0.1), one, grades)


def test_no_time_leaves_the_first_model():
    model = fitted(Items(time_limit=1e-9))
    late = "not tried: time_limit"
    assert [line["status"] for line in model.portfolio_] == ["used", late, late, late, late]
    assert [line["weight"] for line in model.portfolio_] == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_a_model_that_states_nothing_gets_no_weight():
    model = fitted(Items(DummyRegressor()))
    np.testing.assert_allclose(model.expected(BATCH).values, 0.0, atol=1e-12)
