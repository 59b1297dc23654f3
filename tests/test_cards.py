"""What notebooks show: whole, escaped, and true to what it is about."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import consistruct as cs
from consistruct._html import Line, card, lines_svg, table
from consistruct.losses.metrics import parse_metric
from consistruct.losses.registry import LOSSES
from consistruct.report import calibration_report

HOSTILE = "</td><script>alert(1)</script>"


class Whole(HTMLParser):
    """Every element is closed; texts are collected."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append(tag)
        assert not [name for name, _ in attributes if name.startswith("on")]

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_has_a_card(name):
    for loss in LOSSES[name].examples:
        shown = Whole(loss._repr_html_())
        assert type(loss).__name__ in shown.text
        assert "script" not in shown.tags


def test_small_cost_matrices_are_shown_with_their_names_escaped():
    names = (HOSTILE, "b & c")
    shown = cs.losses.CostMatrix([[0, 7.25], [1, 0]], names, names, rows="pred")._repr_html_()
    page = Whole(shown)
    assert HOSTILE in page.texts
    assert HOSTILE not in shown
    assert "7.25" in page.texts
    assert "b & c" in page.texts


def test_metrics_have_a_card():
    assert "greater is better" in Whole(parse_metric("macro-f1")._repr_html_()).text


def test_a_calibration_function_is_drawn():
    loss = cs.losses.Hamming(10)
    H = cs.calibration_function(loss)
    shown = H._repr_html_()
    page = Whole(shown)
    assert "consistent" in page.texts
    (points,) = re.findall(r'polyline points="([^"]+)"', shown)
    drawn = np.array([[float(v) for v in point.split(",")] for point in points.split()])
    assert len(drawn) == 41
    # linear in H and in ε: heights over the axis are in proportion to the values
    heights = drawn[0, 1] - drawn[:, 1]
    values = H(np.linspace(0, H.max_eps, 41))
    np.testing.assert_allclose(heights / heights[-1], values / values[-1], atol=0.01)
    assert 'viewBox="0 0 360 200"' in shown


def test_a_display_starts_no_long_computation(monkeypatch):
    M = np.random.default_rng(0).random((80, 80))
    np.fill_diagonal(M, 0)
    H = cs.calibration_function(cs.losses.CostMatrix(M, rows="pred"))
    monkeypatch.setattr(type(H), "curve", None)
    page = Whole(H._repr_html_())
    assert "none yet: call H(eps) to compute values, which takes time for 80 labels" in page.text
    assert "svg" not in page.tags


def test_an_estimator_shows_what_it_learned_above_the_diagram():
    X, y = load_iris(return_X_y=True)
    names = np.array([HOSTILE, "b", "c"])[y]
    good = cs.models.Probabilities(LogisticRegression(max_iter=500))
    stack = cs.models.Stack([good, cs.models.Probabilities(DummyClassifier())])
    model = cs.TaskLossClassifier("zero_one", stack, random_state=0)
    assert "fitted</div>" not in model._repr_html_()
    shown = model.fit(X, names)._repr_html_()
    mine, _, diagram = shown.partition("<style>")
    page = Whole(mine)
    assert "ZeroOne(3)" in page.texts
    assert "best of 2 on out-of-fold rows" in page.text
    entry = model.portfolio_[0]
    assert f"{entry['task_loss']:.4g}" in page.texts
    assert "sk-" in diagram
    assert mine in model._repr_mimebundle_()["text/html"]
    with sklearn.config_context(display="text"), pytest.raises(AttributeError):
        model._repr_html_()


def test_other_estimators_show_their_out_of_fold_loss():
    X, y = load_iris(return_X_y=True)
    ridge = cs.models.Ridge(features="linear")
    page = Whole(_mine(cs.TaskLossClassifier("ordinal", ridge).fit(X, y)))
    assert "one row left out at a time" in page.text
    assert "penalty α" in page.text
    fitted = cs.TaskLossClassifier("macro-f1", cs.models.Ridge(alpha=1.0, features="linear"))
    page = Whole(_mine(fitted.fit(X, y)))
    assert "by decisions chosen on out-of-fold rows" in page.text
    assert f"{fitted.metric_estimate_:.4g}" in page.texts


def _mine(model):
    return model._repr_html_().partition("<style>")[0]


def test_reports_and_forecasts_have_a_card():
    report = calibration_report(cs.calibration_function(cs.losses.ZeroOne(3)))
    page = Whole(report._repr_html_())
    for question in ("How hard is this loss?", "How many examples does it take?"):
        assert question in page.texts
    assert "Worst-case guarantee, over all distributions" in page.texts
    assert "svg" in page.tags
    X, y = load_iris(return_X_y=True)
    model = cs.TaskLossClassifier("zero_one", cs.models.Ridge(alpha=1.0, features="linear"))
    found = cs.forecast(model, X, y)
    page = Whole(found._repr_html_())
    assert "150 (now)" in page.texts
    assert "90% interval" in page.texts
    assert page.tags.count("polyline") == 2
    assert page.tags.count("polygon") == 1
    learning = cs.learning_report(model.fit(X[::2], y[::2]), X[1::2], y[1::2])
    assert "How good is it on the loss that matters?" in Whole(learning._repr_html_()).texts


def test_pieces():
    assert "&lt;i&gt;" in card("<i>", table(("<b>",), [("a & b",)]))
    assert lines_svg([Line([0.0], [1.0])], "x", "y") == ""
    assert lines_svg([Line([0.0, 1.0], [0.0, 0.0])], "x", "y") == ""
    gap = lines_svg([Line([0.0, 1.0, 2.0], [1.0, float("inf"), 2.0])], "<x>", "y")
    assert gap.count(",") >= 2
    assert "inf" not in gap
    assert "&lt;x&gt;" in gap
    assert len(Whole(card("x" * 5000)).text) < 500
