"""Simulated learning curves as plain data and as text."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from consistruct._plain_data import dump, finite
from consistruct.exceptions import describe_count
from consistruct.guarantees import HardnessStudy, LearningCurve
from consistruct.report.calibration.model import SCHEMA_VERSION

__all__ = ["hardness_dict", "hardness_text", "simulation_dict", "simulation_text"]


def simulation_dict(curve: LearningCurve) -> dict[str, Any]:
    """JSON-ready."""
    problem = curve.problem
    return {
        "schema_version": SCHEMA_VERSION,
        "loss": repr(problem.loss),
        "scores": repr(problem.scores),
        "n_labels": str(problem.loss.n_labels),
        "variant": curve.variant,
        "n_anchors": problem.laws.n_anchors,
        "noise": problem.noise,
        "radius": problem.radius,
        "q_bound": problem.q_bound,
        "D": curve.D,
        "M": curve.M,
        "factor": curve.factor,
        "optimum_norm": curve.optimum_norm,
        "effective_classes": finite(curve.effective_classes),
        "surrogate_start": curve.surrogate_start,
        "task_start": curve.task_start,
        "repeats": curve.repeats,
        "holds": curve.holds,
        "points": dump(curve.points),
    }


def simulation_text(curve: LearningCurve) -> Group:
    """Measured beside promised, one row per number of examples."""
    problem = curve.problem
    facts = Table.grid(padding=(0, 2))
    for name, value in (
        ("loss", f"{problem.loss!r}, {describe_count(problem.loss.n_labels)} labels"),
        ("scores", f"{problem.scores!r}"),
        ("problem", f"{problem.laws.n_anchors} anchor distributions, noise {problem.noise:g}"),
        ("constants", f"{curve.variant}: D = {curve.D:.4g}, M = {curve.M:.4g}"),
        ("‖W*‖", f"{curve.optimum_norm:.4g}"),
        ("before learning", f"surrogate {curve.surrogate_start:.4g}, task {curve.task_start:.4g}"),
    ):
        facts.add_row(Text(name, style="bold"), Text(value))
    table = Table(title=f"excess risks, means of {curve.repeats} runs", title_justify="left")
    for name in (
        "N", "surrogate", "≤, 95 %", "Th. 5", "task", "≤, 95 %", "by H", "Th. 6",
    ):  # fmt: skip
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


def hardness_dict(study: HardnessStudy) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "schema_version": SCHEMA_VERSION,
        "eps": study.eps,
        "variant": study.variant,
        "rows": [
            {
                "family": row.family,
                "n_labels": str(row.loss.n_labels),
                "n_anchors": row.n_anchors,
                "noise": row.noise,
                "effective_classes": row.effective_classes,
                "optimum_norm": row.optimum_norm,
                "q_bound": row.q_bound,
                "reached": finite(row.reached),
            }
            for row in study.rows
        ],
        "fits": dump(study.fits),
    }


def hardness_text(study: HardnessStudy) -> Group:
    """The problems by family, then what explains the number of examples."""
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
