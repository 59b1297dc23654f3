"""The charts of a learning report: pure functions from the report to charts.

`CHARTS` has a line for each: pages, figures and CSV files follow it.
"""

from __future__ import annotations

from consistruct.charts.model import Chart, HeatMap, Mark, Series
from consistruct.report.learning.model import LearningReport
from consistruct.report.learning.model_wording import plural
from consistruct.report.learning.parts import MODEL
from consistruct.report.sections import ReportChart

__all__ = ["CHARTS", "learning_charts"]

LOSS_AXIS = "mean task loss"


def learning_charts(report: LearningReport) -> tuple[Chart | HeatMap, ...]:
    """All charts that this report has, in the order of its questions."""
    found = [chart.draw(report) for chart in CHARTS.values()]
    return tuple(chart for chart in found if chart is not None)


def _scores(report: LearningReport) -> Chart:
    return Chart(
        key="scores",
        title="Task loss against the usual baselines",
        caption=(
            f"Mean loss on {report.n_test} held-out {plural(report.unit)}, with one standard "
            "error. Lower is better."
        ),
        x_label=LOSS_AXIS,
        y_label="model",
        series=(
            Series(
                "mean loss",
                tuple(score.mean for score in report.scores),
                tuple(float(n) for n in range(len(report.scores))),
                "bars",
                error=tuple(score.standard_error for score in report.scores),
            ),
        ),
        bar_names=tuple(score.name for score in report.scores),
    )


def _path(report: LearningReport) -> Chart | None:
    if not report.path:
        return None
    x = tuple(point.alpha for point in report.path)
    series = []
    if report.path[0].task_loss is not None:
        series.append(
            Series(
                "leave-one-out task loss",
                x,
                tuple(point.task_loss for point in report.path),
                error=tuple(point.task_error for point in report.path),
            )
        )
    else:
        name = report.criterion or "criterion"
        series.append(Series(name, x, tuple(point.criterion for point in report.path)))
    by_loss = report.path[0].task_loss is not None
    return Chart(
        key="path",
        title="Choice of the penalty",
        caption=(
            f"Every penalty that was compared, judged by leaving out one training {report.unit} at "
            "a time. The chosen one is where the curve is lowest; if several are equal, the "
            "largest."
        ),
        x_label="α, penalty",
        y_label="leave-one-out task loss" if by_loss else f"{report.criterion}",
        series=tuple(series),
        marks=() if report.alpha is None else (Mark("chosen α", report.alpha, "x", 1),),
        x_log=True,
    )


def _bandwidths(report: LearningReport) -> Chart | None:
    if not report.bandwidths:
        return None
    chosen = next(point.bandwidth for point in report.bandwidths if point.chosen)
    return Chart(
        key="bandwidths",
        title="Choice of the bandwidth",
        caption=(
            "Leave-one-out loss at the best penalty of each bandwidth, on at most 1000 training "
            "examples. A flat curve means that the choice hardly matters."
        ),
        x_label="bandwidth (units of the features)",
        y_label="leave-one-out task loss",
        series=(
            Series(
                "leave-one-out task loss",
                tuple(point.bandwidth for point in report.bandwidths),
                tuple(point.task_loss for point in report.bandwidths),
                error=tuple(point.task_error for point in report.bandwidths),
            ),
        ),
        marks=(Mark("bandwidth of the model", chosen, "x", 1),),
        x_log=True,
    )


def _learning_curve(report: LearningReport) -> Chart | None:
    if not report.learning_curve:
        return None
    names = list(dict.fromkeys(fit.model for fit in report.learning_curve))
    series = []
    for style, name in enumerate(names):
        fits = [fit for fit in report.learning_curve if fit.model == name]
        series.append(
            Series(
                name,
                tuple(float(fit.n_train) for fit in fits),
                tuple(fit.mean for fit in fits),
                error=tuple(fit.standard_error for fit in fits),
                style=style,
            )
        )
    caption = (
        f"Loss on the held-out {plural(report.unit)} after training on part of the data. Error "
        f"bars: one standard error over random draws of the training part."
    )
    if report.forecast is not None:
        ahead = report.forecast.points
        x = tuple(float(point.n_train) for point in ahead)
        share = f"{report.forecast.confidence:.0%}"
        own = names.index(MODEL) if MODEL in names else 0  # in the color of the model
        series = [
            Series(
                f"forecast, {share} interval", x, tuple(point.low for point in ahead), "band",
                upper=tuple(point.high for point in ahead), style=own,
            ),
            Series(
                "forecast of this model", x, tuple(point.mean for point in ahead), style=own,
                dashed=True,
            ),
            *series,
        ]  # fmt: skip
        caption += f" To the right: how the curve is forecast to continue, with a {share} band."
    return Chart(
        key="learning_curve",
        title="Learning curve",
        caption=caption,
        x_label=f"training {plural(report.unit)}",
        y_label=LOSS_AXIS,
        series=tuple(series),
        x_log=True,
    )


