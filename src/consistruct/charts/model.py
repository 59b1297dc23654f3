"""Charts as data: one description that Plotly, matplotlib and CSV all draw from.

A chart holds what is drawn and nothing about how, so the picture in a report, the interactive
figure and the table of numbers cannot tell different stories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Chart", "HeatMap", "Mark", "Series"]

Numbers = tuple[float | None, ...]  # None: no value there, a gap in the line


@dataclass(frozen=True)
class Series:
    """Numbers under one name in the legend.

    Attributes
    ----------
    kind : str
        "line", "band" (between `y` and `upper`), "bars", "points" or "diagonal" (a guide line).
    upper : tuple or None
        Upper edge of a band.
    error : tuple or None
        One standard error on either side of `y`.
    texts : tuple of str or None
        What a pointer over each value shows besides the numbers.
    style : int
        Number of the color, dash and marker that belong together.
    dashed : bool
        A dashed line without markers: a bound, in the color of what it bounds.
    """

    name: str
    x: Numbers
    y: Numbers
    kind: Literal["line", "band", "bars", "points", "diagonal"] = "line"
    upper: Numbers | None = None
    error: Numbers | None = None
    texts: tuple[str, ...] | None = None
    style: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Mark:
    """A straight line across the chart at one value of an axis."""

    name: str
    value: float
    axis: Literal["x", "y"]
    style: int


@dataclass(frozen=True)
class Chart:
    """Curves or bars over one pair of axes.

    Attributes
    ----------
    key : str
        Short name: of the CSV, and of the figure in a page.
    x_label, y_label : str
        With the unit, or what the number is a share of.
    bar_names : tuple of str or None
        Names of the positions 0, 1, … of a bar chart, which is drawn with horizontal bars.
    y_range : (low, high) or None
        What the y axis shows, where its numbers hardly differ; chosen by the renderer if None.
    from_zero : bool
        Whether a linear y axis of non-negative numbers starts at 0.
    caption : str
        One or two sentences: what to see, and how to read it.
    """

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    x_log: bool = False
    y_log: bool = False
    bar_names: tuple[str, ...] | None = None
    y_range: tuple[float, float] | None = None
    from_zero: bool = True


@dataclass(frozen=True)
class HeatMap:
    """A table of numbers as colors: `values` has one row per `y_names`."""

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    value_label: str
    x_names: tuple[str, ...]
    y_names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    texts: tuple[tuple[str, ...], ...]
