"""The learning report as HTML, text and CSV."""

from __future__ import annotations

import csv
import io
import json

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from consistruct.charts.model import Chart, HeatMap
from consistruct.charts.tables import chart_csv
from consistruct.report.formats import label_text
from consistruct.report.learning.charts import learning_charts
from consistruct.report.learning.model import LearningReport
from consistruct.report.learning.wording import learning_sections
from consistruct.report.page import DataFile, DataTable, report_page
from consistruct.report.sections import sections_text

__all__ = ["learning_html", "learning_tables", "learning_text"]

N_COLUMNS = 30  # printed in a terminal; pages have all


def learning_html(report: LearningReport, *, title: str | None = None) -> str:
    """One self-contained page: questions, answers, interactive figures, files to save."""
    charts = {chart.key: chart for chart in learning_charts(report)}
    sections = learning_sections(report)
    tables = {
        section.key: [_table(charts[key]) for key in section.charts if key in charts]
        for section in sections
    }
    if report.columns:
        tables["columns"] = [_columns_table(report)]
    return report_page(
        title or "How good is this model on its loss?",
        _subject(report),
        sections,
        tuple(charts.values()),
        tables=tables,
        files=[
            DataFile("report.json", "application/json", json.dumps(report.as_dict())),
            *(
                DataFile(f"{name}.csv", "text/csv", text)
                for name, text in learning_tables(report).items()
            ),
        ],
    )


def learning_tables(report: LearningReport) -> dict[str, str]:
    """CSV texts of the charts, by key; the comparison with baselines first."""
    return {chart.key: chart_csv(chart) for chart in learning_charts(report)}


def learning_text(report: LearningReport) -> Group:
    """The questions with their answers, for a terminal."""
    heading = Table.grid(padding=(0, 2))
    for name, value in _subject(report):
        heading.add_row(Text(name, style="bold"), Text(value))
    after: dict[str, RenderableType] = {}
    if report.columns:
        table = Table.grid(padding=(0, 2))
        for entry in report.columns[:N_COLUMNS]:
            table.add_row(Text(label_text(entry.name)), Text(entry.treatment))
        if len(report.columns) > N_COLUMNS:
            table.add_row(Text(f"… {len(report.columns) - N_COLUMNS} more"), Text("see --html"))
        after["columns"] = table
    return Group(heading, *sections_text(learning_sections(report), after))


def _columns_table(report: LearningReport) -> DataTable:
    rows = tuple((label_text(entry.name, 60), entry.treatment) for entry in report.columns)
    return DataTable(f"All {len(rows)} columns", ("column", "how it was treated"), rows)


def _subject(report: LearningReport) -> list[tuple[str, str]]:
    return [
        ("judged by", report.loss_title or report.loss),
        ("model", report.model),
    ]


def _table(chart: Chart | HeatMap) -> DataTable:
    """The data of a chart, without empty columns."""
    header, *rows = csv.reader(io.StringIO(chart_csv(chart)))
    kept = [n for n in range(len(header)) if any(row[n] for row in rows)]
    return DataTable(
        f"The numbers behind “{chart.title}”",
        tuple(header[n] for n in kept),
        tuple(tuple(_short(row[n]) for n in kept) for row in rows),
    )


def _short(cell: str) -> str:
    try:
        return f"{float(cell):.5g}"
    except ValueError:
        return cell
