"""Figures as CSV, PNG and SVG."""

from __future__ import annotations

import csv
import io
import math

import numpy as np

from consistruct.guarantees import Figure

__all__ = ["figure_csv", "figure_picture"]

# red before blue, as in the paper; distinguishable without colour vision and by their dashes
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "x")


def figure_csv(figure: Figure) -> str:
    """One column per curve; an empty field where it has no point.

    >>> from consistruct.guarantees import figure_data
    >>> figure_csv(figure_data("figure_1b")).splitlines()[0]
    'eps,full scores,block scores'
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(figure.columns)
    for row in zip(*(values.tolist() for values in figure.columns.values()), strict=True):
        writer.writerow(["" if math.isnan(value) else repr(value) for value in row])
    return stream.getvalue()


def figure_picture(figure: Figure, kind: str) -> bytes:
    """The figure as ``png`` or ``svg``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(canvas)
    ax = canvas.subplots()
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
    stream = io.BytesIO()
    canvas.savefig(stream, format=kind, dpi=150)
    return stream.getvalue()
