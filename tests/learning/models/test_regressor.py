"""Any regressor fits the expected target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR, LinearSVR
from sklearn.tree import DecisionTreeRegressor

from consistruct.decisions.statistics import ClassProbabilities
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.coordinates import WIDTH_LIMIT, coordinates_of
from consistruct.learning.models.regressor import Regressor
from consistruct.learning.statistics import TargetValues, finest_statistic
from consistruct.losses import CostMatrix, CostVectors, Decision, FBeta, Hamming, Kendall, ZeroOne
from consistruct.losses.base import dense_target
from tests.learning.models.cells import MEMBERS, cell_means, cells, codes_of, short


def fitted(estimator, X, codes, statistic, seed=0, n_jobs=None, **options):
    model = Regressor(estimator, n_jobs=n_jobs)
    return model.fit(X, codes, statistic, rng=np.random.default_rng(seed), **options)


# --- the estimates are conditional means --------------------------------------------------------


@pytest.mark.parametrize("loss", MEMBERS, ids=short)
@pytest.mark.parametrize("kind", [finest_statistic, TargetValues])
def test_a_full_tree_finds_the_mean_of_every_cell(loss, kind):
    X, codes = cells(), codes_of(loss)
    statistic = kind(loss)
    found = fitted(DecisionTreeRegressor(), X, codes, statistic).expected(X)
    means = cell_means(statistic, X, codes)
    # scores of every prediction agree: Ḡ-norm, so that what F cannot see does not count
    assert statistic.squared_error(found - means).max() < 1e-16
    if not isinstance(loss, Decision):  # best values would have to be solved for
        np.testing.assert_allclose(statistic.offset(found), statistic.offset(means), atol=1e-12)


@pytest.mark.parametrize("loss", MEMBERS, ids=short)
def test_coordinates_are_an_isometry_with_at_most_rank_columns(loss):
    codes = codes_of(loss)
    statistic = TargetValues(loss)
    values = statistic.values(codes)
    coordinates = coordinates_of(statistic, values)
    columns, dense = coordinates.forward(values), dense_target(values)
    space = loss.score_space
    assert coordinates.n_columns <= space.rank + (statistic.constant_offset is None)
    # ‖z_i − z_j‖² is a multiple of the surrogate's squared distance, one multiple for all pairs
    gap = dense[:, None] - dense
    squared = 2 * statistic.squared_error(gap.reshape(-1, gap.shape[2]))
    if statistic.constant_offset is None:
        squared += (gap[:, :, -1] ** 2).ravel()
    seen = ((columns[:, None] - columns) ** 2).sum(axis=2).ravel()
    if coordinates.n_columns:
        scale = seen.max() / squared.max()
        np.testing.assert_allclose(seen, scale * squared, atol=1e-8 * seen.max())
    else:
        np.testing.assert_allclose(squared, 0.0, atol=1e-12)


def test_hamming_parts_stay_apart_and_constant_ones_are_not_fitted():
    codes = np.random.default_rng(0).integers(0, 2, (50, 6))
    codes[:, 2] = 1
    statistic = TargetValues(Hamming(6))
    coordinates = coordinates_of(statistic, statistic.values(codes))
    columns = coordinates.forward(statistic.values(codes))
    assert coordinates.n_columns == 5  # width 12, rank 7
    for column, part in zip(columns.T, np.delete(codes, 2, axis=1).T, strict=True):
        assert len(np.unique(column.round(12))) == 2  # each is one part, not a mixture
        assert abs(np.corrcoef(column, part)[0, 1]) == pytest.approx(1.0)


def test_one_hot_columns_of_classes():
    codes = np.array([0, 1, 4, 4, 1, 0])
    statistic = ClassProbabilities(ZeroOne(6))
    assert coordinates_of(statistic, statistic.values(codes)).n_columns == 3  # absent: constant 0
    two = np.array([1, 4, 4])
    coordinates = coordinates_of(statistic, statistic.values(two))
    assert coordinates.n_columns == 1
    back = coordinates.back(coordinates.forward(statistic.values(two)))
    np.testing.assert_allclose(back, np.eye(6)[two], atol=1e-15)


def test_constant_true_labels_need_no_regressor():
    X, statistic = cells(20), TargetValues(Hamming(3))
    codes = np.tile([1, 0, 1], (20, 1))
    model = fitted(DecisionTreeRegressor(), X, codes, statistic)
    assert model.estimators_ == []
    np.testing.assert_array_equal(statistic.decode(model.expected(X[:4])), codes[:4])


def test_wide_score_spaces_are_fitted_by_their_columns():
    loss = Hamming(WIDTH_LIMIT // 2 + 1)
    X = cells(12)
    codes = np.zeros((12, WIDTH_LIMIT // 2 + 1), dtype=np.int64)
    codes[X[:, 0] == 1, -3:] = 1
    statistic = TargetValues(loss)
    model = fitted(DecisionTreeRegressor(), X, codes, statistic)
    assert model.coordinates_.n_columns == 6  # three parts vary, two columns each
    np.testing.assert_array_equal(statistic.decode(model.expected(X)), codes)


def test_the_scale_of_the_loss_does_not_matter():
    X, codes = np.random.default_rng(0).random((60, 3)), codes_of(Kendall(4), 60)
    svr = SVR(epsilon=0.01)  # its tolerance is in the units of the target
    one, other = (TargetValues(loss) for loss in (Kendall(4), 1000.0 * Kendall(4)))
    left, right = (fitted(svr, X, codes, s).expected(X) for s in (one, other))
    # libsvm stops early; unscaled targets of this size would differ by tens
    np.testing.assert_allclose(1000.0 * left, right, atol=0.5)


# --- several outputs at once, or one at a time --------------------------------------------------

MULTI = [
    ExtraTreesRegressor(5),
    make_pipeline(StandardScaler(), PlainRidge()),
    GridSearchCV(PlainRidge(), {"alpha": [0.1, 1.0]}, cv=2),
    MultiOutputRegressor(SVR()),
    TransformedTargetRegressor(LinearRegression()),
    KNeighborsRegressor(3),
]
SINGLE = [
    SVR(),
    HistGradientBoostingRegressor(max_iter=5),
    make_pipeline(StandardScaler(), SVR()),
    GridSearchCV(SVR(), {"C": [0.1, 1.0]}, cv=2),
]


@pytest.mark.parametrize("estimator", MULTI, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("loss", [Hamming(3), ZeroOne(2)], ids=short)
def test_a_multi_output_regressor_is_fitted_once(estimator, loss):
    X, codes = np.random.default_rng(0).random((40, 3)), codes_of(loss, 40)
    model = fitted(estimator, X, codes, finest_statistic(loss))
    assert len(model.estimators_) == 1
    assert model.expected(X[:7]).shape == (7, model.statistic_.width)


@pytest.mark.parametrize("estimator", SINGLE, ids=lambda e: type(e).__name__)
def test_others_are_fitted_once_per_column(estimator):
    X, codes = np.random.default_rng(0).random((40, 3)), codes_of(Hamming(3), 40)
    model = fitted(estimator, X, codes, TargetValues(Hamming(3)))
    assert len(model.estimators_) == 3
    assert model.expected(X[:7]).shape == (7, 6)


def test_workers_change_nothing():
    X, codes = np.random.default_rng(0).random((40, 3)), codes_of(Hamming(3), 40)
    estimator = LinearSVR(random_state=None, dual=True)  # shuffles by its seed
    model = fitted(estimator, X, codes, TargetValues(Hamming(3)))
    parallel = fitted(estimator, X, codes, TargetValues(Hamming(3)), n_jobs=2)
    np.testing.assert_array_equal(model.expected(X), parallel.expected(X))


class Untagged(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A regressor of another package, whose tags say nothing of several outputs."""

    def __init__(self, several=True, broken=False):
        self.several = several
        self.broken = broken

    def fit(self, X, y):
        if self.broken:
            raise RuntimeError("out of luck")
        if np.ndim(y) == 2 and not self.several:
            raise ValueError("one column, please")
        if np.ndim(y) == 1 and self.several:
            raise ValueError("a matrix, please")
        self.model_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("n_parts", [1, 3])
