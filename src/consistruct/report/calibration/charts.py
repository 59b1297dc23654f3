"""The charts of a calibration report: pure functions from the report to charts.

`CHARTS` has a line for each: pages, figures and CSV files follow it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from consistruct.charts.model import Chart, Mark, Numbers, Series
from consistruct.charts.plotly_figures import plotly_figure
from consistruct.report.calibration.model import CalibrationReport, ReportPoint
from consistruct.report.formats import label_text
from consistruct.report.sections import ReportChart

__all__ = [
    "CHARTS",
    "calibration_charts",
    "calibration_figures",
    "classes_chart",
    "comparison_charts",
    "comparison_figures",
    "curve_chart",
    "sample_size_chart",
    "worst_case_chart",
]

SMALL = -280 * math.log(10)  # logarithms below this are drawn as logarithms: H itself underflows
LARGE = 290.0  # log₁₀ above this is drawn as such
EPS_AXIS = "ε, excess task risk (units of loss)"
LOG10 = math.log(10)
LEVEL, FOCUS = 1, 5  # styles of vertical marks


def calibration_charts(report: CalibrationReport) -> tuple[Chart, ...]:
    """All charts that this report has, in the order of its questions."""
    found = [chart.draw(report) for chart in CHARTS.values()]
    return tuple(chart for chart in found if chart is not None)


def calibration_figures(report: CalibrationReport) -> dict[str, dict[str, Any]]:
    """The Plotly figures of a calibration report by key: classes, curve, worst_case, sample_size.

    Examples
    --------
    >>> import consistruct as cs
    >>> from consistruct.report import calibration_report
    >>> report = calibration_report(cs.calibration_function(cs.losses.ZeroOne(3)))
    >>> list(calibration_figures(report))
    ['classes', 'curve', 'worst_case', 'sample_size']
    """
    return {chart.key: plotly_figure(chart) for chart in calibration_charts(report)}


def comparison_figures(
    settings: Sequence[tuple[str, CalibrationReport]],
) -> dict[str, dict[str, Any]]:
    """Plotly figures of several named settings in the same axes."""
    return {chart.key: plotly_figure(chart) for chart in comparison_charts(settings)}


def curve_chart(report: CalibrationReport) -> Chart:
    """H with its certified band, the bounds of the theorems and the convex envelope."""
    points = _inside(report)
    as_log = _underflows([report])
    x = tuple(point.eps for point in points)
    texts = tuple(_hover(point) for point in points)
    lower = _values(points, lambda p: p.log_lower, as_log)
    upper = _values(points, lambda p: p.log_upper, as_log)
    series = []
    if any(low is not None and high is not None for low, high in zip(lower, upper, strict=True)):
        series.append(Series("certified band", x, lower, "band", upper=upper))
    series.append(Series("H(ε), lower end", x, lower, texts=texts))
    envelope = _values(points, lambda p: p.log_envelope, as_log)
    if _any(envelope):
        series.append(Series("convex envelope", x, envelope, style=5))
    if any(point.log_theorem_7 is not None for point in points):
        theorem_7 = _values(points, lambda p: p.log_theorem_7, as_log)
        series.append(Series("Theorem 7: ε²/4k_eff ≤ H", x, theorem_7, style=1))
    if any(point.log_theorem_8 is not None for point in points):
        theorem_8 = _values(points, lambda p: p.log_theorem_8, as_log)
        series.append(Series("Theorem 8: H ≤ ε²/2k", x, theorem_8, style=3))
    return Chart(
        key="curve",
        title="Calibration function H(ε)",
        caption=(
            "How close the surrogate risk must come to its optimum before an excess task risk of "
            "ε is ruled out. Higher is easier. The band is certified to contain H."
        ),
        x_label=EPS_AXIS,
        y_label=_curve_label(report.surrogate, as_log),
        series=tuple(series),
        marks=_marks(report),
    )


def classes_chart(report: CalibrationReport) -> Chart | None:
    """ε²/4H(ε) beside the effective number of classes; quadratic surrogate only."""
    points = [p for p in _inside(report) if p.log_equivalent_classes is not None]
    if report.surrogate != "quadratic" or not points:
        return None
    logs = [(p.log_equivalent_classes or 0.0) / LOG10 for p in points]
    bound = None if report.effective_classes_log is None else report.effective_classes_log / LOG10
    large = max([*logs, bound or 0.0]) > LARGE
    y = tuple(log if large else 10.0**log for log in logs)
    marks = list(_marks(report))
    if bound is not None and math.isfinite(bound):
        value = bound if large else 10.0**bound
        prefix = "log₁₀ of " if large else ""
        marks.append(Mark(f"{prefix}k_eff, effective classes", value, "y", 1))
    name = "classes, 0-1 loss of equal H"
    return Chart(
        key="classes",
        title="How hard at each ε: ε²/4H(ε)",
        caption=(
            "At each ε, the number of classes over which the 0-1 loss is equally hard."
            + (
                " Where the line is below the effective number of classes, the loss is easier "
                "than k_eff suggests."
                if bound is not None
                else ""
            )
        ),
        x_label=EPS_AXIS,
        y_label=f"log₁₀ of {name}" if large else name,
        series=(Series("ε²/4H(ε)", tuple(p.eps for p in points), y),),
        marks=tuple(marks),
        y_log=not large,
        y_range=_readable_range([*logs, *([] if bound is None else [bound])], large),
        from_zero=False,
    )


def sample_size_chart(report: CalibrationReport) -> Chart | None:
    """N* against ε by the paper's constants and by sharp ones."""
    sizes = report.sample_sizes
    if sizes is None:
        return None
    points = [p for p in sizes.points if math.isfinite(p.log10_sharp)]
    if not points:
        return None
    large = max(max(p.log10_paper, p.log10_sharp) for p in points) > LARGE
    x = tuple(p.eps for p in points)

    def column(log10: Callable[..., float]) -> Numbers:
        logs = [log10(p) for p in points]
        return tuple(log if large else 10.0**log for log in logs)

    return Chart(
        key="sample_size",
        title="Examples needed for an excess risk of ε",
        caption=(
            f"Worst-case guarantees for features of norm at most R = {sizes.radius:g} and Q = "
            f"{sizes.q_bound:g}. Use them to compare losses and scores; real data usually need "
            "far fewer."
        ),
        x_label=EPS_AXIS,
        y_label="log₁₀ of N*, examples" if large else "N*, examples",
        series=(
            Series("sharp constants", x, column(lambda p: p.log10_sharp)),
            Series("the paper's constants", x, column(lambda p: p.log10_paper), style=1),
        ),
        marks=_marks(report),
        x_log=True,
        y_log=not large,
        from_zero=False,
    )


