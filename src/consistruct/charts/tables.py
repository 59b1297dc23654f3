"""The numbers of a chart as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from consistruct._plain_data import csv_text
from consistruct.charts.model import Chart, HeatMap

__all__ = ["chart_csv"]


def chart_csv(chart: Chart | HeatMap) -> str:
    """One row per value that the chart shows.

    >>> from consistruct.charts.model import Series
    >>> print(chart_csv(Chart("k", "t", "c", "n", "loss", (Series("ours", (8.0,), (0.5,)),))))
    series,n,loss,upper,standard_error,name
    ours,8.0,0.5,,,
    <BLANKLINE>
    """
    if isinstance(chart, HeatMap):
        rows: Iterable[Sequence[Any]] = (
            (y_name, x_name, value)
            for y_name, values in zip(chart.y_names, chart.values, strict=True)
            for x_name, value in zip(chart.x_names, values, strict=True)
        )
        return csv_text([chart.y_label, chart.x_label, chart.value_label], rows)
    names = chart.bar_names
    rows = (
        (
            series.name,
            x,
            y,
            None if series.upper is None else series.upper[n],
            None if series.error is None else series.error[n],
            None if names is None or y is None else names[int(y)],
        )
        for series in chart.series
        for n, (x, y) in enumerate(zip(series.x, series.y, strict=True))
    )
    header = ["series", chart.x_label, chart.y_label, "upper", "standard_error", "name"]
    return csv_text(header, rows)
