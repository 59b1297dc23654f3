"""Reports in plain language: one section per question, the answer before any formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from consistruct.charts.model import Chart, HeatMap

__all__ = ["WORST_CASE", "ReportChart", "Section", "sections_text"]

WORST_CASE = "Worst-case guarantee, over all distributions"

R = TypeVar("R", contravariant=True)
C = TypeVar("C", bound=Chart | HeatMap, covariant=True)


@dataclass(frozen=True)
class Section:
    """One question.

    Attributes
    ----------
    key : str
        consistency, hardness, curve, worst_case, sample_size, advice; or of a learning report.
    question, answer : str
        The answer is one sentence for a reader in a hurry.
    details : tuple of str
        What it means, and what it does not mean.
    facts : tuple of (name, value)
        Numbers, with their names.
    charts : tuple of str
        Keys of the charts that are shown here: a chart states where, see `ReportChart`.
    fold : str
        The title of the fold that hides all but the question and the answer; "" for no fold.
    """

    key: str
    question: str
    answer: str
    details: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    charts: tuple[str, ...] = ()
    fold: str = ""


@dataclass(frozen=True)
class ReportChart(Generic[R, C]):
    """A chart of a report: where it is shown, and how it is made.

    Attributes
    ----------
    section : str
        The key of the section that shows it.
    draw : callable
        The chart of a report; None where the report has no such chart.
    table : str
        The CSV table that has its numbers; "" for a table of its own, under its key.
    """

    section: str
    draw: Callable[[R], C | None]
    table: str = ""


def sections_text(
    sections: Sequence[Section], after: dict[str, RenderableType] | None = None
) -> list[RenderableType]:
    """For a terminal: question, answer, details, numbers; `after` adds a table to some sections."""
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
