"""Pictures and tables draw from the same charts."""

from __future__ import annotations

import csv
import io
import math
from xml.etree import ElementTree

import numpy as np
import pytest

from consistruct.charts import chart_csv, chart_picture
from consistruct.charts.model import Chart, HeatMap, Mark, Series
from consistruct.charts.pictures import picture_kind
from consistruct.exceptions import ConsistructError
from consistruct.report.calibration.charts import calibration_charts
from consistruct.report.calibration.output import calibration_tables
from tests.report.settings import report_of


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def svg_words(content):
    root = ElementTree.fromstring(content)
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", ["one class", "underflow", "sets, bounds only", "oracle"])
def test_reports_of_every_kind_can_be_drawn(name):
    picture = chart_picture(calibration_charts(report_of(name)), "png")
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5000


def test_names_in_pictures_are_text():
    charts = calibration_charts(report_of("hostile names"))
    words = svg_words(chart_picture(charts, "svg"))  # parses: names are escaped
    assert "<script>alert(1)</script>" in words
    dollars = Chart(
        "k", "a $x^2$ b", "c", "p", "$y$", (Series("s$", (0.5,), (0.0,), "bars"),),
        bar_names=("$\\frac$",),
    )  # fmt: skip
    words = svg_words(chart_picture(dollars, "svg"))
    assert {"a $x^2$ b", "$y$", "$\\frac$"} <= set(words)


def test_no_text_is_cut_off(monkeypatch):
    """Every text, legend entries and long names included, lies inside the picture."""
    from matplotlib.figure import Figure

    boxes = []
    original = Figure.savefig

    def measure(self, stream, **options):
        original(self, stream, **options)
        self.canvas.draw()  # in its own resolution
        renderer = self.canvas.get_renderer()
        frame = self.get_window_extent(renderer)
        for panel in self.subfigs:
            found = [panel._suptitle, *(t for legend in panel.legends for t in legend.get_texts())]
            for ax in panel.axes:
                low, high = sorted(ax.get_ylim())
                ticks = zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
                found += [text for at, text in ticks if low <= at <= high]
                found += [ax.xaxis.label, ax.yaxis.label]
            for text in found:
                if text is not None and text.get_text():
                    boxes.append((text.get_text(), text.get_window_extent(renderer), frame))

    monkeypatch.setattr(Figure, "savefig", measure)
    for name in ("hostile names", "inconsistent"):  # long names and a long legend
        chart_picture(calibration_charts(report_of(name)), "png")
    assert len(boxes) > 50
    for text, box, frame in boxes:
        assert box.x0 >= frame.x0 - 1, text
        assert box.x1 <= frame.x1 + 1, text
        assert box.y0 >= frame.y0 - 1, text
        assert box.y1 <= frame.y1 + 1, text


def test_the_same_report_gives_the_same_bytes():
    chart = calibration_charts(report_of("closed form"))[1]
    for kind in ("pdf", "png"):  # identifiers of clip paths in SVG are random
        assert chart_picture(chart, kind) == chart_picture(chart, kind)
    assert b"<dc:date>" not in chart_picture(chart, "svg")


def test_all_kinds_of_series_are_drawn():
    chart = Chart(
        "k", "t", "c", "x", "y",
        (
            Series("a", (1.0, 2.0), (0.5, None), error=(0.1, None)),
            Series("b", (1.0, 2.0), (0.5, 1.0), "points"),
            Series("c", (1.0, 2.0), (0.5, None), "band", upper=(0.7, 0.9)),
            Series("d", (0.0, 1.0), (0.0, 1.0), "diagonal"),
        ),
        marks=(Mark("m", 1.0, "x", 0),),
    )  # fmt: skip
    heat = HeatMap("h", "t", "c", "x", "y", "v", ("a", "b"), ("c",), ((0.0, 1.0),), (("", "1"),))
    assert chart_picture([chart, heat, chart], "png").startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="kind must be one of png, svg, pdf, got 'gif'"):
        chart_picture(chart, "gif")
    with pytest.raises(ConsistructError, match=r"writes .png, .svg or .pdf files, got 'a.gif'"):
        picture_kind("a.gif")


def test_tables_have_all_digits_of_the_report():
    report = report_of("two pieces", np.linspace(0, 1, 7))
    rows = rows_of(calibration_tables(report)["curve"])
    assert [float(row["eps"]) for row in rows] == [point.eps for point in report.curve]
    assert [float(row["lower"]) for row in rows] == [point.lower for point in report.curve]
    sharp = [row["sharp_log10_examples"] for row in rows]
    assert sharp[0] == ""  # no number at ε = 0
    assert float(sharp[3]) == report.sample_sizes.points[2].log10_sharp
    distribution = rows_of(calibration_tables(report)["worst_case"])
    assert [row["true_label"] for row in distribution][:2] == [
        e.true_label for e in report.worst_case.distribution
    ][:2]


def test_charts_as_csv():
    heat = HeatMap("h", "t", "c", "x", "y", "v", ("a", "b"), ("c",), ((0.0, 1.0),), (("", "1"),))
    assert rows_of(chart_csv(heat))[1] == {"y": "c", "x": "b", "v": "1.0"}
    for chart in calibration_charts(report_of("inconsistent")):
        rows = rows_of(chart_csv(chart))
        assert len(rows) == sum(len(series.x) for series in chart.series)
        first = chart.series[0]
        assert float(rows[0][chart.x_label]) == first.x[0]
        assert not any(math.isnan(float(row[chart.x_label])) for row in rows)
