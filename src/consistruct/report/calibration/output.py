"""The calibration report as HTML, text and CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

from rich.console import Group
from rich.table import Table
from rich.text import Text

from consistruct._plain_data import csv_text
from consistruct.charts.tables import chart_csv
from consistruct.report.calibration.charts import CHARTS, calibration_charts
from consistruct.report.calibration.model import CalibrationReport
from consistruct.report.calibration.wording import calibration_sections
from consistruct.report.formats import count_text, label_text, log_text
from consistruct.report.page import DataFile, DataTable, report_page
from consistruct.report.sections import sections_text

__all__ = ["calibration_html", "calibration_tables", "calibration_text"]

N_ROWS = 11  # of the curve in a terminal; JSON and CSV have all

T = TypeVar("T")


def calibration_html(report: CalibrationReport, *, title: str | None = None) -> str:
    """One self-contained page: questions, answers, interactive figures, tables, files to save.

    It opens without network and follows the light or dark theme of its reader.

    Examples
    --------
    >>> import consistruct as cs
    >>> from consistruct.report import calibration_report
    >>> report = calibration_report(cs.calibration_function(cs.losses.ZeroOne(3)))
    >>> calibration_html(report).startswith("<!DOCTYPE html>")
    True
    """
    return report_page(
        title or "How hard is this loss?",
        [("judged by", report.loss_title), ("scores", report.scores_title)],
        calibration_sections(report),
        calibration_charts(report),
        tables={"curve": [_curve_table(report)]},
        files=[
            DataFile("report.json", "application/json", json.dumps(report.as_dict())),
            *(
                DataFile(f"{name}.csv", "text/csv", text)
                for name, text in calibration_tables(report).items()
            ),
        ],
    )


def calibration_tables(report: CalibrationReport) -> dict[str, str]:
    """CSV texts by name: ``curve``, all that depends on ε, and ``worst_case``, the distribution.

    A chart whose numbers are in neither has a table of its own.

    Examples
    --------
    >>> import consistruct as cs
    >>> from consistruct.report import calibration_report
    >>> report = calibration_report(cs.calibration_function(cs.losses.ZeroOne(3)), [0.5])
    >>> print(calibration_tables(report)["worst_case"].splitlines()[0])
    true_label,probability
    """
    sizes = {} if report.sample_sizes is None else {p.eps: p for p in report.sample_sizes.points}
    header = [
        "eps", "lower", "upper", "log_lower", "log_upper", "theorem_7_log", "theorem_8_log",
        "envelope_log", "equivalent_classes_log", "sharp_log10_examples", "paper_log10_examples",
        "status", "method", "better", "predicted",
    ]  # fmt: skip
    rows = []
    for point in report.curve:
        size = sizes.get(point.eps)
        pair = ("", "") if point.pair is None else [label_text(label) for label in point.pair]
        rows.append(
            [
                point.eps,
                point.lower,
                point.upper,
                point.log_lower,
                point.log_upper,
                point.log_theorem_7,
                point.log_theorem_8,
                point.log_envelope,
                point.log_equivalent_classes,
                None if size is None else size.log10_sharp,
                None if size is None else size.log10_paper,
                point.status,
                point.method,
                *pair,
            ]
        )
    tables = {"curve": csv_text(header, rows)}
    if report.worst_case is not None:
        distribution = [
            (entry.true_label, entry.probability) for entry in report.worst_case.distribution
        ]
        if report.worst_case.rest > 0:
            distribution.append(("all others", report.worst_case.rest))
        tables["worst_case"] = csv_text(["true_label", "probability"], distribution)
    for key, shown in CHARTS.items():
        chart = None if shown.table else shown.draw(report)
        if chart is not None:
            tables[key] = chart_csv(chart)
    return tables


def calibration_text(report: CalibrationReport) -> Group:
    """The questions with their answers, then the curve."""
    heading = Table.grid(padding=(0, 2))
    for name, value in (("judged by", report.loss_title), ("scores", report.scores_title)):
        heading.add_row(Text(name, style="bold"), Text(value))
    sections = calibration_sections(report)
    return Group(heading, *sections_text(sections, after={"curve": _printed_curve(report)}))


def _curve_table(report: CalibrationReport) -> DataTable:
    rows = []
    for point in report.curve:
        pair = ("", "") if point.pair is None else [label_text(label) for label in point.pair]
        size = point.log_equivalent_classes
        rows.append(
            (
                f"{point.eps:.6g}",
                log_text(point.log_lower) if point.lower < float("inf") else "∞",
                log_text(point.log_upper) if point.upper < float("inf") else "∞",
                "" if size is None else count_text(size),
                point.status,
                *pair,
            )
        )
    return DataTable(
        f"All {len(rows)} values of H",
        ("ε", "H from about", "to about", "ε²/4H", "status", "better", "predicted"),
        tuple(rows),
    )


def _printed_curve(report: CalibrationReport) -> Table:
    table = Table()
    table.add_column("ε", justify="right")
    table.add_column("H from about", justify="right")
    table.add_column("to about", justify="right")
    quadratic = report.surrogate == "quadratic"  # the equivalent k of the 0-1 loss
    if quadratic:
        table.add_column("ε²/4H", justify="right")
    table.add_column("status")
    table.add_column("worst pair (better, predicted)", overflow="ellipsis", max_width=44)
    for point in _thinned(report.curve):
        pair = "" if point.pair is None else ", ".join(label_text(p, 20) for p in point.pair)
        size = point.log_equivalent_classes
        table.add_row(
            f"{point.eps:.4g}",
            _height(point.lower, point.log_lower),
            _height(point.upper, point.log_upper),
            *([] if not quadratic else ["" if size is None else count_text(size)]),
            point.status,
            Text(pair),
        )
    return table


def _thinned(rows: Sequence[T]) -> list[T]:
    """At most so many rows, evenly spread, the first and the last among them."""
    if len(rows) <= N_ROWS:
        return list(rows)
    last = len(rows) - 1
    return [rows[round(n * last / (N_ROWS - 1))] for n in range(N_ROWS)]


def _height(value: float, log: float) -> str:
    return f"{value:.7g}" if value == float("inf") or log > -600 else log_text(log)
