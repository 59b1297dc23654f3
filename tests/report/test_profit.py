"""The profit part of a learning report, from costs of each example to text, chart and JSON."""

from __future__ import annotations

import dataclasses

import jsonschema
import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import consistruct as cs
from consistruct.charts.model import Chart
from consistruct.metrics import example_losses, profit_curve, savings
from consistruct.report.learning.charts import learning_charts
from consistruct.report.learning.entries import ModelScore
from consistruct.report.learning.model import LearningReport
from consistruct.report.learning.output import learning_html, learning_tables, learning_text
from consistruct.report.learning.profit import MOST_POINTS, profit_of
from consistruct.report.learning.wording import learning_sections
from consistruct.report.schema import report_schema


@pytest.fixture(scope="module")
def customers():
    rng = np.random.default_rng(0)
    n = 3000
    chance = rng.beta(1, 6, size=n)
    y = (rng.uniform(size=n) < chance).astype(int)
    costs = np.zeros((n, 2, 2))
    costs[:, 0, 1] = rng.lognormal(2, 1, size=n)  # not acting on a true one
    costs[:, 1, 0] = 1.0
    expected = np.einsum("ict,it->ic", costs, np.stack([1 - chance, chance], axis=1))
    return y, expected, costs


@pytest.fixture(scope="module")
def report(customers):
    score = ModelScore("this model", 0.4, 0.01, 0.0, 0.0, None)
    needed = [f for f in dataclasses.fields(LearningReport) if f.default is dataclasses.MISSING]
    plain = {field.name: () for field in needed}
    fields = plain | {
        "loss": "costs", "estimator": "TaskLossClassifier", "model": "auto", "n_train": None,
        "n_test": 3000, "max_value": 9.0, "alpha": None, "contrast": 1.0, "scores": (score,),
        "criterion": None, "confusion": None, "rank_correlation": None,
        "reasons": (("path", "none"), ("confusion", "none"), ("expected_loss", "none")),
        "profit": profit_of(*customers), "selective": None, "decisions": None,
    }  # fmt: skip
    return LearningReport(**fields)


def profit_chart(report):
    chart = next(chart for chart in learning_charts(report) if chart.key == "profit")
    assert isinstance(chart, Chart)
    return chart


def test_points_are_those_of_the_curve(customers, report):
    curve = profit_curve(*customers, rows="pred")
    profit = report.profit
    assert len(profit.points) <= MOST_POINTS + 2
    on_curve = dict(zip(curve.share.tolist(), curve.profit.tolist(), strict=True))
    assert all(on_curve[point.share] == point.profit for point in profit.points)
    assert [profit.points[0].share, profit.points[-1].share] == [0.0, 1.0]
    assert profit.points[profit.best].profit == curve.profit.max()
    shares = [point.share for point in profit.points]
    assert max(np.diff(shares)) < 0.02  # nothing of the curve is skipped


def test_the_chosen_point_is_what_the_model_decides(customers, report):
    y, expected, costs = customers
    chosen = report.profit.points[report.profit.chosen]
    assert chosen.savings == pytest.approx(savings(y, expected.argmin(axis=1), costs, rows="pred"))


def test_it_keeps_the_schema_and_comes_back(report):
    written = report.as_dict()
    jsonschema.validate(written, report_schema("learning"))
    assert LearningReport.from_dict(written) == report


def test_chart_section_and_table_appear(report):
    chart = profit_chart(report)
    assert chart.series[0].name == "savings"
    assert max(chart.series[0].y) == report.profit.points[report.profit.best].savings
    section = next(part for part in learning_sections(report) if part.key == "profit")
    chosen = report.profit.points[report.profit.chosen]
    assert f"{chosen.share:.1%} of the examples" in section.answer
    assert "profit" in learning_tables(report)
    assert "What is gained by acting" in learning_html(report)
    console = Console(record=True, width=100)
    console.print(learning_text(report))
    assert "How much do its decisions gain?" in console.export_text()


