"""Stack: out-of-fold rows are left out, weights are what a search of one's own finds."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.tree import DecisionTreeClassifier

import consistruct as cs
from consistruct.learning import load, save
from consistruct.learning.models import stack as stack_module
from consistruct.learning.selection.averaging import ProperTimesTask
from consistruct.learning.selection.portfolio import Candidate
from consistruct.models import Boosting, Probabilities, Regressor, Ridge, Stack

MATRIX = np.array([[0, 1, 5], [2, 0, 1], [9, 3, 0]])  # rows are predictions
COSTS = cs.losses.CostMatrix(MATRIX, rows="pred")


class Broken(DecisionTreeClassifier):  # type: ignore[misc]
    def fit(self, X, y, sample_weight=None):
        raise ValueError("no leaves today")


LOGISTIC = Probabilities(LogisticRegression(max_iter=500))
TREE = Probabilities(DecisionTreeClassifier(max_depth=3, random_state=0))
MEAN = Probabilities(DummyClassifier())


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        240, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, flip_y=0.15, random_state=1
    )
    return X, y


def sharpened(left, y, *others):
    """Power and floor of least out-of-fold log loss, if that gains 2 %, row by row and by hand."""
    k = left.shape[1]
    rows = np.arange(len(y))
    found = {}
    for floor in (1e-4, 1e-3, 1e-2, 1e-1):
        for power in 2.0 ** np.linspace(-3, 3, 25):
            changed = (left + floor / k) ** power
            changed /= changed.sum(axis=1, keepdims=True)
            found[power, floor] = -np.log(changed[rows, y]).mean()
    power, floor = min(found, key=found.__getitem__)
    plain = min(value for (one, _), value in found.items() if one == 1.0)
    if found[power, floor] > 0.98 * plain:
        return left, *others
    changed = [(part + floor / k) ** power for part in (left, *others)]
    return tuple(part / part.sum(axis=1, keepdims=True) for part in changed)


def out_of_fold_by_hand(model, X, y, splits):
    values = np.empty((len(y), 3))
    for fit, out in splits:
        values[out] = clone(model.estimator).fit(X[fit], y[fit]).predict_proba(X[out])
    return values


def fitted(data, model, **settings):
    X, y = data
    return cs.TaskLossClassifier(COSTS, model, random_state=0, **settings).fit(X, y)


def test_out_of_fold_rows_were_not_seen(data):
    X, y = data
    splits = list(KFold(4, shuffle=True, random_state=3).split(X))
    est = fitted(data, Stack([LOGISTIC, TREE], cv=splits, combine="mean"))
    shares = [entry["weight"] for entry in est.portfolio_]
    left = est.model_.out_of_fold()
    assert left.rows.tolist() == list(range(len(y)))
    expected = sum(
        share * sharpened(out_of_fold_by_hand(model, X, y, splits), y)[0]
        for share, model in zip(shares, (LOGISTIC, TREE), strict=True)
    )
    np.testing.assert_allclose(left.expected, expected, rtol=1e-7, atol=1e-9)


def test_weights_minimize_log_loss_times_root_of_costs(data):
    """No average of the two on a fine grid is much better than the one that was found."""
    X, y = data
    splits = list(KFold(4, shuffle=True, random_state=3).split(X))
    estimates = [
        sharpened(out_of_fold_by_hand(model, X, y, splits), y)[0] for model in (LOGISTIC, TREE)
    ]

    def criterion(share):
        mean = share * estimates[0] + (1 - share) * estimates[1]
        log = -np.log(np.maximum(mean[np.arange(len(y)), y], 1e-4)).mean()
        decided = (mean @ MATRIX.T).argmin(axis=1)
        return log * np.sqrt(MATRIX[decided, y].mean() + 1e-3 * 9 / np.sqrt(len(y)))

    est = fitted(data, Stack([LOGISTIC, TREE], cv=splits, combine="mean"))
    found = est.portfolio_[0]["weight"]
    best = min(criterion(share) for share in np.linspace(0, 1, 201))
    assert criterion(found) <= 1.02 * best
    assert est.portfolio_[0]["criterion"] == pytest.approx(criterion(1.0))
    assert est.portfolio_[1]["criterion"] == pytest.approx(criterion(0.0))


def test_members_are_fitted_on_all_rows(data):
    X, y = data
    splits = list(KFold(3, shuffle=True, random_state=3).split(X))
    est = fitted(data, Stack([LOGISTIC, TREE], cv=splits, combine="best"))
    best = min(est.portfolio_, key=lambda entry: entry["criterion"])
    assert best["weight"] == 1.0
    assert best["status"] == "used"
    model = (LOGISTIC, TREE)[est.portfolio_.index(best)]
    expected = clone(model.estimator).fit(X, y).predict_proba(X)
    _, expected = sharpened(out_of_fold_by_hand(model, X, y, splits), y, expected)
    np.testing.assert_allclose(est.model_.expected(X), expected, atol=1e-9)


def geometric(shares, estimates):
    """Row by row: products of powers, divided by their sum."""
    found = []
    for rows in zip(*estimates, strict=True):
        product = np.ones(len(rows[0]))
        for share, row in zip(shares, rows, strict=True):
            product *= np.maximum(row, 1e-5) ** share
        found.append(product / product.sum())
    return np.array(found)


def test_probabilities_are_averaged_by_their_logarithms_where_that_is_better(data):
    X, y = data
    splits = list(KFold(4, shuffle=True, random_state=1).split(X))
    found = {way: fitted(data, Stack([LOGISTIC, TREE], cv=splits, combine=way)) for way in
             ("mean", "geometric", "average")}  # fmt: skip
    estimates = [model.estimator for model in (LOGISTIC, TREE)]
    estimates = [clone(one).fit(X, y).predict_proba(X) for one in estimates]
    for way, est in found.items():
        if way == "average":
            continue
        stack = est.model_
        assert stack.combine_ == way
        assert (stack.weights_ > 0.05).all()  # both are used
        members = [r.for_reports(e) for r, e in zip(stack.recalibrations_, estimates, strict=True)]
        by_hand = (
            geometric(stack.weights_, members)
            if way == "geometric"
            else np.tensordot(stack.weights_, members, 1)
        )
        np.testing.assert_allclose(stack.expected(X), by_hand, atol=1e-12)

    def criterion(est):
        left = est.model_.out_of_fold().expected
        log = -np.log(np.maximum(left[np.arange(len(y)), y], 1e-4)).mean()
        costs = MATRIX[(left @ MATRIX.T).argmin(axis=1), y].mean()
        return log * np.sqrt(costs + 1e-3 * 9 / np.sqrt(len(y)))

    better = min(("mean", "geometric"), key=lambda way: criterion(found[way]))
    assert found["average"].model_.combine_ == better
    again = found["geometric"].model_.with_fixed_weights()
    assert again.combine == "geometric"
    refitted = fitted(data, again)
    np.testing.assert_allclose(refitted.model_.expected(X), found["geometric"].model_.expected(X))


def test_targets_have_no_geometric_mean():
    X, y = load_iris(return_X_y=True)
    labels = np.column_stack([y == 0, y > 0]).astype(int)
    stack = Stack([Ridge(), Ridge(features="linear")], combine="geometric")
    with pytest.raises(ValueError, match="averages class probabilities"):
        cs.TaskLossClassifier("hamming", stack).fit(X, labels)


def test_files_keep_how_members_are_averaged(data, tmp_path):
    est = fitted(data, Stack([LOGISTIC, TREE], cv=3, combine="geometric"))
    save(est, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    X, _ = data
    assert np.array_equal(again.predict_proba(X), est.predict_proba(X))


def test_a_model_that_is_too_sure_is_recalibrated(data):
    """A tree of single rows predicts 0 or 1, far worse for out-of-fold rows."""
    X, y = data
    sure = Probabilities(DecisionTreeClassifier(random_state=0))
    splits = list(KFold(4, shuffle=True, random_state=3).split(X))
    est = fitted(data, Stack([sure], cv=splits))
    left = out_of_fold_by_hand(sure, X, y, splits)
    assert np.isin(left, (0.0, 1.0)).all()
    expected, reported = sharpened(left, y, clone(sure.estimator).fit(X, y).predict_proba(X))
    np.testing.assert_allclose(est.model_.out_of_fold().expected, expected, atol=1e-9)
    np.testing.assert_allclose(est.model_.expected(X), reported, atol=1e-9)
    assert reported.max() < 0.95


def test_a_stack_with_fixed_weights_is_the_same_without_a_comparison(data):
    X, _ = data
    sure = Probabilities(DecisionTreeClassifier(random_state=0))
    est = fitted(data, Stack([LOGISTIC, sure, Ridge("linear")], cv=3))
    again = fitted(data, est.model_.with_fixed_weights())
    np.testing.assert_allclose(again.model_.weights_, est.model_.weights_)
    np.testing.assert_allclose(again.model_.expected(X), est.model_.expected(X), atol=1e-2)
    assert [type(one) for one in again.model_.recalibrations_] == [
        type(one) for one in est.model_.recalibrations_
    ]


def test_recalibrations_that_cannot_be_used_are_refused(data):
    with pytest.raises(ValueError, match="go with weights"):
        fitted(data, Stack([LOGISTIC, TREE], recalibrations=[None, None]))
    with pytest.raises(ValueError, match="one entry of a fitted stack's recalibrations_"):
        fitted(data, Stack([LOGISTIC, TREE], weights=[1, 1], recalibrations=[None, None]))


def test_exact_leave_one_out_stands_for_folds(data, monkeypatch):
    """Ridge is fitted once on all rows and no more, whatever the other models need."""
    fits = []
    inner = Ridge.fit

    def counted(self, X, *arguments, **settings):
        fits.append(X.shape[0])
        return inner(self, X, *arguments, **settings)

    monkeypatch.setattr(Ridge, "fit", counted)
    fitted(data, Stack([Ridge("linear"), LOGISTIC]))
    assert fits == [240]


def test_a_model_without_rivals_is_fitted_once(monkeypatch):
    """It knows out-of-fold estimates of some rows only: enough, where nothing is compared."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    Y = (X @ rng.normal(size=(4, 3)) + 0.3 * rng.normal(size=(120, 3)) > 0).astype(int)
    fits, known = [], Ridge.out_of_fold

    def half(model):
        left = known(model)
        return type(left)(left.rows[::2], left.expected[::2])

    def counted(model, X, *others, fit=Ridge.fit, **settings):
        fits.append(len(X))
        return fit(model, X, *others, **settings)

    monkeypatch.setattr(Ridge, "out_of_fold", half)
    monkeypatch.setattr(Ridge, "fit", counted)
    alone = cs.TaskLossClassifier("hamming", Stack([Ridge("linear")]), random_state=0).fit(X, Y)
    assert fits == [120]
    assert alone.model_.weights_.tolist() == [1.0]
    assert alone.model_.out_of_fold().rows.tolist() == list(range(0, 120, 2))
    fits.clear()
    rivals = Stack([Ridge("linear"), Ridge("linear", alpha=1.0)])
    cs.TaskLossClassifier("hamming", rivals, random_state=0).fit(X, Y)
    assert fits == 2 * [120, 96, 96, 96, 96, 96]  # compared on all rows, so by folds


