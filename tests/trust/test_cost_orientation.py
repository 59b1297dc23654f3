"""Whatever holds a cost for each pair of labels states which axis is the prediction."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from typer.testing import CliRunner

import consistruct as cs
from consistruct.cli import app
from consistruct.learning import load, save
from consistruct.learning.streams import fit_stream
from consistruct.losses import CostMatrix, parse_loss, parse_metric
from consistruct.metrics import (
    TaskLossScorer,
    example_losses,
    metric_value,
    profit_curve,
    regret,
    savings,
    task_loss,
)

REFUSED = (
    r"does not say whether its rows are predictions or true labels; pass rows='pred' or rows='true'"
)
TRUE_ROWS = np.array([[0.0, 5.0, 2.0], [1.0, 0.0, 3.0], [9.0, 4.0, 0.0]])  # 9: c taken for a
X, CODES = load_iris(return_X_y=True)
Y = np.array(list("abc"))[CODES]
NESTED = {t: dict(zip("abc", row, strict=True)) for t, row in zip("abc", TRUE_ROWS, strict=True)}
TENSOR = TRUE_ROWS * np.random.default_rng(0).uniform(0.5, 2.0, size=(len(X), 1, 1))


def classifier(loss="zero_one", **settings):
    model = cs.models.Probabilities(LogisticRegression(C=0.01))
    return cs.TaskLossClassifier(loss, model, random_state=0, **settings)


def expected_decisions(model, costs):
    """Bayes decisions under the model's probabilities; costs[..., true label, prediction]."""
    return model.classes_[np.einsum("nt,...tp->np", model.predict_proba(X), costs).argmin(axis=1)]


@pytest.mark.parametrize("M", [TRUE_ROWS, TRUE_ROWS.tolist(), [[0, 1, 2]], [[0], [1]]])
def test_a_matrix_that_is_not_symmetric_needs_rows(M):
    with pytest.raises(ValueError, match=REFUSED):
        CostMatrix(M)
    k, m = np.shape(M)
    by_pred, by_true = CostMatrix(M, rows="pred"), CostMatrix(M, rows="true")
    for i in range(k):
        for j in range(m):
            assert by_pred([i], [j]) == by_true([j], [i]) == np.asarray(M)[i, j]
    with pytest.raises(ValueError, match="rows must be 'pred' or 'true', got 'true_label'"):
        CostMatrix(M, rows="true_label")


def test_names_belong_to_predictions_and_true_labels_whatever_the_rows():
    loss = CostMatrix([[0, 2, 1], [7, 0, 1]], ("a", "b", "ask"), ("a", "b"), rows="true")
    assert loss([loss.pred_names.index("a")], [loss.true_names.index("b")]) == 7
    assert loss.matrix().shape == (3, 2)


def test_rows_of_a_symmetric_matrix_do_not_matter():
    even = [[0, 2], [2, 0]]
    losses = [CostMatrix(even), CostMatrix(even, rows="pred"), CostMatrix(even, rows="true")]
    assert len({repr(loss) for loss in losses}) == len(set(losses)) == 1


@pytest.mark.parametrize(
    "loss",
    [
        lambda: CostMatrix(TRUE_ROWS, rows="true"),
        lambda: CostMatrix(TRUE_ROWS / 3, tuple("abc"), tuple("abc"), rows="true"),
        lambda: CostMatrix([[0, 1, 2]], rows="pred"),
        lambda: CostMatrix([[0, 2], [2, 0]], rows="true"),
    ],
)
def test_what_a_cost_matrix_prints_makes_it_again(loss):
    made = loss()
    again = eval(repr(made), {"CostMatrix": CostMatrix})
    np.testing.assert_array_equal(again.M, made.M)
    for other in (
        again,
        pickle.loads(pickle.dumps(made)),
        copy.deepcopy(made),
        clone(made, safe=False),
    ):
        assert other == made
        assert repr(other) == repr(made)


def test_frames_with_names_are_not_stripped_of_them():
    for frame in (pl.DataFrame({"a": [0, 1], "b": [1, 0]}), pl.DataFrame({"b": [0], "a": [0]})):
        with pytest.raises(TypeError, match="got a data frame with names"):
            CostMatrix(frame, rows="pred")


