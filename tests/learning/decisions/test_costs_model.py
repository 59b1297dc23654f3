"""Costs: fits by closed form, chosen by out-of-fold regret with counted calls of the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import consistruct as cs
from consistruct.learning.models import Costs, Regressor, Ridge, Stack
from consistruct.learning.models.costs.candidates import cost_level, level_weight
from consistruct.learning.models.costs.logarithm import Logarithm
from consistruct.learning.models.costs.weighted_ridge import fit_weighted, solve_in_parts
from consistruct.losses import Decision
from consistruct.structures import GridPath, Knapsack, TopK
from consistruct.structures.decisions import counted_calls


def data(n=240, degree=5, seed=0, noise=0.5, additive=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    mean = (X @ rng.normal(size=(4, 12)) / 2 + 3) ** degree / 3**degree
    if additive:
        return X, mean + noise * rng.uniform(-1, 1, mean.shape), mean
    return X, mean * rng.uniform(1 - noise, 1 + noise, mean.shape), mean


LOSS = Decision(GridPath(3, 3))


def test_weighted_fit_is_least_squares_with_exact_out_of_fold_rows():
    """Against one weighted normal equation per out-of-fold row."""
    rng = np.random.default_rng(0)
    features, targets = rng.normal(size=(30, 4)), rng.normal(size=(30, 3))
    weight, criterion = rng.uniform(0.2, 3, 30), rng.uniform(0.2, 3, 30)
    fit = fit_weighted(features, targets, weight, criterion)

    def solve(rows):
        A = np.column_stack([features[rows], np.ones(len(rows))])
        penalty = weight.sum() * fit.alpha * np.diag([1.0] * 4 + [0.0])
        return np.linalg.solve(
            A.T @ (weight[rows, None] * A) + penalty, A.T @ (weight[rows, None] * targets[rows])
        )

    every = np.arange(30)
    whole = solve(every)
    np.testing.assert_allclose(np.vstack([fit.coef, fit.intercept]), whole, atol=1e-9)
    for row in (0, 7, 29):
        without = solve(np.delete(every, row))
        np.testing.assert_allclose(
            fit.out_of_fold[row], np.append(features[row], 1) @ without, atol=1e-9
        )
    gaps = ((fit.out_of_fold - targets) ** 2).sum(axis=1)
    assert fit.squares == pytest.approx(np.average(gaps, weights=criterion))
    parts = [(features[i::3], targets[i::3], weight[i::3]) for i in range(3)]
    coef, intercept = solve_in_parts(parts, fit.alpha)
    np.testing.assert_allclose(coef, fit.coef, atol=1e-9)
    np.testing.assert_allclose(intercept, fit.intercept, atol=1e-9)


def test_weights_that_fit_and_weights_that_choose_are_two_things():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(80, 30))
    targets = features @ rng.normal(size=(30, 2)) + rng.normal(size=(80, 2)) * 4
    ones, some = np.ones(80), np.where(np.arange(80) < 8, 1.0, 1e-6)
    assert (
        fit_weighted(features, targets, ones, ones).alpha
        != fit_weighted(features, targets, ones, some).alpha
    )


def test_logarithms_give_expected_costs_under_multiplicative_noise():
    """E[c | x] = exp(x)·E[noise] for each entry, and means of uniform noise are known."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 1))
    noise = rng.uniform([0.2, 0.9], [1.0, 1.1], size=(4000, 2))
    costs = -np.exp(X) * noise
    fitted = fit_weighted(X, np.log(-costs), np.ones(4000), np.ones(4000))
    link = Logarithm.of(costs, fitted.out_of_fold, np.ones(4000))
    expected = -np.exp(X) * [0.6, 1.0]
    np.testing.assert_allclose(link.back(fitted.out_of_fold), expected, rtol=0.05)
    assert Logarithm.fits(costs)
    assert not Logarithm.fits(np.array([[1.0, -1.0]]))
    assert not Logarithm.fits(np.array([[1.0, 0.0]]))
    assert np.isfinite(link.back(np.array([[1e6, -1e6]]))).all()


