"""Forecasts of the loss: the power law against sampling, the refits against refitting by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import consistruct as cs
from consistruct.guarantees.forecasts import CurveData, PowerLaw, curve_of_draws
from consistruct.learning import refits
from consistruct.learning.refits import LEAST, SMALLEST, nested_refits

SIZES = np.array([40.0, 60.0, 90.0, 130.0, 200.0])


def curve(means, error=0.01, **options):
    covariance = error**2 * (0.5 * np.eye(len(SIZES)) + 0.5)
    return CurveData(SIZES, np.asarray(means), covariance, **options)


def logistic():
    return cs.models.Probabilities(LogisticRegression(max_iter=500))


# --- the power law ---


def test_the_power_law_agrees_with_a_posterior_that_is_sampled():
    data = curve(0.1 + 3.0 / SIZES, training_variance=0.02, row_variance=0.09)
    power_law = PowerLaw(data, drift=0.05)
    rng = np.random.default_rng(0)
    n = 400_000
    level = rng.uniform(0.05, 0.25, n)
    share, rate = rng.uniform(-0.0125, 1.0125, n), rng.uniform(0.075, 1.525, n)
    # the power law is on a grid: what is drawn is rounded to it
    share, rate = np.round(share * 40) / 40, 0.1 + np.round((rate - 0.1) * 20) / 20
    shape = 1 - share + share * (SIZES[:, None] / 200.0) ** -rate
    distance = np.log(200.0 / SIZES)
    walk = np.array([[_walk(s, t) for t in distance] for s in distance])
    inverse = np.linalg.inv(data.covariance + (0.05 * data.means[-1]) ** 2 * walk)
    residual = data.means[:, None] - level * shape
    log = -0.5 * np.einsum("jn,jk,kn->n", residual, inverse, residual)
    weight = np.exp(log - log.max())
    at = 1000.0
    mean = level * (1 - share + share * (at / 200.0) ** -rate)
    variance = 0.05**2 * mean**2 * _walk(np.log(5.0), np.log(5.0)) + 0.02 / at
    drawn = mean + np.sqrt(variance) * rng.normal(size=n)
    order = np.argsort(drawn)
    cumulated = np.cumsum(weight[order]) / weight.sum()
    expected = drawn[order][np.searchsorted(cumulated, [0.05, 0.5, 0.95])]
    np.testing.assert_allclose(power_law.quantiles(at, (0.05, 0.5, 0.95)), expected, atol=0.002)


def _walk(s, t, steps=2000):
    """Covariance of the integral of a Wiener process up to s and t, by a sum."""
    grid = (np.arange(steps) + 0.5) / steps
    return s * t * np.minimum.outer(s * grid, t * grid).mean()


def test_a_curve_that_is_known_exactly_is_continued():
    data = curve(0.1 + 3.0 / SIZES, error=2e-3)  # the grid of the power law is about as fine
    low, high = PowerLaw(data, drift=0.0).quantiles(2000.0, (0.05, 0.95))
    assert low < 0.1 + 3.0 / 2000 < high
    assert high - low < 0.02
    floor = PowerLaw(data, drift=0.0).floor((0.05, 0.5, 0.95))
    assert floor[0] < 0.1 < floor[2]


def test_intervals_widen_with_noise_distance_and_few_rows_that_measure():
    def width(power_law, n, **options):
        low, high = power_law.quantiles(n, (0.05, 0.95), **options)
        return high - low

    good, noisy = (PowerLaw(curve(0.1 + 3.0 / SIZES, error)) for error in (0.005, 0.02))
    assert width(good, 400.0) < width(noisy, 400.0)
    assert width(good, 400.0) / 0.1075 < width(good, 4000.0) / 0.10075 + 0.05
    measured = PowerLaw(curve(0.1 + 3.0 / SIZES, 0.005, row_variance=0.1))
    assert width(measured, 400.0) < width(measured, 400.0, measured_on=100)


def test_no_loss_below_what_is_possible_and_no_certainty_without_errors():
    power_law = PowerLaw(curve(np.zeros(5), 0.01))
    low, middle, high = power_law.quantiles(1000.0, (0.05, 0.5, 0.95))
    assert low == pytest.approx(middle, abs=1e-9) == 0.0
    assert 0.0 < high < 0.05
    shifted = PowerLaw(curve(-1.0 + 3.0 / SIZES, 0.01, low=-1.0))
    assert shifted.quantiles(10000.0, (0.001,))[0] >= -1.0


# --- refits ---


@pytest.fixture
def few_fits(monkeypatch):
    """For models that take a quarter of a second each."""
    monkeypatch.setattr(refits, "FOLDS", 2)
    monkeypatch.setattr(refits, "SIZES", 3)


def test_refits_are_those_made_by_hand(monkeypatch):
    X, y = load_iris(return_X_y=True)
    seen = []

    class Watched(cs.TaskLossClassifier):
        def _fit_model(self, model, examples, metric=None):
            super()._fit_model(model, examples, metric)
            seen.append((self, np.asarray(examples.inputs), np.asarray(examples.codes)))

    found = nested_refits(Watched("ordinal", logistic()), X, y, random_state=3)
    assert len(seen) == 5 * len(found.sizes)
    total = np.zeros(len(found.sizes))
    for fold in range(5):
        parts = seen[fold * len(found.sizes) : (fold + 1) * len(found.sizes)]
        rows = [_rows_of(part, X) for _, part, _ in parts]
        for smaller, larger in pairwise(rows):
            assert smaller < larger  # nested
        for column, (model, part, true_codes) in enumerate(parts):
            assert len(part) == found.sizes[column]
            assert np.ptp(np.bincount(true_codes)) <= 2  # classes are spread evenly
            left = np.setdiff1d(np.arange(150), sorted(_rows_of(parts[-1][1], X)))
            codes = model.predict(X[left])
            total[column] += np.abs(codes - y[left]).sum()
    # iris has two equal rows, so that rows are counted by value: fewer than three may differ
    np.testing.assert_allclose(found.means, total / 150, atol=3 * 2 / 150)


def _rows_of(part, X):
    return {int(np.flatnonzero((row == X).all(axis=1))[0]) for row in part}


def test_errors_of_the_means_are_those_of_rows_and_groups():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.integers(2, size=400)
    model = cs.TaskLossClassifier("zero_one", logistic())
    plain = nested_refits(model, X, y)
    np.testing.assert_allclose(np.sqrt(np.diag(plain.covariance)), 0.5 / 20, rtol=0.1)
    # rows that come four times each judge no better than once
    again = np.repeat(np.arange(100), 4)
    groups = nested_refits(model, X[again], y[again], groups=again)
    np.testing.assert_allclose(np.sqrt(np.diag(groups.covariance)), 0.5 / 10, rtol=0.1)


def test_rows_without_any_error_leave_room_for_some():
    X = np.linspace(-1, 1, 200)[:, None]
    y = (X[:, 0] > 0).astype(int)
    found = cs.forecast(cs.TaskLossClassifier("zero_one", logistic()), X, y)
    assert found.at(2000).high > 1 / 400


# --- forecasts ---


@pytest.fixture(scope="module")
def pilot():
    X, y = make_classification(
        1500, 10, n_informative=5, n_classes=3, class_sep=1.2, random_state=0
    )
    return cs.forecast(cs.TaskLossClassifier("zero_one", logistic()), X[:250], y[:250]), X, y


def test_a_forecast_states_what_comes(pilot):
    found, X, y = pilot
    fitted = cs.TaskLossClassifier("zero_one", logistic()).fit(X[:1000], y[:1000])
    loss = -fitted.score(X[1000:], y[1000:])
    stated = found.at(1000, measured_on=500)
    assert stated.low <= loss <= stated.high
    assert [n for n, _ in found.table()] == [250, 500, 1000, 2500]
    assert str(found).splitlines()[1].endswith("now")
    assert found.as_dict()["forecast"][3]["n"] == 2500


def test_rows_for_a_loss_agree_with_the_forecast_there(pilot):
    found, _, _ = pilot
    wanted = found.at(600).estimate
    needed = found.rows_for(wanted)
    assert needed.rows == pytest.approx(600, rel=0.02)
    assert needed.low < 600 < (needed.high or np.inf)
    assert str(needed) == needed.text
    assert f"there are {found.n}" in needed.text
    assert (
        found.rows_for(1.0).text == f"a loss of 1 takes no more than {found.data.sizes[0]:.0f} rows"
    )
    none = found.rows_for(0.0)
    assert none.rows is none.low is none.high is None
    assert "below what more rows can bring: the floor is about" in none.text


def test_the_answer_is_the_same_again_and_the_estimator_untouched():
    X, y = load_breast_cancer(return_X_y=True)
    model = cs.TaskLossClassifier("zero_one", cs.models.Ridge(alpha=1.0, features="linear"))
    one, other = (cs.forecast(model, X[:200], y[:200], random_state=5) for _ in range(2))
    assert one.at(400) == other.at(400)
    assert not hasattr(model, "model_")


def test_non_decomposable_metrics_are_forecast_by_their_value(few_fits):
    X, y = make_classification(400, 8, n_informative=4, weights=[0.8], random_state=1)
    found = cs.forecast(cs.TaskLossClassifier("macro-f1", logistic()), X, y)
    now = found.at(400)
    assert 0.5 < now.low < now.estimate < now.high <= 1.0
    assert found.rows_for(0.999).text.startswith("macro-f1 = 0.999")
    # the interval at 400 is about as wide as the bootstrap states of 400 rows
    assert 0.02 < now.high - now.low < 0.25


def test_label_sets_sequences_and_rankings(few_fits):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    Y = (X[:, :3] + rng.normal(size=(120, 3)) > 0).astype(int)
    sets = cs.forecast(
        cs.TaskLossClassifier("hamming", cs.models.Ridge(alpha=1.0, features="linear")), X, Y
    )
    assert sets.at(240).low > 0
    lengths = rng.integers(2, 6, size=80)
    words = [rng.normal(size=(length, 3)) for length in lengths]
    tags = [(word[:, 0] > 0).astype(int) for word in words]
    chain = cs.StructuredPredictor("hamming", cs.models.Chain(alpha=0.01, max_epochs=3))
    assert cs.forecast(chain, words, tags).at(160).high < 0.5
    groups = np.repeat(np.arange(80), 3)
    items = rng.normal(size=(240, 2))
    ranker = cs.StructuredPredictor("ndcg", cs.models.Items("ridge", alpha=1.0))
    found = cs.forecast(ranker, items, (items[:, 0] > 0.3).astype(int), groups=groups)
    assert found.n == 80
    assert found.at(160).estimate < 0.3


def test_auto_is_chosen_once():
    X, y = load_iris(return_X_y=True)
    good, bad = logistic(), cs.models.Probabilities(DummyClassifier())
    steps = []
    stack = cs.TaskLossClassifier("zero_one", cs.models.Stack([good, bad]), random_state=0)
    found = cs.forecast(stack, X, y, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(done, 26) for done in range(1, 27)]
    assert found.at(300).estimate < 0.1


@pytest.mark.parametrize(
    ("loss", "rows", "message"),
    [
        ("zero_one", LEAST - 1, f"at least {LEAST} examples, to hold some out .*, got {LEAST - 1}"),
        ("precision-at-recall:0.9", 100, "has a constraint"),
    ],
)
def test_what_cannot_be_forecast_is_reported(loss, rows, message):
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        cs.forecast(cs.TaskLossClassifier(loss, logistic()), X[:rows], y[:rows])


def test_costs_of_each_example(few_fits):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    costs = np.column_stack([(X[:, 0] > 0) * 3.0, (X[:, 0] <= 0) * rng.random(100)])
    model = cs.StructuredPredictor("cost-vectors", cs.models.Ridge(alpha=0.1, features="linear"))
    found = cs.forecast(model, X, costs)
    assert found.at(200).estimate < costs.mean(axis=0).min()


def test_bad_questions_are_reported(pilot):
    found, X, y = pilot
    with pytest.raises(TypeError, match=r"needs a TaskLossClassifier or .*, got LogisticRegr"):
        cs.forecast(LogisticRegression(), X, y)
    with pytest.raises(ValueError, match=r"n must be a finite number in \[.*, 25000.0\], got 1"):
        found.at(1)
    with pytest.raises(ValueError, match="confidence must be a finite number in"):
        cs.forecast(cs.TaskLossClassifier("zero_one", logistic()), X[:60], y[:60], confidence=1.5)
    with pytest.raises(TypeError, match="value must be a number"):
        found.rows_for("low")


def test_small_parts_that_a_model_cannot_take_are_skipped():
    X, y = load_breast_cancer(return_X_y=True)

    class Picky(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if len(X) < 40:
                raise ValueError("too few rows")
            return super().fit(X, y, sample_weight)

    model = cs.TaskLossClassifier("zero_one", cs.models.Probabilities(Picky(max_iter=2000)))
    found = nested_refits(model, X[:120, :5], y[:120])
    assert found.sizes[0] >= 40 > SMALLEST
    with pytest.raises(ValueError, match="too few rows"):
        nested_refits(model, X[:60, :5], y[:60])


def test_draws_evaluated_on_the_same_rows():
    """Means of two sizes have the covariance that simulation finds."""
    rng = np.random.default_rng(0)
    n, m, draws, t = 400, 300, 3, 2.0
    sizes = np.array([100.0, 200.0, 400.0])
    means, stated = [], []
    for _ in range(300):
        pool = rng.normal(size=n) * np.sqrt(t)
        level = rng.normal(size=m) * 0.3
        losses = []
        for size, repeats in zip(sizes, (draws, draws, 1), strict=True):
            shift = [rng.permutation(pool)[: int(size)].mean() for _ in range(repeats)]
            losses.append(1.0 + np.array(shift)[:, None] + level)
        found = curve_of_draws(sizes, losses, n, (-10.0, 10.0))
        means.append(found.means)
        stated.append(found.covariance - (11.0 / m) ** 2)
    np.testing.assert_allclose(
        np.sqrt(np.diag(np.mean(stated, axis=0))), np.std(means, axis=0), rtol=0.3
    )
