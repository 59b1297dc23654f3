"""Results as text for a terminal, and as pages of the documentation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from textwrap import shorten
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from consistruct._members import describe_count
from paper.audit import NOT_CLAIMS, AuditReport
from paper.figures import CAPTIONS
from paper.hardness import HardnessStudy
from paper.learning_curves import LearningCurve
from paper.model import Result

CLAIM_CHARACTERS = 140  # of a claim in the index: two lines of a table
PAGE_END = "<!-- written by make paper -->"  # only pages that end so are ever replaced
STYLES = {
    "holds": "green",
    "imprecise": "yellow",
    "misprint": "yellow",
    "false": "red",
    "not checked": "dim",
    "undecided": "bold white on red",
}
MEANINGS = {
    "imprecise": "it fails only in cases that its wording should have excluded;",
    "misprint": "it fails as printed, and the paper itself has it right elsewhere;",
    "false": "it fails in the cases it is about.",
}
HEADINGS = {"false": "False", "misprint": "Misprints", "imprecise": "Imprecise"}


def audit_text(report: AuditReport) -> Group:
    """Show a table with one line per entry, the corrections, and the sum."""
    table = Table(show_edge=False, pad_edge=False)
    for name in ("entry", "place", "verdict", "worst deviation", "tolerance"):
        table.add_column(name, no_wrap=name in ("entry", "verdict"))
    for one in report.results:
        worst = None if one.evidence is None else one.evidence.worst
        table.add_row(
            Text(one.entry.name),
            Text(one.entry.place),
            Text(one.verdict, style=STYLES[one.verdict]),
            Text("" if worst is None else _number(worst.value)),
            Text("" if worst is None else _number(worst.tolerance)),
        )
    parts: list[Any] = [table]
    notes = [one for one in report.results if one.evidence is not None and one.evidence.correction]
    if notes:
        parts.append(Text("\nCorrections", style="bold"))
    for one in notes:
        assert one.evidence is not None
        line = Text("  ")
        line.append(one.entry.name, style=STYLES[one.verdict])
        parts.append(line.append(f": {one.evidence.correction}"))
    for one in report.surprises:
        worst = None if one.evidence is None else one.evidence.worst
        text = f"  {one.entry.name}: {one.verdict}, expected {one.entry.expected}"
        if worst is not None:
            text += f"; {worst.what}: {_number(worst.value)}, tolerance {_number(worst.tolerance)}"
        parts.append(Text(text, style="bold red"))
    parts.append(Text("\n" + _sum(report)))
    return Group(*parts)


def _sum(report: AuditReport) -> str:
    counts = ", ".join(f"{number} {verdict}" for verdict, number in report.counts.items())
    mode = "quick" if report.quick else "full"
    end = "as expected" if report.passed else f"{len(report.surprises)} NOT as expected"
    cost = f"{mode}, {report.seconds:.0f} s of processor time"
    return f"{len(report.results)} entries: {counts}; {end} ({cost})"


def _number(value: float) -> str:
    return f"{float(value) + 0.0:.2g}"  # no minus zero


def audit_pages(report: AuditReport) -> dict[str, str]:
    """Write an index, the figures, and one page per entry, by file name."""
    pages = {f"{one.entry.name}.md": "\n".join(_page(one)) for one in report.results}
    pages = {"index.md": _index(report), "figures.md": _figures(), **pages}
    return {name: f"{text.rstrip()}\n\n{PAGE_END}\n" for name, text in pages.items()}


def _index(report: AuditReport) -> str:
    lines = [
        "# The paper, audited",
        "",
        "Written by `make paper`. The paper is Osokin, Bach, Lacoste-Julien,",
        "*On Structured Prediction Theory with Calibrated Convex Surrogate Losses* (NIPS 2017). "
        "Every claim has a page with what was",
        "computed, and every verdict follows from the measurements there: a statement that fails "
        "beyond its tolerance needs a corrected one that was checked to hold.",
        "",
        *(f"- *{verdict}*: {meaning}" for verdict, meaning in MEANINGS.items()),
        "",
        f"{_sum(report)}. The figures are [drawn again](figures.md).",
        "",
        "| verdict | entries |",
        "|---|---|",
        *(f"| {verdict} | {number} |" for verdict, number in report.counts.items()),
        "",
    ]
    for verdict, heading in HEADINGS.items():
        results = [one for one in report.results if one.verdict == verdict]
        if results:
            lines += [f"## {heading}", "", *_table(results), ""]
    lines += ["## All entries", "", *_table(report.results), ""]
    lines += ["## Labels of the source that name no claim", ""]
    lines += [f"* `{label}`: {reason}" for label, reason in NOT_CLAIMS.items()]
    names = [one.entry.name for one in report.results]
    lines += ["", "```{toctree}", ":hidden:", "", *names, "```"]
    return "\n".join(lines) + "\n"


def _figures() -> str:
    lines = ["# Figures", "", "Drawn by `make paper`, each with its numbers."]
    for name, caption in CAPTIONS.items():
        lines += ["", f"## {name}", "", f"![{caption}]({name}.svg)", "", caption]
        lines += ["", f"{{download}}`{name}.csv <{name}.csv>`"]
    return "\n".join([*lines, "", "[All entries](index.md)", ""])


def _table(results: Iterable[Result]) -> list[str]:
    """List entries with links to their pages, the beginning of the claim and the verdict."""
    lines = ["| entry | in the paper | claim | verdict |", "|---|---|---|---|"]
    for one in results:
        entry = one.entry
        claim = _escape(shorten(entry.statement, CLAIM_CHARACTERS, placeholder=" …"))
        lines.append(
            f"| [{entry.name}]({entry.name}.md) | {entry.place} | {claim} | {one.verdict} |"
        )
    return lines


def _page(one: Result) -> list[str]:
    return [*_section(one), "[All entries](index.md)", ""]


def _section(one: Result) -> list[str]:
    entry = one.entry
    lines = [
        f"# {entry.name}",
        "",
        f"*{entry.kind}, {entry.place}* — **{one.verdict}**",
        "",
        _escape(entry.statement),
        "",
    ]
    if one.evidence is None:
        return [*lines, f"Not checked: {_escape(entry.reason)}.", ""]
    lines += [f"* Checked by: {_escape(entry.method)}.", f"* Cases: {_escape(one.evidence.grid)}."]
    for name, deviations in (
        ("As printed", one.evidence.stated),
        ("Cases that the wording lets in", one.evidence.edge),
        ("Corrected", one.evidence.corrected),
    ):
        for deviation in deviations:
            at = f" ({_escape(deviation.at)})" if deviation.at else ""
            lines.append(
                f"* {name}: {_escape(deviation.what)}: {_number(deviation.value)}, tolerance "
                f"{_number(deviation.tolerance)}{at}."
            )
    if one.evidence.correction:
        lines.append(f"* Correction: {_escape(one.evidence.correction)}")
    if one.evidence.right_at:
        lines.append(f"* The paper has it right in {_escape(one.evidence.right_at)}.")
    return [*lines, ""]


def _escape(text: str) -> str:
    """Escape Markdown's own signs, as they stand in formulas."""
    for sign in ("*", "_", "<", "[", "]", "|"):
        text = text.replace(sign, f"\\{sign}")
    return text


