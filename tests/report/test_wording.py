"""What reports say: words in place of Python, differences that mean what they say, warnings."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.datasets import load_iris

import consistruct as cs
from consistruct.losses.registry import LOSSES
from consistruct.report import calibration_report, learning_report
from consistruct.report.calibration.output import calibration_html, calibration_text
from consistruct.report.formats import TITLES, loss_title, scores_title
from consistruct.report.learning.charts import learning_charts
from consistruct.report.learning.entries import ModelScore, PortfolioEntry
from consistruct.report.learning.model_wording import _why
from consistruct.report.learning.output import learning_html, learning_text
from consistruct.report.learning.overlap import overlap
from consistruct.report.learning.score_wording import verdict
from consistruct.report.learning.wording import learning_sections
from tests.learning.estimators import classifier

QUICK = {"learning_curve": False, "bandwidths": False}
# Python in a text: Name(…), brackets of arrays, keyword arguments
PYTHON = re.compile(r"[A-Z]\w+\(|\[\[|\w=[\w'\"]")
DIGITS = re.compile(r"[1-9]\d*\.\d{7,}|0\.0*[1-9]\d{6,}")


def printed(renderable):
    console = Console(width=90, file=io.StringIO(), record=True)
    console.print(renderable)
    return console.export_text()


def prose(page):
    """What a reader of a page sees."""
    body = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", body)


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], np.array(["small", "middle", "large"])[y[order]]
    costs = pd.DataFrame(
        [[0, 1, 3], [1, 0, 2], [9, 2, 0]],
        index=["small", "middle", "large"],
        columns=["small", "middle", "large"],
    )
    costs.index.name = "true\\pred"
    model = classifier(loss=costs, random_state=0).fit(X[:100], y[:100])
    return model, X, y


def test_every_registered_loss_has_a_title_of_its_own():
    missing = {entry.cls.__name__ for entry in LOSSES.values() if entry.cls not in TITLES}
    assert not missing, f"add a line to TITLES in report/formats.py for {sorted(missing)}"


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_registered_loss_and_its_scores_have_words(name):
    for loss in LOSSES[name].examples:
        title = loss_title(loss)
        assert not PYTHON.search(title), title
        assert len(title) < 120
    assert not PYTHON.search(scores_title(LOSSES[name].examples[-1].score_space))


def test_sums_and_losses_of_the_users_own():
    assert loss_title(0.5 * cs.losses.ZeroOne(3) + 2 * cs.losses.Ordinal(3)) == (
        "0.5 · (share of errors over 3 classes) + 2 · (distance between 3 ordered classes)"
    )

    class Own:
        def __repr__(self):
            return "Own(" + "x" * 500 + ")"

    assert len(loss_title(Own())) == 90


def test_reports_are_headed_by_words(flowers):
    model, X, y = flowers
    report = learning_report(model, X[100:], y[100:], X_train=X[:100], y_train=y[:100], repeats=1)
    text = printed(learning_text(report))
    assert "costs of mistakes between 3 classes: large, middle, small" in text
    for shown in (text, prose(learning_html(report))):
        assert not PYTHON.search(shown), PYTHON.search(shown)
        assert not DIGITS.search(shown), DIGITS.search(shown)
    found = calibration_report(cs.calibration_function(model.loss_), at=1.0)
    head = printed(calibration_text(found)).split("\n\n")[0]
    assert "costs of mistakes" in head
    assert "one score for each label" in head
    assert not PYTHON.search(prose(calibration_html(found)).split("?")[1])


@pytest.mark.parametrize(
    ("gap", "error", "words"),
    [
        (0.0113, 0.034, "no clear difference (0.011 more, ± 0.034)"),
        (-0.0113, 0.034, "no clear difference (0.011 less, ± 0.034)"),
        (0.65, 0.098, "clearly worse by 0.65 ± 0.098"),
        (-0.65, 0.098, "clearly better by 0.65 ± 0.098"),
        (0.0, 0.0, "no difference"),
        (0.5, None, "worse by 0.5"),
    ],
)
def test_differences_are_stated_as_they_are(gap, error, words):
    assert verdict(ModelScore("peer", 1.0, 0.1, gap, error, None)) == words


def test_captions_hold_on_a_dark_page_too(flowers):
    model, X, y = flowers
    report = learning_report(model, X[100:], y[100:])
    captions = " ".join(chart.caption for chart in learning_charts(report)).lower()
    assert "darker" not in captions
    assert "brighter" not in captions
    assert "the stronger the color, the more" in captions


def test_long_names_stay_apart():
    names = ["customer service, written complaints, " + end for end in ("first", "second")]
    X, y = load_iris(return_X_y=True)
    model = classifier(alpha=0.1, bandwidth=1.0).fit(X[:100], np.array(names)[y[:100]])
    report = learning_report(model, X[:100], np.array(names)[y[:100]])
    from consistruct.charts.plotly_figures import plotly_figure

    figure = plotly_figure(next(c for c in learning_charts(report) if c.key == "confusion"))
    for axis in ("xaxis", "yaxis"):
        ticks = figure["layout"][axis]["ticktext"]
        assert len(set(ticks)) == 2
        assert max(map(len, ticks)) <= 18


# --- what was trained on the held-out rows ---


def test_a_report_on_the_training_rows_warns(flowers):
    model, X, y = flowers
    report = learning_report(model, X[:100], y[:100], X_train=X[:100], y_train=y[:100], **QUICK)
    metric, *_, advice = learning_sections(report)
    assert report.overlap == 100
    assert metric.details[0].startswith("Warning: all held-out examples are also in the training")
    assert "not trained on" in advice.answer
    assert 'class="warning"' in learning_html(report)
    apart = learning_report(model, X[100:], y[100:], X_train=X[:100], y_train=y[:100], **QUICK)
    assert apart.overlap <= 3  # iris holds twins
    assert not any("Warning" in text for s in learning_sections(apart) for text in s.details)


def test_equal_rows_are_found_in_every_kind_of_input():
    import scipy.sparse as sp

    from consistruct.learning.encoding.queries import QueryBatch
    from consistruct.learning.encoding.tokens import NamedTokens, PackedTokens
    from consistruct.structures import Ragged

    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    mixed = pd.DataFrame({"a": ["x", None, "y", "x", "z", "w"], "b": [1, 2, np.nan, 4, 5, 6]})
    for inputs in (X, sp.csr_array(X), mixed, mixed.to_numpy(dtype=object)):
        some = inputs.iloc[2:5] if hasattr(inputs, "iloc") else inputs[2:5]
        assert overlap(some, y[2:5], inputs, y) == 3
        assert overlap(some, 1 - y[2:5], inputs, y) == 0
    marks = np.array([0, 2, 6])
    tags = Ragged(y, marks)
    for packed in (PackedTokens(X, marks), QueryBatch(X, np.arange(6), marks, False)):
        assert overlap(packed.take([1]), tags.take([1]), packed, tags) == 1
    named = NamedTokens([[["a"], ["b"]], [["c"], ["d"], ["e"], ["f"]]])
    assert overlap(named.take([0]), tags.take([0]), named, tags) == 1


# --- columns, and which model ---


def test_columns_of_a_data_frame_are_reported(flowers):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": np.where(rng.random(90) < 0.2, np.nan, rng.normal(size=90)),
            "town": rng.choice(["Ulm", "Bonn"], size=90),
            "since": pd.date_range("2020-01-01", periods=90),
        }
    )
    y = np.where(table["town"] == "Ulm", "a", "b")
    logistic = cs.models.Probabilities(_prepared_logistic(table))
    model = cs.TaskLossClassifier("zero_one", logistic, random_state=0).fit(table[:60], y[:60])
    report = learning_report(
        model, table[60:], y[60:], X_train=table[:60], y_train=y[:60], repeats=1
    )
    assert [entry.name for entry in report.columns] == ["age", "town", "since"]
    kinds = [entry.treatment.split(",")[0].split(" of")[0] for entry in report.columns]
    assert kinds == ["number", "category", "date"]
    assert re.fullmatch(r"number, \d+ missing", report.columns[0].treatment)
    section = next(one for one in learning_sections(report) if one.key == "columns")
    assert section.answer == (
        "3 columns: 1 of numbers, 1 of categories, 1 of dates; 1 with missing cells."
    )
    assert "category of 2 values" in printed(learning_text(report))
    assert "<td>category of 2 values</td>" in learning_html(report)
    assert len({fit.model for fit in report.learning_curve}) == 4  # and refits on parts of tables


def _prepared_logistic(table):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from consistruct.learning.selection.columns import Columns

    return make_pipeline(Columns.of(table).for_linear(), LogisticRegression())


def entries(*rows):
    return tuple(
        PortfolioEntry(name, "used" if w else "not used", w, loss, 1.0, value)
        for name, w, loss, value in rows
    )


@pytest.mark.parametrize(
    ("tried", "words"),
    [
        ((("a", 1.0, 0.3, 0.2), ("b", 0.0, 0.2, 0.5)), "it has the lowest criterion"),
        (
            (("a", 0.5, 0.3, 0.2), ("b", 0.5, 0.2, 0.5)),
            "a is the best single one, and this average",
        ),
        ((("a", 0.0, 0.3, 0.2), ("b", 0.5, 0.2, 0.5), ("c", 0.5, 0.2, 0.4)), "better than a"),
        ((("a", 1.0, 0.3, 0.2), ("b", 0.0, None, None)), "nothing else was compared. 1 more"),
    ],
)
def test_the_report_states_why_models_were_chosen(flowers, tried, words):
    import dataclasses

    model, X, y = flowers
    report = learning_report(model, X[100:], y[100:])
    report = dataclasses.replace(report, portfolio=entries(*tried), alpha=None)
    used = [entry for entry in report.portfolio if entry.weight > 0]
    assert words in _why(report, used)
    section = next(one for one in learning_sections(report) if one.key == "choices")
    assert words in section.answer