def test_levels_are_bounded_and_weights_average_one():
    level = cost_level(np.array([[1.0, -1.0], [0.0, 0.0], [4.0, 2.0]]))
    assert level[0] == 1.0
    assert level[1] == 0.05  # of the median
    assert level_weight(level, 2).mean() == pytest.approx(1.0)
    np.testing.assert_array_equal(level_weight(level, 0), 1.0)
    np.testing.assert_array_equal(cost_level(np.zeros((3, 2))), 1.0)


def test_default_model_beats_least_squares_and_counts_its_calls():
    X, C, _ = data(600)
    train, test = slice(0, 300), slice(300, 600)
    with counted_calls() as calls:
        model = cs.StructuredPredictor(LOSS, random_state=0).fit(X[train], C[train])
    assert isinstance(model.model_, Costs)
    assert (
        calls.n == model.model_.n_oracle_calls_ == sum(e["oracle_calls"] for e in model.portfolio_)
    )
    assert calls.n == 300 * len(model.portfolio_) <= 300 * 7
    plain = cs.StructuredPredictor(LOSS, Regressor(LinearRegression())).fit(X[train], C[train])
    assert model.score(X[test], C[test]) > plain.score(X[test], C[test])
    assert [entry["weight"] for entry in model.portfolio_].count(1.0) == 1
    decisions = model.predict(X[test])
    assert LOSS.solver.feasible(decisions).all()
    left = model.model_.out_of_fold()
    assert left.expected.shape == (300, 12)
    costs = model.expected_target(X[test])
    np.testing.assert_array_equal(decisions, GridPath(3, 3)(costs))


@pytest.mark.parametrize("additive", [False, True])
def test_power_follows_the_noise(additive):
    """Multiplicative noise needs weights, additive noise none; means over a few draws."""
    error = {0.0: 0.0, 2.0: 0.0}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = np.exp(rng.normal(size=(60, 3)))
        mean = X @ rng.uniform(0.5, 1.5, size=(3, 12))
        noise = rng.uniform(-1, 1, mean.shape)
        C = mean + 2.0 * noise if additive else mean * (1.0 + 0.9 * noise)
        for power in error:
            model = Costs(["linear"], powers=(power,), regret_rows=0)
            fit = cs.StructuredPredictor(LOSS, model, random_state=0).fit(X, C)
            error[power] += ((fit.expected_target(X) - mean) ** 2 / mean**2).mean()
    assert (error[0.0] < error[2.0]) == additive


def test_few_rows_are_compared_with_a_slow_oracle_and_none_on_request():
    X, C, _ = data()
    slow = Decision(lambda costs: GridPath(3, 3)._solve(costs), 12)
    model = cs.StructuredPredictor(slow, random_state=0).fit(X, C)
    assert model.model_.n_oracle_calls_ == 32 * len(model.portfolio_)
    none = cs.StructuredPredictor(slow, Costs(regret_rows=0), random_state=0)
    with counted_calls() as calls:
        none.fit(X, C)
    assert calls.n == 0


@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        Ridge("linear"),
        Regressor(DecisionTreeRegressor(max_depth=3)),
        Stack([Ridge("linear"), Ridge("rbf")]),
    ],
    ids=repr,
)
def test_no_other_model_calls_the_oracle_to_fit(model):
    X, C, _ = data(60)
    with counted_calls() as calls:
        fitted = cs.StructuredPredictor(LOSS, model, random_state=0).fit(X, C)
    assert calls.n == 0
    assert fitted.predict(X[:3]).shape == (3, 12)
    assert calls.n == 0  # counted inside the block only


