"""What a notebook shows of a report: questions and answers, the rest to be opened, one picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from consistruct._html import Line, card, fold, lines_svg, list_of_facts
from consistruct.charts.model import Chart, HeatMap
from consistruct.report.sections import Section

__all__ = ["report_card"]


def report_card(
    title: str,
    facts: Sequence[tuple[str, str]],
    sections: Sequence[Section],
    chart: Chart | HeatMap | None,
) -> str:
    """A card with a part per section; `chart` is drawn below them."""
    parts = [list_of_facts(facts)]
    for section in sections:
        parts.append(
            f'<div style="font-weight:600;margin-top:0.6em">{escape(section.question)}</div>'
            f"<div>{escape(section.answer)}</div>"
        )
        more = [f"<div>{escape(detail)}</div>" for detail in section.details]
        if more or section.facts:
            parts.append(
                fold(section.fold or "numbers and notes", *more, list_of_facts(section.facts))
            )
    if isinstance(chart, Chart):
        parts.append(_drawn(chart))
    return card(title, *parts)


def _drawn(chart: Chart) -> str:
    lines = []
    for series in chart.series:
        if series.kind not in ("line", "band"):
            continue
        y = [float("nan") if v is None else v for v in series.y]
        x = [float("nan") if v is None else v for v in series.x]
        upper = None
        if series.kind == "band" and series.upper is not None:
            upper = [float("nan") if v is None else v for v in series.upper]
        lines.append(Line(x, y, upper, series.name))
    picture = lines_svg(
        lines, chart.x_label, chart.y_label, x_log=chart.x_log, description=chart.title
    )
    return (
        f'<div style="font-weight:600;margin-top:0.6em">{escape(chart.title)}</div>{picture}'
        if picture
        else ""
    )
