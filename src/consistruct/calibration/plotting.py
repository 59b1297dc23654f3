"""One axis with the certified curve; imports matplotlib when called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from consistruct.calibration.curve import CalibrationFunction

__all__ = ["draw"]

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#6b6b6b"  # distinguishable without colour vision


def draw(curve: CalibrationFunction, ax: Axes | None, n_grid: int) -> Axes:
    """H with its band, the bound of Theorem 7, the convex envelope and the consistency level."""
    from matplotlib import pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    eps = np.linspace(0.0, curve.max_eps, n_grid)
    points = curve.curve(eps)
    log_scale = points[-1].log_scale
    scaled = log_scale < -30  # H itself would not fit an axis: show H·k
    lower = np.array([p.scaled_lower if scaled else p.lower for p in points])
    upper = np.array([p.scaled_upper if scaled else p.upper for p in points])
    finite = np.isfinite(upper)
    ax.fill_between(eps[finite], lower[finite], upper[finite], color=BLUE, alpha=0.25, lw=0)
    ax.plot(eps, lower, color=BLUE, lw=2, label="H(ε), certified")
    if not scaled:
        ax.plot(eps, curve.envelope()(eps), color=GREY, lw=1.2, ls="--", label="convex envelope")
        if curve.effective_classes:
            bound = eps**2 / (4 * curve.effective_classes)
            ax.plot(eps, bound, color=ORANGE, lw=1.2, ls=":", label="Theorem 7: ε²/4k_eff")
    if curve.consistency_level > 0:
        ax.axvline(curve.consistency_level, color=ORANGE, lw=1, label="consistency level")
    ax.set_xlabel("ε, excess task risk")
    ax.set_ylabel("H(ε) · k" if scaled else "H(ε), excess surrogate risk")
    ax.set_xlim(0, curve.max_eps)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, loc="upper left")
    return ax
