"""Figure 1 of the paper, what it leaves out, and the two pictures of the simulations."""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from consistruct.calibration import LabelOrderWarning, calibration_function
from consistruct.charts import chart_picture, draw_chart
from consistruct.charts.model import Chart, Series
from consistruct.guarantees import low_rank_truncations
from consistruct.losses import Block, Hamming, Loss, Mixed, Ordinal, Tree, ZeroOne
from consistruct.protocols import FloatArray
from consistruct.structures import Blocks
from paper.hardness import HardnessStudy, hardness_study
from paper.learning_curves import LearningCurve, Variant, learning_curve
from paper.problems import synthetic_problem

# The paper states neither T nor the number and size of the blocks; η = 0.4 is its own.
HAMMING_PARTS = 6
MIXED = Mixed((25,) * 4, 0.4)
UNCONSTRAINED_PARTS = (5, 10, 30, 100, 300, 1000)
TRUNCATED: tuple[tuple[str, Loss], ...] = (
    ("ordinal, 8 classes", Ordinal(8)),
    ("ordinal root, 8 classes", Ordinal(8, 0.5)),
    ("mixed, 4 blocks of 2, η = 0.4", Mixed((2,) * 4, 0.4)),
    ("tree, 8 leaves", Tree((-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6))),
)
LEARNED: tuple[tuple[str, Loss], ...] = (
    ("0-1, 64 labels", ZeroOne(64)),
    ("block, 16 blocks, 2^20 labels", Block((2**16,) * 16)),
    ("Hamming, 2^20 labels", Hamming(20)),
    ("mixed, 20 blocks of 5, η = 0.1", Mixed((5,) * 20, 0.1)),
)
STEPS = (10, 32, 100, 316, 1000, 3162, 10_000, 31_623)  # half decades: straight lines in log-log
REPEATS = 10
DRAWN: tuple[Variant, ...] = ("paper", "known optimum")
STYLES = (1, 0, 2, 3, 4, 5)  # red before blue, as in the paper
PANEL = (3.3, 2.9)  # inches


@dataclass(frozen=True, eq=False)
class Figure:
    """Columns of numbers, one row per point, and the charts that show them.

    Attributes
    ----------
    columns : dict of name to array
        The first one is the x axis; NaN where a curve has no point.
    charts : tuple of tuples of Chart
        Rows of panels; a single chart has its legend, several share one.
    """

    name: str
    title: str
    columns: dict[str, FloatArray]
    charts: tuple[tuple[Chart, ...], ...]

    def csv(self) -> str:
        """Return one column per curve, with all digits; an empty field where it has no point.

        >>> figure_data("figure_1b").csv().splitlines()[0]
        'eps,full scores,block scores'
        """
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        for row in zip(*(values.tolist() for values in self.columns.values()), strict=True):
            writer.writerow(["" if math.isnan(value) else value for value in row])
        return stream.getvalue()

    def picture(self, kind: str) -> bytes:
        """Draw it as ``png`` or ``svg``."""
        if len(self.charts) == len(self.charts[0]) == 1:
            return chart_picture(self.charts[0], kind)
        n_columns = len(self.charts[0])
        size = (PANEL[0] * n_columns + 0.4, PANEL[1] * len(self.charts) + 0.8)
        canvas = Canvas(figsize=size, layout="constrained")
        FigureCanvasAgg(canvas)
        canvas.suptitle(self.title)
        axes = canvas.subplots(
            len(self.charts), n_columns, squeeze=False, sharey="row", sharex="col"
        )
        for ax, chart in zip(axes.flat, sum(self.charts, ()), strict=True):
            legend = draw_chart(chart, ax).get_legend()
            if legend is not None:  # one for all of them, below
                legend.remove()
            ax.set_title(chart.title, fontsize="medium")
            ax.label_outer()
        handles, labels = axes[0, 0].get_legend_handles_labels()
        n_legend = min(len(labels), 5)
        canvas.legend(handles, labels, loc="outside lower center", ncols=n_legend, frameon=False)
        stream = io.BytesIO()
        canvas.savefig(stream, format=kind, dpi=150)
        return stream.getvalue()

    def write(self, folder: Path) -> list[Path]:
        """Write picture and numbers: PNG, SVG and CSV."""
        contents = {
            "csv": self.csv().encode(),
            "png": self.picture("png"),
            "svg": self.picture("svg"),
        }
        paths = [folder / f"{self.name}.{kind}" for kind in contents]
        for path, content in zip(paths, contents.values(), strict=True):
            path.write_bytes(content)
        return paths


def figure_data(name: str) -> Figure:
    """Compute one figure by its name; `FIGURES` lists them."""
    if name not in FIGURES:
        raise ValueError(f"unknown figure {name!r}; the figures are {', '.join(FIGURES)}")
    return FIGURES[name]()


