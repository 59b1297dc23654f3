"""A figure as data: columns of numbers, and how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass

from consistruct.protocols import FloatArray

__all__ = ["Figure", "Line", "Panel"]


@dataclass(frozen=True)
class Line:
    """One column in a panel.

    Attributes
    ----------
    colour : int
        Number of the colour and of the marker: lines that belong together share it.
    style : str
        "measured" (line and markers), "bound" (dashed) or "points" (markers).
    """

    column: str
    label: str
    colour: int
    style: str = "measured"


@dataclass(frozen=True)
class Panel:
    """One pair of logarithmic axes; panels in a row of the figure share their y axis label."""

    title: str
    x: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, eq=False)
class Figure:
    """Columns of numbers, one row per point, and how to draw them.

    Attributes
    ----------
    columns : dict of name to array
        The first one is the x axis; NaN where a curve has no point.
    marks : bool
        Whether points are marked (few of them) or joined to a curve.
    panels : tuple of tuples of Panel
        Rows of panels; without them all columns are drawn over the first one.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    columns: dict[str, FloatArray]
    marks: bool = False
    panels: tuple[tuple[Panel, ...], ...] = ()