def test_groups_stay_together(data):
    X, y = data
    groups = np.arange(len(y)) // 8
    memory = Probabilities(DecisionTreeClassifier(random_state=0))
    repeated = np.repeat(X[::8], 8, axis=0)  # rows of a group are copies: leaking is winning
    noisy = np.random.default_rng(0).integers(3, size=len(y[::8])).repeat(8)
    apart = cs.TaskLossClassifier(COSTS, Stack([memory, MEAN]), random_state=0)
    assert apart.fit(repeated, noisy).portfolio_[0]["weight"] == 1.0
    together = clone(apart).fit(repeated, noisy, groups=groups)
    assert together.portfolio_[0]["weight"] < 0.5
    given = cs.TaskLossClassifier(COSTS, Stack([memory, MEAN]), cv=GroupKFold(5), random_state=0)
    assert given.fit(repeated, noisy, groups=groups).portfolio_[0]["weight"] < 0.5


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_the_number_of_workers_changes_nothing(data, n_jobs):
    X, _ = data
    stack = [LOGISTIC, TREE, Ridge("linear")]
    one = fitted(data, Stack(stack))
    many = fitted(data, Stack(stack), n_jobs=n_jobs)
    assert [e["weight"] for e in one.portfolio_] == [e["weight"] for e in many.portfolio_]
    np.testing.assert_array_equal(one.predict(X), many.predict(X))
    np.testing.assert_allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-12)


