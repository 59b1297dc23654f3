"""Figures as plain data: valid Plotly, escaped names, the numbers of the report."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest

from consistruct.charts import plotly_figure
from consistruct.charts.model import Chart, HeatMap, Mark, Series
from consistruct.charts.plotly_figures import THEME_COLORS, themed
from consistruct.report.calibration.charts import (
    calibration_charts,
    calibration_figures,
    comparison_figures,
)
from consistruct.report.calibration.wording import calibration_sections
from tests.report.settings import HOSTILE, SETTINGS, report_of


def strings(value):
    if isinstance(value, dict):
        for entry in value.values():
            yield from strings(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from strings(entry)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("name", SETTINGS)
def test_figures_are_valid_plotly_and_plain_json(name):
    import plotly.graph_objects as go

    for key, figure in calibration_figures(report_of(name)).items():
        assert json.loads(json.dumps(figure, allow_nan=False)) == figure
        go.Figure(figure)  # raises on a property that Plotly does not know
        assert figure["layout"]["meta"]["title"], key
        for axis in ("xaxis", "yaxis"):
            assert figure["layout"][axis]["title"]["text"], f"{key}: axes have labels"


def test_drawing_needs_no_plotly(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)  # an import would raise
    assert calibration_figures(report_of("named"))


def test_names_are_text_and_not_markup():
    report = report_of("hostile names")
    figures = calibration_figures(report)
    drawn = [
        text
        for figure in figures.values()
        for key in ("data", "layout")
        for text in strings({k: v for k, v in _parts(figure, key) if k != "meta"})
    ]
    assert any("&lt;" in text for text in drawn)
    for text in drawn:
        bare = text.replace("<br>", "").replace("<extra></extra>", "")
        assert "<" not in bare, text
    assert report.worst_case is not None
    assert any(entry.true_label.startswith("<script>") for entry in report.worst_case.distribution)
    assert HOSTILE[0] not in json.dumps([f["data"] for f in figures.values()])


def _parts(figure, key):
    return figure[key].items() if key == "layout" else [("data", figure[key])]


def test_equal_names_stay_two_bars():
    chart = Chart(
        "k", "t", "c", "x", "y", (Series("p", (0.4, 0.6), (0.0, 1.0), "bars"),),
        bar_names=("same", "same"),
    )  # fmt: skip
    axis = plotly_figure(chart)["layout"]["yaxis"]
    assert (axis["tickvals"], axis["ticktext"]) == ([0, 1], ["same", "same"])


def test_the_curve_is_that_of_the_report():
    report = report_of("inconsistent", np.linspace(0, 1, 21))
    figure = calibration_figures(report)["curve"]
    line = next(t for t in figure["data"] if t["name"] == "H(ε), lower end")
    assert line["x"] == [point.eps for point in report.curve]
    np.testing.assert_allclose(line["y"], [point.lower for point in report.curve], rtol=1e-12)
    level = next(s for s in figure["layout"]["shapes"] if s["x0"] == report.consistency_level)
    assert level["x1"] == 0.05
    envelope = next(t for t in figure["data"] if t["name"] == "convex envelope")
    assert (np.array(envelope["y"]) <= np.array(line["y"]) * (1 + 1e-9) + 1e-18).all()


def test_the_band_of_bounds_has_no_upper_edge():
    figure = calibration_figures(report_of("sets, bounds only", np.linspace(0, 1, 5)))["curve"]
    band = [trace for trace in figure["data"] if trace["name"] == "certified band"]
    assert all(trace["x"] == [0.0] for trace in band)  # H(0) = 0 is known


def test_underflow_is_drawn_in_logarithms():
    report = report_of("underflow", np.linspace(0, 1, 5))
    figures = calibration_figures(report)
    curve = figures["curve"]
    assert curve["layout"]["yaxis"]["title"]["text"].startswith("log₁₀")
    line = next(t for t in curve["data"] if t["name"] == "H(ε), lower end")
    assert line["y"][0] is None  # log 0
    assert line["y"][1:] == pytest.approx([p.log_lower / math.log(10) for p in report.curve[1:]])
    assert figures["sample_size"]["layout"]["yaxis"]["type"] == "linear"


def test_growth_is_on_logarithmic_axes():
    layout = calibration_figures(report_of("closed form"))["sample_size"]["layout"]
    assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("log", "log")


def test_the_distribution_is_a_distribution_with_names():
    for name in SETTINGS:
        report = report_of(name)
        case = report.worst_case
        if case is None:
            assert report.worst_case_reason
            continue
        total = sum(entry.probability for entry in case.distribution) + case.rest
        assert total == pytest.approx(1, abs=1e-6), name
        if case.expected_better is not None:
            excess = case.expected_predicted - case.expected_better
            assert excess >= case.eps * (1 - 1e-6), name


def test_themes_change_colors_and_nothing_else():
    figure = calibration_figures(report_of("named"))["curve"]
    dark = themed(figure, "dark")
    assert themed(figure, "light") == figure
    assert dark != figure

    def forget(value):
        if isinstance(value, dict):
            return {key: forget(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [forget(entry) for entry in value]
        colors = {*THEME_COLORS, *THEME_COLORS.values()}
        return "color" if isinstance(value, str) and value in colors else value

    assert forget(dark) == forget(figure)
    with pytest.raises(ValueError, match="theme must be 'light' or 'dark', got 'sepia'"):
        themed(figure, "sepia")


def luminance(color):
    channels = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_lines_stand_out_from_the_page_in_both_themes():
    from consistruct.charts import plotly_figures as drawing

    for colors, ground in (
        (drawing.LIGHT, drawing.PANEL),
        (drawing.DARK, drawing.DARK_PANEL),
    ):
        for color in colors:
            bright, dim = sorted((luminance(color), luminance(ground)), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= 3, f"{color} on {ground}"  # WCAG, graphics


def test_settings_are_compared_in_the_same_axes():
    settings = [("own", report_of("two pieces")), ("blocks", report_of("inconsistent"))]
    figures = comparison_figures(settings)
    assert list(figures) == ["compare_curves", "compare_sample_sizes"]
    names = [trace["name"] for trace in figures["compare_curves"]["data"]]
    assert {"own", "blocks"} <= set(names)
    colors = {t["line"]["color"] for t in figures["compare_curves"]["data"] if "color" in t["line"]}
    assert len(colors) == 2
    mixed = [("quadratic", report_of("closed form")), ("log", report_of("log, a formula"))]
    assert "units" in comparison_figures(mixed)["compare_curves"]["layout"]["meta"]["caption"]


def test_heat_maps_and_errors_are_valid_plotly():
    import plotly.graph_objects as go

    heat = HeatMap("h", "t", "c", "x", "y", "v", ("<a>", "b"), ("c",), ((0.0, 1.0),), (("", "<"),))
    figure = plotly_figure(heat)
    go.Figure(figure)
    assert figure["layout"]["xaxis"]["ticktext"] == ["&lt;a&gt;", "b"]
    assert figure["data"][0]["text"] == [["", "&lt;"]]
    chart = Chart(
        "k", "t", "c", "x", "y",
        (
            Series("a", (1.0, 2.0), (0.5, None), error=(0.1, None)),
            Series("b", (1.0,), (0.5,), "points", style=9),
            Series("ideal", (0.0, 1.0), (0.0, 1.0), "diagonal"),
        ),
        marks=(Mark("m", 1.0, "y", 7),),
    )  # fmt: skip
    go.Figure(plotly_figure(chart))


def test_charts_come_in_the_order_of_the_questions():
    report = report_of("closed form")
    keys = [chart.key for chart in calibration_charts(report)]
    assert {"classes", "curve", "worst_case", "sample_size"} <= set(keys)
    assert keys == [key for section in calibration_sections(report) for key in section.charts]