def worst_case_chart(report: CalibrationReport) -> Chart | None:
    """The distribution of the true label that makes the loss hard, as bars with label names."""
    case = report.worst_case
    if case is None:
        return None
    entries = [(entry.true_label, entry.probability) for entry in case.distribution]
    if case.rest > 1e-6:
        entries.append(("all others", case.rest))
    return Chart(
        key="worst_case",
        title=f"The distribution that makes it hard, at ε = {case.eps:.4g}",
        caption=(
            f"If the true label has these probabilities, “{label_text(case.better)}” is the better "
            f"answer by ε, yet “{label_text(case.predicted)}” wins at the lowest possible "
            "surrogate risk."
        ),
        x_label="probability",
        y_label="true label",
        series=(
            Series(
                "probability",
                tuple(probability for _, probability in entries),
                tuple(float(position) for position in range(len(entries))),
                "bars",
            ),
        ),
        bar_names=tuple(name for name, _ in entries),
    )


# by key, in the order of the questions
CHARTS: dict[str, ReportChart[CalibrationReport, Chart]] = {
    "classes": ReportChart("hardness", classes_chart, table="curve"),
    "curve": ReportChart("curve", curve_chart, table="curve"),
    "worst_case": ReportChart("worst_case", worst_case_chart, table="worst_case"),
    "sample_size": ReportChart("sample_size", sample_size_chart, table="curve"),
}


