"""The learning report: every number against an independent one."""

from __future__ import annotations

import csv
import io
import json

import jsonschema
import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import multilabel_confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consistruct as cs
from consistruct.charts import plotly_figure
from consistruct.exceptions import ConsistructError
from consistruct.learning.models.ridge.closed_form import ClosedForm
from consistruct.learning.recalibration import Contrast
from consistruct.metrics import mean_interval, selective_curve
from consistruct.report import LearningReport, learning_report, report_schema
from consistruct.report.formats import label_text
from consistruct.report.learning.baselines import LogisticProbabilities, constant_decision
from consistruct.report.learning.charts import learning_charts
from consistruct.report.learning.output import learning_html, learning_tables, learning_text
from consistruct.report.learning.wording import learning_sections
from tests.learning.estimators import classifier, predictor
from tests.report.samples import classes_report, sets_report
from tests.report.settings import HOSTILE

QUICK = {"learning_curve": False, "bandwidths": False}


@pytest.fixture(scope="module")
def classes():
    return classes_report(repeats=2)


@pytest.fixture(scope="module")
def sets():
    return sets_report(repeats=1)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], np.array(["a", "b", "c"])[y[order]]
    model = classifier(loss="ordinal", random_state=0).fit(X[:100], y[:100])
    return model, X, y


def confusion(report):
    assert report.confusion is not None
    return report.confusion


# --- baselines ---


def test_the_best_constant_is_the_best(iris):
    rng = np.random.default_rng(1)
    loss = cs.losses.CostMatrix(rng.random((5, 4)), rows="pred")
    train = rng.integers(4, size=30)
    means = loss.matrix()[:, train].mean(axis=1)
    assert constant_decision(loss, train, 3).tolist() == [int(means.argmin())] * 3


def test_logistic_baselines_are_those_of_scikit_learn(iris):
    model, X, y = iris
    report = learning_report(model, X[100:], y[100:], X_train=X[:100], y_train=y[:100], **QUICK)
    codes = np.searchsorted(["a", "b", "c"], y)
    peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    peer.fit(X[:100], codes[:100])
    distance = np.abs(peer.predict(X[100:]) - codes[100:])
    scores = {score.name: score for score in report.scores}
    assert scores["logistic, argmax"].mean == pytest.approx(distance.mean())
    L = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    bayes = (peer.predict_proba(X[100:]) @ L.T).argmin(axis=1)
    assert scores["logistic, Bayes decisions"].mean == pytest.approx(
        np.abs(bayes - codes[100:]).mean()
    )


def test_trees_decide_by_costs_too(iris):
    model, X, y = iris
    report = learning_report(model, X[100:], y[100:], X_train=X[:100], y_train=y[:100], **QUICK)
    codes = np.searchsorted(["a", "b", "c"], y)
    L = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    scores = {score.name: score.mean for score in report.scores}
    for name, peer in (
        ("forest", RandomForestClassifier(random_state=0)),
        ("boosting", HistGradientBoostingClassifier(early_stopping=True, random_state=0)),
    ):
        chances = peer.fit(X[:100], codes[:100]).predict_proba(X[100:])
        decided = (chances @ L.T).argmin(axis=1)
        expected = np.abs(decided - codes[100:]).mean()
        assert scores[f"{name}, Bayes decisions"] == pytest.approx(expected)


def test_bayes_decisions_on_sets_are_close_to_the_best_of_all():
    """Against all 16 label sets under the exact product distribution; 64 draws leave some noise."""
    loss = cs.losses.FBeta(4)
    rng = np.random.default_rng(0)
    chances = rng.random((40, 4))
    logistic = object.__new__(LogisticProbabilities)
    logistic.kind = "sets"
    found = logistic.bayes(loss, chances, rng)
    every = np.array([[n >> t & 1 for t in range(4)] for n in range(16)])
    weight = np.prod(np.where(every, chances[:, None], 1 - chances[:, None]), axis=2)  # (40, 16)
    table = np.array([loss(np.repeat(every[[p]], 16, 0), every) for p in range(16)])  # (16, 16)
    expected = weight @ table.T  # (40, 16): of each prediction
    chosen = expected[np.arange(40), found @ (1 << np.arange(4))]
    gap = chosen - expected.min(axis=1)
    assert (gap >= -1e-12).all()
    assert gap.mean() < 0.02
    usual = expected[np.arange(40), (chances >= 0.5).astype(int) @ (1 << np.arange(4))]
    assert chosen.mean() < usual.mean()


