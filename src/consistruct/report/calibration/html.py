"""The calibration report as an HTML page."""

from __future__ import annotations

import json

from consistruct.report.calibration.charts import calibration_charts
from consistruct.report.calibration.model import CalibrationReport
from consistruct.report.calibration.tables import calibration_tables
from consistruct.report.calibration.wording import calibration_sections
from consistruct.report.label_names import label_text
from consistruct.report.numbers import count_text, log_text
from consistruct.report.page import DataFile, DataTable, report_page

__all__ = ["calibration_html"]


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
        ("ε", "H at least", "H at most", "ε²/4H", "status", "better", "predicted"),
        tuple(rows),
    )