def test_settings_of_the_estimator_reach_the_stack(data):
    est = fitted(data, Stack([LOGISTIC, TREE]), cv=7, n_jobs=2, time_limit=100)
    assert (est.model_.cv, est.model_.n_jobs, est.model_.time_limit) == (7, 2, 100)
    with pytest.raises(ValueError, match="cv is set on the estimator and on Stack; set it once"):
        fitted(data, Stack([LOGISTIC, TREE], cv=3), cv=7)
    with pytest.raises(ValueError, match="n_jobs is set on the estimator and on Stack"):
        fitted(data, Stack([LOGISTIC, TREE], n_jobs=1), n_jobs=2)


def test_folds_of_row_numbers_follow_rows_without_weight(data):
    X, y = data
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    weight = np.ones(len(y))
    weight[::5] = 0.0
    stack = Stack([LOGISTIC, TREE], cv=splits)
    est = cs.TaskLossClassifier(COSTS, stack, random_state=0).fit(X, y, sample_weight=weight)
    kept = np.flatnonzero(weight)
    number = {row: place for place, row in enumerate(kept)}
    inner = [
        ([number[i] for i in a if i in number], [number[i] for i in b if i in number])
        for a, b in splits
    ]
    same = Stack([LOGISTIC, TREE], cv=inner)
    other = cs.TaskLossClassifier(COSTS, same, random_state=0).fit(X[kept], y[kept])
    assert [e["weight"] for e in est.portfolio_] == [e["weight"] for e in other.portfolio_]