def test_classes_that_are_never_true_have_probability_zero():
    X = np.arange(6.0)[:, None]
    logistic = LogisticProbabilities(X, np.array([0, 0, 0, 2, 2, 2]), "classes")
    probabilities = logistic.probabilities(X)
    assert probabilities.shape == (6, 3)
    assert (probabilities[:, 1] == 0).all()
    constant = LogisticProbabilities(X, np.ones(6, dtype=int), "classes")
    assert constant.probabilities(X).tolist() == [[0.0, 1.0]] * 6


# --- the model's own numbers ---


def test_scores_are_means_with_paired_differences(iris):
    model, X, y = iris
    report = learning_report(model, X[100:], y[100:], X_train=X[:100], y_train=y[:100], **QUICK)
    first = report.scores[0]
    assert first.mean == pytest.approx(-model.score(X[100:], y[100:]))
    assert (first.difference, first.difference_error) == (0.0, 0.0)
    losses = model.task_losses(X[100:], y[100:])
    assert first.standard_error == pytest.approx(losses.std(ddof=1) / np.sqrt(50))
    for score in report.scores[1:]:
        assert score.difference == pytest.approx(score.mean - first.mean)
    assert (report.n_train, report.n_test, report.estimator) == (100, 50, "TaskLossClassifier")


def test_the_path_is_that_of_the_model(iris):
    model, X, y = iris
    report = learning_report(model, X[100:], y[100:])
    assert [p.alpha for p in report.path] == sorted(model.path_["alphas"].tolist())
    best = next(p for p in report.path if p.alpha == report.alpha)
    assert best.task_loss == np.min([p.task_loss for p in report.path])
    assert report.criterion == "task_loss"


def test_generalized_cross_validation_and_fixed_penalties(iris):
    _, X, y = iris
    solver = ClosedForm(selection="gcv")
    model = classifier(loss="ordinal", solver=solver, bandwidth=1.0).fit(X, y)
    report = learning_report(model, X, y)
    assert report.criterion == "gcv"
    assert report.path[0].task_loss is None
    assert all(p.criterion > 0 for p in report.path)
    assert {chart.key for chart in learning_charts(report)} >= {"path"}
    model = classifier(loss="ordinal", alpha=0.1, bandwidth=1.0).fit(X, y)
    report = learning_report(model, X, y)
    assert report.path == ()
    assert "penalty was given" in report.reason("path")


def test_confusion_adds_up_to_the_loss(classes):
    table = confusion(classes)
    assert sum(map(sum, table.counts)) == classes.n_test
    assert sum(map(sum, table.cost)) == pytest.approx(classes.scores[0].mean)
    assert all(table.cost[n][n] == 0 for n in range(4))
    assert set(table.true_labels) == {label_text(name) for name in HOSTILE}


def test_true_labels_never_seen_have_their_own_column(iris):
    model, X, y = iris
    strange = y[100:].copy()
    strange[:2] = "z"
    report = learning_report(model, X[100:], strange)
    table = confusion(report)
    assert table.true_labels[-1] == "not seen in training"
    column = [row[-1] for row in table.counts]
    assert sum(column) == 2
    assert sum(row[-1] for row in table.cost) == pytest.approx(2 * 2 / 50)  # the largest loss, 2
    assert report.scores[0].mean == pytest.approx(-model.score(X[100:], strange))


def test_many_classes_are_put_together():
    rng = np.random.default_rng(0)
    y = rng.integers(30, size=600)
    X = np.eye(30)[y] + rng.normal(size=(600, 30)) * 0.4
    model = classifier(loss="zero_one", alpha=1.0, features="linear").fit(X, y)
    report = learning_report(model, X, y)
    table = confusion(report)
    assert len(table.predictions) == len(table.true_labels) == 20
    assert table.true_labels[-1] == "others"
    assert sum(map(sum, table.counts)) == 600
    assert sum(map(sum, table.cost)) == pytest.approx(report.scores[0].mean)