def test_values_are_maximized():
    X, C, mean = data()
    loss = Decision(Knapsack(np.arange(1, 13), 20), sense="max")
    model = cs.StructuredPredictor(loss, random_state=0).fit(X, C)
    chosen = model.predict(X)
    random_sets = loss.predictions.sample(len(X), np.random.default_rng(0))
    assert (chosen * mean).sum() > 1.3 * (random_sets * mean).sum()
    # ū is minimized: minus the values
    np.testing.assert_array_equal(chosen, loss.solver(model.expected_target(X)))


def test_trees_enter_through_regressor_and_win_on_steps():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 4))
    cell = (X > 0) @ [1, 2, 4, 8]
    C = rng.exponential(size=(16, 12))[cell] * rng.uniform(0.8, 1.2, (400, 12))
    tree = Regressor(DecisionTreeRegressor(max_depth=6, random_state=0))
    model = cs.StructuredPredictor(LOSS, Costs(["linear", tree]), random_state=0).fit(X, C)
    used = next(entry for entry in model.portfolio_ if entry["weight"])
    assert used["name"].startswith("Regressor")
    assert model.predict(X[:2]).shape == (2, 12)


def test_large_tables_are_solved_in_parts(monkeypatch):
    """The rows that were not compared still count in the fit."""
    from consistruct.learning.models.costs import model, search

    X, C, _ = data(900, 1)
    whole = cs.StructuredPredictor(LOSS, Costs(["linear"], powers=(0,)), random_state=0).fit(X, C)
    for module in (model, search):
        monkeypatch.setattr(module, "MOST_ROWS", 300)
    parts = cs.StructuredPredictor(LOSS, Costs(["linear"], powers=(0,)), random_state=0).fit(X, C)
    gap = np.abs(parts.expected_target(X) - whole.expected_target(X)).max()
    assert gap < 0.02  # the penalty alone comes from 300 rows
    weighted = cs.StructuredPredictor(LOSS, Costs([Regressor(LinearRegression())]), random_state=0)
    assert weighted.fit(X, C).predict(X[:2]).shape == (2, 12)


def test_sample_weights_are_honored():
    X, C, _ = data(200, 1, noise=0.1)
    wrong = C.copy()
    wrong[:100] = C[:100][:, ::-1] * 5
    weight = np.where(np.arange(200) < 100, 0.0, 1.0)
    model = cs.StructuredPredictor(LOSS, random_state=0).fit(X, wrong, sample_weight=weight)
    alone = cs.StructuredPredictor(LOSS, random_state=0).fit(X[100:], C[100:])
    np.testing.assert_allclose(model.expected_target(X), alone.expected_target(X))


@pytest.mark.parametrize(
    ("model", "loss", "message"),
    [
        (Costs(), "hamming", "for the loss Decision"),
        (Costs("kernel"), LOSS, "models must be 'auto' or a list"),
        (Costs([]), LOSS, "models must be"),
        (Costs(powers=(9,)), LOSS, "between 0 and 4"),
        (Costs(regret_rows=-1), LOSS, "at least 0"),
        (Costs(n_landmarks=0), LOSS, "at least 1"),
    ],
)
def test_bad_settings_are_refused(model, loss, message):
    X, C, _ = data(40)
    y = C if loss is LOSS else (C > 1).astype(int)
    with pytest.raises((ValueError, TypeError), match=message):
        cs.StructuredPredictor(loss, model).fit(X, y)


def test_expected_regret_names_what_is_missing():
    X, C, _ = data(60)
    model = cs.StructuredPredictor(LOSS, Ridge("linear")).fit(X, C)
    with pytest.raises(cs.exceptions.CapabilityError, match="expected_target"):
        model.predict_expected_loss(X)


def test_the_same_seed_gives_the_same_model():
    X, C, _ = data()
    one, two = (cs.StructuredPredictor("path:3x3", random_state=3).fit(X, C) for _ in range(2))
    np.testing.assert_array_equal(one.expected_target(X), two.expected_target(X))
    assert (
        cs.StructuredPredictor(Decision(TopK(12, 2)), random_state=0).fit(X, C).predict(X).sum()
        == 480
    )