def test_no_time_leaves_the_first_model(data):
    est = fitted(data, Stack([LOGISTIC, TREE]), time_limit=0)
    assert [entry["weight"] for entry in est.portfolio_] == [1.0, 0.0]
    assert "time_limit of 0 s was reached" in est.portfolio_[1]["status"]


def test_different_statistics_meet_in_the_targets(data):
    """Probabilities of classes and regressions of targets are averaged as expected targets."""
    from sklearn.tree import DecisionTreeRegressor

    X, _ = data
    est = fitted(data, Stack([LOGISTIC, Regressor(DecisionTreeRegressor(max_depth=3))], cv=3))
    prices = est.expected_losses(X)
    assert prices.shape == (240, 3)
    assert (prices >= 0).all()
    assert (prices <= 9).all()


def test_weights_that_are_known(data):
    X, y = data
    est = fitted(data, Stack([LOGISTIC, TREE], weights=[3, 1]))
    p = clone(LOGISTIC.estimator).fit(X, y).predict_proba(X)
    q = clone(TREE.estimator).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(est.predict_proba(X), 0.75 * p + 0.25 * q, atol=1e-9)
    for weights in ([1], [-1, 2], [0, 0], [np.nan, 1]):
        with pytest.raises(ValueError, match="one non-negative number per model"):
            fitted(data, Stack([LOGISTIC, TREE], weights=weights))


def test_a_model_of_ones_own_that_fails_is_not_skipped_silently(data):
    with pytest.raises(ValueError, match="no leaves today"):
        fitted(data, Stack([LOGISTIC, Probabilities(Broken())]))


def test_a_model_of_the_portfolio_that_fails_states_so(data, monkeypatch, caplog):
    from consistruct.learning.models import stack as module

    monkeypatch.setattr(
        module,
        "portfolio",
        lambda *_, **__: [Candidate("broken", Probabilities(Broken())), Candidate("tree", TREE)],
    )
    with caplog.at_level(logging.WARNING):
        est = fitted(data, "auto")
    assert est.portfolio_[0]["status"] == "failed: no leaves today"
    assert est.portfolio_[1]["weight"] == 1.0
    assert "broken left out" in caplog.text


@pytest.mark.parametrize("noise", [True, False])
def test_a_second_booster_is_tried_where_the_first_goes_on_learning(noise, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = rng.integers(2, size=600) if noise else (np.sin(5 * X[:, 0]) > X[:, 1]).astype(int)
    boosting = Boosting(200, learning_rate=0.1, patience=10)
    candidates = [Candidate("boosting", boosting), Candidate("other", TREE, after_rounds=30)]
    monkeypatch.setattr(stack_module, "portfolio", lambda *_, **__: candidates)
    est = cs.TaskLossClassifier("zero_one", random_state=0).fit(X, y)
    status = est.portfolio_[1]["status"]
    if noise:
        assert status.startswith("boosting ended after")
        assert int(status.split()[3]) < 30
    else:
        assert est.portfolio_[1]["task_loss"] is not None


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (Stack([]), TypeError, "list of models of consistruct.models"),
        (Stack([LogisticRegression()]), TypeError, "list of models of consistruct.models"),
        (Stack("best"), ValueError, "models must be 'auto' or a list"),
        (Stack([LOGISTIC], combine="median"), ValueError, "combine must be one of average, mean"),
    ],
)
def test_bad_settings(model, error, message, data):
    with pytest.raises(error, match=message):
        fitted(data, model)