def test_errors_of_label_sets_are_those_of_scikit_learn():
    X, y = cs_sets()
    model = classifier(loss="hamming", alpha=0.1, bandwidth=3.0).fit(X, y)
    names = ("sea", "sky", "<b>", "d", "e")
    report = learning_report(model, X, y, label_names=names)
    tables = multilabel_confusion_matrix(y, model.predict(X)) / len(y)
    for part in report.parts:
        (_, spurious), (missed, _) = tables[names.index(part.name)]
        assert (part.missed, part.spurious) == pytest.approx((missed, spurious))
    errors = [part.missed + part.spurious for part in report.parts]
    assert errors == sorted(errors, reverse=True)
    assert np.mean(errors) == pytest.approx(report.scores[0].mean)  # Hamming
    with pytest.raises(ValueError, match="label_names must have 5 entries, got 2"):
        learning_report(model, X, y, label_names=("a", "b"))


@pytest.mark.parametrize("contrast", [1.0, 2.5])
def test_the_contrast_is_named_where_there_is_one(contrast):
    X, y = cs_sets()
    model = classifier(loss="hamming", alpha=0.1, bandwidth=3.0).fit(X, y)
    model.recalibration_ = Contrast(contrast, np.zeros(10))
    report = learning_report(model, X, y)
    assert report.contrast == contrast
    jsonschema.validate(report.as_dict(), report_schema("learning"))
    assert LearningReport.from_dict(report.as_dict()) == report
    choices = next(one for one in learning_sections(report) if one.key == "choices")
    assert (("contrast", "2.5") in choices.facts) == (contrast == 2.5)
    assert any("stretched by 2.5" in text for text in choices.details) == (contrast == 2.5)


def cs_sets():
    from sklearn.datasets import make_multilabel_classification

    return make_multilabel_classification(120, 10, n_classes=5, random_state=0)


def test_bins_hold_every_example_once(iris):
    model, X, y = iris
    report = learning_report(model, X, y)
    assert sum(part.n for part in report.bins) == len(y)
    total = sum(part.n * part.predicted for part in report.bins) / len(y)
    assert total == pytest.approx(model.predict_expected_loss(X).mean())
    observed = sum(part.n * part.observed for part in report.bins) / len(y)
    assert observed == pytest.approx(report.scores[0].mean)
    predicted = [part.predicted for part in report.bins]
    assert predicted == sorted(predicted)
    assert -1 <= report.rank_correlation <= 1


# --- refits ---


def test_answering_the_surest_examples_is_the_curve_of_the_metrics(iris):
    model, X, y = iris
    report = learning_report(model, X, y)
    losses = model.task_losses(X, y)
    curve = selective_curve(losses, model.predict_expected_loss(X), n_points=50)
    assert [point.risk for point in report.selective.points] == curve.risk.tolist()
    assert report.selective.area == curve.area.estimate
    score = report.scores[0]
    expected = mean_interval(losses, bounds=model.loss_.value_range)
    assert (score.low, score.high) == (expected.low, expected.high)


def test_the_learning_curve_ends_at_the_model(classes):
    ours = [fit for fit in classes.learning_curve if fit.model == "this model"]
    assert [fit.n_train for fit in ours] == [25, 50, 100, 200]
    assert ours[-1].mean == classes.scores[0].mean
    usual = [fit for fit in classes.learning_curve if fit.model.startswith("logistic")]
    bayes = next(s.mean for s in classes.scores if s.name == "logistic, Bayes decisions")
    assert usual[-1].mean == bayes
    assert ours[0].mean > ours[-1].mean


def test_one_point_of_the_curve_is_a_refit(iris):
    model, X, y = iris
    report = learning_report(
        model, X[100:], y[100:], X_train=X[:100], y_train=y[:100], bandwidths=False, repeats=1,
        random_state=3,
    )  # fmt: skip
    smallest = report.learning_curve[0]
    rows = np.sort(np.random.default_rng(3).choice(100, size=25, replace=False))
    again = classifier(loss=cs.losses.Ordinal(3), random_state=0).fit(X[rows], y[rows])
    assert smallest.n_train == 25
    assert smallest.mean == pytest.approx(-again.score(X[100:], y[100:]))


def test_bandwidths_are_leave_one_out_losses(classes):
    chosen = [point for point in classes.bandwidths if point.chosen]
    assert len(chosen) == 1
    # 200 training rows: all of them are used, so it is the fit of the model itself
    best = next(p for p in classes.path if p.alpha == classes.alpha)
    assert chosen[0].task_loss == pytest.approx(best.task_loss)
    ratios = [point.bandwidth / chosen[0].bandwidth for point in classes.bandwidths]
    assert ratios == pytest.approx([0.25, 0.5, 1, 2, 4])


