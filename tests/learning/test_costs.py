"""Costs as tables by class names, and costs of every class for each example."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consistruct as cs
from consistruct.learning import load, save
from consistruct.losses import CostMatrix, CostVectors
from consistruct.metrics import TaskLossScorer, task_loss
from tests.learning.estimators import classifier, predictor

X, CODES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
Y = NAMES[CODES]
M = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 50.0], [4.0, 5.0, 0.0]])  # rows are predictions
BY_NAME = {p: {t: M[i, j] for j, t in enumerate(NAMES)} for i, p in enumerate(NAMES)}


def frame(order=(0, 1, 2), rows="pred"):
    table = pd.DataFrame(M, index=NAMES, columns=NAMES).iloc[list(order), list(order)]
    table = table if rows == "pred" else table.T
    table.index.name = rows
    return table


def fit(loss, y=Y, **settings):
    return classifier(loss, random_state=0, **settings).fit(X, y)


@pytest.mark.parametrize(
    "table",
    [
        BY_NAME,
        {p: dict(reversed(BY_NAME[p].items())) for p in reversed(NAMES)},
        frame(),
        frame((2, 0, 1)),
        frame(rows="true"),
        frame((1, 2, 0), rows="true"),
    ],
    ids=["dict", "dict-reversed", "frame", "frame-mixed", "transposed", "both"],
)
def test_tables_are_matched_by_name(table, tmp_path):
    rows = "pred" if isinstance(table, dict) else None  # frames say it in their index
    model = fit(table, rows=rows)
    expected = fit(CostMatrix(M, rows="pred"))
    np.testing.assert_array_equal(model.classes_, NAMES)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.score(X, Y) == expected.score(X, Y)
    assert task_loss(Y, model.predict(X), loss=table, rows=rows) == pytest.approx(
        -model.score(X, Y)
    )
    assert TaskLossScorer(table, rows)(model, X, Y) == pytest.approx(model.score(X, Y))
    save(model, tmp_path / "costs.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "costs.safetensors").predict(X), model.predict(X))
    assert clone(model).fit(X, Y).score(X, Y) == model.score(X, Y)


def test_numbers_as_names():
    by_number = {
        p: {t: M[i, j] for j, t in enumerate((2, 10, 7))} for i, p in enumerate((2, 10, 7))
    }
    numbers = np.array([2, 10, 7])[CODES]
    model = fit(by_number, numbers, rows="pred")
    np.testing.assert_array_equal(model.classes_, [2, 7, 10])
    np.testing.assert_array_equal(
        model.predict(X), np.array([2, 10, 7])[fit(CostMatrix(M, rows="pred"), CODES).predict(X)]
    )


def test_expensive_mistakes_are_avoided():
    plain, careful = fit("zero_one"), fit(BY_NAME, rows="pred")
    assert careful.score(X, Y) > -task_loss(Y, plain.predict(X), loss=BY_NAME, rows="pred")


def test_other_answers_than_the_classes():
    asking = {**BY_NAME, "ask": dict.fromkeys(NAMES, 0.3)}
    assert set(fit(asking, rows="pred").predict(X)) <= {*NAMES, "ask"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (frame().rename_axis(None), "does not say whether its rows are predictions or true labels"),
        ({"a": {"b": 1, "c": 1}, "b": {"a": 1}}, "the costs of 'b' lack 'c'"),
        ({"a": 1.0}, "must contain a dict for each prediction"),
        ({}, "must contain a dict for each prediction"),
        ([[0, 1], [1, 0]], "is over 2 classes, but y contains 3 different labels"),
        (frame().rename(columns={"setosa": "rosa"}), "y contains 'setosa', which is not a class"),
        (-M, "non-negative"),
    ],
)
def test_bad_tables(table, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(table)


# --- costs of every class for each example -------------------------------------------------------

COSTS = M.T[CODES] * np.random.default_rng(0).uniform(0.5, 2.0, size=(len(X), 1))


def test_costs_of_examples(tmp_path):
    model = classifier(random_state=0).fit(X, Y, costs=COSTS)
    pred = model.predict(X)
    np.testing.assert_array_equal(model.classes_, NAMES)
    paid = COSTS[np.arange(len(X)), np.searchsorted(NAMES, pred)]
    assert model.score(X, costs=COSTS) == pytest.approx(-paid.mean())
    np.testing.assert_allclose(model.task_losses(X, costs=COSTS), paid)
    assert TaskLossScorer("cost_vectors:3")(model, X, COSTS) == pytest.approx(-paid.mean())
    # the same as costs for y
    structured = predictor(CostVectors(3), random_state=0).fit(X, COSTS)
    np.testing.assert_array_equal(NAMES[structured.predict(X)], pred)
    save(model, tmp_path / "costs.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "costs.safetensors").predict(X), pred)


def test_constant_costs_are_a_cost_matrix():
    model = classifier(random_state=0, features="linear", alpha=0.01)
    by_example = clone(model).fit(X, Y, costs=M.T[CODES])
    by_matrix = clone(model).set_params(loss=CostMatrix(M, rows="pred")).fit(X, Y)
    # the first regresses costs, the second probabilities that it keeps in their hull: the costs
    # that they expect are the same where no estimate leaves it
    inside = (by_matrix.model_.expected(X) >= 0).all(axis=1)
    raw = by_matrix.model_.expected(X) @ M.T
    np.testing.assert_allclose(by_example.model_.expected(X), raw, atol=1e-8)
    assert inside.any()


def test_columns_are_found_by_name():
    named = pd.DataFrame(COSTS, columns=NAMES)[NAMES[[2, 0, 1]]]
    expected = classifier(random_state=0).fit(X, Y, costs=COSTS)
    for y in (None, Y):
        model = classifier(random_state=0).fit(X, y, costs=named)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        assert model.score(X, costs=named) == expected.score(X, costs=COSTS)
    numbered = classifier(random_state=0).fit(X, costs=COSTS)
    np.testing.assert_array_equal(NAMES[numbered.predict(X)], expected.predict(X))


def test_costs_are_routed():
    with config_context(enable_metadata_routing=True):
        estimator = classifier(features="linear")
        estimator.set_fit_request(costs=True).set_score_request(costs=True)
        search = GridSearchCV(estimator, {"model__alpha": [1e-4, 1e4]}, cv=3).fit(X, Y, costs=COSTS)
    assert isinstance(search.best_estimator_.loss_, CostVectors)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"costs": COSTS[:, 0]}, "costs must have shape (n, classes), got (150,)"),
        ({"costs": COSTS[:9]}, "inconsistent numbers of samples"),
        (
            {"costs": -1 - COSTS},
            "got a negative cost at row 0, column 0; add a constant to that row",
        ),
        ({"costs": COSTS * np.nan}, "costs must be finite and non-negative, got NaN at row 0"),
        ({"y": Y, "costs": COSTS[:, :2]}, "costs have 2 columns, but there are 3 classes"),
        ({"y": Y, "costs": pd.DataFrame(COSTS, columns=list("abc"))}, "has no column in costs"),
    ],
)
def test_bad_costs(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        classifier().fit(X, **arguments)


def test_costs_and_other_settings():
    with pytest.raises(ValueError, match="costs= replace the loss"):
        classifier("ordinal").fit(X, Y, costs=COSTS)
    with pytest.raises(ValueError, match="class_weight needs y"):
        classifier(class_weight="balanced").fit(X, costs=COSTS)
    model = classifier().fit(X, Y, costs=COSTS)
    with pytest.raises(ValueError, match=r"pass costs of shape \(n, 3\)"):
        model.score(X, Y)
    with pytest.raises(ValueError, match="have no column 'setosa'"):
        model.score(X, costs=pd.DataFrame(COSTS, columns=list("abc")))
    with pytest.raises(ValueError, match="pass y instead"):
        classifier().fit(X, Y).score(X, costs=COSTS)


# --- what each decision costs for each true label, example by example ---


def business(n=400, seed=0):
    """Two classes; a missed 1 costs what is at stake in the row, a false alarm costs 1."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 3))
    distribution = 1.0 / (1.0 + np.exp(-2.0 * features[:, 0]))
    y_true = (rng.random(n) < distribution).astype(int)
    stake = rng.lognormal(1.0, 1.0, size=n)
    costs = np.zeros((n, 2, 2))  # prediction, true label
    costs[:, 0, 1] = stake
    costs[:, 1, 0] = 1.0
    return features, y_true, costs, distribution


