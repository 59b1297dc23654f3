"""The data behind a calibration report as CSV."""

from __future__ import annotations

from consistruct._csv import csv_text
from consistruct.report.calibration.model import CalibrationReport
from consistruct.report.label_names import label_text

__all__ = ["calibration_tables"]


def calibration_tables(report: CalibrationReport) -> dict[str, str]:
    """CSV texts by name: ``curve``, all that depends on ε, and ``worst_case``, the law.

    Examples
    --------
    >>> import consistruct as cs
    >>> from consistruct.report import calibration_report
    >>> report = calibration_report(cs.calibration_function(cs.losses.ZeroOne(3)), [0.5])
    >>> print(calibration_tables(report)["worst_case"].splitlines()[0])
    truth,probability
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
        law = [(entry.truth, entry.probability) for entry in report.worst_case.law]
        if report.worst_case.rest > 0:
            law.append(("all others", report.worst_case.rest))
        tables["worst_case"] = csv_text(["truth", "probability"], law)
    return tables
