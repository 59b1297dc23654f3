"""Plans and advice as plain data with a versioned schema, and as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from consistruct._members import describe_count
from consistruct._plain_data import dump
from consistruct.guarantees.advice import Advice, FamilyGuarantee
from consistruct.guarantees.complexity import GuaranteeColumn, SampleComplexity
from consistruct.guarantees.plan_table import PlanRow
from consistruct.guarantees.surrogate_choice import SurrogateAdvice
from consistruct.report.calibration.model import SCHEMA_VERSION
from consistruct.report.sections import WORST_CASE

if TYPE_CHECKING:
    from consistruct.guarantees.linter import Lint  # it loads scikit-learn

__all__ = [
    "advice_dict",
    "advice_text",
    "lint_text",
    "plan_dict",
    "plan_table_dict",
    "plan_table_text",
    "plan_text",
]


def plan_dict(plan: SampleComplexity) -> dict[str, Any]:
    """JSON-ready: big integers as decimal strings, infinities and NaN as null."""
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "loss": repr(plan.loss),
        "scores": repr(plan.scores),
        "measure": plan.scores.measure,
        "n_labels": str(plan.loss.n_labels),
        "eps": plan.eps,
        "eps_reason": plan.eps_reason,
        "radius": plan.radius,
        "q_bound": plan.q_bound,
        "log_envelope": plan.log_envelope,
        "gap": plan.gap,
        "consistency_level": plan.consistency_level,
        "approximation_error": plan.approximation_error,
        "max_eps": plan.max_eps,
        "method": plan.method,
        "paper": _column_dict(plan.paper),
        "sharp": _column_dict(plan.sharp),
    }
    return {name: dump(value) for name, value in found.items()}


def _column_dict(column: GuaranteeColumn) -> dict[str, Any]:
    return {
        "D": column.D,
        "M": column.M,
        "DM": column.DM,
        "step": column.step,
        "iterations": column.iterations,
        "log10_iterations": column.log10_iterations,
        "log_D": column.log_D,
        "log_M": column.log_M,
        "assumptions": dict(column.assumptions),
    }


def plan_text(plan: SampleComplexity) -> Group:
    """Two columns, then what each number rests on."""
    facts = Table.grid(padding=(0, 2))
    facts.add_row(Text("loss", style="bold"), Text(f"{plan.loss!r}"))
    facts.add_row(Text("scores", style="bold"), Text(f"{plan.scores!r}"))
    facts.add_row(
        Text("ε", style="bold"),
        Text(f"{plan.eps:g}, {plan.eps_reason}"),
    )
    facts.add_row(
        Text("Ȟ(ε)", style="bold"),
        Text(f"{_magnitude(plan.log_envelope)} at ε = {plan.eps:g}, convex and below H"),
    )
    if plan.gap != 0 and math.isfinite(plan.sharp.log_iterations):
        facts.add_row(Text("N* known to", style="bold"), Text(_gap_text(plan.gap)))
    if plan.approximation_error > 0:
        facts.add_row(
            Text("on top of ε", style="bold"),
            Text(f"up to {plan.approximation_error:g}, the approximation error of these scores"),
        )
    if plan.sharp.log_iterations == math.inf:
        facts.add_row(
            Text("no guarantee", style="bold"),
            Text(
                "ε is not above what can be proved with these scores; level "
                f"{plan.consistency_level:g}"
            ),
        )
    table = Table()
    table.add_column("")
    table.add_column("paper", justify="right")
    table.add_column("sharp", justify="right")
    columns = (plan.paper, plan.sharp)
    table.add_row("D", *(_magnitude(c.log_D) for c in columns))
    table.add_row("M", *(_magnitude(c.log_M) for c in columns))
    table.add_row("D·M", *(_magnitude(c.log_D + c.log_M) for c in columns))
    table.add_row("step", *(f"{c.step:.4g}" for c in columns))
    table.add_row("N*, examples", *(_magnitude(c.log_iterations) for c in columns))
    heading = Text(WORST_CASE, style="bold")
    parts: list[Table | Text] = [heading, facts, Text(""), table]
    for name, column in (("paper", plan.paper), ("sharp", plan.sharp)):
        parts.append(Text(f"\n{name} assumes", style="bold"))
        parts += [Text(f"  {quantity}: {text}") for quantity, text in column.assumptions]
    parts.append(
        Text(
            "\nThese are worst-case bounds for comparing losses and scores, not forecasts. For a "
            "forecast from a pilot data set: consistruct plan DATA --target COLUMN --loss SPEC."
        )
    )
    return Group(*parts)


def _gap_text(gap: float) -> str:
    if math.isnan(gap):
        return "an upper bound: only a lower bound on H is known (Theorem 7)"
    if math.isinf(gap):
        return "an upper bound: no upper bound on H is known"
    return f"{gap:.1%}: H is known only at some values, and N* may be too large by that much"


def plan_table_dict(rows: tuple[PlanRow, ...]) -> dict[str, Any]:
    """The table over growing sizes."""
    return {
        "schema_version": SCHEMA_VERSION,
        "rows": [
            {
                "family": row.family,
                "order": row.order,
                "size": row.size,
                "paper_over_rate": row.paper_ratio,
                "sharp_iterations_eps4_over_xi2": row.sharp_ratio,
                **plan_dict(row.result),
            }
            for row in rows
        ],
    }


def plan_table_text(rows: tuple[PlanRow, ...]) -> Group:
    """D·M over the rate that the paper states, and what is left of N* with sharp constants."""
    table = Table(title=f"ε = {rows[0].result.eps:g}", title_justify="left")
    for name in (
        "loss", "paper states D·M is", "size", "labels", "D·M, paper", "D·M / size or size³",
        "N*, paper", "D·M, sharp", "N*, sharp", "N*·ε⁴/ξ², sharp",
    ):  # fmt: skip
        table.add_column(name, justify="left" if name in ("loss",) else "right")
    for row in rows:
        paper, sharp = row.result.paper, row.result.sharp
        table.add_row(
            row.family,
            row.order,
            str(row.size),
            describe_count(row.result.loss.n_labels),
            _magnitude(paper.log_D + paper.log_M),
            f"{row.paper_ratio:.4g}",
            _magnitude(paper.log_iterations),
            _magnitude(sharp.log_D + sharp.log_M),
            _magnitude(sharp.log_iterations),
            f"{row.sharp_ratio:.4g}",
        )
    note = (
        "Size is k, b or T = log₂ k. The paper's D·M grows as it states. The sharp N* of the 0-1, "
        "block and Hamming losses does not grow at all at a fixed Q: what makes a loss hard is "
        "the norm Q of the functions to be learned as much as H."
    )
    return Group(table, Text(note))


def advice_dict(advice: Advice) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "schema_version": SCHEMA_VERSION,
        "loss": repr(advice.loss),
        "n_labels": str(advice.loss.n_labels),
        "eps": advice.eps,
        "n_samples": advice.n_samples,
        "counts_approximation": advice.counts_approximation,
        "recommended": None if advice.recommended is None else advice.recommended.name,
        "reason": advice.reason,
        "families": [dump(_family_dict(entry)) for entry in advice.families],
        "crossings": [{"family": name, "eps": eps} for name, eps in advice.crossings],
        "skipped": [{"family": name, "reason": why} for name, why in advice.skipped],
        "surrogates": None if advice.surrogates is None else _surrogates_dict(advice.surrogates),
    }


def _surrogates_dict(advice: SurrogateAdvice) -> dict[str, Any]:
    return {
        "eps": advice.eps,
        "recommended": None if advice.recommended is None else advice.recommended.name,
        "reason": advice.reason,
        "entries": dump(advice.entries),
        "refused": [{"surrogate": name, "reason": why} for name, why in advice.refused],
    }


def _family_dict(entry: FamilyGuarantee) -> dict[str, Any]:
    return {
        "name": entry.name,
        "scores": repr(entry.scores),
        "rank": str(entry.rank),
        "n_predictable": str(entry.n_predictable),
        "consistency_level": entry.consistency_level,
        "approximation_error": entry.approximation_error,
        "eps": entry.eps,
        "total": entry.total,
        "log_H": entry.log_H,
        "iterations": entry.iterations,
        "log10_iterations": entry.log_iterations / math.log(10),
        "gap": entry.gap,
        "pareto": entry.on_front,
        "method": entry.method,
    }


def advice_text(advice: Advice) -> Group:
    """The recommendation, then all families."""
    table = Table(title="* on the Pareto front of cost and approximation error")
    for name in (
        "scores", "rank", "predictable", "level", "approximation error", "ε", "ε + error",
        "H(ε)", "N*",
    ):  # fmt: skip
        table.add_column(name, justify="left" if name == "scores" else "right")
    for entry in advice.families:
        table.add_row(
            ("* " if entry.on_front else "  ") + entry.name,
            describe_count(entry.rank),
            describe_count(entry.n_predictable),
            f"{entry.consistency_level:.4g}",
            f"{entry.approximation_error:.4g}",
            f"{entry.eps:.4g}",
            f"{entry.total:.4g}",
            _magnitude(entry.log_H),
            _magnitude(entry.log_iterations),
        )
    parts: list[Table | Text] = [Text(advice.reason, style="bold"), Text(""), table]
    parts += [
        Text(f"by H alone, {name} overtake the loss's own scores at ε = {eps:.4f}")
        for name, eps in advice.crossings
    ]
    parts += [Text(f"not evaluated: {name}: {why}") for name, why in advice.skipped]
    if advice.surrogates is not None:
        parts += _surrogates_text(advice.surrogates)
    return Group(*parts)


def _surrogates_text(advice: SurrogateAdvice) -> list[Table | Text]:
    table = Table(title=f"surrogates at ε = {advice.eps:.4g}", title_justify="left")
    for name in (
        "surrogate",
        "level",
        "H from about",
        "to about",
        "n from about",
        "to about",
        "status",
    ):
        table.add_column(name, justify="left" if name in ("surrogate", "status") else "right")
    for entry in advice.entries:
        draws = (entry.draws_least, entry.draws_most)
        table.add_row(
            entry.name,
            "?" if math.isnan(entry.consistency_level) else f"{entry.consistency_level:.4g}",
            f"{entry.lower:.4g}",
            f"{entry.upper:.4g}" if math.isfinite(entry.upper) else "∞",
            *("?" if n is None else f"{n:.4g}" if math.isfinite(n) else "∞" for n in draws),
            entry.status,
        )
    parts: list[Table | Text] = [Text(""), Text(advice.reason, style="bold"), table]
    parts += [Text(f"{e.name}: {e.method}") for e in advice.entries if e.status == "bounds"]
    parts += [Text(f"not compared: {name}: {why}") for name, why in advice.refused]
    note = (
        "n = S/H has no unit: it compares worst-case calibration per draw and states nothing about "
        "models or data."
    )
    parts.append(Text(note))
    return parts


def lint_text(result: Lint) -> Group:
    """Findings of a loss: what to do stands below, what was not examined at the end."""
    table = Table.grid(padding=(0, 2))
    for finding in result.findings:
        # a mark for what asks for something to be done, also where there are no colors
        style, mark = ("bold yellow", "!") if finding.advice else ("dim", "·")
        table.add_row(Text(mark, style), Text(finding.kind, style), Text(finding.sentence))
        if finding.advice:
            table.add_row("", "", Text(f"→ {finding.advice}", style="dim"))
    skipped = [Text(f"not examined: {what}: {why}", "dim") for what, why in result.not_examined]
    return Group(Text(repr(result.loss), style="bold"), table, *skipped)


def _magnitude(log: float) -> str:
    """A number by its logarithm: 6.4e+05, or 10^1209.8 beyond floats."""
    if math.isinf(log):
        return "∞" if log > 0 else "0"
    if abs(log) < 600:
        return f"{math.exp(log):.4g}"
    return f"10^{log / math.log(10):.1f}"