def test_gains_are_drawn_as_profit(report):
    costs = np.array([[[0.0, 0.0], [1.0, -5.0]]] * 4)  # a success earns 5
    expected = np.array([[0.0, -2.0], [0.0, -1.0], [0.0, 0.5], [0.0, 1.0]])
    profit = profit_of([1, 0, 0, 0], expected, costs)
    assert profit.points[profit.chosen].savings is None
    other = dataclasses.replace(report, profit=profit)
    chart = profit_chart(other)
    assert chart.series[0].name == "profit per example"
    jsonschema.validate(other.as_dict(), report_schema("learning"))


def test_without_costs_of_each_example_there_is_none(report):
    other = dataclasses.replace(report, profit=None)
    assert "profit" not in {chart.key for chart in learning_charts(other)}
    assert "profit" not in {part.key for part in learning_sections(other)}
    assert LearningReport.from_dict(other.as_dict()) == other


# --- from a fitted model -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X, codes = make_classification(500, weights=[0.8], flip_y=0.1, random_state=0)
    names = np.array(["pays", "fails"])
    costs = np.zeros((500, 2, 2))
    line = np.random.default_rng(1).lognormal(1, 1, size=500)
    fails, pays = 0, 1  # classes in sorted order
    costs[:, pays, fails] = line
    costs[:, fails, pays] = 0.3
    logistic = cs.models.Probabilities(LogisticRegression())
    model = cs.TaskLossClassifier(model=logistic, rows="pred")
    model.fit(X[:250], names[codes[:250]], costs=costs[:250])
    return model, X[250:], names[codes[250:]], costs[250:]


def test_figures_are_those_of_the_metrics(fitted):
    model, X, y, costs = fitted
    report = cs.learning_report(model, X, y, costs=costs)
    assert report.profit is not None
    assert report.confusion is not None
    decided = model.predict(X, costs=costs)
    paid = example_losses(y, decided, costs, rows="pred")
    assert report.scores[0].mean == pytest.approx(paid.mean())
    chosen = report.profit.points[report.profit.chosen]
    assert chosen.savings == pytest.approx(savings(y, decided, costs, rows="pred"))
    single = report.scores[1].mean
    assert 1 - report.scores[0].mean / single == pytest.approx(chosen.savings)
    assert report.profit.base in ("pays", "fails")
    alike = example_losses(y, np.full(len(y), report.profit.base), costs, rows="pred")
    assert alike.mean() == pytest.approx(single)
    likeliest = model.classes_[model.predict_proba(X).argmax(axis=1)]
    assert report.scores[2].mean == pytest.approx(
        example_losses(y, likeliest, costs, rows="pred").mean()
    )
    assert sum(map(sum, report.confusion.cost)) == pytest.approx(paid.mean())
    assert sum(part.n for part in report.bins) == len(y)
    written = report.as_dict()
    jsonschema.validate(written, report_schema("learning"))
    assert LearningReport.from_dict(written) == report
    assert "What is gained by acting" in learning_html(report)


def test_gains_have_a_report_too(fitted):
    model, X, y, costs = fitted
    report = cs.learning_report(model, X, y, costs=costs - 2.0)
    assert report.confusion is None
    assert "earn" in report.reason("confusion")
    assert report.scores[0].mean < 0
    jsonschema.validate(report.as_dict(), report_schema("learning"))
    assert learning_sections(report)


def test_what_is_missing_is_reported_in_one_line(fitted):
    model, X, y, costs = fitted
    other = np.append(y[:-1], "dies")
    sets = cs.StructuredPredictor("hamming", cs.models.Ridge())
    sets.fit(X, np.tile([[0, 1, 1], [1, 0, 1]], (125, 1)))
    for call, message in (
        (lambda: cs.learning_report(model, X, y), "pass costs= for the held-out examples"),
        (lambda: cs.learning_report(model, X, y, costs=costs[:5]), "costs per example must"),
        (lambda: cs.learning_report(model, X, other, costs=costs), "y contains 'dies'"),
        (lambda: cs.learning_report(model, X, y[:5], costs=costs), "same length"),
        (lambda: cs.learning_report(sets, X, y, costs=costs), "classifier with probabilities"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
