"""The page of the decision benchmark."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

from benchmarks.decision_cells import CELLS, EXTRA
from benchmarks.measure import machine, table

OURS, FLOOR, PLAIN = "consistruct", "floor", "kernel ridge, unweighted"
PEERS = (
    "two-stage linear",
    "two-stage forest",
    "SPO+ linear",
    "SPO+ on kernel features",
    "perturbed Fenchel–Young",
)
INTRODUCTION = """\
Normalized regret (sum of regrets over sum of best values, 1,000 test rows; smaller is better) after
1,000 training rows of PyEPO's own generators: 5 features, multiplicative noise of half-width 0.5.
*Floor*: the regret of deciding by the true mean costs. Every method gets the same compiled oracles.
SPO+ and perturbed Fenchel–Young are PyEPO's, a linear layer trained by Adam (rate 0.01, 30 epochs,
batches of 32, 3 samples of noise 1) from least squares on; "on kernel features" is SPO+ on the
landmark features of the kernel ridge row, from its solution on. Ours is
`StructuredPredictor(Decision(oracle))` by its defaults. Seconds are processor time of fitting and
predicting, one thread, choices included, of a machine that others used at the same time: compare
them within a row. Calls are problems that the oracle solved during training. How ours chooses among
its finalists was changed once after nine cells of seed 101 had been seen (regret alone before; since
then squared errors among those that regret cannot tell apart), on the development seeds 1 to 6. After
the first run of all seeds the search was made cheaper twice (penalties from coarse to fine, fewer rows
and landmarks in what is only compared, fewer calls of slow oracles), again on development seeds: seconds
were too many, regrets had been below all peers' already. All figures of ours are from the last rule."""