@pytest.mark.parametrize("kind", ["thresholds", "waves"])
def test_auto_takes_trees_for_thresholds_and_kernels_for_smooth_functions(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(900, 10))
    if kind == "thresholds":
        y = (X[:, 0] > 0.1) ^ (X[:, 1] > 0.3)
    else:
        waves = np.sin(1.5 * X @ np.random.default_rng(1).normal(size=(10, 2)))
        y = (waves + 0.15 * rng.normal(size=(900, 2))).argmax(axis=1)
    portfolio = cs.TaskLossClassifier("zero_one", random_state=0).fit(X, y).portfolio_
    most = max(portfolio, key=lambda entry: entry["weight"])["name"]
    assert most == ("boosting" if kind == "thresholds" else "kernel ridge"), portfolio


def test_a_stack_of_ridge_alone_estimates_as_ridge_does():
    """Its probabilities are clipped by their power, not projected before: rare classes feel it."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    costs = np.random.default_rng(0).uniform(1, 50, (10, 10)) * (1 - np.eye(10))
    fitted = [
        cs.TaskLossClassifier(cs.losses.CostMatrix(costs, rows="pred"), model, random_state=0).fit(
            X, y
        )
        for model in (Ridge(), Stack([Ridge()]))
    ]
    ridge, stack = fitted
    alone = ridge.recalibration_.for_decisions(ridge.model_.expected(X[:100]))
    np.testing.assert_allclose(stack.model_.expected(X[:100]), alone, rtol=1e-9, atol=1e-12)


class Wavering(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The sign of column 0 decides; another column shows how sure it is, of nothing."""

    def __init__(self, column=1, flips=0.0):
        self.column = column
        self.flips = flips

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        sure = 0.5 + 0.45 * X[:, self.column]  # 0.5 to 0.95
        wrong = X[:, self.column + 2] < self.flips
        right = np.where((X[:, 0] > 0) ^ wrong, sure, 1 - sure)
        return np.column_stack([1 - right, right])


def wavering(n, flips):
    """Rows whose signs are wrong one time in ten, and two models of them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, size=(n, 5))
    X[:, 0] -= 0.5
    y = ((X[:, 0] > 0) ^ (rng.uniform(size=n) < 0.1)).astype(int)
    return X, y, Stack([Probabilities(Wavering(column, flips)) for column in (1, 2)])


@pytest.mark.parametrize(("flips", "members"), [(0.0, 1), (0.2, 2)])
def test_a_mixture_of_many_rows_must_decide_better_than_its_best_model(flips, members):
    """Means of two that waver have less log loss; a second fit is worth it for other decisions."""
    X, y, stack = wavering(6000, flips)
    est = cs.TaskLossClassifier("zero_one", stack, random_state=0).fit(X, y)
    assert len(est.model_.members_) == members
    left, weights = est.model_.out_of_fold(), [entry["weight"] for entry in est.portfolio_]
    assert sum(weights) == pytest.approx(1.0)
    wrong = (left.expected.argmax(axis=1) != y[left.rows]).mean()
    best = min(est.portfolio_, key=lambda entry: entry["criterion"])["task_loss"]
    assert wrong < best if members == 2 else wrong == pytest.approx(best)


@pytest.mark.parametrize(("n", "share", "members"), [(6000, 0.1, 1), (6000, 0.2, 2), (600, 0.1, 2)])
def test_a_small_share_is_not_worth_a_fit_on_many_rows(n, share, members, monkeypatch):
    found = np.array([1 - share, share])
    fake = found, np.array([0.1, 0.2]), 0.1
    monkeypatch.setattr(stack_module, "greedy_weights", lambda *_: fake)
    # whatever the mixture is, it decides better than the first alone
    monkeypatch.setattr(ProperTimesTask, "of_decisions", lambda _, p: float(p.max(axis=1).mean()))
    X, y, stack = wavering(n, 0.2)
    est = cs.TaskLossClassifier("zero_one", stack, random_state=0).fit(X, y)
    assert len(est.model_.members_) == members
    expected = [1.0] if members == 1 else found
    np.testing.assert_allclose(est.model_.weights_, expected)