def _one_chart(
    name: str, title: str, x_label: str, y_label: str, columns: dict[str, FloatArray]
) -> Figure:
    """Draw all columns over the first one."""
    (_, x), *curves = columns.items()
    series = tuple(
        Series(label, _numbers(x), _numbers(y), style=STYLES[number % len(STYLES)])
        for number, (label, y) in enumerate(curves)
    )
    chart = Chart(name, title, "", x_label, y_label, series)
    return Figure(name, title, columns, ((chart,),))


def _calibration_curves(name: str, title: str, loss: Loss, scores: Mapping[str, Any]) -> Figure:
    """H of one loss with each of the scores, over ε up to 1."""
    eps = np.linspace(0.0, 1.0, 601)  # every jump of Hamming's curve, at multiples of 1/6
    curves = {
        label: np.asarray(calibration_function(loss, space)(eps)) for label, space in scores.items()
    }
    labels = "ε, excess task risk (loss)", "H(ε), excess surrogate risk (loss²)"
    return _one_chart(name, title, *labels, {"eps": eps, **curves})


def _figure_1a() -> Figure:
    loss = Hamming(HAMMING_PARTS)
    scores = {"full scores": "full", "own scores": None}
    return _calibration_curves("figure_1a", f"Hamming loss, T = {HAMMING_PARTS}", loss, scores)


def _figure_1b() -> Figure:
    sizes = MIXED.partition.block_sizes
    title = f"Mixed loss, η = {MIXED.eta:g}, {len(sizes)} blocks of {sizes[0]}"
    scores = {"full scores": "full", "block scores": Blocks(sizes)}
    return _calibration_curves("figure_1b", title, MIXED, scores)


def _hamming_unconstrained() -> Figure:
    """4k·H(ε)/ε²: between 1 (Theorem 7) and 2 (Theorem 8) at every length."""
    eps = np.linspace(0.0, 1.0, 401)[1:]
    columns: dict[str, FloatArray] = {"eps": eps}
    for T in UNCONSTRAINED_PARTS:
        log_H = np.asarray(calibration_function(Hamming(T), "full").log(eps))
        columns[f"T = {T}"] = np.exp(log_H + T * np.log(2) + np.log(4) - 2 * np.log(eps))
    return _one_chart(
        "hamming_unconstrained",
        "Hamming loss with full scores, 2^T labels",
        "ε, excess task risk (loss)",
        "4k·H(ε)/ε², no unit",
        columns,
    )


def _level_against_rank() -> Figure:
    """Consistency level over the largest loss, for the leading singular vectors of the loss.

    Only ranks at which singular values differ: within equal ones the vectors are arbitrary.
    """
    ranks = np.arange(2, max(loss.score_space.rank for _, loss in TRUNCATED) + 1)
    columns: dict[str, FloatArray] = {"rank": ranks.astype(np.float64)}
    for name, loss in TRUNCATED:
        levels = np.full(len(ranks), np.nan)
        levels[loss.score_space.rank - 2] = calibration_function(loss).consistency_level
        for family in low_rank_truncations(loss, limit=None):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LabelOrderWarning)  # labels merge at low rank
                curve = calibration_function(loss, family.scores)
            levels[family.scores.rank - 2] = curve.consistency_level / loss.max_value
        columns[name] = levels
    return _one_chart(
        "level_against_rank",
        "Leading singular vectors of the loss as scores",
        "rank of the scores, constant included",
        "consistency level / largest loss, no unit",
        columns,
    )


def _learning_curves() -> Figure:
    """Measured beside guaranteed: four losses, the paper's constants and the known optimum's."""
    return learning_curves_figure(
        {
            name: [
                learning_curve(synthetic_problem(loss), STEPS, variant=variant, repeats=REPEATS)
                for variant in DRAWN
            ]
            for name, loss in LEARNED
        }
    )