def test_a_trial_tells_where_tags_do_not(several, n_parts):
    X, codes = np.random.default_rng(0).random((40, 3)), codes_of(Hamming(n_parts), 40)
    model = fitted(Untagged(several), X, codes, TargetValues(Hamming(n_parts)))
    assert len(model.estimators_) == (1 if several else n_parts)
    plain = fitted(LinearRegression(), X, codes, TargetValues(Hamming(n_parts)))
    np.testing.assert_allclose(model.expected(X), plain.expected(X), atol=1e-12)


def test_errors_of_the_regressor_come_through():
    X, codes = cells(40), codes_of(Hamming(3), 40)
    with pytest.raises(RuntimeError, match="out of luck"):
        fitted(Untagged(broken=True), X, codes, TargetValues(Hamming(3)))


# --- weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeRegressor(),
        PlainRidge(),
        make_pipeline(StandardScaler(with_mean=False, with_std=False), PlainRidge()),
        GridSearchCV(PlainRidge(), {"alpha": [1.0]}, cv=2),
        TransformedTargetRegressor(PlainRidge()),
        SVR(gamma=1.0, tol=1e-12),
    ],
    ids=lambda e: type(e).__name__,
)
def test_weights_are_repetitions(estimator):
    check_weights_are_repetitions(estimator)


