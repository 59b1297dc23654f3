"""Which models were tried and why some of them decide, in plain language."""

from __future__ import annotations

from consistruct.report.learning.entries import PortfolioEntry
from consistruct.report.learning.model import LearningReport
from consistruct.report.sections import Section

__all__ = ["models_section", "plural"]


def plural(unit: str) -> str:
    """Of "example", "sequence" and "query"."""
    return f"{unit[:-1]}ies" if unit.endswith("y") else f"{unit}s"


def models_section(report: LearningReport) -> Section:
    """Which models were tried, and which of them decide."""
    question = "Which model decides, and what else was tried?"
    used = [entry for entry in report.portfolio if entry.weight > 0]
    if not used:
        answer = f"You chose it: {report.model}. Nothing else was tried."
        return Section("choices", question, answer, (), (("model", report.model),))
    answer = f"{_named(used)}: {_why(report, used)}"
    facts = [(entry.name, _tried(entry)) for entry in report.portfolio]
    details = (
        "Every model was fitted on parts of the training data and compared on the out-of-fold "
        f"{plural(report.unit)}. The criterion combines the quality of probabilities (or "
        "estimates) with that of decisions, because the losses of a few rare mistakes alone are "
        "noisy. Models that lower it when averaged with others are kept and refitted on all of "
        "the training data.",
    )
    return Section("choices", question, answer, details, tuple(facts))


def _named(used: list[PortfolioEntry]) -> str:
    if len(used) == 1:
        return used[0].name
    return " and ".join(f"{entry.name} (weight {entry.weight:.2g})" for entry in used)


def _why(report: LearningReport, used: list[PortfolioEntry]) -> str:
    """Why the portfolio took these models."""
    compared = [entry for entry in report.portfolio if entry.criterion is not None]
    skipped = len(report.portfolio) - len(compared)
    left = f" {skipped} more were not tried." if skipped else ""
    if len(compared) < 2 or any(entry.criterion is None for entry in used):
        return f"nothing else was compared.{left}"
    best = min(compared, key=lambda entry: entry.criterion or 0.0)
    count = f"of {len(compared)} models that were compared on out-of-fold {plural(report.unit)}"
    if len(used) == 1 and best in used:
        return f"{count} it has the lowest criterion, and no average with others was better.{left}"
    if best in used:
        return (
            f"{count} {best.name} is the best single one, and this average is better still.{left}"
        )
    return f"{count} this average is better than {best.name}, the best single one.{left}"


def _tried(entry: PortfolioEntry) -> str:
    if entry.criterion is None and entry.task_loss is None:
        return entry.status
    found = [entry.status]
    if entry.criterion is not None:
        found.append(f"criterion {entry.criterion:.4g}")
    if entry.task_loss is not None:
        found.append(f"out-of-fold loss {entry.task_loss:.4g}")
    return f"{', '.join(found)}; {entry.seconds:.1f} s"