def learning_curves_figure(curves: Mapping[str, Sequence[LearningCurve]]) -> Figure:
    """Draw one column of panels per problem: excess surrogate risk above, task risk below."""
    steps = [point.n_steps for point in next(iter(curves.values()))[0].points]
    columns = {"N": np.array(steps, dtype=np.float64)}
    rows: list[tuple[Chart, ...]] = []
    for kind, unit in (("surrogate", "loss²"), ("task", "loss")):
        charts = []
        for name, measured in curves.items():
            series = []
            for number, curve in enumerate(measured):
                # the upper limits are numbers to look up, not lines
                fields = {"measured": kind, "bound": f"{kind}_bound"}
                for what, field in {**fields, "upper 95 % limit": f"{kind}_upper"}.items():
                    column = f"{name}: {kind}, {curve.variant}, {what}"
                    columns[column] = np.array([getattr(p, field) for p in curve.points])
                    if what in fields:
                        label, dashed = f"{what}, constants: {curve.variant}", what == "bound"
                        line = (_numbers(columns["N"]), _positive(columns[column]))
                        series.append(Series(label, *line, style=STYLES[number], dashed=dashed))
            labels = ("", name) if kind == "surrogate" else ("N, examples", "")
            charts.append(
                Chart(
                    f"learning_curves_{kind}",
                    labels[1],
                    "",
                    labels[0],
                    f"excess {kind} risk ({unit})",
                    tuple(series),
                    x_log=True,
                    y_log=True,
                )
            )
        rows.append(tuple(charts))
    title = "The paper's algorithm on problems with known risks, and its guarantee"
    return Figure("learning_curves", title, columns, tuple(rows))


def hardness_figure(study: HardnessStudy) -> Figure:
    """Draw examples to reach ε against k_eff, the norm of the optimum, and the anchors."""
    columns = {
        "k_eff": np.array([row.effective_classes for row in study.rows]),
        "norm of the optimum": np.array([row.optimum_norm for row in study.rows]),
        "norm · √k_eff": np.array([row.calibrated_norm for row in study.rows]),
        "anchors": np.array([row.n_anchors for row in study.rows], dtype=np.float64),
        "noise": np.array([row.noise for row in study.rows]),
        "log2 labels": np.array([math.log2(row.loss.n_labels or 1) for row in study.rows]),
    }
    families = list(dict.fromkeys(row.family for row in study.rows))
    for family in families:
        reached = [row.reached if row.family == family else math.nan for row in study.rows]
        columns[f"N, {family}"] = np.array(reached)
    charts = []
    for x, x_label, explained_by in (
        ("k_eff", "k_eff, effective classes", "k_eff"),
        ("norm · √k_eff", "norm of the optimum, ‖W*‖·√k_eff (loss)", "‖W*‖·√k_eff"),
        ("anchors", "distributions to be learned", "anchors"),
    ):
        series = tuple(
            Series(
                family,
                _numbers(columns[x]),
                _positive(columns[f"N, {family}"]),
                "points",
                style=STYLES[number % len(STYLES)],
            )
            for number, family in enumerate(families)
        )
        charts.append(
            Chart(
                f"who_is_hard_{x}",
                _explained(study, explained_by),
                "",
                x_label,
                f"examples needed for an excess of {study.eps:g} (loss)",
                series,
                x_log=True,
                y_log=True,
            )
        )
    title = "What explains how many examples are needed?"
    return Figure("who_is_hard", title, columns, (tuple(charts),))


def _explained(study: HardnessStudy, name: str) -> str:
    """How much of the variance of log N is explained, alone and beside the noise."""
    shares = {fit.explained_by: fit.r_squared for fit in study.fits}
    if (name,) not in shares:
        return ""
    beside = shares.get((name, "signal"))
    return f"R² = {shares[name,]:.2f}" + (
        "" if beside is None else f" alone, {beside:.2f} with the noise"
    )


def _numbers(values: FloatArray) -> tuple[float | None, ...]:
    return tuple(float(value) if math.isfinite(value) else None for value in values)


def _positive(values: FloatArray) -> tuple[float | None, ...]:
    """Leave out risks of exactly 0, which have no logarithm."""
    return _numbers(np.where(values > 0, values, np.nan))


FIGURES: dict[str, Callable[[], Figure]] = {
    "figure_1a": _figure_1a,
    "figure_1b": _figure_1b,
    "hamming_unconstrained": _hamming_unconstrained,
    "level_against_rank": _level_against_rank,
    "learning_curves": _learning_curves,
    "who_is_hard": lambda: hardness_figure(hardness_study()),
}
CAPTIONS: dict[str, str] = {
    "figure_1a": "Figure 1a. Hamming loss: free scores (red) and its own scores (blue).",
    "figure_1b": "Figure 1b. Mixed loss: free scores (red) and block scores (blue), 0 up to η/2.",
    "hamming_unconstrained": "Hamming loss with free scores, up to 2^1000 labels: from the lower "
    "bound, 1 (Theorem 7), toward the upper one, 2 (Theorem 8).",
    "level_against_rank": "Consistency level of low-rank truncations, relative to the best "
    "*predictable* label; it is not monotone.",
    "learning_curves": "Excess surrogate and task risk against N, measured and guaranteed "
    "(Theorems 5 and 6).",
    "who_is_hard": "Examples needed against k_eff, ‖W*‖·√k_eff and the number of distributions.",
}
