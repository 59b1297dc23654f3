"""The certified curve as a chart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from consistruct.charts.model import Chart, Mark, Numbers, Series

if TYPE_CHECKING:
    from consistruct.calibration.curve import CalibrationFunction

__all__ = ["curve_chart", "finite_numbers"]

TINY = -30  # log: H itself would not fit an axis, H·k is shown


def finite_numbers(values: Iterable[float]) -> Numbers:
    """Numbers of a chart: a gap where a value is infinite or not known."""
    return tuple(float(value) if math.isfinite(value) else None for value in values)


def curve_chart(curve: CalibrationFunction, n_grid: int) -> Chart:
    """H with its band, the bound of Theorem 7, the convex envelope and the consistency level."""
    eps = np.linspace(0.0, curve.max_eps, n_grid)
    points = curve.curve(eps)
    scaled = points[-1].log_scale < TINY
    x = finite_numbers(eps)
    lower = finite_numbers(p.scaled_lower if scaled else p.lower for p in points)
    upper = finite_numbers(p.scaled_upper if scaled else p.upper for p in points)
    series = [
        Series("certified band", x, lower, "band", upper=upper),
        Series("H(ε), certified", x, lower),
    ]
    if not scaled:
        envelope = finite_numbers(curve.envelope()(eps))
        series.append(Series("convex envelope", x, envelope, style=5))
        if curve.effective_classes:
            bound = finite_numbers(eps**2 / (4 * curve.effective_classes))
            series.append(Series("Theorem 7: ε²/4k_eff", x, bound, style=1))
    level = curve.consistency_level
    return Chart(
        key="curve",
        title="Calibration function",
        caption="",
        x_label="ε, excess task risk",
        y_label="H(ε) · k" if scaled else "H(ε), excess surrogate risk",
        series=tuple(series),
        marks=() if level <= 0 else (Mark("consistency level", level, "x", 1),),
    )
