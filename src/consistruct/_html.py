"""Small pieces of HTML for notebooks: cards, tables and line drawings.

Every text is escaped. Letters and lines take the color of their surroundings, so that a card is
readable in light and dark notebooks without knowing which it is in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Line", "card", "fold", "lines_svg", "list_of_facts", "table"]

Facts = Sequence[tuple[str, str]]

ACCENT = "#1b87c9"  # readable on white and on black
EDGE = "border:1px solid color-mix(in srgb, currentColor 25%, transparent)"
CELL = "padding:0.15em 0.7em 0.15em 0;text-align:left;vertical-align:top;background:none"
WIDTH, HEIGHT = 360, 200
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 10, 38
DASHES = ("", "5 4", "2 3", "9 3 2 3")
LONGEST = 400  # characters of one cell


@dataclass(frozen=True)
class Line:
    """A line, or with `upper` the band between it and that."""

    x: Sequence[float]
    y: Sequence[float]
    upper: Sequence[float] | None = None
    name: str = ""  # in the legend, where there are several


def card(title: str, *parts: str) -> str:
    """A frame with a title and what belongs to it (HTML)."""
    return (
        f'<div style="{EDGE};border-radius:6px;padding:0.6em 0.9em;margin:0.4em 0;max-width:52em;'
        "font-family:system-ui,sans-serif;font-size:0.95em;line-height:1.45;color:inherit;"
        'overflow-wrap:anywhere">'
        f'<div style="font-weight:600;margin-bottom:0.3em">{escape(_short(title))}</div>'
        f"{''.join(parts)}</div>"
    )


def list_of_facts(facts: Facts) -> str:
    """Names and values."""
    rows = "".join(
        f'<tr style="background:none"><td style="{CELL};opacity:0.75;white-space:nowrap">'
        f'{escape(name)}</td><td style="{CELL}">{escape(_short(value))}</td></tr>'
        for name, value in facts
    )
    return f'<table style="border:none;margin:0.2em 0">{rows}</table>' if facts else ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table; the first row of cells names the columns."""
    head = "".join(
        f'<th style="{CELL};font-weight:600;opacity:0.75">{escape(cell)}</th>' for cell in header
    )
    body = "".join(
        '<tr style="background:none">'
        + "".join(f'<td style="{CELL}">{escape(_short(cell))}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return (
        '<div style="overflow-x:auto"><table style="border:none;margin:0.2em 0">'
        f'<tr style="background:none">{head}</tr>{body}</table></div>'
    )


def fold(title: str, *parts: str) -> str:
    """Something to be opened."""
    return (
        f'<details style="margin:0.2em 0"><summary style="cursor:pointer;color:{ACCENT}">'
        f"{escape(title)}</summary>{''.join(parts)}</details>"
    )


def lines_svg(
    lines: Sequence[Line], x_label: str, y_label: str, *, x_log: bool = False, description: str = ""
) -> str:
    """Lines over one pair of axes; the y axis starts at 0 unless values are negative.

    Values that are not finite are left out. Empty without two finite values.
    """
    clean = [_finite(line, x_log) for line in lines]
    xs = [x for points in clean for x, _, _ in points]
    ys = [y for points in clean for _, low, up in points for y in (low, up)]
    if len(xs) < 2 or max(xs) <= min(xs):
        return ""
    x0, x1 = min(xs), max(xs)
    y0, y1 = min(0.0, min(ys)), max(ys)
    if y1 <= y0:
        return ""

    def place(x: float, y: float) -> str:
        across = LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)
        down = HEIGHT - BOTTOM - (y - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)
        return f"{across:.1f},{down:.1f}"

    plain = [line for line in lines if line.upper is None]
    dashes = {id(line): DASHES[number % len(DASHES)] for number, line in enumerate(plain)}
    drawn = []
    for line, points in zip(lines, clean, strict=True):
        if line.upper is not None:
            edge = [place(x, y) for x, y, _ in points]
            edge += [place(x, up) for x, _, up in reversed(points)]
            drawn.append(f'<polygon points="{" ".join(edge)}" fill="{ACCENT}" opacity="0.22"/>')
        else:
            path = " ".join(place(x, y) for x, y, _ in points)
            drawn.append(f'<polyline points="{path}" {_stroke(dashes[id(line)])}/>')
    named = [line for line in plain if line.name]
    tall = HEIGHT + (16 * len(named) + 6 if named else 0)
    floor, left, right = HEIGHT - BOTTOM, LEFT, WIDTH - RIGHT
    shown = (10**x0, 10**x1) if x_log else (x0, x1)
    quiet = 'fill="currentColor" font-size="11" opacity="0.8"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img"'
        f' aria-label="{escape(description or y_label)}"'
        f' viewBox="0 0 {WIDTH} {tall}" width="{WIDTH}" style="max-width:100%;height:auto;'
        'display:block;margin:0.3em 0;color:inherit">',
        f'<path d="M{left},{TOP}V{floor}H{right}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.5"/>',
        *drawn,
        f'<text x="{left}" y="{floor + 14}" {quiet}>{_number(shown[0])}</text>',
        f'<text x="{right}" y="{floor + 14}" text-anchor="end" {quiet}>{_number(shown[1])}</text>',
        f'<text x="{left - 5}" y="{floor}" text-anchor="end" {quiet}>{_number(y0)}</text>',
        f'<text x="{left - 5}" y="{TOP + 9}" text-anchor="end" {quiet}>{_number(y1)}</text>',
        f'<text x="{(left + right) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle" {quiet}>'
        f"{escape(x_label)}{' (logarithmic)' if x_log else ''}</text>",
        f'<text transform="translate(13 {(TOP + floor) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle" {quiet}>{escape(y_label)}</text>',
        *(
            f'<path d="M{left},{HEIGHT + 10 + 16 * row}h28" {_stroke(dashes[id(line)])}/>'
            f'<text x="{left + 36}" y="{HEIGHT + 14 + 16 * row}" {quiet}>{escape(line.name)}</text>'
            for row, line in enumerate(named)
        ),
        "</svg>",
    ]
    return "".join(parts)


def _stroke(dash: str) -> str:
    pattern = f' stroke-dasharray="{dash}"' if dash else ""
    return f'fill="none" stroke="{ACCENT}" stroke-width="2"{pattern}'


def _finite(line: Line, x_log: bool) -> list[tuple[float, float, float]]:
    upper = line.y if line.upper is None else line.upper
    found = []
    for x, y, up in zip(line.x, line.y, upper, strict=True):
        if x_log and x <= 0:
            continue
        point = math.log10(x) if x_log else float(x), float(y), float(up)
        if all(math.isfinite(value) for value in point):
            found.append(point)
    return found


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
