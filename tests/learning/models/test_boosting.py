"""Boosted symmetric trees: every split against a plain search, leaves, stopping, files, tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

import consistruct as cs
from consistruct.exceptions import ModelFileError
from consistruct.learning import load, save
from consistruct.learning.models.boosting import _kernels
from consistruct.learning.models.boosting.bins import Bins
from consistruct.learning.models.boosting.growing import (
    ClassRows,
    SquareRows,
    _Drawing,
    _packed,
    _unit,
)
from consistruct.learning.models.boosting.trees import Trees
from consistruct.learning.models.coordinates import coordinates_of
from consistruct.learning.statistics import TargetValues, finest_statistic
from consistruct.losses.base import dense_target
from consistruct.models import Boosting


def goes_left(codes: Any, cut: int, category: bool) -> Any:
    return codes == cut if category else codes <= cut


def slow_best_split(
    codes: Any, categorical: Any, columns: Any, nodes: Any, gradients: Any, weight: Any, l2: float
) -> tuple[float, int, int]:
    """Every cut of every column, each node summed anew; −1 where none is better than no split."""

    def value(rows: Any) -> float:
        return float((gradients[rows].sum(axis=0) ** 2).sum() / (weight[rows].sum() + l2))

    best, where = sum(value(nodes == node) for node in np.unique(nodes)), (-1, 0)
    for column in columns:
        for cut in range(int(codes[column].max()) + 1):
            left = goes_left(codes[column], cut, categorical[column])
            score = sum(
                value((nodes == node) & side) for node in np.unique(nodes) for side in (left, ~left)
            )
            if score > best * (1 + 1e-10):
                best, where = score, (int(column), cut)
    return best, *where


@pytest.mark.parametrize("seed", range(8))
def test_best_split_is_that_of_a_plain_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, n, c = 4, 60, 1 + seed % 3
    codes = rng.integers(0, 6, size=(d, n)).astype(np.uint8)
    codes[1] = 2  # carries no information
    categorical = np.array([False, False, True, seed % 2 == 0])
    gradients, weight = rng.normal(size=(n, c)), rng.uniform(0.5, 2.0, size=n)
    nodes = rng.integers(0, 4, size=n)
    columns = np.arange(d)
    found = split_of(codes, categorical, columns, nodes, 4, gradients, weight, 1.5)
    slow = slow_best_split(codes, categorical, columns, nodes, gradients, weight, 1.5)
    assert found[0] == pytest.approx(slow[0], rel=1e-6)
    assert found[1:] == slow[1:]


def split_of(
    codes: Any, flags: Any, columns: Any, nodes: Any, n: int, gradient: Any, weight: Any, l2: float
) -> Any:
    """The best split of a level, with weights and gradients packed as `grow` packs them."""
    tops = codes.max(axis=1).astype(np.int64)
    words, units = _packed(gradient, weight)
    kept = nodes.astype(np.uint16)
    return _kernels.best_split(codes, tops, flags, columns, kept, n, words, units, l2)


def test_rows_without_a_gain_are_not_split() -> None:
    codes = np.zeros((2, 10), dtype=np.uint8)
    nodes, ones = np.zeros(10, dtype=int), np.ones(10)
    flags = np.zeros(2, dtype=bool)
    _, column, _ = split_of(codes, flags, np.arange(2), nodes, 1, ones[:, None], ones, 1.0)
    assert column == -1


@pytest.mark.parametrize("c", [1, 2, 3, 4])
def test_sums_of_words_are_sums_of_weights_and_gradients(c: int) -> None:
    rng = rng_of(c)
    gradient, weight = rng.normal(size=(20_000, c)) * 10.0 ** np.arange(c), rng.random(20_000)
    gradient[:, 0] = -np.abs(gradient[:, 0])  # as large a sum as there can be, below zero
    words, units = _packed(gradient, weight)
    assert words.shape == (20_000, c // 2 + 1)
    found = np.zeros(c + 1)
    for place, word in enumerate(words.sum(axis=0)):
        _kernels.unpack(word, place, units, found)
    expected = np.concatenate([[weight.sum()], gradient.sum(axis=0)])
    # each number is right to half a unit
    assert (np.abs(found - expected) <= 0.5 * len(words) * units).all()
    assert (units[1:] <= 1e-4 * np.abs(gradient).max(axis=0)).all()


def test_drawn_rows_tell_the_sums_of_all() -> None:
    rng = rng_of(0)
    n, share = 5000, 0.2
    gradient = rng.normal(size=(n, 2)) * np.exp(2.0 * rng.normal(size=(n, 1)))
    weight = rng.uniform(0.5, 2.0, size=n)
    drawing = _Drawing(weight, share)
    sizes, sums = [], []
    for _ in range(400):
        rows, gradients, weights = drawing.draw(gradient, rng)
        assert rows is not None
        assert len(np.unique(rows)) == len(rows)
        sizes.append(len(rows))
        sums.append([*gradients.sum(axis=0), weights.sum()])
    assert np.mean(sizes) == pytest.approx(share * n, rel=0.01)
    means, errors = np.mean(sums, axis=0), np.std(sums, axis=0) / 20
    exact = np.array([*gradient.sum(axis=0), weight.sum()])
    assert (np.abs(means - exact) < 4 * errors).all()
    # rows of equal chances would tell them worse: variance (1/share - 1)·Σ‖g‖²
    plain = np.sqrt((1 / share - 1) * (gradient**2).sum(axis=0))
    assert (np.std(sums, axis=0)[:2] < 0.6 * plain).all()


@pytest.mark.parametrize("share", [0.1, 0.6, 0.99])
def test_unit_of_the_chances_gives_as_many_rows_as_requested(share: float) -> None:
    sizes = np.exp(2.0 * rng_of(0).normal(size=300))
    unit = _unit(sizes, share * 300)
    assert np.minimum(1.0, sizes / unit).sum() == pytest.approx(share * 300)


@pytest.mark.parametrize("k", [2, 4])
def test_gradients_are_those_of_the_log_loss(k: int) -> None:
    rng = np.random.default_rng(k)
    rows = ClassRows(rng.integers(0, k, size=6), k, rng.uniform(1.0, 2.0, size=6))
    scores = rng.normal(size=(6, rows.n_scores))
    gradient, hessian = np.empty_like(scores), np.empty_like(scores)
    rows.gradients(scores, gradient, hessian)
    total, step = rows.weight.sum(), 1e-4
    for i in range(6):
        for j in range(rows.n_scores):
            moved = [scores.copy() for _ in range(2)]
            moved[0][i, j] += step
            moved[1][i, j] -= step
            above, below = (rows.mean(one) * total for one in moved)
            assert gradient[i, j] == pytest.approx(-(above - below) / (2 * step), abs=1e-6)
            middle = rows.mean(scores) * total
            assert hessian[i, j] == pytest.approx((above - 2 * middle + below) / step**2, abs=1e-4)


def test_one_tree_of_squares_is_the_mean_of_its_leaf() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(200, 3)).astype(float)
    codes = X[:, :2].astype(np.int64)
    statistic = TargetValues(cs.losses.Hamming(2))
    settings = {"learning_rate": 1.0, "depth": 2, "l2": 1e-9, "row_share": 1.0}
    model = Boosting(1, column_share=1.0, validation_fraction=0.0, **settings)
    model.fit(X, codes, statistic, rng=rng)
    assert np.allclose(model.expected(X), dense_target(statistic.values(codes)), atol=1e-6)
    assert sorted(model.trees_.columns[0].tolist()) == [
        0,
        1,
    ]  # the third column carries no information


def test_predictions_are_the_sum_of_leaves_found_one_by_one() -> None:
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    X[::7, 2] = np.nan
    model = Boosting(15, depth=3, learning_rate=0.3)
    model.fit(X, y, finest_statistic(cs.losses.ZeroOne(3)), rng=rng_of(1))
    trees, bins = model.trees_, model.bins_
    codes = bins.codes(X)
    for i in range(0, 300, 37):
        scores = trees.start.copy()
        for columns, cuts, values in zip(trees.columns, trees.cuts, trees.values, strict=True):
            leaf = 0
            for column, cut in zip(columns, cuts, strict=True):
                if column < 0:
                    break
                leaf = 2 * leaf + (not goes_left(codes[column, i], cut, bins.categorical[column]))
            scores = scores + values[leaf]
        share = np.exp(scores) / np.exp(scores).sum()
        assert np.allclose(model.expected(X[i : i + 1])[0], share, atol=1e-12)


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_bytes_count_the_borders_below(dtype: Any, order: Any) -> None:
    rng = rng_of(0)
    X = np.round(rng.normal(size=(400, 6)) * 3, 1).astype(dtype)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:5, 0] = [np.inf, -np.inf, 1e30, -0.0, 0.0]
    X[:6, 5] = [-1.0, -0.5, 2.7, 253.0, 254.0, 255.0]
    bins = Bins.of(np.asarray(X, dtype=np.float64), 20, [5], rng)
    found = bins.codes(np.asarray(X, order=order))
    for column in range(5):
        borders = bins.borders[column][np.isfinite(bins.borders[column])]
        expected = [0 if np.isnan(x) else 1 + int((borders < x).sum()) for x in X[:, column]]
        assert found[column].tolist() == expected
    known = (X[:, 5] >= 0) & (X[:, 5] < 255)
    assert found[5].tolist() == np.where(known, np.floor(X[:, 5]) + 1, 0).tolist()


@pytest.mark.parametrize("d", [1, 3])
def test_bins_of_other_columns_are_refused(d: int) -> None:
    """A damaged file may hold such bins, and compiled loops would write beyond their arrays."""
    bins = Bins.of(np.arange(8.0).reshape(4, 2), 4, [], rng_of(0))
    with pytest.raises(ValueError, match=f"bins of 2 columns cannot read {d} columns"):
        bins.codes(np.zeros((5, d)))


def test_the_log_loss_of_two_classes_is_that_of_any_scores() -> None:
    rows = ClassRows(np.array([0, 1, 1, 0, 1]), 2, np.array([1.0, 2.0, 1.0, 0.5, 3.0]))
    scores = np.array([[0.3], [-700.0], [40.0], [800.0], [0.0]])
    chance = [-0.3 - np.log1p(np.exp(-0.3)), -700.0, 0.0, -800.0, np.log(0.5)]
    assert rows.mean(scores) == pytest.approx(-(rows.weight @ chance) / 7.5, rel=1e-12)


def test_bins_keep_order_missing_values_and_categories() -> None:
    X = np.array([[1.0, 0.0], [np.nan, 2.0], [3.0, np.nan], [2.0, -1.0], [1e300, 1.0]])
    bins = Bins.of(X, 64, [1], rng_of(0))
    codes = bins.codes(X)
    assert codes[0].tolist() == [1, 0, 3, 2, 4]
    assert codes[1].tolist() == [1, 3, 0, 0, 2]
    ends = np.array([[-np.inf], [0.0], [1.0], [np.inf]])
    assert Bins.of(ends, 64, [], rng_of(0)).codes(ends)[0].tolist() == [1, 1, 2, 2]
    many = rng_of(0).normal(size=(5000, 1))
    few = Bins.of(many, 16, [], rng_of(0)).codes(many)[0]
    assert few.max() == 16
    assert np.bincount(few)[1:].min() > 250
    assert (np.diff(few[np.argsort(many[:, 0])].astype(int)) >= 0).all()
    mostly_zero = np.where(np.arange(5000) % 10 == 0, rng_of(0).exponential(size=5000), 0.0)
    found = np.bincount(
        Bins.of(mostly_zero[:, None], 16, [], rng_of(0)).codes(mostly_zero[:, None])[0]
    )
    assert found[1] == 4500  # zero alone
    assert found[2:].max() < 50  # and its tail in equal shares


def test_threads_change_nothing() -> None:
    X, y = make_classification(6000, 40, n_informative=10, random_state=0)
    statistic = finest_statistic(cs.losses.ZeroOne(2))
    one, two = (
        Boosting(20, n_jobs=jobs).fit(X, y, statistic, rng=rng_of(0)).expected(X) for jobs in (1, 2)
    )
    assert np.array_equal(one, two)


def test_more_classes_than_directions_of_the_search_are_learned() -> None:
    X, y = load_digits(return_X_y=True)
    model = cs.TaskLossClassifier(model=Boosting(150, learning_rate=0.2), random_state=0)
    model.fit(X[::2], y[::2])
    assert (model.predict(X[1::2]) == y[1::2]).mean() > 0.94


@pytest.mark.parametrize("name", ["digits", "generated"])
def test_log_loss_is_below_that_of_histogram_boosting(name: str) -> None:
    X, y = load_digits(return_X_y=True)
    if name == "generated":
        X, y = make_classification(2000, 15, n_informative=8, n_classes=3, random_state=0)
    peer = HistGradientBoostingClassifier(early_stopping=True, random_state=0)
    theirs = log_loss(y[1::2], peer.fit(X[::2], y[::2]).predict_proba(X[1::2]))
    model = cs.TaskLossClassifier(model="boosting", random_state=0).fit(X[::2], y[::2])
    assert log_loss(y[1::2], model.predict_proba(X[1::2])) < theirs


def test_stopping_keeps_the_best_number_of_trees() -> None:
    X, y = make_classification(800, 8, flip_y=0.4, random_state=0)
    statistic = finest_statistic(cs.losses.ZeroOne(2))
    model = Boosting(400, learning_rate=0.3).fit(X, y, statistic, rng=rng_of(0))
    losses = model.path_["loss"]
    assert model.n_rounds_ == int(losses.argmin()) == len(model.trees_.columns)
    assert len(losses) < 200  # noise stops it
    full = Boosting(30, validation_fraction=0.0).fit(X, y, statistic, rng=rng_of(0))
    assert full.n_rounds_ == 30
    assert full.path_ == {}


def test_held_out_rows_are_whole_groups() -> None:
    rows = SquareRows(np.zeros((90, 1)), np.ones(90))
    groups = np.repeat(np.arange(30), 3)
    for left in Boosting()._held_out(rows, groups, rng_of(0)):
        counts = np.bincount(groups[left], minlength=30)
        assert set(counts.tolist()) <= {0, 3}
    parts = Boosting()._held_out(ClassRows(np.arange(200) % 2, 2, np.ones(200)), None, rng_of(0))
    assert len(parts) == 3
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
    assert all(abs(np.mean(part % 2) - 0.5) < 0.1 for part in parts)


def test_few_rows_one_class_and_absent_classes() -> None:
    X = np.arange(12.0).reshape(-1, 1)
    statistic = finest_statistic(cs.losses.ZeroOne(3))
    one = Boosting().fit(X, np.full(12, 1), statistic, rng=rng_of(0))
    assert one.expected(X[:2]).tolist() == [[0, 1, 0], [0, 1, 0]]
    two = Boosting(5).fit(X, np.repeat([0, 2], 6), statistic, rng=rng_of(0))
    found = two.expected(X)
    assert (found[:, 1] == 0).all()
    assert np.allclose(found.sum(axis=1), 1.0)


def test_tables_with_words_gaps_and_dates() -> None:
    pd = pytest.importorskip("pandas")
    rng = rng_of(0)
    n = 400
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "color": rng.choice(["red", "green", "blue"], size=n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
        }
    )
    y = np.where(frame["color"] == "green", "yes", "no")
    model = cs.TaskLossClassifier(model="boosting", random_state=0).fit(frame[:300], y[:300])
    assert (model.predict(frame[300:]) == y[300:]).all()
    unknown = frame[300:305].assign(color="violet")
    assert set(model.predict(unknown)) <= {"yes", "no"}


def test_files_give_the_same_model_and_hostile_ones_are_refused(tmp_path: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = cs.TaskLossClassifier(model=Boosting(20), random_state=0).fit(X, y)
    save(model, tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    trees = model.model_.trees_
    for name, wrong in (
        ("columns", np.full_like(trees.columns, -2)),
        ("columns", trees.columns[:-1]),
        ("cuts", trees.cuts.astype(int) + 300),
        ("values", trees.values[:, :-1]),
        ("values", np.full_like(trees.values, np.nan)),
        ("start", trees.start[None]),
    ):
        parts = {key: getattr(trees, key) for key in ("start", "columns", "cuts", "values")}
        with pytest.raises(ValueError, match="trees"):
            Trees(**{**parts, name: wrong})
    far = Trees(trees.start, np.full_like(trees.columns, 99), trees.cuts, trees.values)
    model.model_.trees_ = far
    save(model, tmp_path / "far.safetensors")
    with pytest.raises((ValueError, ModelFileError), match="columns"):
        load(tmp_path / "far.safetensors").predict(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds"),
        ({"depth": 13}, "depth must be a number from 1 to 12"),
        ({"bins": 256}, "bins must be a number from 2 to 255"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"l2": 0.0}, "l2"),
        ({"row_share": 1.5}, "row_share"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        cs.TaskLossClassifier(model=Boosting(**settings)).fit(X, y)


@pytest.mark.parametrize("loss", [cs.losses.FBeta(14), cs.losses.FBeta(6), cs.losses.Hamming(6)])
def test_coordinates_lead_back_to_the_target(loss: Any) -> None:
    """F-beta has directions of next to no weight, by which an inverse once multiplied noise."""
    rng = rng_of(0)
    codes = (rng.random((50, loss.true_labels.shape[0])) < 0.3).astype(np.int64)
    statistic = TargetValues(loss)
    values = statistic.values(codes)
    found = coordinates_of(statistic, values)
    back = found.back(found.forward(values) + 1e-6)
    assert np.abs(statistic.target(back - dense_target(values))).max() < 1e-3
