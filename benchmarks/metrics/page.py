"""The results page and its plot, from measured rows alone."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import BinaryIO

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks import data as sources
from benchmarks.measure import machine, table
from benchmarks.metrics.rows import METRICS, Row
from benchmarks.metrics.targets import judge

__all__ = ["draw", "machine_with_peers", "page", "section"]

BLUE, GREEN, RED = "#4477aa", "#228833", "#cc3311"
COLORS = {"usual": BLUE, "features": GREEN, "linear": BLUE, "kernel": GREEN, "boosting": RED}
LEGEND = {BLUE: "usual or linear", GREEN: "on our features, or a kernel", RED: "boosted trees"}
ELSEWHERE = [
    ("imclef07a", "path length in the label tree", "[learning](learning.md), part (a)"),
    ("ocr_letters", "Hamming loss of the letters", "[sequences](sequences.md)"),
    ("conll2000", "Hamming loss of the tags, chunk F1", "[sequences](sequences.md)"),
]
INTRODUCTION = """\
Ours runs with its default settings. Peers get the same care as ours: settings, and thresholds
where there are any, are chosen on the training part by the metric that is reported. "On our
features": the fitted feature map of our model. *Gain* is by how much ours is better (positive:
ours wins, whether more or less of the metric is better), with its 95 % interval by a paired
bootstrap of the test examples (queries, for NDCG). Seconds are processor seconds of fitting,
choosing settings included on both sides; for folds, their sum. Compiled code was compiled before.
Ours and the logistic regression at ½ on label sets are fitted three times in turns, and the
least time counts, with seconds by the clock in brackets."""
NOTES = {
    "f1": "F1 of two empty sets is 1. The F1 decoder assumes independent labels and is exact then; "
    "it gives the empty set no credit where no training example is empty.",
    "hamming": "",
    "mae": "Ten stratified folds; every example is predicted once.",
    "ndcg": "Gain 2^grade − 1, discount 1/log2(1 + position), no cut-off; a query without relevant "
    "items counts 1.",
    "ndcg10": "The same with a cut-off at ten; lambdarank was tuned for it.",
    "tau": "Three folds; every example is predicted once.",
}


def machine_with_peers() -> str:
    """Where a data set was measured, with the versions of the peers."""
    installed = [name for name in ("lightgbm", "mord") if find_spec(name) is not None]
    return ", ".join([machine(), *(f"{name} {version(name)}" for name in installed)])


def section(rows: list[Row]) -> str:
    """Title, notes and table of one data set and metric."""
    data, metric = rows[0].data, rows[0].metric
    shown = METRICS[metric]
    direction = "more is better" if shown.greater_is_better else "less is better"
    lines = [
        (
            row.model,
            f"{row.mean:.{shown.digits}f}",
            ""
            if row.kind == "ours"
            else f"{row.gain:+.{shown.digits}f} "
            f"[{row.low:+.{shown.digits}f}, {row.high:+.{shown.digits}f}]",
            f"{row.seconds:.1f}" + ("" if np.isnan(row.clock) else f" ({row.clock:.1f})"),
            row.settings,
        )
        for row in rows
    ]
    unit = "queries" if metric.startswith("ndcg") else "examples"
    note = f"{rows[0].n} {unit} predicted; {direction}. {NOTES[metric]}".strip()
    header = ("model", shown.title, "gain of ours [95 %]", "fit s", "chosen")
    return f"## {data}: {shown.title}\n\n{note}\n\n" + table(header, lines)


def by_section(rows: list[Row]) -> list[list[Row]]:
    """Rows of each data set and metric, in the order they were measured."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.data, row.metric), []).append(row)
    return list(groups.values())


def page(rows: list[Row], machines: dict[str, str]) -> str:
    """The whole page."""
    verdicts = judge(rows)
    met = sum(verdict.met for verdict in verdicts)
    data = list(dict.fromkeys(row.data for row in rows))
    where: dict[str, list[str]] = {}
    for name in data:
        where.setdefault(machines[name], []).append(name)
    measured_on = "; ".join(f"{', '.join(names)}: {text}" for text, names in where.items())
    if len(where) == 1:
        measured_on = next(iter(where))
    parts = [
        "# Metrics that predictions are reported by: our defaults against what people use",
        "Made by `python -m benchmarks.metrics --write`; do not edit. The numbers are in "
        "[metrics.csv](metrics.csv).",
        f"Machine: {measured_on}.",
        INTRODUCTION.replace("\n", " "),
        "![gain of ours over each peer](metrics.png)",
        f"## Targets: {met} of {len(verdicts)} met",
        table(
            ("target", "measured", "met"),
            [(v.target, v.measured, "yes" if v.met else "**no**") for v in verdicts],
        ),
        boosting(rows),
        *[section(group) for group in by_section(rows)],
        "## Data sets reported elsewhere",
        table(("data", "judged by", "page"), ELSEWHERE),
        "## Data",
        table(
            ("data", "what", "source", "SHA-256"),
            [
                (name, source.task, source.origin, f"{source.sha256[:16]}…")
                for name, source in sources.SOURCES.items()
                if name in data
            ],
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def boosting(rows: list[Row]) -> str:
    """Where gradient boosting wins, and by how much."""
    lines = []
    for row in rows:
        if row.kind == "boosting":
            title = METRICS[row.metric].title
            verb = "is ahead of ours" if row.gain < 0 else "is behind ours"
            sure = "" if row.low > 0 or row.high < 0 else "; the interval of the gain holds 0"
            lines.append(
                f"- {row.data}: {row.model} {verb} by {abs(row.gain):.4f} of {title} "
                f"(gain of ours [{row.low:+.4f}, {row.high:+.4f}]{sure})."
            )
    return "## Gradient boosting\n\n" + "\n".join(lines) if lines else ""


def draw(rows: list[Row], stream: BinaryIO) -> None:
    """Gains with their intervals as PNG, one panel per data set and metric."""
    groups = by_section(rows)
    heights = [len(group) - 1 for group in groups]
    with matplotlib.rc_context({"font.size": 8, "savefig.dpi": 110}):
        figure = Figure(
            figsize=(11, 0.23 * sum(heights) + 0.75 * len(groups)), layout="constrained"
        )
        panels = figure.subplots(
            len(groups), 1, squeeze=False, gridspec_kw={"height_ratios": [h + 2 for h in heights]}
        )[:, 0]
        for panel, group in zip(panels, groups, strict=True):
            ours, peers = group[0], group[1:]
            for place, row in enumerate(peers):
                color = COLORS[row.kind]
                panel.plot([row.low, row.high], [place, place], color=color, linewidth=2)
                panel.plot(row.gain, place, "o", color=color, markersize=4)
            panel.axvline(0.0, color="black", linewidth=0.8)
            panel.set_yticks(range(len(peers)), [row.model for row in peers])
            panel.set_ylim(len(peers) - 0.5, -0.5)
            shown = METRICS[ours.metric]
            panel.set_title(
                f"{ours.data}, {shown.title}: ours {ours.mean:.{shown.digits}f}", loc="left"
            )
            panel.grid(axis="x", alpha=0.3)
            panel.spines[["top", "right"]].set_visible(False)
        panels[-1].set_xlabel(
            "gain of ours over the peer, 95 % interval (right of 0: ours is better)"
        )
        marks = [Line2D([], [], color=color, marker="o", markersize=4) for color in LEGEND]
        figure.legend(marks, list(LEGEND.values()), loc="outside upper right", ncols=len(marks))
        figure.savefig(stream, format="png", metadata={"Software": None})
