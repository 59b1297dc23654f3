"""Reports for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from consistruct.report.calibration.model import CalibrationReport
from consistruct.report.calibration.wording import calibration_sections
from consistruct.report.label_names import label_text
from consistruct.report.numbers import count_text, log_text
from consistruct.report.sections import Section

__all__ = ["calibration_text", "sections_text"]

N_ROWS = 11  # of the curve; JSON and CSV have all

T = TypeVar("T")


def calibration_text(report: CalibrationReport) -> Group:
    """The questions with their answers, then the curve."""
    heading = Table.grid(padding=(0, 2))
    for name, value in (("judged by", report.loss_title), ("scores", report.scores_title)):
        heading.add_row(Text(name, style="bold"), Text(value))
    sections = calibration_sections(report)
    return Group(heading, *sections_text(sections, after={"curve": _curve(report)}))


def sections_text(
    sections: Sequence[Section], after: dict[str, RenderableType] | None = None
) -> list[RenderableType]:
    """Question, answer, details and numbers of each section; `after` adds a table to some."""
    parts: list[RenderableType] = []
    for section in sections:
        parts.append(Text(f"\n{section.question}", style="bold"))
        parts.append(Padding(Text(section.answer), (0, 0, 0, 2)))
        if section.fold:  # a terminal has none: what is in it has a heading of its own
            parts.append(Padding(Text(section.fold, style="italic"), (0, 0, 0, 2)))
        parts += [Padding(Text(detail, style="dim"), (0, 0, 0, 2)) for detail in section.details]
        if section.facts:
            facts = Table.grid(padding=(0, 2))
            for name, value in section.facts:
                facts.add_row(Text(name), Text(value))
            parts.append(Padding(facts, (0, 0, 0, 4)))
        if after is not None and section.key in after:
            parts.append(Padding(after[section.key], (0, 0, 0, 2)))
    return parts


def _curve(report: CalibrationReport) -> Table:
    table = Table()
    table.add_column("ε", justify="right")
    table.add_column("H ≥", justify="right")
    table.add_column("H ≤", justify="right")
    quadratic = report.surrogate == "quadratic"  # the equivalent k of the 0-1 loss
    if quadratic:
        table.add_column("ε²/4H", justify="right")
    table.add_column("status")
    table.add_column("worst pair (better, predicted)", overflow="ellipsis", max_width=44)
    for point in thinned(report.curve):
        pair = "" if point.pair is None else ", ".join(label_text(p, 20) for p in point.pair)
        size = point.log_equivalent_classes
        table.add_row(
            f"{point.eps:.4g}",
            _height(point.lower, point.log_lower),
            _height(point.upper, point.log_upper),
            *([] if not quadratic else ["" if size is None else count_text(size)]),
            point.status,
            Text(pair),
        )
    return table


def thinned(rows: Sequence[T]) -> list[T]:
    """At most so many rows, evenly spread, the first and the last among them."""
    if len(rows) <= N_ROWS:
        return list(rows)
    last = len(rows) - 1
    return [rows[round(n * last / (N_ROWS - 1))] for n in range(N_ROWS)]


def _height(value: float, log: float) -> str:
    return f"{value:.7g}" if value == float("inf") or log > -600 else log_text(log)