def test_progress_ends_at_its_total(iris):
    model, X, y = iris
    steps = []
    learning_report(
        model, X[100:], y[100:], X_train=X[:100], y_train=y[:100], repeats=1,
        progress=lambda done, total: steps.append((done, total)),
    )  # fmt: skip
    assert [done for done, _ in steps] == list(range(1, len(steps) + 1))
    assert steps[-1][0] == steps[-1][1]


# --- other labels and inputs ---


def test_sparse_inputs_and_abstention():
    X, y = make_classification(120, 6, random_state=0)
    X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    model = classifier(loss="abstain::0.2", features="linear").fit(X[:80], y[:80])
    report = learning_report(
        model, X[80:], y[80:], X_train=X[:80], y_train=y[:80], bandwidths=False, repeats=1
    )
    assert len(report.scores) == 6
    assert len(confusion(report).predictions) == len(confusion(report).true_labels) + 1
    assert "no bandwidth" in learning_report(
        model, X[80:], y[80:], X_train=X[:80], y_train=y[:80], learning_curve=False
    ).reason("bandwidths")


def test_more_true_labels_than_predictions():
    rng = np.random.default_rng(0)
    loss = cs.losses.CostMatrix(rng.random((2, 4)), rows="pred")
    X, y = rng.normal(size=(80, 3)), rng.integers(4, size=80)
    model = classifier(loss=loss, alpha=0.1, bandwidth=1.0).fit(X, y)
    report = learning_report(model, X, y, X_train=X, y_train=y, **QUICK)
    assert len(report.scores) == 6
    assert sum(map(sum, confusion(report).cost)) == pytest.approx(report.scores[0].mean)


def test_orders_have_the_constant_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.argsort(np.argsort(X, axis=1), axis=1)
    model = predictor(loss=cs.losses.Kendall(3), alpha=0.1, bandwidth=1.0).fit(X, y)
    report = learning_report(model, X, y, X_train=X, y_train=y, **QUICK)
    assert [score.name for score in report.scores] == ["this model", "best constant"]
    assert "neither" in report.reason("baselines")
    assert report.confusion is None
    assert report.reason("confusion")
    jsonschema.validate(report.as_dict(), report_schema("learning"))


def test_a_loss_without_expected_loss_states_so(iris, monkeypatch):
    model, X, y = iris

    def fails(X):
        raise ConsistructError("the offset depends on the true label")

    monkeypatch.setattr(model, "predict_expected_loss", fails)
    report = learning_report(model, X, y)
    assert report.bins == ()
    answers = {section.key: section.answer for section in learning_sections(report)}
    assert answers["trust"] == "It cannot say: the offset depends on the true label."


# --- mistakes ---


def test_mistakes_are_one_clear_line(iris):
    model, X, y = iris
    with pytest.raises(TypeError, match="must be a TaskLossClassifier or StructuredPredictor, got"):
        learning_report(LogisticRegression(), X, y)
    with pytest.raises(ValueError, match="must be fitted first"):
        learning_report(cs.TaskLossClassifier(), X, y)
    with pytest.raises(ValueError, match="X_train and y_train together"):
        learning_report(model, X, y, X_train=X)
    with pytest.raises(ValueError, match="y is empty"):
        learning_report(model, X[:0], y[:0])
    with pytest.raises(ValueError, match="repeats"):
        learning_report(model, X, y, repeats=0)
    with pytest.raises(ValueError, match="same length, got 150 and 10"):
        learning_report(model, X, y, X_train=X, y_train=y[:10])
    with pytest.raises(ValueError, match="labels that the model was not fitted on"):
        learning_report(model, X, y, X_train=X[:2], y_train=["a", "q"])
    with pytest.raises(ValueError, match="NaN"):
        learning_report(model, np.full_like(X, np.nan), y)


# --- as data, text, page ---


@pytest.mark.parametrize("name", ["classes", "sets"])
def test_reports_keep_the_schema_and_come_back(name, request):
    report = request.getfixturevalue(name)
    data = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    jsonschema.Draft202012Validator(report_schema("learning")).validate(data)
    assert LearningReport.from_dict(data) == report
    with pytest.raises(ConsistructError, match=r"schema version 0\.9, .* reads 3\.0; write it"):
        LearningReport.from_dict(data | {"schema_version": "0.9"})
    with pytest.raises(ConsistructError, match="kind 'calibration', not 'learning'"):
        LearningReport.from_dict(data | {"kind": "calibration"})
    del data["bins"]
    with pytest.raises(ConsistructError, match="lacks 'bins'"):
        LearningReport.from_dict(data)


