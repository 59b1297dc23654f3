"""StructuredPredictor on items of queries: what it learns, how queries are given, bad input."""

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.linear_model import LinearRegression
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.preprocessing import PolynomialFeatures

import consistruct as cs
from consistruct.exceptions import CapabilityError
from consistruct.learning import load, save
from consistruct.learning.models.items.model import Items
from consistruct.losses import (
    NDCG,
    ExpectedRankUtility,
    MeanAveragePrecision,
    PairwiseDisagreement,
    PrecisionAt,
)
from consistruct.metrics import TaskLossScorer, task_loss, task_losses

rng = np.random.default_rng(0)
LENGTHS = np.tile([3, 1, 7, 5, 9, 4, 8, 6], 6)
IDS = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
N = len(IDS)
X = rng.normal(size=(N, 3))
OFFSET = 3.0 * rng.normal(size=len(LENGTHS))  # what all items of a query share tells no order
WORTH = X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=N)
Y = np.clip(np.round(WORTH + 1), 0, 4).astype(int)
X[:, 2] = OFFSET[IDS]
QUERIES = [X[query == IDS] for query in range(len(LENGTHS))]
GRADES = [Y[query == IDS] for query in range(len(LENGTHS))]


def predictor(loss="ndcg", **settings):
    """Ridge on linear features unless stated otherwise: exact and fast."""
    plain = {} if "model" in settings and settings["model"] != "auto" else {"features": "linear"}
    items = Items(**{"model": "ridge", **plain, **settings})
    return cs.StructuredPredictor(loss, model=items, random_state=0)


def ridge_of(model):
    """The fitted scores of a single ridge."""
    (fitted,) = model.model_.members_
    return fitted