class Figures:
    """Regrets, seconds and calls by cell, method and seed."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def seeds(self, cell: str) -> list[int]:
        """Seeds for which every method was run."""
        wanted = {FLOOR, OURS, PLAIN, *PEERS}
        found: dict[int, set[str]] = {}
        for row in self.rows:
            if row["cell"] == cell:
                found.setdefault(row["seed"], set()).add(row["method"])
        return sorted(seed for seed, methods in found.items() if wanted <= methods)

    def values(self, cell: str, method: str, key: str = "regret") -> np.ndarray:
        seeds = self.seeds(cell)
        found = {
            row["seed"]: row.get(key, 0.0)
            for row in self.rows
            if row["cell"] == cell and row["method"] == method
        }
        return np.array([found[seed] for seed in seeds], dtype=np.float64)

    def mean(self, cell: str, method: str, key: str = "regret") -> float:
        return float(self.values(cell, method, key).mean())


def page(rows: list[dict[str, Any]], seeds: tuple[int, ...], marketing: Any = None) -> str:
    """The whole page; cells that were not run are named."""
    figures = Figures(rows)
    run = [cell for cell in (*CELLS, *EXTRA) if figures.seeds(cell)]
    missing = [cell for cell in (*CELLS, *EXTRA) if not figures.seeds(cell)]
    counts = sorted({len(figures.seeds(cell)) for cell in run})
    pieces = [
        "# Decisions: regret of predict-then-optimize",
        "Made by `python -m benchmarks.decisions` and `--stored --write`; do not edit. Numbers: "
        "[decisions.csv](decisions.csv).",
        f"Machine: {machine()}. {_counts(counts, seeds)}"
        + (f" Not run: {', '.join(missing)}." if missing else ""),
        INTRODUCTION.replace("\n", " "),
        verdicts(figures, run),
        "## Regret\n\n" + regrets(figures, run),
        "## Time and oracle calls\n\n" + times(figures, run),
        ortools(rows),
    ]
    if marketing is not None:
        pieces.append(marketing_section(marketing))
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


def _counts(counts: list[int], seeds: tuple[int, ...]) -> str:
    fixed = f"Seeds fixed before the first run: {', '.join(map(str, seeds))}."
    if counts == [len(seeds)]:
        return fixed
    shown = " to ".join(map(str, sorted({counts[0], counts[-1]}))) if counts else "0"
    return f"{fixed} **Reduced run: the first {shown} of these ten.**"


def verdicts(figures: Figures, run: list[str]) -> str:
    """What the page must show, cell by cell, as it came out."""
    main = [cell for cell in run if cell in CELLS]
    lines = []
    won, lost = [], []
    for cell in main:
        best = min(PEERS, key=lambda name: figures.mean(cell, name))
        gap = figures.values(cell, OURS) - figures.values(cell, best)
        error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else 0.0
        tied = cell.endswith(":1") and gap.mean() <= 2 * error
        (won if gap.mean() <= 0 or tied else lost).append((cell, best, float(gap.mean())))
    lines.append(
        f"- Mean regret at most that of the best peer in {len(won)} of {len(main)} cells"
        + (" (at degree 1 also within two standard errors)." if won else ".")
        + "".join(f" Not in {cell}: {gap:+.4f} against “{best}”." for cell, best, gap in lost)
    )
    for cell in (cell for cell in run if cell in EXTRA):
        best = min(PEERS, key=lambda name: figures.mean(cell, name))
        ratio = figures.mean(cell, OURS) / figures.mean(cell, best)
        lines.append(f"- {cell}: {ratio:.3f} times the mean of the best peer, “{best}”.")
    six = [cell for cell in main if cell.endswith(":6")]
    if six:
        excess = {
            name: np.mean([figures.mean(c, name) - figures.mean(c, FLOOR) for c in six])
            for name in (OURS, PLAIN)
        }
        lines.append(
            f"- Excess over the floor at degree 6, mean over {len(six)} cells: {excess[OURS]:.4f}, "
            f"{excess[OURS] / excess[PLAIN]:.2f} of that of unweighted kernel ridge "
            f"({excess[PLAIN]:.4f})."
        )
    ratios = [
        figures.mean(cell, OURS, "seconds") / figures.mean(cell, "SPO+ linear", "seconds")
        for cell in run
    ]
    if ratios:
        lines.append(
            f"- Processor time over that of SPO+ linear with compiled oracles: "
            f"{min(ratios):.2f} to {max(ratios):.2f} (geometric mean "
            f"{np.exp(np.mean(np.log(ratios))):.2f})."
        )
    return "\n".join(lines)


def regrets(figures: Figures, run: list[str]) -> str:
    names = (FLOOR, OURS, PLAIN, *PEERS)
    rows = []
    for cell in run:
        means = [figures.mean(cell, name) for name in names]
        best = min(means[1:])
        shown = [f"**{m:.4f}**" if m == best and i else f"{m:.4f}" for i, m in enumerate(means)]
        rows.append((cell, str(len(figures.seeds(cell))), *shown))
    return table(("cell:degree", "seeds", *names), rows)


def times(figures: Figures, run: list[str]) -> str:
    names = (OURS, "two-stage forest", "SPO+ linear", "SPO+ on kernel features",
             "perturbed Fenchel–Young")  # fmt: skip
    rows = [
        (
            cell,
            *(
                f"{figures.mean(cell, name, 'seconds'):.2f} s, "
                f"{figures.mean(cell, name, 'calls'):,.0f}"
                for name in names
            ),
        )
        for cell in run
    ]
    return table(("cell:degree", *(f"{name}: s, calls" for name in names)), rows)


def ortools(rows: list[dict[str, Any]]) -> str:
    """Both with OR-Tools as the oracle, one seed."""
    found = [row for row in rows if row["cell"].endswith("by OR-Tools")]
    if not found:
        return ""
    lines = [
        (row["cell"], row["method"], f"{row['regret']:.4f}", f"{row['seconds']:.1f}",
         f"{row['calls']:,}")
        for row in found
    ]  # fmt: skip
    ratios = []
    for cell in dict.fromkeys(row["cell"] for row in found):
        seconds = {row["method"]: row["seconds"] for row in found if row["cell"] == cell}
        if len(seconds) == 2:
            ratios.append(f"{cell}: 1/{seconds['SPO+ linear'] / seconds[OURS]:.0f}")
    head = ("cell", "method", "regret", "processor s", "calls")
    stated = "The run of SPO+ did not end."
    if ratios:
        stated = f"Ours takes, of the processor time of SPO+: {'; '.join(ratios)}."
    return f"## With OR-Tools as the oracle, one seed\n\n{stated}\n\n" + table(head, lines)


def marketing_section(found: dict[str, Any]) -> str:
    """Calls to at most 5 % of the customers."""
    rows = [
        (name, f"{one['profit']:,.0f}", one["gap"], f"{one['called']:,}")
        for name, one in found["rows"].items()
    ]
    return (
        f"## A budget: call at most 5 % of {found['customers']:,} customers\n\n{found['text']}\n\n"
        + table(("ranking by", "profit", "ours − it [95 %]", "customers called"), rows)
    )


def write_csv(rows: list[dict[str, Any]], path: Any) -> None:
    names = ("cell", "seed", "method", "regret", "seconds", "calls")
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, names, lineterminator="\n", restval="")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _short(row.get(key, "")) for key in names})


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
