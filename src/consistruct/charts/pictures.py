"""Charts as PNG, SVG or PDF, drawn by matplotlib."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct.charts.model import Chart, HeatMap, Numbers, Series
from consistruct.charts.plotly_figures import LIGHT, shortened
from consistruct.exceptions import ConsistructError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["KINDS", "chart_picture", "draw_chart", "picture_kind"]

KINDS = ("png", "svg", "pdf")
DASHES: tuple[Any, ...] = ("-", ":", "--", "-.", (0, (6, 2)), (0, (3, 2)))
MARKERS = ("o", "s", "^", "D", "v", "x")
PANEL, SMALL_PANEL = (6.4, 4.6), (3.3, 2.9)  # inches
PLAIN: dict[str, Any] = {"parse_math": False}  # a dollar sign in a name starts no formula


def picture_kind(path: str) -> str:
    """The kind of picture that a file name requests, which can be drawn here.

    >>> picture_kind("curve.PNG")
    'png'
    """
    kind = path.rpartition(".")[2].lower()
    if kind not in KINDS:
        raise ConsistructError(f"--plot writes .png, .svg or .pdf files, got {path!r}")
    _matplotlib()  # before the work, not after it
    return kind


def _matplotlib() -> tuple[Any, Any, Any]:
    """Matplotlib, its figure and its canvas; settings of the user's can keep it from starting."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ValueError as error:
        reason = str(error).partition(";")[0]
        raise ConsistructError(
            f"matplotlib does not start: {reason}; correct MPLBACKEND or the file matplotlibrc"
        ) from None
    return mpl, Figure, FigureCanvasAgg


def chart_picture(charts: Chart | HeatMap | Sequence[Chart | HeatMap], kind: str) -> bytes:
    """One chart, or several side by side, as ``png``, ``svg`` or ``pdf``."""
    mpl, Figure, FigureCanvasAgg = _matplotlib()
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    panels = [charts] if isinstance(charts, Chart | HeatMap) else list(charts)
    columns = 1 if len(panels) == 1 else 2
    rows = math.ceil(len(panels) / columns)
    with mpl.rc_context({"svg.fonttype": "none", "font.size": 10}):  # words stay words in SVG
        figure = Figure(figsize=(PANEL[0] * columns, PANEL[1] * rows), layout="constrained")
        FigureCanvasAgg(figure)
        # a figure for each: long names in one panel take no room from another
        for panel, chart in zip(
            figure.subfigures(rows, columns, squeeze=False).ravel(), panels, strict=False
        ):
            ax = panel.subplots()
            if isinstance(chart, HeatMap):
                _draw_heat_map(ax, chart)
            else:
                _draw(ax, chart)
                _add_legend(panel, ax)
            panel.suptitle(chart.title, x=0.01, ha="left", fontsize=11, fontweight="bold", **PLAIN)
        stream = io.BytesIO()
        # no date: the same report gives the same bytes
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
        figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
    return stream.getvalue()


def draw_chart(chart: Chart, ax: Axes | None = None) -> Axes:
    """The chart on an axis of the caller, or on a new one of pyplot; with its legend inside."""
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    _draw(ax, chart)
    ax.legend(frameon=False, loc="upper left")
    return ax


def _draw(ax: Axes, chart: Chart) -> None:
    bars = [series for series in chart.series if series.kind == "bars"]
    for series in chart.series:
        if series.kind == "bars":  # beside each other where there are several
            height = 0.7 / len(bars)
            _draw_bars(ax, series, height, (bars.index(series) - (len(bars) - 1) / 2) * height)
        else:
            _draw_series(ax, series)
    for mark in chart.marks:
        style = mark.style % len(LIGHT)
        line = ax.axvline if mark.axis == "x" else ax.axhline
        line(
            mark.value,
            color=LIGHT[style],
            ls=DASHES[style],
            lw=1.2,
            zorder=0.5,
            label=f"{mark.name}: {mark.value:.4g}",
        )
    if chart.x_log:
        ax.set_xscale("log")
        if not _spans_decade(chart, "x"):
            _plain_ticks(ax.xaxis)
    if chart.y_log:
        ax.set_yscale("log")
        if not _spans_decade(chart, "y"):
            _plain_ticks(ax.yaxis)
    if chart.bar_names is not None:
        names = [shortened(name) for name in chart.bar_names]
        ax.set_yticks(range(len(names)), names, **PLAIN)
        ax.set_ylim(max(len(names), 4) - 0.4, -0.6)  # the first on top, bars no broader than that
        ax.grid(axis="x", color="#dfe3e8")
        ax.set_xlim(left=0)
    else:
        ax.grid(color="#dfe3e8", lw=0.6)
        if chart.from_zero and not chart.y_log and _lowest(chart) >= 0:
            ax.set_ylim(bottom=0)
    ax.set_axisbelow(True)
    if chart.y_range is not None:
        ax.set_ylim(chart.y_range)
    ax.set_xlabel(chart.x_label, **PLAIN)
    ax.set_ylabel(chart.y_label, **PLAIN)
    ax.spines[["top", "right"]].set_visible(False)