@pytest.mark.parametrize(
    ("loss", "settings"),
    [
        ("ndcg", {}),
        ("ndcg::3", {}),
        ("precision_at::2", {}),
        ("eru", {}),
        (NDCG(None), {}),
        (NDCG(None, gain="linear", discount="reciprocal", n_grades=5), {}),
        (PrecisionAt(None, 3, n_grades=5), {}),
        (ExpectedRankUtility(None, 3.0), {}),
        (PairwiseDisagreement(None), {"scores": "items"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("features", ["linear", "rbf"])
def test_order_is_learned(loss, settings, features):
    check_order_is_learned(predictor(loss, features=features, **settings))


@pytest.mark.parametrize("model", ["auto", "trees"])
def test_order_is_learned_by_several_models(model):
    check_order_is_learned(cs.StructuredPredictor("ndcg", Items(model), random_state=0))


def check_order_is_learned(model):
    model.fit(X, Y, groups=IDS)
    shuffled = [
        model.loss_.at(len(y_true))([np.arange(len(y_true))], [y_true])[0] for y_true in GRADES
    ]
    fitted = model.task_losses(X, Y, groups=IDS)
    # precision leaves relevant items out where a query has more than fit on the page
    ideal = [model.loss_.at(len(t))([np.argsort(-t, kind="stable")], [t])[0] for t in GRADES]
    assert (fitted - ideal).mean() < 0.35 * (np.array(shuffled) - ideal).mean()
    assert model.score(X, Y, groups=IDS) == pytest.approx(-fitted.mean())


def test_score_is_scikit_learns_ndcg():
    model = predictor(NDCG(None, gain="linear")).fit(X, Y, groups=IDS)
    scores = model.decision_function(QUERIES)
    several = [query for query in range(len(QUERIES)) if LENGTHS[query] > 1]
    expected = [ndcg_score([GRADES[q]], [scores[q]], ignore_ties=True) for q in several]
    losses = model.task_losses(QUERIES, GRADES)[several]
    relevant = [GRADES[q].any() for q in several]  # scikit-learn gives 0, we lose nothing
    np.testing.assert_allclose(1 - losses[relevant], np.array(expected)[relevant])


def test_what_items_of_a_query_share_does_not_matter():
    weights = ridge_of(predictor().fit(X, Y, groups=IDS)).weights
    assert abs(weights[2]) < 1e-10 * np.abs(weights).max()


def test_all_ways_to_give_queries_agree():
    model = predictor().fit(X, Y, groups=IDS)
    ranks = model.predict(X, groups=IDS)
    names = np.array([f"q{query}" for query in IDS])
    shuffle = np.random.default_rng(1).permutation(N)
    for fitted in (
        predictor().fit(X, Y, groups=LENGTHS),
        predictor().fit(X, Y, groups=names),
        predictor().fit(QUERIES, GRADES),
        predictor().fit(QUERIES, Y),
        predictor().fit([sp.csr_array(query) for query in QUERIES], GRADES),
        predictor().fit(sp.csr_array(X), Y.astype(float)[:, None], groups=IDS),
        predictor().fit(X[shuffle], Y[shuffle], groups=IDS[shuffle]),
    ):
        mine, other = ridge_of(model), ridge_of(fitted)
        np.testing.assert_allclose(other.weights, mine.weights, rtol=1e-8, atol=1e-12)
        assert other.alpha == pytest.approx(mine.alpha)
    np.testing.assert_array_equal(np.concatenate(model.predict(QUERIES)), ranks)
    np.testing.assert_array_equal(model.predict(X[shuffle], groups=IDS[shuffle]), ranks[shuffle])
    assert model.score(QUERIES, GRADES) == model.score(X, Y, groups=LENGTHS)


def test_ranks_follow_scores():
    model = predictor().fit(QUERIES, GRADES)
    ranks, scores = model.predict(QUERIES[2]), model.decision_function(QUERIES[2])  # one query
    assert sorted(ranks) == list(range(1, 8))
    np.testing.assert_array_equal(np.argsort(ranks), np.argsort(-scores))
    expected = model.expected_target(X, groups=IDS)  # packed; IDS stand together
    scores = model.decision_function(X, groups=IDS)
    np.testing.assert_allclose(-expected.values, scores, atol=1e-12)
    np.testing.assert_allclose([row.mean() for row in expected], 0, atol=1e-12)


def test_nonlinear_features_and_transformers():
    curved = (X[:, 0] ** 2 > 1).astype(int)
    kernel = predictor(features="auto", bandwidth="median").fit(X, curved, groups=IDS)
    linear = predictor().fit(X, curved, groups=IDS)
    squares = predictor(features=PolynomialFeatures(2)).fit(X, curved, groups=IDS)
    assert kernel.score(X, curved, groups=IDS) > linear.score(X, curved, groups=IDS) + 0.05
    assert squares.score(X, curved, groups=IDS) > linear.score(X, curved, groups=IDS) + 0.05
    few = predictor(features="nystroem", bandwidth="median", n_components=40).fit(
        X, curved, groups=IDS
    )
    assert ridge_of(few).feature_map.n_outputs <= 40
    waves = predictor(features="random", bandwidth="median", n_components=50).fit(
        X, curved, groups=IDS
    )
    assert ridge_of(waves).weights.shape == (50,)


def test_penalty_is_chosen_by_leaving_out_queries():
    noisy = np.random.default_rng(2).integers(0, 2, size=N)
    wide = np.random.default_rng(3).normal(size=(N, 60))
    model = predictor().fit(wide, noisy, groups=IDS)
    assert model.path_["surrogate_risk"][0] > model.path_["surrogate_risk"][-1]  # overfits
    best = model.path_["task_loss"].min()
    position = np.flatnonzero(model.path_["alphas"] == ridge_of(model).alpha)[0]
    assert model.path_["task_loss"][position] == pytest.approx(best, rel=1e-5)
    assert ridge_of(predictor(alpha=0.5).fit(X, Y, groups=IDS)).alpha == 0.5
    assert ridge_of(predictor(alpha=[0.1, 1.0]).fit(X, Y, groups=IDS)).alpha in (0.1, 1.0)
    by_risk = predictor(selection="surrogate").fit(wide, noisy, groups=IDS)
    least = by_risk.path_["surrogate_risk"].argmin()
    assert ridge_of(by_risk).alpha >= by_risk.path_["alphas"][least]


def test_weights_count_queries():
    weight = np.random.default_rng(4).integers(0, 3, size=len(LENGTHS))
    weighted = predictor(alpha=0.1).fit(QUERIES, GRADES, sample_weight=weight)
    repeated = predictor(alpha=0.1).fit(
        [QUERIES[q] for q in range(len(QUERIES)) for _ in range(weight[q])],
        [GRADES[q] for q in range(len(QUERIES)) for _ in range(weight[q])],
    )
    one, other = ridge_of(weighted).weights, ridge_of(repeated).weights
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-15)


def test_losses_that_need_pairs():
    binary = (Y > 2).astype(int)
    for loss in ("map", MeanAveragePrecision(None), PairwiseDisagreement(None, 5)):
        with pytest.raises(CapabilityError, match="needs a score per pair of items"):
            predictor(loss).fit(X, binary, groups=IDS)
        model = predictor(loss, scores="items").fit(X, binary, groups=IDS)
        assert model.score(X, binary, groups=IDS) > -0.2
    # two grades need item scores only
    assert predictor("pairwise").fit(X, binary, groups=IDS).score(X, binary, groups=IDS) > -0.2


def test_grades_that_training_never_saw_are_scored():
    model = predictor().fit(X, np.minimum(Y, 1), groups=IDS)
    expected = task_loss(Y, model.predict(X, groups=IDS), loss=NDCG(None, n_grades=5), groups=IDS)
    assert -model.score(X, Y, groups=IDS) == pytest.approx(expected)


# --- scikit-learn ----------------------------------------------------------------------------


def test_grid_search_over_lists_of_queries():
    search = GridSearchCV(predictor(), {"model__alpha": [1e-3, 1e3]}, cv=3).fit(QUERIES, GRADES)
    assert search.best_score_ > -0.1
    scores = cross_val_score(predictor(), QUERIES, GRADES, scoring=TaskLossScorer("ndcg"), cv=3)
    assert scores.mean() > -0.1


def test_groups_are_routed():
    with config_context(enable_metadata_routing=True):
        estimator = predictor().set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(estimator, {"model__alpha": [1e-3, 10.0]}, cv=GroupKFold(3))
        search.fit(X, Y, groups=IDS)
    assert search.best_score_ > -0.1


def test_scorer_sorts_by_what_other_rankers_predict():
    regression = LinearRegression().fit(X, Y)
    scorer = TaskLossScorer(NDCG(None, n_grades=5))
    value = scorer(regression, X, Y, groups=IDS)
    losses = [
        NDCG(len(t), n_grades=5)([np.argsort(-regression.predict(q), kind="stable")], [t])[0]
        for q, t in zip(QUERIES, GRADES, strict=True)
    ]
    assert value == pytest.approx(-np.mean(losses))
    model = predictor().fit(X, Y, groups=IDS)
    assert scorer(model, X, Y, groups=IDS) == pytest.approx(model.score(X, Y, groups=IDS))
    one = scorer(model, QUERIES[2], GRADES[2])  # one query
    assert one == pytest.approx(model.score(QUERIES[2:3], GRADES[2:3]))


def test_metrics_of_lists_and_groups_agree():
    model = predictor().fit(QUERIES, GRADES)
    listed = task_losses(GRADES, model.predict(QUERIES), loss="ndcg")
    flat = task_losses(Y, model.predict(X, groups=IDS), loss="ndcg", groups=LENGTHS)
    np.testing.assert_array_equal(listed, flat)
    np.testing.assert_array_equal(listed, model.task_losses(QUERIES, GRADES))


@pytest.mark.parametrize("features", ["linear", "rbf", "nystroem", "random"])
def test_model_files(features, tmp_path):
    few: dict[str, Any] = {"n_components": 30} if features in ("nystroem", "random") else {}
    if features != "linear":
        few["bandwidth"] = "median"
    model = predictor(features=features, **few).fit(X, Y, groups=IDS)
    save(model, tmp_path / "ranker.safetensors")
    again = load(tmp_path / "ranker.safetensors")
    np.testing.assert_array_equal(
        again.decision_function(X, groups=IDS), model.decision_function(X, groups=IDS)
    )
    assert again.score(X, Y, groups=IDS) == model.score(X, Y, groups=IDS)


def test_model_files_of_trees(tmp_path):
    model = predictor(model="trees").fit(X, Y, groups=IDS)
    save(model, tmp_path / "ranker.safetensors")
    again = load(tmp_path / "ranker.safetensors")
    np.testing.assert_array_equal(
        again.decision_function(X, groups=IDS), model.decision_function(X, groups=IDS)
    )
    assert again.model_.portfolio_ == model.model_.portfolio_
    with pytest.raises(CapabilityError):  # files keep what predicts, not the training queries
        again.model_.out_of_fold()


def test_fitting_again_forgets_the_queries():
    model = predictor().fit(X, Y, groups=IDS)
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    model.set_params(loss="hamming", model=cs.models.Ridge("linear")).fit(X, labels)
    assert model.predict(X).shape == labels.shape
    assert not hasattr(model, "decision_function")


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, Y), "a ranking is learned from several queries: pass groups="),
        ((X, Y, LENGTHS[:-1]), "which add up to 258; got shape (47,) (which add up to 252)"),
        ((X, Y, np.append(LENGTHS, 0)), "query 48 is empty; leave out queries without items"),
        ((X, Y, np.where(IDS == 3, np.nan, IDS)), "got NaN for item 11"),
        (([*QUERIES, np.zeros((0, 3))], [*GRADES, []]), "query 48 is empty"),
        ((QUERIES, GRADES[:-1]), "relevance of the items of 48 queries, got 47 lists"),
        ((QUERIES, [*GRADES[:-1], [1]]), "query 47 has 6 items, but its y has shape (1,)"),
        ((X, Y[:-1], IDS), "y must contain one relevance per item, shape (258,), got (257,)"),
        ((X, Y - 1, IDS), "y must contain relevance grades 0, 1, 2, …, got -1 for item"),
        ((X, Y + 0.5, IDS), "y must contain relevance grades 0, 1, 2, …, got"),
        ((X, Y + 60, IDS), "relevance grades must be at most 62"),
        ((X, np.full(N, "good"), IDS), "y must contain relevance grades 0, 1, 2, …, got dtype <U4"),
        ((X, None, IDS), "rankings require y to be passed"),
        ((QUERIES, GRADES, IDS), "omit them for a list of queries"),
        (([X[:2], X[:3, :2]], [[0, 1], [0, 1, 2]]), "equally many features, got [2, 3]"),
        ((X[:2], Y[:2], [0, 1]), "no query is informative"),
    ],
)
def test_bad_queries(arguments, message):
    X, y, *groups = arguments
    with pytest.raises(ValueError, match=re.escape(message)):
        predictor().fit(X, y, groups=groups[0] if groups else None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "ndcg:4"}, "ranks 4 items, but query 0 has 3; write ndcg::4 for a cut-off"),
        ({"loss": NDCG(4)}, "ranks 4 items, but query 0 has 3; use n=None"),
        (
            {"loss": "map", "scores": "items"},
            "average precision distinguishes only relevant (1) and irrelevant",
        ),
        ({"model": "forest"}, "must be 'auto', 'ridge', 'trees' or a scikit-learn regressor"),
        ({"selection": "risk"}, "selection must be 'task_loss' or 'surrogate', got 'risk'"),
        ({"cv": 1}, "cv must be at least 2 folds"),
        ({"scores": "pairs"}, "must be None or 'items', got 'pairs'"),
        ({"features": "deep"}, "features must be one of auto, linear"),
        ({"alpha": -1.0}, "alpha"),
        ({"loss": "precision_at::0"}, "cut-off q in the spec of precision-at"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        predictor(**settings).fit(X, Y, groups=IDS)


def test_cut_off_beyond_the_items():
    with pytest.raises(ValueError, match="q must be at most n = 3"):
        NDCG(3, 5)
    # a family cuts shorter queries at their length
    assert predictor("ndcg::100").fit(X, Y, groups=IDS).loss_.q == 100


def test_bad_weights_and_ranks():
    with pytest.raises(CapabilityError, match="comparable only within a query"):
        predictor().fit(X, Y, groups=IDS).predict_expected_loss(X)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(48,\), one per query"):
        predictor().fit(X, Y, groups=IDS, sample_weight=np.ones(N))
    with pytest.raises(ValueError, match=r"ranks 1\.\.2 of the items of query 1 without ties"):
        task_losses([0, 1, 0, 1], [1, 2, 1, 1], loss="ndcg", groups=[2, 2])
    rows = cs.StructuredPredictor("zero_one", cs.models.Ridge("linear")).fit(X, Y)
    with pytest.raises(ValueError, match="groups mark the sequences"):
        rows.predict(X, groups=IDS)
    with pytest.raises(
        ValueError, match="X has 2 features, but StructuredPredictor is expecting 3"
    ):
        predictor().fit(X, Y, groups=IDS).predict(X[:, :2], groups=IDS)