def test_weights_follow_requests_where_routing_is_on():
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(
            sample_weight=False
        )
        ridge = PlainRidge().set_fit_request(sample_weight=True)
        check_weights_are_repetitions(make_pipeline(scaler, ridge))
        check_weights_are_repetitions(PlainRidge())


def check_weights_are_repetitions(estimator):
    rng = np.random.default_rng(0)
    X, codes = rng.random((30, 2)), codes_of(Hamming(3), 30)
    weight = rng.integers(1, 4, 30)
    statistic = TargetValues(Hamming(3))
    found = fitted(estimator, X, codes, statistic, sample_weight=weight.astype(float))
    repeated = fitted(estimator, X.repeat(weight, 0), codes.repeat(weight, 0), statistic)
    np.testing.assert_allclose(found.expected(X), repeated.expected(X), atol=1e-8)


def test_weights_where_none_are_taken():
    X, codes, statistic = cells(30), codes_of(Hamming(2), 30), TargetValues(Hamming(2))
    neighbors = make_pipeline(StandardScaler(), KNeighborsRegressor(3))
    uniform = fitted(neighbors, X, codes, statistic, sample_weight=np.full(30, 2.0))
    plain = fitted(neighbors, X, codes, statistic)
    np.testing.assert_array_equal(uniform.expected(X), plain.expected(X))
    with pytest.raises(CapabilityError, match=r"KNeighborsRegressor.*omit sample_weight"):
        fitted(neighbors, X, codes, statistic, sample_weight=np.arange(1.0, 31.0))


# --- inputs as users hold them ------------------------------------------------------------------


def test_frames_with_categories_and_gaps_reach_the_regressor():
    rng = np.random.default_rng(0)
    kind = pd.Categorical.from_codes(rng.integers(0, 3, 300), ["a", "b", "c"])
    frame = pd.DataFrame({"kind": kind, "x": np.where(rng.random(300) < 0.3, np.nan, 1.0)})
    codes = np.where(frame["x"].isna(), 3, np.asarray(kind.codes))
    statistic = ClassProbabilities(ZeroOne(4))
    boosting = HistGradientBoostingRegressor(max_iter=60, categorical_features="from_dtype")
    model = fitted(boosting, frame, codes, statistic)
    assert model.takes_missing
    np.testing.assert_array_equal(statistic.decode(model.expected(frame)), codes)
    mixed = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["kind"]), (SimpleImputer(), ["x"])),
        ExtraTreesRegressor(10),
    )
    model = fitted(mixed, frame, codes, statistic)
    assert model.takes_missing
    assert model.expected(frame).shape == (300, 4)


@pytest.mark.parametrize(
    ("estimator", "missing"),
    [
        (None, True),
        (LinearRegression(), False),
        (make_pipeline(StandardScaler(), LinearRegression()), True),  # the scaler lets NaN through
        (make_pipeline("passthrough", SVR()), False),
        (GridSearchCV(HistGradientBoostingRegressor(), {}), True),
    ],
)
def test_missing_values_are_welcome_where_the_regressor_states_so(estimator, missing):
    assert Regressor(estimator).takes_missing is missing