def _add_legend(panel: Any, ax: Axes) -> None:
    """Below the axes: no corner is free in general."""
    handles, labels = ax.get_legend_handles_labels()
    if len(handles) > 1:
        legend = panel.legend(
            handles, labels, frameon=False, loc="outside lower left", ncols=2, fontsize=8.5
        )
        for text in legend.get_texts():
            text.set_parse_math(False)


def _draw_bars(ax: Axes, series: Series, height: float, shift: float) -> None:
    error = None if series.error is None else np.nan_to_num(_array(series.error))
    color = LIGHT[series.style % len(LIGHT)]
    positions = _array(series.y) + shift
    ax.barh(
        positions, _array(series.x), xerr=error, color=color, height=height, label=series.name,
        error_kw={"lw": 1, "capsize": 2},
    )  # fmt: skip


def _draw_series(ax: Axes, series: Series) -> None:
    style = series.style % len(LIGHT)
    color = LIGHT[style]
    x, y = _array(series.x), _array(series.y)
    error = None if series.error is None else np.nan_to_num(_array(series.error))
    if series.kind == "band":
        assert series.upper is not None
        upper = _array(series.upper)
        kept = np.isfinite(y) & np.isfinite(upper)
        ax.fill_between(
            x[kept], y[kept], upper[kept], color=color, alpha=0.25, lw=0, label=series.name
        )
    elif series.kind == "diagonal":
        ax.plot(x, y, color=color, lw=1, ls=":", label=series.name)
    else:
        line = series.kind == "line"
        marked = not series.dashed and (not line or error is not None or len(x) < 16)
        marker = MARKERS[style] if marked else ""
        dash = "--" if series.dashed else DASHES[style]
        options: dict[str, Any] = {
            "color": color,
            "ls": dash if line else "",
            "marker": marker,
            "ms": 5,
            "lw": 1.8,
            "label": series.name,
        }
        if error is None:
            ax.plot(x, y, **options)
        else:
            ax.errorbar(x, y, yerr=error, capsize=2, **options)


def _draw_heat_map(ax: Axes, chart: HeatMap) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("blues", ["#ffffff", LIGHT[0]])
    values = np.array(chart.values)
    top = float(values.max(initial=0.0)) or 1.0
    image = ax.imshow(values, cmap=colors, vmin=0, vmax=top, aspect="auto")
    rotation = 45 if max(len(name) for name in chart.x_names) > 2 else 0
    names = [shortened(name) for name in chart.x_names]
    side = "right" if rotation else "center"
    ax.set_xticks(range(len(names)), names, rotation=rotation, ha=side, **PLAIN)
    ax.set_yticks(range(len(chart.y_names)), [shortened(n) for n in chart.y_names], **PLAIN)
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if value > 0.6 * top else "#1b1f23"
        text = chart.texts[row][column]
        ax.text(column, row, text, ha="center", va="center", color=ink, fontsize=8, **PLAIN)
    ax.set_xlabel(chart.x_label, **PLAIN)
    ax.set_ylabel(chart.y_label, **PLAIN)
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.colorbar(image, ax=ax, label=chart.value_label)


def _array(values: Numbers) -> Any:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _column(chart: Chart, axis: str) -> Any:
    parts = [_array(series.x if axis == "x" else series.y) for series in chart.series]
    values = np.concatenate(parts)
    return values[np.isfinite(values)]


def _lowest(chart: Chart) -> float:
    return float(_column(chart, "y").min(initial=math.inf))


def _spans_decade(chart: Chart, axis: str) -> bool:
    values = _column(chart, axis)
    values = values[values > 0]
    return bool(len(values)) and float(values.max()) >= 100 * float(values.min())


def _plain_ticks(axis: Any) -> None:
    """Less than two decades: numbers such as 0.05 and 0.2 instead of one lonely power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())
