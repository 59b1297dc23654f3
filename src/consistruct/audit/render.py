"""An audit as plain data with a versioned schema, as text, and as pages of the documentation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from textwrap import shorten
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from consistruct.audit.inventory import NOT_CLAIMS
from consistruct.audit.model import Deviation, Result
from consistruct.audit.runner import AuditReport
from consistruct.report.schema import SCHEMA_VERSION

__all__ = ["audit_dict", "audit_pages", "audit_text"]

CLAIM_CHARACTERS = 140  # of a claim in the index
STYLES = {
    "holds": "green",
    "holds with correction": "yellow",
    "false as stated": "red",
    "not checked": "dim",
    "undecided": "bold white on red",
}


def audit_dict(report: AuditReport) -> dict[str, Any]:
    """JSON-ready: infinite deviations are null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "quick": report.quick,
        "passed": report.passed,
        "seconds": report.seconds,
        "counts": dict(report.counts),
        "entries": [_entry_dict(one) for one in report.results],
    }


def _entry_dict(one: Result) -> dict[str, Any]:
    entry, evidence = one.entry, one.evidence
    found: dict[str, Any] = {
        "name": entry.name,
        "place": entry.place,
        "kind": entry.kind,
        "statement": entry.statement,
        "method": entry.method,
        "covers": list(entry.covers),
        "verdict": one.verdict,
        "expected": entry.expected,
        "seconds": one.seconds,
        "grid": "",
        "worst": None,
        "stated": [],
        "edge": [],
        "corrected": [],
        "correction": "",
        "reason": entry.reason,
    }
    if evidence is not None:
        found |= {
            "grid": evidence.grid,
            "worst": _deviation_dict(evidence.worst),
            "stated": [_deviation_dict(d) for d in evidence.stated],
            "edge": [_deviation_dict(d) for d in evidence.edge],
            "corrected": [_deviation_dict(d) for d in evidence.corrected],
            "correction": evidence.correction,
        }
    return found


def _deviation_dict(one: Deviation) -> dict[str, Any]:
    value = float(one.value)
    return {
        "what": one.what,
        "value": value if math.isfinite(value) else None,
        "tolerance": float(one.tolerance),
        "within": one.within,
        "at": one.at,
    }


def audit_text(report: AuditReport) -> Group:
    """A table with one line per entry, the corrections, and the sum."""
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
    """The folder ``docs/audit``: an index, and one page per entry, by file name."""
    pages = {f"{one.entry.name}.md": "\n".join(_page(one)) for one in report.results}
    return {"index.md": _index(report), **pages}


def _index(report: AuditReport) -> str:
    lines = [
        "# The paper, audited",
        "",
        "Written by `consistruct audit --write-docs docs/audit`; do not edit. The paper is Osokin, "
        "Bach, Lacoste-Julien,",
        "*On Structured Prediction Theory with Calibrated Convex Surrogate Losses* (NIPS 2017). "
        "Every claim has a page with what was",
        "computed, and every verdict follows from the measurements there: a statement that fails "
        "beyond its tolerance needs a",
        "corrected one that was checked to hold. *Holds with correction*: it fails only in cases "
        "that its wording should have excluded;",
        "*false as stated*: it fails in the cases it is about.",
        "",
        f"{_sum(report)}.",
        "",
        "| verdict | entries |",
        "|---|---|",
        *(f"| {verdict} | {number} |" for verdict, number in report.counts.items()),
        "",
    ]
    for verdict, heading in (
        ("false as stated", "False as stated"),
        ("holds with correction", "Hold with a correction"),
    ):
        found = [one for one in report.results if one.verdict == verdict]
        lines += [f"## {heading}", "", *_table(found), ""]
    lines += ["## All entries", "", *_table(report.results), ""]
    lines += ["## Labels of the source that name no claim", ""]
    lines += [f"* `{label}`: {reason}" for label, reason in NOT_CLAIMS.items()]
    lines += ["", "```{toctree}", ":hidden:", ":glob:", "", "*", "```"]
    return "\n".join(lines) + "\n"


def _table(results: Iterable[Result]) -> list[str]:
    """Entries with links to their pages, the beginning of the claim and the verdict."""
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
    for name, found in (
        ("As printed", one.evidence.stated),
        ("Cases that the wording lets in", one.evidence.edge),
        ("Corrected", one.evidence.corrected),
    ):
        for deviation in found:
            at = f" ({_escape(deviation.at)})" if deviation.at else ""
            lines.append(
                f"* {name}: {_escape(deviation.what)}: {_number(deviation.value)}, tolerance "
                f"{_number(deviation.tolerance)}{at}."
            )
    if one.evidence.correction:
        lines.append(f"* Correction: {_escape(one.evidence.correction)}")
    return [*lines, ""]


def _escape(text: str) -> str:
    """Markdown's own signs, as they stand in formulas."""
    for sign in ("*", "_", "<", "[", "]", "|"):
        text = text.replace(sign, f"\\{sign}")
    return text
