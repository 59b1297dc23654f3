"""Shapes of drawn labels as SVG text, in the color of their surroundings."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["arc", "box", "line", "svg", "text"]

ACCENT = "#1b87c9"  # readable on white and on black, as in notebooks' cards


def svg(width: float, height: float, shapes: Sequence[str]) -> str:
    """Return a picture of the given size (pixels)."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="system-ui,sans-serif" '
        f'font-size="14" fill="currentColor" stroke="none">{"".join(shapes)}</svg>'
    )


def text(x: float, y: float, words: object, size: int = 14) -> str:
    """Return words centered at x, on the line y."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="{size}">'
        f"{escape(str(words))}</text>"
    )


def line(x: float, y: float, x_end: float, y_end: float) -> str:
    """Return a straight line."""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x_end:.1f}" y2="{y_end:.1f}" '
        'stroke="currentColor" stroke-opacity="0.6"/>'
    )


def box(x: float, y: float, width: float, height: float) -> str:
    """Return the frame of a rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5" '
        f'fill="none" stroke="{ACCENT}"/>'
    )


def arc(x: float, x_end: float, base: float, height: float, words: str = "") -> str:
    """Return an arrow over the line `base` from x to x_end, straight down where they are equal."""
    top = base - height
    tip = f"M{x_end - 3:.1f},{base - 6:.1f} L{x_end:.1f},{base:.1f} L{x_end + 3:.1f},{base - 6:.1f}"
    path = f"M{x:.1f},{base:.1f} C{x:.1f},{top:.1f} {x_end:.1f},{top:.1f} {x_end:.1f},{base:.1f}"
    if x == x_end:
        path = f"M{x:.1f},{top:.1f} L{x:.1f},{base:.1f}"
    # a cubic curve whose inner points are at `top` reaches three quarters of the way
    label = text((x + x_end) / 2, base - 0.75 * height - 3, words, 11) if words else ""
    return f'<path d="{path} {tip}" fill="none" stroke="{ACCENT}"/>{label}'