@pytest.mark.parametrize("costs", [TRUE_ROWS, TRUE_ROWS.tolist(), NESTED], ids=type)
def test_estimators_decide_by_the_rows_that_they_are_given(costs, tmp_path):
    with pytest.raises(ValueError, match=REFUSED):
        classifier(costs).fit(X, Y)
    model = classifier(costs, rows="true").fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected_decisions(model, TRUE_ROWS))
    assert not np.array_equal(model.predict(X), expected_decisions(model, TRUE_ROWS.T))
    save(model, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").predict(X), model.predict(X))

    other = classifier().fit(X, Y)
    with pytest.raises(ValueError, match=REFUSED):
        other.set_loss(costs)
    np.testing.assert_array_equal(other.set_loss(costs, rows="true").predict(X), model.predict(X))
    for refused in (
        lambda: task_loss(Y, model.predict(X), loss=costs),
        lambda: TaskLossScorer(costs)(model, X, Y),
    ):
        with pytest.raises(ValueError, match=REFUSED):
            refused()
    paid = TRUE_ROWS[CODES, np.searchsorted(model.classes_, model.predict(X))].mean()
    assert task_loss(Y, model.predict(X), loss=costs, rows="true") == pytest.approx(paid)
    assert TaskLossScorer(costs, "true")(model, X, Y) == pytest.approx(-paid)
    assert -model.score(X, Y) == pytest.approx(paid)


def test_streams_read_costs_by_their_rows():
    batches = [(X[::2], Y[::2]), (X[1::2], Y[1::2])]
    ridge = cs.models.Ridge("linear", alpha=1e-3)
    made = [
        fit_stream(cs.TaskLossClassifier(costs, ridge, rows=rows, random_state=0), batches)
        for costs, rows in ((TRUE_ROWS, "true"), (TRUE_ROWS.T, "pred"))
    ]
    np.testing.assert_array_equal(made[0].loss_.M, TRUE_ROWS.T)
    np.testing.assert_array_equal(made[0].predict(X), made[1].predict(X))


def test_costs_of_each_example_have_rows_too(tmp_path):
    with pytest.raises(ValueError, match=REFUSED):
        classifier().fit(X, Y, costs=TENSOR)
    model = classifier(rows="true").fit(X, Y, costs=TENSOR)
    save(model, tmp_path / "m.safetensors")
    for fitted in (model, load(tmp_path / "m.safetensors")):
        decided = fitted.predict(X, costs=TENSOR)
        prices = np.einsum("nt,ntp->np", fitted.predict_proba(X), TENSOR)
        np.testing.assert_array_equal(decided, fitted.classes_[prices.argmin(axis=1)])
        codes = np.searchsorted(fitted.classes_, decided)
        paid = TENSOR[np.arange(len(X)), CODES, codes]
        np.testing.assert_allclose(fitted.task_losses(X, Y, costs=TENSOR), paid)
    report = cs.learning_report(model, X, Y, costs=TENSOR)
    assert report.scores[0].mean == pytest.approx(paid.mean())

    np.testing.assert_allclose(example_losses(Y, decided, TENSOR, rows="true"), paid)
    alike = TENSOR[np.arange(len(X)), CODES].mean(axis=0).min()
    saved = 1 - paid.mean() / alike
    assert savings(Y, decided, TENSOR, rows="true") == pytest.approx(saved)
    curve = profit_curve(Y, prices, TENSOR, rows="true")
    assert curve.savings[curve.chosen] == pytest.approx(saved)
    for refused in (
        lambda: example_losses(Y, decided, TENSOR),
        lambda: savings(Y, decided, TENSOR),
        lambda: profit_curve(Y, prices, TENSOR),
    ):
        with pytest.raises(ValueError, match=REFUSED):
            refused()


def test_reports_read_costs_of_decisions_by_name():
    costs = pd.DataFrame(TRUE_ROWS[CODES], columns=list("abc"))
    mixed = costs[["c", "a", "b"]]
    model = cs.TaskLossClassifier(model=cs.models.Ridge("linear", alpha=1e-3)).fit(X, costs=costs)
    paid = TRUE_ROWS[CODES, np.searchsorted(model.classes_, model.predict(X))].mean()
    for report in (
        cs.learning_report(model, X, Y, costs=mixed),
        cs.learning_report(model, X, mixed),
    ):
        assert report.scores[0].mean == pytest.approx(paid)


SETS = np.column_stack([X[:, 0] > 5.8, X[:, 1] > 3.0, X[:, 2] > 1.5]).astype(int)
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
NAMED = ("tall", "wide", "long")


def framed(kind, values, order=(0, 1, 2)):
    return FRAMES[kind]({NAMED[column]: values[:, column] for column in order})


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("estimator", [cs.TaskLossClassifier, cs.StructuredPredictor])
def test_labels_of_sets_are_matched_by_name(kind, estimator, tmp_path):
    ridge = cs.models.Ridge("linear", alpha=1e-3)
    model = estimator("hamming", ridge).fit(X, framed(kind, SETS))
    mixed = framed(kind, SETS, (2, 0, 1))
    paid = (model.predict(X) != SETS).mean(axis=1)
    save(model, tmp_path / "m.safetensors")
    for fitted in (model, load(tmp_path / "m.safetensors")):
        np.testing.assert_allclose(fitted.task_losses(X, mixed), paid)
        assert -fitted.score(X, mixed) == pytest.approx(paid.mean())
    report = cs.learning_report(model, X, mixed, learning_curve=False, bandwidths=False)
    assert report.scores[0].mean == pytest.approx(paid.mean())
    assert task_loss(framed(kind, SETS), mixed, loss="hamming") == 0.0
    other = framed(kind, SETS[:, [0, 1, 1]], (0, 1))
    for refused in (lambda: model.score(X, other), lambda: task_loss(mixed, other, loss="hamming")):
        with pytest.raises(ValueError, match=r"must have the columns \w+, \w+, \w+, in any order"):
            refused()


def test_costs_of_decisions_are_matched_by_name():
    model = cs.StructuredPredictor("cost-vectors", cs.models.Ridge("linear", alpha=1e-3))
    costs = TRUE_ROWS[CODES]
    model.fit(X, framed("pandas", costs))
    paid = costs[np.arange(len(X)), model.predict(X)].mean()
    assert -model.score(X, framed("pandas", costs, (1, 2, 0))) == pytest.approx(paid)


def test_metrics_match_two_frames_by_name():
    pred = np.column_stack([X[:, 0] > 6.3, X[:, 1] > 3.2, X[:, 2] > 4.5]).astype(int)
    true, mixed = framed("pandas", SETS), framed("pandas", pred, (1, 2, 0))
    value = metric_value(SETS, pred, metric="macro-f1")
    assert metric_value(true, mixed, metric="macro-f1") == pytest.approx(value)
    costs, decisions = TRUE_ROWS[CODES], np.eye(3, dtype=int)[CODES]
    paid = regret(costs, decisions, loss="top-k:3:1")
    by_name = regret(
        framed("pandas", costs), framed("pandas", decisions, (2, 0, 1)), loss="top-k:3:1"
    )
    np.testing.assert_allclose(by_name, paid)
    chances = np.random.default_rng(0).dirichlet(np.ones(3), len(X))
    expected = np.einsum("nt,ntp->np", chances, TENSOR)
    named = pd.DataFrame(expected, columns=list("abc"))[["b", "c", "a"]]
    curves = [profit_curve(Y, given, TENSOR, rows="true") for given in (expected, named)]
    np.testing.assert_allclose(curves[1].profit, curves[0].profit)


def test_confusions_say_what_their_rows_are():
    pred = np.where(np.arange(len(Y)) % 3 == 0, "a", Y)
    table = confusion_matrix(Y, pred)  # rows are true labels
    metric = parse_metric("macro-f1")
    with pytest.raises(ValueError, match=REFUSED):
        metric.linearized(table)
    np.testing.assert_array_equal(
        metric.linearized(table, rows="true").M, metric.linearized(table.T, rows="pred").M
    )


def test_candidate_sets_over_a_cost_file_can_say_rows(tmp_path):
    path = tmp_path / "plain.csv"
    np.savetxt(path, TRUE_ROWS, delimiter=",")
    spec = f"partial-labels:supremum:cost:{path}"
    with pytest.raises(ValueError, match=REFUSED):
        parse_loss(spec)
    assert parse_loss(spec, rows="true").loss == CostMatrix(TRUE_ROWS, rows="true")
    Z = [{label, "a"} for label in Y]
    ridge = cs.models.Ridge("linear", alpha=1e-3)
    model = cs.StructuredPredictor(parse_loss(spec, rows="true"), ridge).fit(X, Z)
    assert model.loss_.loss == CostMatrix(TRUE_ROWS, rows="true")


def test_the_command_line_can_say_rows_of_a_cost_file_within_a_loss(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("plain.csv", TRUE_ROWS, delimiter=",")
    run = CliRunner()
    reported = run.invoke(
        app, ["advise", "partial-labels:infimum:cost:plain.csv", "--n-samples", "100"]
    )
    assert reported.exit_code == 2
    assert "pass rows='pred' or rows='true' (--rows on the command line)" in reported.output
    reported = run.invoke(
        app,
        ["advise", "partial-labels:infimum:cost:plain.csv", "--n-samples", "100", "--rows", "true"],
    )
    assert reported.exit_code == 0, reported.output
