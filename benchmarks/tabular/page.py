"""The page and the CSV file, from measured cells alone."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import data as sources
from benchmarks.measure import table
from benchmarks.tabular.costs import Cell, Figures, figures, geometric_mean, with_interval
from benchmarks.tabular.large import LargeRow, large_section
from benchmarks.tabular.measured import versions
from benchmarks.tabular.peers import CATBOOST_ROUNDS, RECIPE, TREES
from benchmarks.tabular.run import ARGMAX, BAYES, MODELS, OURS

__all__ = ["Summary", "page", "summarize", "write_csv"]

COLUMNS = (
    *("data", "costs", "model", "mean_cost", "over_best_peer"),
    *("ours_minus_it", "low", "high", "processor_s", "wall_s"),
)
HINDSIGHT, FIXED, PAGE_BLOCKS = 1.05, 0.95, 1.05
INTRODUCTION = f"""\
A table, a cost for each kind of mistake, and the recipe that every practitioner knows: a model with
probabilities, then the decision of least expected cost ("Bayes decisions"). All peers below decide
so; rows "argmax" ignore the costs and are there for reference. Ours runs with its default settings
on the same raw columns as boosting does (codes of categories, NaN for missing), not given which
columns are categories, which peers are; its second row gets a DataFrame that tells it too.
Forests have {TREES} trees, CatBoost {CATBOOST_ROUNDS} rounds, the rest are defaults; "isotonic"
is scikit-learn's CalibratedClassifierCV on five folds. Five folds, every row tested once; classes
of fewer than ten rows are left out (one of yeast, one grade of wine). Costs: *proportional* are
random, uniform on [0, 2000·n_c/n_t] for predicting c when t is true (Abe, Zadrozny, Langford 2004),
drawn anew for each split; *published* come with the data; *rare class 10:1* makes every mistake on
the smallest class cost 10 and all others 1. Intervals are 95 %, by a bootstrap of the rows of each
table, the same rows for all models and costs of it; the best peer in hindsight is found anew in
every draw, so intervals of that ratio lean to larger values. Seconds are of fitting and predicting,
one thread, summed over splits; a peer's fit serves all costs, ours is fitted for each."""


@dataclass(frozen=True, eq=False)
class Summary:
    """What the page states first; `met` is None where a run is too small to say."""

    hindsight: float
    fixed: dict[str, float]
    worse: list[str]  # data sets where ours is significantly worse than the recipe
    page_blocks: float | None

    @property
    def met(self) -> bool:
        return (
            self.hindsight <= HINDSIGHT
            and max(self.fixed.values()) <= FIXED
            and not self.worse
            and (self.page_blocks is None or self.page_blocks <= PAGE_BLOCKS)
        )


def _columns(names: tuple[str, ...]) -> list[int]:
    return [MODELS.index(name) for name in names]


def hindsight_ratio(means: np.ndarray, model: str = OURS[0]) -> np.ndarray:
    """Cost over that of the best peer of each cell, (…, cells)."""
    best = means[..., _columns(BAYES)].min(axis=-1)
    return np.asarray(means[..., MODELS.index(model)] / best)


def ratio_to(means: np.ndarray, peer: str, model: str = OURS[0]) -> np.ndarray:
    """Cost of ours over that of one peer, (…, cells)."""
    return np.asarray(means[..., MODELS.index(model)] / means[..., MODELS.index(peer)])


def _of_data(cells: list[Cell], data: str) -> list[int]:
    return [i for i, cell in enumerate(cells) if cell.data == data]


def _data_sets(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.data for cell in cells))


def summarize(cells: list[Cell], found: Figures) -> Summary:
    """The figures that the targets are about."""
    worse = []
    for data in _data_sets(cells):
        drawn = geometric_mean(ratio_to(found.resampled[:, _of_data(cells, data)], RECIPE))
        if np.quantile(drawn, 0.025) > 1.0:
            worse.append(data)
    places = _of_data(cells, "page_blocks")
    return Summary(
        hindsight=float(geometric_mean(hindsight_ratio(found.means))),
        fixed={peer: float(geometric_mean(ratio_to(found.means, peer))) for peer in BAYES},
        worse=worse,
        page_blocks=float(geometric_mean(hindsight_ratio(found.means[places]))) if places else None,
    )


def _targets(summary: Summary) -> str:
    hardest = max(summary.fixed, key=summary.fixed.__getitem__)
    rows = [
        ("best peer in hindsight, geometric mean over cells", f"at most {HINDSIGHT}",
         f"{summary.hindsight:.3f}", summary.hindsight <= HINDSIGHT),
        ("every fixed peer", f"at most {FIXED}",
         f"{summary.fixed[hardest]:.3f} ({hardest})", summary.fixed[hardest] <= FIXED),
        (f"significantly worse than “{RECIPE}” on", "no table",
         ", ".join(summary.worse) or "none", not summary.worse),
    ]  # fmt: skip
    if summary.page_blocks is not None:
        good = summary.page_blocks <= PAGE_BLOCKS
        rows.append(("page-blocks, best peer in hindsight", f"at most {PAGE_BLOCKS}",
                     f"{summary.page_blocks:.3f}", good))  # fmt: skip
    return table(
        ("cost of ours over that of", "target", "measured", "met"),
        [(*row[:3], "yes" if row[3] else "**no**") for row in rows],
    )


