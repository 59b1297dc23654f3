"""Figures of the paper and of simulations: as CSV, and drawn through the chart model."""

from __future__ import annotations

import math

from consistruct._plain_data import csv_text
from consistruct.charts.model import Chart, Numbers, Series
from consistruct.charts.pictures import chart_picture, grid_picture
from consistruct.guarantees import Figure, Line, Panel
from consistruct.protocols import FloatArray

__all__ = ["figure_charts", "figure_csv", "figure_picture"]

STYLES = (1, 0, 2, 3, 4, 5)  # red before blue, as in the paper


def figure_csv(figure: Figure) -> str:
    """One column per curve; an empty field where it has no point.

    >>> from consistruct.guarantees import figure_data
    >>> figure_csv(figure_data("figure_1b")).splitlines()[0]
    'eps,full scores,block scores'
    """
    rows = zip(*(values.tolist() for values in figure.columns.values()), strict=True)
    points = ([None if math.isnan(value) else value for value in row] for row in rows)
    return csv_text(list(figure.columns), points)


def figure_charts(figure: Figure) -> tuple[tuple[Chart, ...], ...]:
    """Rows of charts: the figure's panels, or all columns over the first one in a single chart."""
    if figure.panels:
        return tuple(
            tuple(_panel(panel, figure, f"{figure.name}_{row}_{column}") for column, panel in pairs)
            for row, pairs in enumerate(map(enumerate, figure.panels))
        )
    (_, x), *curves = figure.columns.items()
    series = tuple(
        Series(name, _numbers(x), _numbers(y), style=STYLES[number % len(STYLES)])
        for number, (name, y) in enumerate(curves)
    )
    labels = figure.x_label, figure.y_label
    return ((Chart(figure.name, figure.title, "", *labels, series),),)


def figure_picture(figure: Figure, kind: str) -> bytes:
    """The figure as ``png`` or ``svg``."""
    charts = figure_charts(figure)
    if figure.panels:
        return grid_picture(charts, kind, figure.title)
    return chart_picture(charts[0], kind)


def _panel(panel: Panel, figure: Figure, key: str) -> Chart:
    x = _numbers(figure.columns[panel.x])
    series = tuple(_line(line, x, figure.columns[line.column]) for line in panel.lines)
    labels = panel.x_label, panel.y_label
    return Chart(key, panel.title, "", *labels, series, x_log=True, y_log=True)


def _line(line: Line, x: Numbers, y: FloatArray) -> Series:
    # a risk of exactly 0 has no logarithm
    positive = tuple(value if value is not None and value > 0 else None for value in _numbers(y))
    style = STYLES[line.colour % len(STYLES)]
    if line.style == "points":
        return Series(line.label, x, positive, "points", style=style)
    return Series(line.label, x, positive, style=style, dashed=line.style == "bound")


def _numbers(values: FloatArray) -> Numbers:
    return tuple(float(value) if math.isfinite(value) else None for value in values)