def test_costs_of_decisions_are_known_at_prediction_time():
    features, y_true, costs, _ = business()
    model = classifier(random_state=0, features="linear", rows="pred")
    model.fit(features, y_true, costs=costs)
    new, new_true_label, new_costs, new_distribution = business(seed=1)
    prices = np.einsum("nkm,nm->nk", new_costs, model.predict_proba(new))
    pred = model.predict(new, costs=new_costs)
    np.testing.assert_array_equal(pred, prices.argmin(axis=1))
    rows = np.arange(len(new))
    paid = new_costs[rows, pred, new_true_label]
    assert model.score(new, new_true_label, costs=new_costs) == pytest.approx(-paid.mean())
    ideal = np.einsum(
        "nkm,nm->nk", new_costs, np.column_stack([1 - new_distribution, new_distribution])
    )
    best = new_costs[rows, ideal.argmin(axis=1), new_true_label].mean()
    same_for_all = new_costs[
        rows, (model.predict_proba(new)[:, 1] > 0.5).astype(int), new_true_label
    ]
    assert paid.mean() < 0.7 * same_for_all.mean()
    assert paid.mean() < 1.15 * best
    with pytest.raises(ValueError, match="pass those of the new examples to predict"):
        model.predict(new)
    with pytest.raises(ValueError, match=r"must have shape \(400, 2, 2\)"):
        model.predict(new, costs=new_costs[:3])