def test_sparse_inputs():
    X, codes = cells(60), codes_of(Hamming(2), 60)
    statistic = TargetValues(Hamming(2))
    dense = fitted(DecisionTreeRegressor(), X, codes, statistic).expected(X)
    inputs = sp.csr_array(X)
    found = fitted(DecisionTreeRegressor(), inputs, codes, statistic).expected(inputs)
    np.testing.assert_allclose(found, dense, atol=1e-12)


# --- seeds, settings, errors --------------------------------------------------------------------


def test_seeds_come_from_the_generator_unless_they_are_set():
    X, codes = np.random.default_rng(0).random((60, 3)), codes_of(Hamming(2), 60)
    statistic = TargetValues(Hamming(2))
    forest = ExtraTreesRegressor(5, max_features=1)
    one, same, other = (fitted(forest, X, codes, statistic, seed).expected(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    fixed = ExtraTreesRegressor(5, max_features=1, random_state=3)
    one, other = (fitted(fixed, X, codes, statistic, seed).expected(X) for seed in (0, 1))
    np.testing.assert_array_equal(one, other)
    assert forest.random_state is None  # the user's own object stays as it was


def test_a_classifier_is_refused():
    X, codes = cells(20), codes_of(ZeroOne(3), 20)
    with pytest.raises(
        TypeError, match=r"LogisticRegression\(\); wrap classifiers in Probabilities"
    ):
        fitted(LogisticRegression(), X, codes, ClassProbabilities(ZeroOne(3)))


def test_it_clones_with_its_regressor():
    model = clone(Regressor(PlainRidge(alpha=3.0), n_jobs=2))
    assert model.get_params()["estimator__alpha"] == 3.0
    assert model.n_jobs == 2


def test_costs_of_each_example():
    # costs that depend on x: the estimate is the mean cost of the cell, not that of a class
    X, codes = cells(100), codes_of(CostVectors(3), 100)
    statistic = TargetValues(CostVectors(3))
    expected = fitted(DecisionTreeRegressor(), X, codes, statistic).expected(X)
    means = np.array([codes[X[:, 0] == cell].mean(axis=0) for cell in X[:, 0]])
    np.testing.assert_array_equal(statistic.decode(expected), means.argmin(axis=1))


# --- other packages -----------------------------------------------------------------------------


def boosted(name):
    if name == "xgboost-trees":
        package = pytest.importorskip("xgboost")
        return package.XGBRegressor(
            n_estimators=60, n_jobs=1, multi_strategy="multi_output_tree"
        ), 1
    if name == "xgboost":
        package = pytest.importorskip("xgboost")
        return package.XGBRegressor(n_estimators=60, n_jobs=1), 1
    if name == "lightgbm":
        package = pytest.importorskip("lightgbm")
        return package.LGBMRegressor(n_estimators=60, min_child_samples=1, verbose=-1, n_jobs=1), 3
    package = pytest.importorskip("catboost")
    options = {"iterations": 60, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    if name == "catboost-multi":
        return package.CatBoostRegressor(loss_function="MultiRMSE", **options), 1
    return package.CatBoostRegressor(**options), 3


@pytest.mark.parametrize(
    "name", ["xgboost", "xgboost-trees", "lightgbm", "catboost", "catboost-multi"]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_boosters_of_other_packages(name, weighted):
    estimator, n_fits = boosted(name)
    X, codes = cells(400), codes_of(FBeta(3, sizes=(1, 2)), 400)
    codes = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1]])[X[:, 0].astype(int)]
    statistic = TargetValues(Hamming(3))
    weight = np.linspace(0.5, 2.0, 400) if weighted else None
    model = fitted(estimator, X, codes, statistic, sample_weight=weight)
    assert len(model.estimators_) == n_fits
    np.testing.assert_array_equal(statistic.decode(model.expected(X)), codes)
    again = fitted(estimator, X, codes, statistic, sample_weight=weight)
    np.testing.assert_array_equal(model.expected(X), again.expected(X))


def test_an_asymmetric_cost_is_followed():
    X, codes = cells(400), np.random.default_rng(5).integers(0, 2, 400)
    loss = CostMatrix([[0, 10], [1, 0]], rows="pred")
    model = fitted(None, X, codes, ClassProbabilities(loss))
    np.testing.assert_array_equal(model.statistic_.decode(model.expected(X)), np.ones(400))
