"""Charts as Plotly figures: plain dicts that any Plotly.js draws. Nothing is imported from plotly.

How a page uses them (the HTML report and the explorer do the same):

    figures = calibration_figures(report)      # {"curve": {...}, "classes": {...}, …}, plain JSON
    json.dumps(figures["curve"])               # to the browser

and there, with ``THEME_COLORS`` (light color to dark one) and ``PLOTLY_CONFIG`` as JSON,

    Plotly.react(element, figure.data, figure.layout, config)

after replacing every string of the figure that is a key of ``THEME_COLORS`` by its value if
``matchMedia("(prefers-color-scheme: dark)").matches`` — what `themed` does here. Heading and
caption are ``layout.meta.title`` and ``layout.meta.caption``: plain text for the page to set with
``textContent``, not drawn by Plotly, which would cut long lines on a phone. Two settings side by
side: `comparison_figures`. Every string that Plotly reads as markup is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from consistruct.charts.model import Chart, HeatMap, Mark, Series

__all__ = [
    "PLOTLY_CONFIG",
    "THEME_COLORS",
    "plotly_figure",
    "shortened",
    "themed",
]

# Okabe and Ito's hues, distinguished without color vision, some darkened or lightened until they
# stand out from the page (contrast 3:1); each with a dash and a marker of its own, so that color
# is never the only difference
LIGHT = ("#0072B2", "#D55E00", "#009E73", "#B8628F", "#B07A00", "#595959")
DARK = ("#56B4E9", "#F0803C", "#2BBF94", "#E0A3C3", "#E69F00", "#B4B4B4")
DASHES = ("solid", "dot", "dash", "dashdot", "longdash", "5px,3px")
MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "x")
TEXT, GRID, SURFACE = "#1b1f23", "#dfe3e8", "#ffffff"
CLEAR = "rgba(0,0,0,0)"
PANEL, DARK_PANEL = "#f5f7f9", "#1f242a"  # the ground of figures in a page
DARK_TEXT, DARK_GRID, DARK_SURFACE = "#e6e9ec", "#3a4048", "#16191d"

PLOTLY_CONFIG: dict[str, Any] = {
    "responsive": True,
    "displaylogo": False,
    "displayModeBar": True,  # fingers do not hover
    "toImageButtonOptions": {"filename": "consistruct", "scale": 2},
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
    # nothing of a report goes to another server
    "showSendToCloud": False,
    "showEditInChartStudio": False,
}


def _faded(color: str, opacity: float) -> str:
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


THEME_COLORS: dict[str, str] = {
    **dict(zip(LIGHT, DARK, strict=True)),
    **{_faded(a, 0.25): _faded(b, 0.3) for a, b in zip(LIGHT, DARK, strict=True)},
    TEXT: DARK_TEXT,
    GRID: DARK_GRID,
    SURFACE: DARK_SURFACE,
    PANEL: DARK_PANEL,
}


def themed(figure: Mapping[str, Any], theme: Literal["light", "dark"]) -> dict[str, Any]:
    """The figure with the colors of a theme."""
    if theme not in ("light", "dark"):
        raise ValueError(f"theme must be 'light' or 'dark', got {theme!r}")
    found: dict[str, Any] = _recolored(figure) if theme == "dark" else dict(figure)
    return found


def _recolored(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _recolored(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_recolored(entry) for entry in value]
    return THEME_COLORS.get(value, value) if isinstance(value, str) else value


def plotly_figure(chart: Chart | HeatMap) -> dict[str, Any]:
    """``{"data": […], "layout": {…}}`` of one chart, in the light theme."""
    if isinstance(chart, HeatMap):
        return _heat_map(chart)
    data = [trace for series in chart.series for trace in _traces(series, chart)]
    layout = _layout(chart)
    for number, mark in enumerate(chart.marks):
        layout["shapes"] = [*layout.get("shapes", []), _shape(mark)]
        data.append(_legend_of(mark, number))
    return {"data": data, "layout": layout}


# --- traces ---


def _traces(series: Series, chart: Chart) -> list[dict[str, Any]]:
    color = LIGHT[series.style % len(LIGHT)]
    name = escaped(series.name)
    if series.kind == "band":
        return _band(series, color, name)
    trace: dict[str, Any] = {"name": name, "x": list(series.x), "y": list(series.y)}
    if series.kind == "bars":
        trace |= {"type": "bar", "orientation": "h", "marker": {"color": color}}
        trace |= {"showlegend": len(chart.series) > 1, "hovertemplate": "%{x:.4g}<extra></extra>"}
        if series.error is not None:
            trace["error_x"] = _error(series)
    else:
        trace |= _scatter(series, color)
    if series.texts is not None:
        trace["text"] = [escaped(text) for text in series.texts]
        numbers = "%{x:.4g}" if series.kind == "bars" else "%{x:.4g}, %{y:.6g}"
        trace["hovertemplate"] = numbers + "<br>%{text}<extra></extra>"
    return [trace]


def _scatter(series: Series, color: str) -> dict[str, Any]:
    style = series.style % len(LIGHT)
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers" if series.kind == "points" else "lines",
        "line": {"color": color, "width": 2.5, "dash": DASHES[style]},
        "marker": {"color": color, "symbol": MARKERS[style], "size": 8},
        "hovertemplate": "%{x:.4g}, %{y:.6g}<extra></extra>",
    }
    if series.kind == "diagonal":
        trace["line"] = {"color": color, "width": 1.2, "dash": "dot"}
        trace["hoverinfo"] = "skip"
        del trace["hovertemplate"]
    elif series.dashed:
        trace["line"]["dash"] = "dash"
    elif series.kind == "line" and (series.error is not None or len(series.x) < 16):
        trace["mode"] = "lines+markers"
    if series.error is not None:
        trace["error_y"] = _error(series)
    return trace


def _error(series: Series) -> dict[str, Any]:
    assert series.error is not None
    return {"type": "data", "array": list(series.error), "color": TEXT, "thickness": 1.2}


def _band(series: Series, color: str, name: str) -> list[dict[str, Any]]:
    """Two lines without width and the area between them, over the part where both exist."""
    assert series.upper is not None
    kept = [
        (x, low, high)
        for x, low, high in zip(series.x, series.y, series.upper, strict=True)
        if low is not None and high is not None
    ]
    common = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    xs = [x for x, _, _ in kept]
    return [
        {**common, "name": name, "x": xs, "y": [low for _, low, _ in kept], "showlegend": False},
        {
            **common,
            "name": name,
            "x": xs,
            "y": [high for _, _, high in kept],
            "fill": "tonexty",
            "fillcolor": _faded(color, 0.25),
        },
    ]


def _shape(mark: Mark) -> dict[str, Any]:
    other = "y" if mark.axis == "x" else "x"
    style = mark.style % len(LIGHT)
    return {
        "type": "line",
        f"{mark.axis}0": mark.value,
        f"{mark.axis}1": mark.value,
        f"{other}0": 0,
        f"{other}1": 1,
        f"{other}ref": "paper",
        f"{mark.axis}ref": mark.axis,
        "line": {"color": LIGHT[style], "width": 1.5, "dash": DASHES[style]},
        "layer": "below",
    }


def _legend_of(mark: Mark, number: int) -> dict[str, Any]:
    """An empty line: shapes have no place in the legend."""
    style = mark.style % len(LIGHT)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [None],
        "y": [None],
        "name": escaped(f"{mark.name}: {mark.value:.4g}"),
        "line": {"color": LIGHT[style], "width": 1.5, "dash": DASHES[style]},
        "hoverinfo": "skip",
        "legendrank": 2000 + number,
    }


# --- layout ---


def _layout(chart: Chart | HeatMap) -> dict[str, Any]:
    layout: dict[str, Any] = {
        "meta": {"title": chart.title, "caption": chart.caption},
        "paper_bgcolor": PANEL,  # a saved picture needs a ground of its own
        "plot_bgcolor": CLEAR,
        "font": {"color": TEXT, "family": "system-ui, sans-serif", "size": 13},
        # axes claim what they need themselves; the bar with the buttons has the top to itself
        "margin": {"l": 8, "r": 12, "t": 44, "b": 8},
        "modebar": {"bgcolor": CLEAR, "color": LIGHT[5], "activecolor": LIGHT[0]},
        # at the foot: placed by the height of the plot, margins would chase each other
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "bgcolor": CLEAR,
        },
        "hoverlabel": {"bgcolor": SURFACE, "bordercolor": GRID, "font": {"color": TEXT}},
        "height": 460,
        "xaxis": _axis(chart.x_label),
        "yaxis": _axis(chart.y_label),
    }
    if isinstance(chart, HeatMap):
        return layout
    layout["xaxis"]["type"] = "log" if chart.x_log else "linear"
    layout["yaxis"]["type"] = "log" if chart.y_log else "linear"
    for axis in ("xaxis", "yaxis"):
        if layout[axis]["type"] == "log":
            layout[axis] |= _log_ticks(chart, axis)
    if chart.bar_names is not None:
        layout["yaxis"] |= _named(chart.bar_names) | {"autorange": "reversed"}
        layout["xaxis"]["rangemode"] = "tozero"
        layout["height"] = 150 + 34 * len(chart.bar_names)
    elif not chart.y_log:
        zero = chart.from_zero and _positive(chart)
        layout["yaxis"]["rangemode"] = "tozero" if zero else "normal"
    if chart.y_range is not None:
        ends = [math.log10(end) for end in chart.y_range] if chart.y_log else list(chart.y_range)
        layout["yaxis"] |= {"range": ends, "autorange": False}
    return layout


def _axis(label: str) -> dict[str, Any]:
    return {
        "title": {"text": escaped(label), "standoff": 10},
        "automargin": True,
        "gridcolor": GRID,
        "linecolor": TEXT,
        "zerolinecolor": GRID,
        "ticks": "outside",
        "tickcolor": GRID,
    }


def _named(names: Sequence[str], length: int = 28) -> dict[str, Any]:
    """Names as tick texts at whole numbers: two equal names stay two rows."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": [escaped(shortened(name, length)) for name in names],
        "showgrid": False,
        "zeroline": False,
    }


