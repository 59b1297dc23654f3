"""Any classifier with predict_proba gives the expected target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from consistruct.decisions.statistics import ClassProbabilities
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.learning import StructuredPredictor
from consistruct.learning.models.probabilities import Probabilities
from consistruct.learning.statistics import TargetValues, finest_statistic
from consistruct.losses import (
    Abstain,
    CostMatrix,
    CostVectors,
    FBeta,
    Hamming,
    Kendall,
    Matching,
    PartialLabels,
    Tree,
    ZeroOne,
)
from consistruct.losses.base import dense_target
from consistruct.structures import Ragged
from tests.learning.models.cells import MEMBERS, cell_means, cells, codes_of, short


def fitted(estimator, X, codes, loss, seed=0, n_jobs=None, **options):
    model = Probabilities(estimator, n_jobs=n_jobs)
    statistic = finest_statistic(loss)
    return model.fit(X, codes, statistic, rng=np.random.default_rng(seed), **options)


def has_questions(loss):
    return loss.true_labels.shape == () or loss.target_groups() is not None


TAKEN = [loss for loss in MEMBERS if loss.true_labels.size is not None and has_questions(loss)]
REFUSED = [loss for loss in MEMBERS if loss not in TAKEN]


def test_what_is_taken_and_what_is_not():
    names = {type(loss).__name__ for loss in TAKEN}
    assert names >= {"ZeroOne", "Block", "Mixed", "Ordinal", "Abstain", "CostMatrix", "Tree"}
    assert names >= {"Hamming", "FBeta", "PartialLabels"}
    refused = {type(loss).__name__ for loss in REFUSED}
    assert refused >= {"CostVectors", "NDCG", "Kendall", "Matching", "PartialLabels"}


# one tree for all questions, and one per question
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("loss", TAKEN, ids=short)
def test_a_full_tree_finds_the_mean_of_every_cell(loss, joint):
    X, codes = cells(), codes_of(loss)
    estimator = DecisionTreeClassifier()
    if not joint:
        estimator = GridSearchCV(estimator, {"max_depth": [None]}, cv=2)
        X = X[:, [0]]
    weight = np.random.default_rng(3).random(len(X)) + 0.5
    model = fitted(estimator, X, codes, loss, sample_weight=weight)
    means = cell_means(model.statistic_, X, codes, weight)
    np.testing.assert_allclose(model.expected(X), means, atol=1e-12)


@pytest.mark.parametrize("loss", REFUSED, ids=short)
def test_what_cannot_be_requested_names_regressor(loss):
    with pytest.raises(CapabilityError, match=r"Probabilities needs .*; use Regressor") as error:
        fitted(DecisionTreeClassifier(), cells(40), codes_of(loss, 40), loss)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("loss", MEMBERS, ids=short)
def test_groups_decide_the_target_with_few_answers(loss):
    groups = loss.target_groups()
    if groups is None:
        return
    columns = np.concatenate(groups)
    assert len(set(columns.tolist())) == len(columns)  # a column belongs to one question
    codes = loss.true_labels.enumerate() if loss.true_labels.size < 5000 else codes_of(loss)
    values = dense_target(loss.target(codes))
    rest = np.setdiff1d(np.arange(values.shape[1]), columns)
    assert (np.ptp(values[:, rest], axis=0) == 0).all()
    if not isinstance(loss, PartialLabels):  # its single true labels are requested, checked above
        limit = max(loss.true_labels.shape[0] + 1, getattr(loss, "n_states", 2))
        for group in groups:
            assert len(np.unique(values[:, group], axis=0)) <= limit


# --- classes ------------------------------------------------------------------------------------


def test_classes_absent_in_training_have_probability_zero():
    X, codes = cells(40), np.random.default_rng(0).choice([1, 4], 40)
    model = fitted(LogisticRegression(), X, codes, ZeroOne(6))
    expected = model.expected(X)
    np.testing.assert_array_equal(expected[:, [0, 2, 3, 5]], 0.0)
    by_hand = LogisticRegression().fit(X, codes).predict_proba(X)
    np.testing.assert_array_equal(expected[:, [1, 4]], by_hand)


def test_a_single_class_needs_no_classifier():
    model = fitted(LogisticRegression(), cells(10), np.full(10, 2), CostMatrix(1 - np.eye(4)))
    assert model.estimators_ == []
    np.testing.assert_array_equal(model.expected(cells(10)), np.tile([0, 0, 1, 0], (10, 1)))


@pytest.mark.parametrize(
    "loss",
    [
        Abstain(3, 0.2),
        Tree((-1, 0, 0, 1, 1, 2)),
        CostMatrix(np.arange(9).reshape(3, 3), rows="pred"),
    ],
)
def test_decisions_are_those_of_least_expected_cost(loss):
    X = np.random.default_rng(0).random((80, 2))
    codes = loss.true_labels.sample(80, np.random.default_rng(1))
    model = fitted(LogisticRegression(), X, codes, loss)
    probabilities = LogisticRegression().fit(X, codes).predict_proba(X)
    costs = probabilities @ loss.matrix().T  # rows of the matrix are predictions
    chosen = model.statistic_.decode(model.expected(X))
    np.testing.assert_allclose(
        costs[np.arange(80), chosen], costs.min(axis=1), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    "estimator",
    [
        CalibratedClassifierCV(LinearSVC(), cv=3),
        make_pipeline(StandardScaler(), LogisticRegression()),
        CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
        HistGradientBoostingClassifier(max_iter=5),
        MLPClassifier(5, max_iter=2000, tol=1e-2),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("loss", [ZeroOne(3), Hamming(2), Hamming(2, 3), FBeta(3)], ids=short)
def test_classifiers_of_many_kinds(estimator, loss):
    X, codes = np.random.default_rng(0).random((120, 3)), codes_of(loss, 120)
    if isinstance(loss, FBeta) and isinstance(estimator, CalibratedClassifierCV):
        codes = codes[np.isin(codes.sum(axis=1), [1, 2])]  # sizes with three examples each
        X = X[: len(codes)]
    model = fitted(estimator, X, codes, loss)
    expected = model.expected(X)
    assert expected.shape == (len(X), model.statistic_.width)
    assert np.isfinite(expected).all()
    if isinstance(loss, ZeroOne):
        np.testing.assert_allclose(expected.sum(axis=1), 1.0)


# --- label sets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(5), KNeighborsClassifier(3), MultiOutputClassifier(GaussianNB())],
    ids=lambda e: type(e).__name__,
)
def test_several_questions_are_requested_at_once_where_possible(estimator):
    X, codes = np.random.default_rng(0).random((60, 3)), codes_of(Hamming(3, 4), 60)
    codes[:, 1] = 2  # nothing to ask
    model = fitted(estimator, X, codes, Hamming(3, 4))
    assert len(model.estimators_) == 1
    expected = model.expected(X).reshape(60, 3, 4)
    np.testing.assert_allclose(expected.sum(axis=2), -1 / 3)
    np.testing.assert_allclose(expected[:, 1, 2], -1 / 3)
    only = fitted(estimator, X, codes[:, :2], Hamming(2, 4))  # a single question is left
    assert only.expected(X).shape == (60, 8)


def test_one_classifier_per_part_is_the_same_as_by_hand():
    X, codes = np.random.default_rng(0).random((60, 3)), codes_of(Hamming(3), 60)
    model = fitted(LogisticRegression(), X, codes, Hamming(3), n_jobs=2)
    by_hand = [LogisticRegression().fit(X, part).predict_proba(X) for part in codes.T]
    np.testing.assert_allclose(model.expected(X), -np.hstack(by_hand) / 3, atol=1e-15)


def test_fbeta_requests_member_and_size():
    loss = FBeta(3)
    X, codes = cells(), codes_of(loss)
    model = fitted(DecisionTreeClassifier(), X, codes, loss)
    expected = model.expected(X[:1])[0]
    same = codes[X[:, 0] == X[0, 0]]
    # P(label t belongs to the set, the set has size s), counted
    for s in (1, 2):
        counted = (same * (same.sum(axis=1) == s)[:, None]).mean(axis=0)
        np.testing.assert_allclose(-expected[3 * (s - 1) : 3 * s], counted)
    assert -expected[6] == pytest.approx((same.sum(axis=1) == 3).mean())
    assert -expected[7] == pytest.approx((same.sum(axis=1) == 0).mean())


def test_fbeta_decisions_are_optimal_for_the_distribution_of_a_cell():
    loss = FBeta(4)
    X, codes = cells(400), codes_of(loss, 400)
    model = fitted(ExtraTreesClassifier(5), X, codes, loss)
    every = loss.predictions.enumerate()
    for cell in range(4):
        same = codes[X[:, 0] == cell]
        best = min(loss(np.tile(candidate, (len(same), 1)), same).mean() for candidate in every)
        decided = model.statistic_.decode(model.expected(np.array([[float(cell), 0.0]])))
        assert loss(np.repeat(decided, len(same), 0), same).mean() == pytest.approx(best)


# --- candidate sets -----------------------------------------------------------------------------


@pytest.mark.parametrize("base", [ZeroOne(4), Hamming(2), FBeta(2)], ids=short)
def test_candidates_are_rows_with_their_share(base):
    loss = PartialLabels(base, "average")
    X, masks = np.random.default_rng(0).random((60, 2)), codes_of(loss, 60)
    listed = Ragged.pack([base.true_labels.enumerate()[mask == 1] for mask in masks])
    weight = np.random.default_rng(1).random(60) + 0.5
    one, other = (
        fitted(GaussianNB(), X, codes, loss, sample_weight=weight) for codes in (masks, listed)
    )
    np.testing.assert_allclose(one.expected(X), other.expected(X), atol=1e-12)
    # the same by hand: every candidate a row
    rows = np.repeat(np.arange(60), listed.lengths)
    share = weight[rows] / listed.lengths[rows]
    plain = fitted(GaussianNB(), X[rows], listed.values, base, sample_weight=share)
    np.testing.assert_allclose(
        one.expected(X)[:, : base.score_space.width],
        plain.statistic_.target(plain.expected(X)),
        atol=1e-9,
    )


def test_means_of_equal_offsets_are_no_column():
    loss = PartialLabels(Hamming(3), "average")  # 1/3 + 1/3 + 1/3 is not quite one
    assert TargetValues(loss).width == loss.score_space.width
    assert TargetValues(loss).constant_offset == pytest.approx(1.0)


def test_candidates_through_the_estimator():
    rng = np.random.default_rng(0)
    X, masks = rng.random((80, 2)), codes_of(PartialLabels(ZeroOne(3), "average"), 80)
    model = StructuredPredictor(
        PartialLabels(ZeroOne(3), "average"), Probabilities(GaussianNB()), cv=3, random_state=0
    ).fit(X, masks)
    rows, classes = np.nonzero(masks)
    share = 1.0 / masks.sum(axis=1)[rows]
    by_hand = GaussianNB().fit(X[rows], classes, sample_weight=share).predict_proba(X)
    sharp = model.recalibration_.for_decisions(-by_hand)  # zero-one targets are minus one-hot
    np.testing.assert_array_equal(model.predict(X), (-sharp).argmax(axis=1))


# --- weights, seeds, inputs, errors -------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(tol=1e-10),
        make_pipeline(StandardScaler(with_mean=False, with_std=False), GaussianNB()),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("loss", [ZeroOne(3), Hamming(2)], ids=short)
def test_weights_are_repetitions(estimator, loss):
    rng = np.random.default_rng(0)
    X, codes, weight = rng.random((40, 2)), codes_of(loss, 40), rng.integers(1, 4, 40)
    found = fitted(estimator, X, codes, loss, sample_weight=weight.astype(float))
    repeated = fitted(estimator, X.repeat(weight, 0), codes.repeat(weight, 0), loss)
    np.testing.assert_allclose(found.expected(X), repeated.expected(X), atol=1e-6)


def test_weights_where_none_are_taken():
    X, codes = cells(30), codes_of(ZeroOne(3), 30)
    with pytest.raises(CapabilityError, match="KNeighborsClassifier"):
        fitted(KNeighborsClassifier(), X, codes, ZeroOne(3), sample_weight=np.arange(1.0, 31.0))


def test_same_seed_same_answer_whatever_the_workers():
    X, codes = np.random.default_rng(0).random((60, 3)), codes_of(Hamming(3), 60)
    for forest in (ExtraTreesClassifier(4), CalibratedClassifierCV(ExtraTreesClassifier(4), cv=2)):
        one, same, other = (
            fitted(forest, X[:50], codes[:50], Hamming(3), seed, n_jobs).expected(X)
            for seed, n_jobs in ((0, None), (0, 2), (1, None))
        )
        np.testing.assert_array_equal(one, same)
        assert (one != other).any()


def test_frames_reach_the_classifier():
    rng = np.random.default_rng(0)
    kind = pd.Categorical.from_codes(rng.integers(0, 3, 200), ["a", "b", "c"])
    frame = pd.DataFrame({"kind": kind, "x": np.where(rng.random(200) < 0.3, np.nan, 1.0)})
    codes = np.where(frame["x"].isna(), 3, np.asarray(kind.codes))
    boosting = HistGradientBoostingClassifier(max_iter=30, categorical_features="from_dtype")
    model = fitted(boosting, frame, codes, ZeroOne(4))
    assert model.takes_missing
    np.testing.assert_array_equal(model.statistic_.decode(model.expected(frame)), codes)


@pytest.mark.parametrize("estimator", [LinearSVC(), LinearRegression()])
def test_without_probabilities(estimator):
    with pytest.raises(TypeError, match=r"predict_proba, got Linear.*CalibratedClassifierCV"):
        fitted(estimator, cells(20), codes_of(ZeroOne(2), 20), ZeroOne(2))


class Careless(Hamming):
    """Names questions that leave out what depends on the true label."""

    def target_groups(self):
        return (np.array([0, 1]),)


def test_groups_that_leave_out_a_column_are_found():
    with pytest.raises(ConsistructError, match="leave out column 2"):
        fitted(GaussianNB(), cells(20), codes_of(Hamming(2), 20), Careless(2))


def test_sums_of_losses_ask_the_questions_of_their_terms():
    loss = 0.5 * Hamming(3) + 1.5 * Hamming(3)
    assert len(loss.target_groups()) == 3
    assert (0.5 * FBeta(3) + FBeta(3, 2.0)).target_groups() is None  # two score spaces
    assert (1.0 * Kendall(3)).target_groups() is None
    assert isinstance(finest_statistic(Matching(3)), TargetValues)
    assert isinstance(finest_statistic(CostVectors(3)), TargetValues)
    assert isinstance(finest_statistic(2.0 * ZeroOne(3)), ClassProbabilities)


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost"])
@pytest.mark.parametrize("loss", [ZeroOne(4), Hamming(3), Hamming(2, 3)], ids=short)
def test_boosters_of_other_packages(name, loss):
    package = pytest.importorskip(name)
    if name == "xgboost":
        estimator = package.XGBClassifier(n_estimators=20, n_jobs=1)
    elif name == "lightgbm":
        estimator = package.LGBMClassifier(
            n_estimators=20, n_jobs=1, min_child_samples=1, verbose=-1
        )
    else:
        estimator = package.CatBoostClassifier(
            20, thread_count=1, verbose=False, allow_writing_files=False
        )
    X = cells(300)
    codes = loss.true_labels.unindex(X[:, 0].astype(np.int64) % loss.true_labels.size)
    model = fitted(estimator, X, codes, loss, sample_weight=np.linspace(0.5, 2.0, 300))
    np.testing.assert_array_equal(model.statistic_.decode(model.expected(X)), codes)
