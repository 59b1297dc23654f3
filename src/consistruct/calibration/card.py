"""What a notebook shows of a calibration function: what is known, and a small plot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from consistruct._html import Line, card, lines_svg, list_of_facts
from consistruct._members import describe_count
from consistruct.calibration.curve import CurvePoint
from consistruct.calibration.proofs.base import short_text
from consistruct.exceptions import ConsistructError

if TYPE_CHECKING:
    from consistruct.calibration.curve import CalibrationFunction

__all__ = ["calibration_card"]

POINTS = 41  # of a formula
EIGHTHS = (8, 4, 2, 6, 1, 3, 5, 7)  # of max_eps, in the order in which they are worth most
SECONDS = 1.0  # after which no further value is computed
FEW_LABELS = 64  # more are not computed for a display


def calibration_card(curve: CalibrationFunction) -> str:
    """Loss, scores, level, and H over ε, as far as it is known or quickly computed."""
    points = _points(curve)
    facts = [
        ("loss", repr(curve.loss)),
        ("scores", repr(curve.scores)),
        ("surrogate", f"{curve.surrogate}, {curve.decoding} decoding"),
        ("consistent", _level(curve)),
        ("largest excess risk", short_text(curve.max_eps)),
        ("method", curve.method),
    ]
    if not points:
        n = describe_count(curve.loss.n_labels)
        facts.append(
            ("plot", f"none yet: call H(eps) to compute values, which takes time for {n} labels")
        )
    x = [0.0, *(point.eps for point in points)]
    low = [0.0, *(point.lower for point in points)]
    high = [0.0, *(min(point.upper, 4 * max(low)) for point in points)]
    lines = [Line(x, low, high), Line(x, low)] if high != low else [Line(x, low)]
    picture = lines_svg(lines, "ε, excess task risk", "H(ε)", description="H over ε")
    return card("Calibration function H", list_of_facts(facts), picture)


def _level(curve: CalibrationFunction) -> str:
    try:
        level = curve.consistency_interval[1]
    except ConsistructError as error:
        return str(error)
    if np.isnan(level):
        return "not known"
    return "yes" if level == 0 else f"only up to level {short_text(level)}"


def _points(curve: CalibrationFunction) -> list[CurvePoint]:
    """Values of H by growing ε: of a formula, computed before, or in a second."""
    if curve.method.startswith("closed form"):
        return curve.curve(np.linspace(0.0, curve.max_eps, POINTS)[1:])
    n = curve.loss.n_labels
    if n is not None and n <= FEW_LABELS:
        started = time.monotonic()
        for part in EIGHTHS:
            curve.curve(curve.max_eps * part / 8)
            if time.monotonic() - started > SECONDS:
                break
    return [point for _, point in sorted(curve.computed.items())]