def _log_ticks(chart: Chart, axis: str) -> dict[str, Any]:
    """Powers of ten over several decades, else 1, 2, 5, 10 … written in full."""
    values = [
        value
        for series in chart.series
        for value in (series.x if axis == "xaxis" else series.y)
        if value is not None and value > 0
    ]
    if axis == "yaxis" and chart.y_range is not None:
        values = list(chart.y_range)
    if not values:
        return {}
    decades = math.log10(max(values)) - math.log10(min(values))
    if decades >= 2:
        return {"dtick": math.ceil(decades / 8), "exponentformat": "power"}
    first = math.floor(math.log10(min(values)))
    ticks = [
        factor * 10.0**power for power in range(first, first + 4) for factor in (1, 2, 3, 5, 7)
    ]
    kept = [tick for tick in ticks if 0.99 * min(values) <= tick <= 1.01 * max(values)]
    return {"tickmode": "array", "tickvals": kept, "ticktext": [f"{tick:g}" for tick in kept]}


def _positive(chart: Chart) -> bool:
    values = [v for series in chart.series for v in series.y if v is not None]
    return bool(values) and min(values) >= 0


def _heat_map(chart: HeatMap) -> dict[str, Any]:
    layout = _layout(chart)
    long = max(len(name) for name in chart.x_names) > 3
    layout["xaxis"] |= _named(chart.x_names, 18) | {"tickangle": -45 if long else 0, "ticks": ""}
    layout["yaxis"] |= _named(chart.y_names, 18) | {"autorange": "reversed", "ticks": ""}
    layout["height"] = 300 + 30 * max(len(chart.y_names), 6)
    trace = {
        "type": "heatmap",
        "z": [list(row) for row in chart.values],
        "text": [[escaped(text) for text in row] for row in chart.texts],
        "texttemplate": "%{text}",
        # one hue from the page's ground to blue: light and dark differ by lightness alone
        "colorscale": [[0, SURFACE], [1, LIGHT[0]]],
        "zmin": 0,
        "xgap": 1,
        "ygap": 1,
        "colorbar": {"title": {"text": escaped(chart.value_label), "side": "right"}},
        "hovertemplate": "%{z:.4g}<extra></extra>",
    }
    return {"data": [trace], "layout": layout}


def escaped(text: str) -> str:
    """Text as Plotly shows it: it reads a subset of HTML, in which names are plain text.

    >>> escaped('<a href="x">R&D</a>')
    '&lt;a href="x"&gt;R&amp;D&lt;/a&gt;'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shortened(name: str, length: int = 28) -> str:
    """A name that fits: long ones are cut in the middle, since their ends often tell them apart.

    >>> shortened("customer service, written complaints, second level", 24)
    'customer service…d level'
    """
    if len(name) <= length:
        return name
    end = (length - 1) // 3
    return f"{name[: length - 1 - end]}…{name[len(name) - end :]}"