def _profit(report: LearningReport) -> Chart | None:
    profit = report.profit
    if profit is None:
        return None
    as_savings = all(point.savings is not None for point in profit.points)
    values = tuple(point.savings if as_savings else point.profit for point in profit.points)
    name = "savings" if as_savings else "profit per example"
    return Chart(
        key="profit",
        title="What is gained by acting",
        caption=(
            f"Examples are acted on in order of the expected gain over deciding “{profit.base}” "
            "for all of them. The line should be highest where the model stops."
        ),
        x_label="share of the examples acted on",
        y_label=f"{name}, compared with one decision for all",
        series=(Series(name, tuple(point.share for point in profit.points), values),),
        marks=(
            Mark("expected gains end here", profit.points[profit.chosen].share, "x", 1),
            Mark("best in hindsight", profit.points[profit.best].share, "x", 2),
        ),
    )


def _confusion(report: LearningReport) -> HeatMap | None:
    table = report.confusion
    if table is None:
        return None
    return HeatMap(
        key="confusion",
        title="Where the loss comes from",
        caption=(
            "The stronger the color, the more these mistakes contribute to the mean loss. The "
            f"numbers count {'tokens' if report.unit == 'sequence' else 'examples'}."
        ),
        x_label="true label",
        y_label="prediction",
        value_label="loss",
        x_names=table.true_labels,
        y_names=table.predictions,
        values=table.cost,
        texts=tuple(tuple(str(n) if n else "" for n in row) for row in table.counts),
    )


def _parts(report: LearningReport) -> Chart | None:
    if not report.parts:
        return None
    positions = tuple(float(n) for n in range(len(report.parts)))
    return Chart(
        key="parts",
        title="Errors by label",
        caption="Labels with the most errors first, as shares of the held-out examples.",
        x_label="share of the examples",
        y_label="label",
        series=(
            Series(
                "missed: true, not predicted", tuple(p.missed for p in report.parts), positions,
                "bars",
            ),
            Series(
                "spurious: predicted, not true", tuple(p.spurious for p in report.parts),
                positions, "bars", style=1,
            ),
        ),
        bar_names=tuple(part.name for part in report.parts),
    )  # fmt: skip


def _expected_loss(report: LearningReport) -> Chart | None:
    if not report.bins:
        return None
    x = tuple(part.predicted for part in report.bins)
    y = tuple(part.observed for part in report.bins)
    ends = max(min(x), 0.0), max(max(x), 0.0)  # of the diagonal; no loss is negative
    return Chart(
        key="expected_loss",
        title="Predicted against actual loss",
        caption=(
            f"{plural(report.unit).capitalize()} in groups of similar predicted loss. On the "
            "diagonal the model knows how wrong it is; above it, the model is overconfident. "
            "Bars: one standard error."
        ),
        x_label="expected loss, predicted",
        y_label="mean loss that occurred",
        series=(
            Series("predicted = actual", ends, ends, "diagonal", style=5),
            Series(
                f"groups of {plural(report.unit)}", x, y, "points",
                error=tuple(part.standard_error for part in report.bins),
                texts=tuple(f"{part.n} {plural(report.unit)}" for part in report.bins),
            ),
        ),
    )  # fmt: skip


def _selective(report: LearningReport) -> Chart | None:
    if report.selective is None:
        return None
    points = report.selective.points
    x = tuple(point.coverage for point in points)
    return Chart(
        key="selective",
        title="Risk if only the most certain examples are answered",
        caption=(
            "Mean loss over the examples with the lowest predicted loss. It falls toward the "
            "left if the model knows what it does not know. Band: 95 %, pointwise, by resampling."
        ),
        x_label="share of examples answered",
        y_label=LOSS_AXIS,
        series=(
            Series(
                "95 %", x, tuple(point.low for point in points), "band",
                upper=tuple(point.high for point in points),
            ),
            Series("most certain first", x, tuple(point.risk for point in points)),
        ),
        marks=(Mark("random examples", report.selective.random_area, "y", 5),),
    )  # fmt: skip


# by key, in the order of the questions
CHARTS: dict[str, ReportChart[LearningReport, Chart | HeatMap]] = {
    "scores": ReportChart("metric", _scores),
    "path": ReportChart("choices", _path),
    "bandwidths": ReportChart("choices", _bandwidths),
    "learning_curve": ReportChart("more_data", _learning_curve),
    "profit": ReportChart("profit", _profit),
    "confusion": ReportChart("errors", _confusion),
    "parts": ReportChart("errors", _parts),
    "expected_loss": ReportChart("trust", _expected_loss),
    "selective": ReportChart("trust", _selective),
}