def _overall(cells: list[Cell], found: Figures) -> str:
    """Every model: its ratio to the best peer in hindsight, ours over it, its time."""
    rows = []
    first_of_table = [_of_data(cells, data)[0] for data in _data_sets(cells)]
    for place, name in enumerate(MODELS):
        ours = "" if name in OURS else with_interval(
            float(geometric_mean(ratio_to(found.means, name))),
            geometric_mean(ratio_to(found.resampled, name)),
        )  # fmt: skip
        # a peer is fitted once per table and split, ours for each kind of costs
        count = range(len(cells)) if name in OURS else first_of_table
        rows.append(
            (
                name,
                with_interval(
                    float(geometric_mean(hindsight_ratio(found.means, name))),
                    geometric_mean(hindsight_ratio(found.resampled, name)),
                ),
                ours,
                f"{sum(cells[i].processor[place] for i in count) / len(count):.1f}",
                f"{sum(cells[i].wall[place] for i in count) / len(count):.1f}",
            )
        )
    header = (
        "model",
        "over the best peer in hindsight",
        "ours over it",
        "processor s per table",
        "by the clock",
    )
    return table(header, rows)


def _by_table(cells: list[Cell], found: Figures) -> str:
    rows = []
    for data in _data_sets(cells):
        places = _of_data(cells, data)
        drawn = found.resampled[:, places]
        rows.append(
            (
                data,
                with_interval(
                    float(geometric_mean(ratio_to(found.means[places], RECIPE))),
                    geometric_mean(ratio_to(drawn, RECIPE)),
                ),
                with_interval(
                    float(geometric_mean(hindsight_ratio(found.means[places]))),
                    geometric_mean(hindsight_ratio(drawn)),
                ),
            )
        )
    return table(("data", f"ours over “{RECIPE}”", "ours over the best peer in hindsight"), rows)


def _by_cell(cells: list[Cell], found: Figures) -> str:
    rows = []
    recipe, peers, argmax = MODELS.index(RECIPE), _columns(BAYES), _columns(ARGMAX)
    for cell, means, drawn in zip(cells, found.means, found.resampled.swapaxes(0, 1), strict=True):
        best = peers[int(means[peers].argmin())]
        rows.append(
            (
                cell.data,
                cell.costs,
                *(f"{means[MODELS.index(name)]:.4g}" for name in OURS),
                f"{means[best]:.4g} ({MODELS[best]})",
                f"{means[recipe]:.4g}",
                f"{means[argmax].min():.4g}",
                with_interval(means[0] / means[recipe], drawn[:, 0] / drawn[:, recipe]),
            )
        )
    header = (
        "data",
        "costs",
        "ours",
        "ours, categories marked",
        "best peer",
        RECIPE,
        "best argmax",
        f"ours over “{RECIPE}”",
    )
    return table(header, rows)


def _machines(cells: list[Cell]) -> str:
    """Where the models were measured; their times compare only on one machine."""
    where: dict[str, list[str]] = {}
    for cell in cells:
        for model, place in zip(MODELS, cell.machines, strict=True):
            models = where.setdefault(place, [])
            if model not in models and model not in ARGMAX:
                models.append(model)
    if len(where) == 1:
        return next(iter(where))
    most = max(where, key=lambda place: len(where[place]))
    rest = [f"{', '.join(models)}: {place}" for place, models in where.items() if place != most]
    return f"{most}; except for {'; '.join(rest)}"


def page(cells: list[Cell], large: list[LargeRow], note: str = "") -> str:
    """The whole page; `note` states what is special about a run that is not the published one."""
    found = figures(cells)
    summary = summarize(cells, found)
    parts = [
        "# Tables with costs: ours against models with Bayes decisions",
        note
        or "Made by `python -m benchmarks.tabular --write`; do not edit. Every cost of every model "
        "is in [tabular.csv](tabular.csv).",
        f"Machine: {_machines(cells)}. {versions(('lightgbm', 'catboost'))}.",
        INTRODUCTION.replace("\n", " "),
        "## Targets",
        _targets(summary),
        "## All tables",
        "Geometric means over cells (a table under one kind of costs); less is better.",
        _overall(cells, found),
        "## By table",
        _by_table(cells, found),
        "## By cell",
        "Mean cost of a row.",
        _by_cell(cells, found),
        *([large_section(large)] if large else []),
        "## Data",
        table(
            ("data", "what", "source", "SHA-256"),
            [
                (data, source.task, source.origin, f"{source.sha256[:16]}…")
                for data in _data_sets(cells)
                for source in [sources.SOURCES[f"tab_{data}"]]
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def write_csv(cells: list[Cell], path: Path) -> None:
    """One line per cell and model."""
    found = figures(cells)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        header = (
            "data,costs,model,mean_cost,over_best_peer,ours_minus_it,low,high,processor_s,wall_s"
        )
        writer.writerow(header.split(","))
        for i, cell in enumerate(cells):
            ratios = found.means[i] / found.means[i, _columns(BAYES)].min()
            gaps = found.resampled[:, i, :1] - found.resampled[:, i]
            low, high = np.quantile(gaps, [0.025, 0.975], axis=0)
            for j, model in enumerate(MODELS):
                figures_ = (
                    found.means[i, j], ratios[j], found.means[i, 0] - found.means[i, j],
                    low[j], high[j], cell.processor[j], cell.wall[j],
                )  # fmt: skip
                writer.writerow([cell.data, cell.costs, model, *(f"{v:.6g}" for v in figures_)])