def simulation_text(curve: LearningCurve) -> Group:
    """Show measured beside guaranteed, one row per number of examples."""
    problem = curve.problem
    facts = Table.grid(padding=(0, 2))
    for name, value in (
        ("loss", f"{problem.loss!r}, {describe_count(problem.loss.n_labels)} labels"),
        ("scores", f"{problem.scores!r}"),
        ("problem", f"{problem.anchors.n_anchors} anchor distributions, noise {problem.noise:g}"),
        ("constants", f"{curve.variant}: D = {curve.D:.4g}, M = {curve.M:.4g}"),
        ("‖W*‖", f"{curve.optimum_norm:.4g}"),
        ("before learning", f"surrogate {curve.surrogate_start:.4g}, task {curve.task_start:.4g}"),
    ):
        facts.add_row(Text(name, style="bold"), Text(value))
    table = Table(title=f"excess risks, means of {curve.repeats} runs", title_justify="left")
    for name in (
        "N",
        "surrogate",
        "≤, 95 %",
        "Th. 5",
        "task",
        "≤, 95 %",
        "by H",
        "Th. 6",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for point in curve.points:
        table.add_row(
            str(point.n_steps),
            *(
                f"{value:.2g}"
                for value in (
                    point.surrogate,
                    point.surrogate_upper,
                    point.surrogate_bound,
                    point.task,
                    point.task_upper,
                    point.task_from_surrogate,
                    point.task_bound,
                )
            ),
        )
    verdict = "below" if curve.holds else "NOT below"
    return Group(
        facts,
        Text(""),
        table,
        Text(f"Both excess risks are {verdict} their bounds at every N, 95 % confidence."),
    )


def hardness_text(study: HardnessStudy) -> Group:
    """Show the problems by family, then what explains the number of examples."""
    problems = Table(title=f"examples needed for an excess of {study.eps:g}", title_justify="left")
    names = ("family", "labels", "k_eff", "anchors", "noise", "‖W*‖", "N")
    for name in names:
        problems.add_column(name, justify="left" if name == "family" else "right")
    for row in study.rows:
        problems.add_row(
            row.family,
            describe_count(row.loss.n_labels),
            f"{row.effective_classes:.4g}",
            str(row.n_anchors),
            f"{row.noise:g}",
            f"{row.optimum_norm:.3g}",
            f"{row.reached:.3g}" if math.isfinite(row.reached) else "not reached",
        )
    fits = Table(title="log N, least squares", title_justify="left")
    for name in ("explained by", "exponents (standard errors)", "R²"):
        fits.add_column(name)
    for fit in study.fits:
        pairs = zip(fit.exponents, fit.standard_errors, strict=True)
        fits.add_row(
            ", ".join(fit.explained_by),
            ", ".join(f"{value:.2f} ({error:.2f})" for value, error in pairs),
            f"{fit.r_squared:.2f}",
        )
    return Group(problems, Text(""), fits)