def test_costs_of_new_examples_are_needed_to_judge_too():
    features, y_true, costs, _ = business()
    model = cs.TaskLossClassifier(model="ridge", rows="pred").fit(features, y_true, costs=costs)
    for judge in (model.score, model.task_losses):
        with pytest.raises(ValueError, match="pass those of the new examples to score"):
            judge(features, y_true)
    same = [[0, 5], [1, 0]]
    other = model.set_loss(same, rows="pred")  # the same for all: they are needed no more
    assert other.score(features, y_true) == pytest.approx(
        -np.array(same)[other.predict(features), y_true].mean()
    )


def test_costs_of_decisions_are_routed():
    features, y_true, costs, _ = business()
    with config_context(enable_metadata_routing=True):
        estimator = classifier(features="linear", rows="pred")
        estimator.set_fit_request(costs=True).set_score_request(costs=True)
        scores = cross_val_score(estimator, features, y_true, cv=3, params={"costs": costs})
        pipeline = make_pipeline(StandardScaler(), estimator.set_predict_request(costs=True))
        pipeline.fit(features, y_true, costs=costs)
        assert pipeline.predict(features, costs=costs).shape == (400,)
    assert (scores > -costs[np.arange(400), 1, y_true].mean()).all()  # better than always alarming


# --- tables of costs as people hold them ---

UNEVEN = np.array([[0.0, 1.0], [9.0, 0.0]])  # rows are predictions: "well" for "ill" costs 9
SIDES = np.random.default_rng(0).normal(size=(80, 2))
HEALTH = np.where(SIDES[:, 0] > 0, "well", "ill")


def fitted_costs(loss, **settings):
    ridge = cs.models.Ridge("linear", alpha=0.1)
    return cs.TaskLossClassifier(loss, ridge, **settings).fit(SIDES, HEALTH).loss_


def test_the_corner_of_a_table_states_which_axis_is_which(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("true\\pred,ill,well\nill,0,9\nwell,1,0\n")
    table = pd.read_csv(path, index_col=0)  # the index is called true\pred
    np.testing.assert_array_equal(fitted_costs(table).M, UNEVEN)
    np.testing.assert_array_equal(fitted_costs(f"cost:{path}").M, UNEVEN)
    turned = pd.DataFrame(UNEVEN, ["ill", "well"], ["ill", "well"]).rename_axis("pred / true")
    np.testing.assert_array_equal(fitted_costs(turned).M, UNEVEN)


def test_rows_say_what_a_plain_matrix_does_not():
    with pytest.raises(ValueError, match="pass rows='pred' or rows='true'"):
        fitted_costs(UNEVEN)
    np.testing.assert_array_equal(fitted_costs(UNEVEN, rows="pred").M, UNEVEN)
    np.testing.assert_array_equal(fitted_costs(UNEVEN.T, rows="true").M, UNEVEN)
    np.testing.assert_array_equal(fitted_costs(UNEVEN.T.tolist(), rows="true").M, UNEVEN)
    even = np.array([[0.0, 2.0], [2.0, 0.0]])
    np.testing.assert_array_equal(fitted_costs(even).M, even)
    with pytest.raises(ValueError, match="rows must be 'pred' or 'true', got 'y_true'"):
        fitted_costs(UNEVEN, rows="y_true")
    with pytest.raises(ValueError, match="but loss is 'zero_one'; omit rows"):
        fitted_costs("zero_one", rows="true")


def test_rows_that_contradict_the_table():
    table = pd.DataFrame(UNEVEN, ["ill", "well"], ["ill", "well"]).rename_axis("pred")
    with pytest.raises(ValueError, match="the axes contradict each other"):
        fitted_costs(table, rows="true")


def test_dicts_may_leave_out_right_decisions():
    by_prediction = {"ill": {"well": 1}, "well": {"ill": 9}}
    by_true_label = {"ill": {"well": 9}, "well": {"ill": 1}}
    np.testing.assert_array_equal(fitted_costs(by_prediction, rows="pred").M, UNEVEN)
    np.testing.assert_array_equal(fitted_costs(by_true_label, rows="true").M, UNEVEN)


def test_rows_are_fixed_in_files_and_by_set_loss(tmp_path):
    ridge = cs.models.Ridge("linear", alpha=0.1)
    model = cs.TaskLossClassifier(UNEVEN.T, ridge, rows="true").fit(SIDES, HEALTH)
    cs.learning.save(model, tmp_path / "model.safetensors")
    again = cs.learning.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.loss_.matrix(), UNEVEN)
    np.testing.assert_array_equal(again.predict(SIDES), model.predict(SIDES))
    model.set_loss(UNEVEN.T * 2, rows="true")
    np.testing.assert_array_equal(model.loss_.matrix(), 2 * UNEVEN)
    cs.learning.save(model, tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("alias", "name"), [("accuracy", "zero_one"), ("mae", "ordinal"), ("Error Rate", "zero-one")]
)
def test_other_words_for_losses(alias, name):
    assert fitted_costs(alias) == fitted_costs(name)


def test_near_misses_are_suggested():
    with pytest.raises(ValueError, match="did you mean ordinal"):
        fitted_costs("ordinals")