def comparison_charts(
    settings: Sequence[tuple[str, CalibrationReport]],
) -> tuple[Chart, ...]:
    """Several settings in the same axes: their curves, and their sample sizes where they have some.

    Curves of different surrogates are in different units: compare where they leave zero and their
    shape, not their height.
    """
    reports = [report for _, report in settings]
    as_log = _underflows(reports)
    series: list[Series] = []
    for style, (name, report) in enumerate(settings):
        points = _inside(report)
        x = tuple(point.eps for point in points)
        lower = _values(points, lambda p: p.log_lower, as_log)
        upper = _values(points, lambda p: p.log_upper, as_log)
        if _any(upper):
            series.append(Series(f"{name}, band", x, lower, "band", upper=upper, style=style))
        texts = tuple(_hover(point) for point in points)
        series.append(Series(name, x, lower, texts=texts, style=style))
    surrogates = {report.surrogate for report in reports}
    units = "" if len(surrogates) == 1 else " The surrogates differ, and so do the units of H."
    charts = [
        Chart(
            key="compare_curves",
            title="Calibration functions compared",
            caption=f"Higher is easier; 0 means that no amount of data rules out this ε.{units}",
            x_label=EPS_AXIS,
            y_label=_curve_label(" and ".join(sorted(surrogates)), as_log),
            series=tuple(series),
        )
    ]
    sizes = [
        (style, name, chart)
        for style, (name, report) in enumerate(settings)
        if (chart := sample_size_chart(report)) is not None
    ]
    if len(sizes) > 1 and len({chart.y_log for _, _, chart in sizes}) == 1:
        first = sizes[0][2]
        charts.append(
            Chart(
                key="compare_sample_sizes",
                title="Examples needed, sharp constants",
                caption=first.caption,
                x_label=first.x_label,
                y_label=first.y_label,
                series=tuple(
                    Series(name, chart.series[0].x, chart.series[0].y, style=style)
                    for style, name, chart in sizes
                ),
                x_log=True,
                y_log=first.y_log,
                from_zero=False,
            )
        )
    return tuple(charts)


def _readable_range(log10: Sequence[float], large: bool) -> tuple[float, float] | None:
    """An axis for numbers that hardly differ: rounding would fill a chosen one."""
    low, high = min(log10), max(log10)
    if not math.isfinite(high - low) or high - low > 0.3:
        return None
    low, high = low - 0.3, high + 0.3
    return (low, high) if large else (10.0**low, 10.0**high)


def _inside(report: CalibrationReport) -> list[ReportPoint]:
    return [point for point in report.curve if point.eps <= report.max_eps]


def _underflows(reports: Sequence[CalibrationReport]) -> bool:
    """Whether some positive value is too small for a float."""
    return any(
        math.isfinite(point.log_lower) and point.log_lower < SMALL
        for report in reports
        for point in _inside(report)
    )


def _values(
    points: Sequence[ReportPoint], log: Callable[[ReportPoint], float | None], as_log: bool
) -> Numbers:
    """Values from their logarithms, or log₁₀ of them; None where there is none to draw."""
    found: list[float | None] = []
    for point in points:
        value = log(point)
        if value is None or value == math.inf or (as_log and value == -math.inf):
            found.append(None)
        else:
            found.append(value / LOG10 if as_log else math.exp(value))
    return tuple(found)


def _any(values: Numbers) -> bool:
    return any(value is not None for value in values)


def _curve_label(surrogate: str, as_log: bool) -> str:
    label = f"H(ε), excess {surrogate} risk"
    return f"log₁₀ of {label}" if as_log else label


def _hover(point: ReportPoint) -> str:
    status = point.status
    if point.pair is None:
        return status
    better, predicted = (label_text(label, 24) for label in point.pair)
    return f"{status}; {predicted} predicted, {better} better"


def _marks(report: CalibrationReport) -> tuple[Mark, ...]:
    marks = []
    if report.consistency_level:
        marks.append(Mark("consistency level", report.consistency_level, "x", LEVEL))
    if report.at is not None:
        marks.append(Mark("ε looked at", report.at, "x", FOCUS))
    return tuple(marks)