def test_the_schema_is_closed():
    schema = report_schema("learning")
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) == set(schema["properties"])


def test_charts_are_valid_plotly(classes, sets):
    import plotly.graph_objects as go

    keys = [chart.key for chart in learning_charts(classes)]
    assert keys == [
        "scores", "path", "bandwidths", "learning_curve", "confusion", "expected_loss", "selective",
    ]  # fmt: skip
    assert "parts" in [chart.key for chart in learning_charts(sets)]
    for chart in (*learning_charts(classes), *learning_charts(sets)):
        go.Figure(json.loads(json.dumps(plotly_figure(chart), allow_nan=False)))


def test_text_answers_every_question(classes):
    stream = io.StringIO()
    Console(width=120, file=stream).print(learning_text(classes))
    text = stream.getvalue()
    for section in learning_sections(classes):
        assert section.question in text
        assert section.answer[:30] in text


def test_the_page_escapes_names(classes):
    page = learning_html(classes)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_tables_hold_the_numbers_of_the_figures(classes):
    tables = learning_tables(classes)
    assert list(tables) == [chart.key for chart in learning_charts(classes)]
    rows = list(csv.DictReader(io.StringIO(tables["scores"])))
    assert [float(row["mean task loss"]) for row in rows] == [s.mean for s in classes.scores]
    assert [row["name"] for row in rows] == [score.name for score in classes.scores]


def test_a_better_baseline_is_admitted(classes):
    from dataclasses import replace

    winner = replace(classes.scores[2], mean=0.1, difference=-0.2, difference_error=0.01)
    changed = replace(classes, scores=(classes.scores[0], winner))
    sections = {section.key: section for section in learning_sections(changed)}
    assert "clearly better by 0.2" in sections["metric"].answer
    assert sections["advice"].answer.startswith(f"Use {winner.name}")
    alone = replace(classes, scores=classes.scores[:1])
    assert "training data" in learning_sections(alone)[-1].answer


# --- non-decomposable metrics -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classes", "sets"])
def test_a_metric_tells_what_its_decisions_changed(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    if kind == "classes":
        y = np.array(["a", "b", "c"])[np.searchsorted([0.8, 2.0], X[:, 0] + rng.normal(size=300))]
    else:
        y = (X[:, :3] + rng.normal(size=(300, 3)) > 1.0).astype(int)
    model = classifier(loss="macro-f1", features="linear", alpha=0.01).fit(X[:200], y[:200])
    report = learning_report(model, X[200:], y[200:], **QUICK)
    change = report.decisions
    assert change.held_out == model.score(X[200:], y[200:])
    assert change.estimate == model.metric_estimate_
    assert np.sum(change.after) == pytest.approx(1.0 if kind == "classes" else 3.0)
    jsonschema.validate(report.as_dict(), report_schema("learning"))
    assert LearningReport.from_dict(json.loads(json.dumps(report.as_dict()))) == report
    section = next(s for s in learning_sections(report) if s.key == "decisions")
    assert "FScore(average='macro')" in section.answer
    assert section.facts
    assert "when decisions were chosen" in learning_html(report)


def test_the_curve_goes_on_with_a_band(classes):
    ahead = classes.forecast
    last = [fit for fit in classes.learning_curve if fit.model == "this model"][-1]
    sizes = [point.n_train for point in ahead.points]
    assert sizes[0] == last.n_train
    assert {2 * last.n_train, 4 * last.n_train, 10 * last.n_train} < set(sizes)
    for point in ahead.points:
        assert 0 <= point.low <= point.mean <= point.high
    assert ahead.points[0].low <= last.mean <= ahead.points[0].high
    chart = next(chart for chart in learning_charts(classes) if chart.key == "learning_curve")
    band = next(series for series in chart.series if series.kind == "band")
    assert band.name == "forecast, 90% interval"
    assert band.upper == tuple(point.high for point in ahead.points)
    section = next(s for s in learning_sections(classes) if s.key == "more_data")
    assert section.answer.startswith(("Yes: it is", "Little: it is"))
    assert f"at {10 * last.n_train} examples" in dict(section.facts)
