"""A chart is one function and one line in `CHARTS`: pages, figures and CSV files follow."""

from __future__ import annotations

import re

import pytest

from consistruct.charts.model import Chart, Series
from consistruct.report.calibration import charts as calibration
from consistruct.report.calibration.charts import calibration_figures
from consistruct.report.calibration.output import calibration_html, calibration_tables
from consistruct.report.calibration.wording import calibration_sections
from consistruct.report.learning import charts as learning
from consistruct.report.learning.charts import learning_charts
from consistruct.report.learning.output import learning_html, learning_tables
from consistruct.report.learning.wording import learning_sections
from consistruct.report.sections import ReportChart
from tests.report.samples import classes_report
from tests.report.settings import report_of


def draw(report):
    series = (Series("ours", (1.0, 2.0), (0.25, 0.5)),)
    return Chart("new", "A new chart", "What it shows.", "n", report.loss_title, series)


@pytest.fixture(scope="module")
def classes():
    return classes_report(learning_curve=False, bandwidths=False)


def shown_in(page, key):
    """The section of a page that holds a figure."""
    before = page[: page.index(f'id="figure-{key}"')]
    return re.findall(r'<section id="([^"]+)">', before)[-1]


def test_a_new_chart_of_an_analysis_is_one_line(monkeypatch):
    report = report_of("named")
    before, figures = calibration_tables(report), list(calibration_figures(report))
    assert list(before)[:2] == ["curve", "worst_case"]  # most charts have their numbers in these
    monkeypatch.setitem(calibration.CHARTS, "new", ReportChart("consistency", draw))
    assert shown_in(calibration_html(report), "new") == "consistency"
    assert list(calibration_figures(report)) == [*figures, "new"]
    tables = calibration_tables(report)
    assert tables.pop("new").splitlines()[1] == "ours,1.0,0.25,,,"
    assert tables == before
    assert "Save new.csv" in calibration_html(report)


def test_a_new_chart_of_a_fitted_model_is_one_line(monkeypatch, classes):
    monkeypatch.setitem(learning.CHARTS, "new", ReportChart("advice", draw))
    assert shown_in(learning_html(classes), "new") == "advice"
    assert learning_charts(classes)[-1].key == "new"
    assert learning_tables(classes)["new"].splitlines()[1] == "ours,1.0,0.25,,,"


def test_a_chart_that_a_report_does_not_have_is_nowhere(monkeypatch):
    report = report_of("named")
    page = calibration_html(report)
    monkeypatch.setitem(calibration.CHARTS, "new", ReportChart("curve", lambda report: None))
    assert calibration_html(report) == page
    assert "new" not in calibration_tables(report)


def test_lines_name_their_charts_and_sections_that_exist(classes):
    report = report_of("sure labels")
    for table, of, sections in (
        (calibration.CHARTS, report, calibration_sections(report)),
        (learning.CHARTS, classes, learning_sections(classes)),
    ):
        drawn = {key: chart.draw(of) for key, chart in table.items()}
        assert all(chart is None or chart.key == key for key, chart in drawn.items())
        # the section of profits is there only where there are some
        known = {section.key for section in sections} | {"profit"}
        assert {chart.section for chart in table.values()} <= known
        placed = [key for section in sections for key in section.charts]
        assert sorted(placed) == sorted(key for key in table if key != "profit")
