"""Figures as CSV, PNG and SVG."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import numpy as np

from consistruct._csv import csv_text
from consistruct.guarantees import Figure, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["figure_csv", "figure_picture"]

# red before blue, as in the paper; distinguishable without colour vision and by dashes or markers
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "x")
LINE_STYLES = {"measured": "-", "bound": "--", "points": ""}
PANEL_SIZE = (3.3, 2.9)  # inches


def figure_csv(figure: Figure) -> str:
    """One column per curve; an empty field where it has no point.

    >>> from consistruct.guarantees import figure_data
    >>> figure_csv(figure_data("figure_1b")).splitlines()[0]
    'eps,full scores,block scores'
    """
    rows = zip(*(values.tolist() for values in figure.columns.values()), strict=True)
    points = ([None if math.isnan(value) else value for value in row] for row in rows)
    return csv_text(list(figure.columns), points)


def figure_picture(figure: Figure, kind: str) -> bytes:
    """The figure as ``png`` or ``svg``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    width, height = PANEL_SIZE
    size = (6.4, 4.2)
    if figure.panels:
        size = (width * len(figure.panels[0]) + 0.4, height * len(figure.panels) + 0.8)
    canvas = Canvas(figsize=size, layout="constrained")
    FigureCanvasAgg(canvas)
    if figure.panels:
        _draw_panels(canvas, figure)
    else:
        _draw_columns(canvas.subplots(), figure)
    stream = io.BytesIO()
    canvas.savefig(stream, format=kind, dpi=150)
    return stream.getvalue()


def _draw_columns(ax: Axes, figure: Figure) -> None:
    """All columns over the first one."""
    (_, x), *curves = figure.columns.items()
    for number, (name, y) in enumerate(curves):
        seen = np.isfinite(y)
        style = number % len(COLOURS)
        ax.plot(
            x[seen],
            y[seen],
            label=name,
            color=COLOURS[style],
            ls=DASHES[style],
            marker=MARKERS[style] if figure.marks else "",
            lw=1.8,
        )
    ax.set_title(figure.title)
    ax.set_xlabel(figure.x_label)
    ax.set_ylabel(figure.y_label)
    if not figure.marks:
        ax.set_xlim(0, float(x[-1]))
    if figure.marks:  # levels fall to zero on the right
        ax.legend(frameon=False, loc="upper right")
    elif len(curves) > 2:  # no corner is free
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        ax.legend(frameon=False, loc="upper left")


def _draw_panels(canvas: Canvas, figure: Figure) -> None:
    """Rows of panels with one legend for all."""
    canvas.suptitle(figure.title)
    axes = canvas.subplots(
        len(figure.panels), len(figure.panels[0]), squeeze=False, sharey="row", sharex="col"
    )
    for row, panels in zip(axes, figure.panels, strict=True):
        for number, (ax, panel) in enumerate(zip(row, panels, strict=True)):
            _draw_panel(ax, panel, figure)
            if number == 0:
                ax.set_ylabel(panel.y_label)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    canvas.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 5), frameon=False
    )


def _draw_panel(ax: Axes, panel: Panel, figure: Figure) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    x = figure.columns[panel.x]
    for line in panel.lines:
        y = figure.columns[line.column]
        seen = np.isfinite(y) & (y > 0)  # a risk of exactly 0 has no logarithm
        style = line.colour % len(COLOURS)
        ax.plot(
            x[seen],
            y[seen],
            label=line.label,
            color=COLOURS[style],
            ls=LINE_STYLES[line.style],
            marker="" if line.style == "bound" else MARKERS[style],
            ms=4,
            lw=1.5,
            alpha=0.7 if line.style == "points" else 1.0,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    if x.max() < 100 * x.min():  # powers of ten alone would leave one label or none
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_title(panel.title, fontsize="medium")
    ax.set_xlabel(panel.x_label)
