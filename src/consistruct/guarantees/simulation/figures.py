"""The two pictures of the simulations: measured against promised, and who is hard."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from consistruct.guarantees.figure import Figure, Line, Panel
from consistruct.guarantees.simulation.curves import LearningCurve, Variant, learning_curve
from consistruct.guarantees.simulation.hardness import HardnessStudy, hardness_study
from consistruct.guarantees.simulation.problem import synthetic_problem
from consistruct.losses import Block, Hamming, Mixed, ZeroOne
from consistruct.losses.base import Loss

__all__ = ["hardness_figure", "learning_curves_figure", "measure_hardness", "measure_learning"]

SHOWN: tuple[tuple[str, Loss], ...] = (
    ("0-1, 64 labels", ZeroOne(64)),
    ("block, 16 blocks, 2^20 labels", Block((2**16,) * 16)),
    ("Hamming, 2^20 labels", Hamming(20)),
    ("mixed, 20 blocks of 5, η = 0.1", Mixed((5,) * 20, 0.1)),
)
STEPS = (10, 32, 100, 316, 1000, 3162, 10_000, 31_623)
REPEATS = 10
DRAWN: tuple[Variant, ...] = ("paper", "known optimum")


def measure_learning() -> Figure:
    """Four losses, the paper's constants and those of the known optimum."""
    return learning_curves_figure(
        {
            name: [
                learning_curve(synthetic_problem(loss), STEPS, variant=variant, repeats=REPEATS)
                for variant in DRAWN
            ]
            for name, loss in SHOWN
        }
    )


def learning_curves_figure(curves: dict[str, Sequence[LearningCurve]]) -> Figure:
    """One column of panels per problem: excess surrogate risk above, excess task risk below."""
    steps = [point.n_steps for point in next(iter(curves.values()))[0].points]
    columns = {"N": np.array(steps, dtype=np.float64)}
    rows: list[list[Panel]] = [[], []]
    for name, measured in curves.items():
        for row, kind in zip(rows, ("surrogate", "task"), strict=True):
            lines = []
            for number, curve in enumerate(measured):
                for what, field in (("measured", kind), ("bound", f"{kind}_bound")):
                    column = f"{name}: {kind}, {curve.variant}, {what}"
                    columns[column] = np.array([getattr(p, field) for p in curve.points])
                    label = f"{what}, constants: {curve.variant}"
                    lines.append(Line(column, label, number, what))
                limits = f"{name}: {kind}, {curve.variant}, upper 95 % limit"
                columns[limits] = np.array([getattr(p, f"{kind}_upper") for p in curve.points])
            unit = "loss²" if kind == "surrogate" else "loss"
            row.append(
                Panel(
                    name if kind == "surrogate" else "",
                    "N",
                    "N, examples" if kind == "task" else "",
                    f"excess {kind} risk ({unit})",
                    tuple(lines),
                )
            )
    return Figure(
        "learning_curves",
        "The paper's algorithm on problems with known risks, and its guarantee",
        "N, examples",
        "excess risk",
        columns,
        panels=tuple(tuple(row) for row in rows),
    )


def measure_hardness() -> Figure:
    """The study with its default sizes."""
    return hardness_figure(hardness_study())


def hardness_figure(study: HardnessStudy) -> Figure:
    """Examples to reach ε against k_eff, against the norm of the optimum, and per function."""
    rows = study.rows
    columns = {
        "k_eff": np.array([row.effective_classes for row in rows]),
        "norm of the optimum": np.array([row.optimum_norm for row in rows]),
        "norm · √k_eff": np.array([row.calibrated_norm for row in rows]),
        "anchors": np.array([row.n_anchors for row in rows], dtype=np.float64),
        "noise": np.array([row.noise for row in rows]),
        "log2 labels": np.array([math.log2(row.loss.n_labels or 1) for row in rows]),
    }
    families = list(dict.fromkeys(row.family for row in rows))
    lines = []
    for number, family in enumerate(families):
        reached = [row.reached if row.family == family else math.nan for row in rows]
        columns[f"N, {family}"] = np.array(reached)
        lines.append(Line(f"N, {family}", family, number, "points"))
    label = f"examples needed for an excess of {study.eps:g} (loss)"
    panels = tuple(
        Panel(_explained(study, names), x, x_label, label, tuple(lines))
        for x, x_label, names in (
            ("k_eff", "k_eff, effective classes", ("k_eff",)),
            ("norm · √k_eff", "norm of the optimum, ‖W*‖·√k_eff (loss)", ("‖W*‖·√k_eff",)),
            ("anchors", "distributions to be learned", ("anchors",)),
        )
    )
    return Figure(
        "who_is_hard",
        "What explains how many examples are needed?",
        "",
        label,
        columns,
        panels=(panels,),
    )


def _explained(study: HardnessStudy, names: tuple[str, ...]) -> str:
    """How much of the variance of log N is explained, alone and beside the noise."""
    found = {fit.explained_by: fit.r_squared for fit in study.fits}
    if names not in found:
        return ""
    beside = (*names, "signal")
    more = f" alone, {found[beside]:.2f} with the noise" if beside in found else ""
    return f"R² = {found[names]:.2f}{more}"
