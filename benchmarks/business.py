"""Costs of each customer: savings of ours, of cost-sensitive libraries and of Bayes decisions.

    python -m benchmarks.business --quick      # 4,000 training rows of each set, one split
    python -m benchmarks.business --held-out   # training part of the first split, cut again
    python -m benchmarks.business --write      # the real run; writes benchmarks/results/business.*

Fits are kept in benchmarks/cache, as those of `benchmarks.tabular`. empulse (AGPL) is a peer of the
bench extra only; without it its rows are left out and the page states it.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks import data as sources
from benchmarks.measure import RESULTS, machine, table
from benchmarks.tabular.costs import Cell, Figures, figures
from benchmarks.tabular.measured import (
    Job,
    Measured,
    data_key,
    measure_all,
    package_digest,
    probabilities,
    versions,
)
from benchmarks.tabular.peers import PEERS, RECIPE, Peer, calibrated, one_hot
from consistruct.learning import TaskLossClassifier

SETS = ("bank_marketing", "credit_kaggle")
SPLITS = 3
QUICK_ROWS = 4000
WARM_ROWS = 6000  # of a fit before time is taken: as many as `model="auto"` treats as a large table
OURS = "consistruct"
EMPULSE = ("CSLogit", "CSBoost", "CSForest")
ISOTONIC = ("logistic regression", RECIPE, "LightGBM")
TUNED = ("logistic regression", RECIPE)  # models that also get one threshold for all
INTRODUCTION = """\
Two classes, and what each mistake costs *for this customer* (Correa Bahnsen et al. 2014): known
when the decision is taken, so every model may use it. *Savings*: share of the cost of the best
single decision for all that is saved. "Bayes": the decision of least expected cost under the
model's probabilities and the costs of this customer. "One threshold": the same for all customers,
the one of lowest cost on five folds of the training part. "At ½": costs are ignored. empulse's models learn
from the costs and decide by themselves, by their defaults: CSLogit on the one-hot columns of the
linear models, the trees on codes of categories. Three folds, every customer tested once. Intervals
are 95 %, by a bootstrap of the customers, the same ones for all models. Seconds are of fitting and
predicting, one thread, summed over splits; every model was fitted on 6,000 rows just before, so
that what it imports and compiles is at hand."""


@dataclass(frozen=True, eq=False)
class Business:
    """A table with costs (n, 2, 2): decision, true label."""

    name: str
    X: np.ndarray
    y: np.ndarray
    categorical: np.ndarray
    costs: np.ndarray


@dataclass(frozen=True, eq=False)
class Part:
    """One split."""

    number: int
    train: np.ndarray
    test: np.ndarray


def read_business(name: str) -> Business:
    """The file's columns are false positive, false negative, true positive, true negative."""
    with np.load(sources.data_file(f"business_{name}")) as archive:
        false_pos, false_neg, true_pos, true_neg = archive["costs"].astype(np.float64).T
        costs = np.stack(
            [np.stack([true_neg, false_neg], axis=1), np.stack([false_pos, true_pos], axis=1)],
            axis=1,
        )
        X, y = archive["X"].astype(np.float64), archive["y"].astype(np.int64)
        return Business(name, X, y, archive["categorical"].copy(), costs)


def parts_of(data: Business, *, quick: bool, held_out: bool) -> list[Part]:
    """Three folds; `held_out` and `quick` cut the training part of the first again."""
    folds = StratifiedKFold(SPLITS, shuffle=True, random_state=0)
    parts = list(folds.split(data.X, data.y))
    if quick or held_out:
        rows = parts[0][0]
        again = StratifiedKFold(SPLITS, shuffle=True, random_state=1)
        parts = [(rows[a], rows[b]) for a, b in again.split(data.X[rows], data.y[rows])]
    if quick:
        rng = np.random.default_rng(0)
        parts = [(rng.permutation(a)[:QUICK_ROWS], rng.permutation(b)[:QUICK_ROWS])
                 for a, b in parts[:1]]  # fmt: skip
    return [Part(i, train, test) for i, (train, test) in enumerate(parts)]


# --- what is fitted ------------------------------------------------------------------------------


def chances(peer: Peer, data: Business, part: Part) -> np.ndarray:
    """Probabilities of the test rows, (n, 2)."""
    model = peer.make(data.categorical).fit(data.X[part.train], data.y[part.train])
    return probabilities(model, data.X[part.test], 2)


def best_threshold(peer: Peer, data: Business, part: Part) -> np.ndarray:
    """The threshold on p(1) of least cost on five folds of the training part, (1,)."""
    X, y, costs = data.X[part.train], data.y[part.train], data.costs[part.train]
    model = peer.make(data.categorical)
    chance = cross_val_predict(model, X, y, cv=5, method="predict_proba")[:, 1]
    return np.array([lowest_cost_threshold(chance, y, costs)])


def lowest_cost_threshold(chance: np.ndarray, y: np.ndarray, costs: np.ndarray) -> float:
    """Deciding 1 where `chance` is at least the threshold costs least in all."""
    order = np.argsort(-chance, kind="stable")
    real = costs[np.arange(len(y)), :, y]  # (n, 2): of both decisions
    extra = np.cumsum((real[:, 1] - real[:, 0])[order])  # of deciding 1 for the first ones
    ends = np.flatnonzero(np.append(np.diff(chance[order]) != 0, True))
    best = int(extra[ends].argmin())
    return float(chance[order][ends[best]]) if extra[ends[best]] < 0 else np.inf


def empulse_decisions(name: str, data: Business, part: Part) -> np.ndarray:
    from empulse import models
    from xgboost import XGBClassifier

    settings: dict[str, dict[str, Any]] = {
        "CSLogit": {},
        "CSBoost": {"estimator": XGBClassifier(n_jobs=1, random_state=0)},
        "CSForest": {"n_jobs": 1, "random_state": 0},
    }
    model = getattr(models, f"{name}Classifier")(**settings[name])
    # in units of the mean: the forest alone depends on the unit, in no clear direction
    costs = data.costs[part.train] / data.costs[part.train].mean()
    X, X_test = data.X[part.train], data.X[part.test]
    if name == "CSLogit":
        encoder = one_hot(data.categorical).fit(X)
        X, X_test = encoder.transform(X), encoder.transform(X_test)
    model.fit(
        X,
        data.y[part.train],
        tn_cost=costs[:, 0, 0],
        fn_cost=costs[:, 0, 1],
        fp_cost=costs[:, 1, 0],
        tp_cost=costs[:, 1, 1],
    )
    return np.asarray(model.predict(X_test)).astype(np.int64)


def our_decisions(data: Business, part: Part) -> np.ndarray:
    ours: Any = TaskLossClassifier(model="auto", rows="pred", random_state=0, n_jobs=1)
    ours.fit(data.X[part.train], data.y[part.train], costs=data.costs[part.train])
    return np.asarray(ours.predict(data.X[part.test], costs=data.costs[part.test]))


# --- decisions and their costs -------------------------------------------------------------------


def has_empulse() -> bool:
    return find_spec("empulse") is not None


def models_of() -> tuple[str, ...]:
    """Rows of the page, ours first."""
    bayes = [f"{peer.name}, Bayes" for peer in bayes_peers()]
    tuned = [f"{name}, one threshold" for name in TUNED]
    half = [f"{name}, at ½" for name in TUNED]
    return (OURS, *(EMPULSE if has_empulse() else ()), *bayes, *tuned, *half)


def bayes_peers() -> list[Peer]:
    return [*PEERS, *(calibrated(peer) for peer in PEERS if peer.name in ISOTONIC)]


def jobs_of(data: Business, part: Part, mode: str) -> dict[str, Job]:
    """Fits by name; the key of each holds everything that its answer depends on."""
    place = f"{data_key(f'business_{data.name}')} {mode} {part.number}"
    few = Part(part.number, part.train[:WARM_ROWS], part.test[:1])

    def job(label: str, depends: str, work: Callable[[Business, Part], np.ndarray]) -> Job:
        title, key = f"{data.name} {part.number} {label}", f"{place} {label} {depends}"
        return Job(title, key, partial(work, data, part), partial(work, data, few))

    found = {OURS: job(OURS, package_digest(), our_decisions)}
    if has_empulse():
        kept = f"codes for trees, costs in units of their mean, {versions(('empulse', 'xgboost'))}"
        for name in EMPULSE:
            found[name] = job(name, kept, partial(empulse_decisions, name))
    for peer in bayes_peers():
        made = f"{peer.make(data.categorical)!r} {versions()}"
        found[peer.name] = job(peer.name, made, partial(chances, peer))
        if peer.name in TUNED:
            key = f"{peer.name}, threshold"
            found[key] = job(key, made, partial(best_threshold, peer))
    return found


def decisions(
    row: str, fits: dict[str, Measured], costs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Decisions of a row of the page and its seconds (processor, wall)."""
    if row in (OURS, *EMPULSE):
        return fits[row].values, np.array([fits[row].processor, fits[row].wall])
    name, rule = row.rsplit(", ", 1)
    fit = fits[name]
    chance = fit.values
    spent = np.array([fit.processor, fit.wall])
    if rule == "Bayes":
        return np.einsum("ict,it->ic", costs, chance).argmin(axis=1), spent
    if rule == "at ½":
        return chance.argmax(axis=1), spent
    chosen = fits[f"{name}, threshold"]
    spent = spent + np.array([chosen.processor, chosen.wall])
    return (chance[:, 1] >= chosen.values[0]).astype(np.int64), spent


def cell_of(data: Business, parts: list[Part], mode: str, n_jobs: int) -> Cell:
    """Losses of every customer under each row, then under the two single decisions."""
    requested = [jobs_of(data, part, mode) for part in parts]
    flat = [(i, name, job) for i, jobs in enumerate(requested) for name, job in jobs.items()]
    done = measure_all([job for *_, job in flat], n_jobs)
    fits: list[dict[str, Measured]] = [{} for _ in parts]
    for (i, name, _), found in zip(flat, done, strict=True):
        fits[i][name] = found
    rows = models_of()
    spent = np.zeros((len(rows), 2))
    losses = []
    for part, own in zip(parts, fits, strict=True):
        costs, y = data.costs[part.test], data.y[part.test]
        real = costs[np.arange(len(y)), :, y]
        columns = []
        for place, row in enumerate(rows):
            taken, seconds = decisions(row, own, costs)
            spent[place] += seconds
            columns.append(real[np.arange(len(y)), taken])
        losses.append(np.column_stack([*columns, real]))
    places = (machine(),) * len(spent)
    return Cell(data.name, "of each customer", np.vstack(losses), spent[:, 0], spent[:, 1], places)


# --- the page ------------------------------------------------------------------------------------


def savings_of(means: np.ndarray) -> np.ndarray:
    """Savings of every row, from mean costs whose last two are those of single decisions."""
    return np.asarray(1.0 - means[..., :-2] / means[..., -2:].min(axis=-1, keepdims=True))


def lines_of(cell: Cell, found: Figures) -> list[tuple[str, float, float, float, float]]:
    """Row, savings, and ours minus it with its interval."""
    saved, drawn = savings_of(found.means[0]), savings_of(found.resampled[:, 0])
    gaps = drawn[:, :1] - drawn
    low, high = np.quantile(gaps, [0.025, 0.975], axis=0)
    return [
        (row, float(saved[i]), float(saved[0] - saved[i]), float(low[i]), float(high[i]))
        for i, row in enumerate(models_of())
    ]


def section(cell: Cell) -> tuple[str, str]:
    """The table of one set, and its verdict."""
    lines = lines_of(cell, figures([cell]))
    best = max(lines[1:], key=lambda line: line[1])
    rows = [
        (
            name,
            f"{saved:.4f}",
            "" if i == 0 else f"{gap:+.4f} [{low:+.4f}, {high:+.4f}]",
            f"{cell.processor[i]:.1f}",
            f"{cell.wall[i]:.1f}",
        )
        for i, (name, saved, gap, low, high) in enumerate(lines)
    ]
    header = ("model", "savings", "ours − it [95 %]", "processor s", "by the clock")
    verdict = (
        f"- {cell.data}: the best peer in hindsight is “{best[0]}”, savings {best[1]:.4f}; ours "
        f"{lines[0][1]:.4f}, difference {best[2]:+.4f} [{best[3]:+.4f}, {best[4]:+.4f}]."
    )
    if "CSBoost" in models_of():
        ratio = cell.processor[0] / cell.processor[models_of().index("CSBoost")]
        verdict += f" Ours takes {ratio:.1f} times the processor time of empulse's boosting."
    text = f"## {cell.data}\n\n{len(cell.losses)} customers tested.\n\n" + table(header, rows)
    return text, verdict


def page(cells: list[Cell], note: str = "") -> str:
    """The whole page; `note` states what is special about a run that is not the published one."""
    parts = [section(cell) for cell in cells]
    peers = ("lightgbm", "catboost", *(("empulse", "xgboost") if has_empulse() else ()))
    missing = "" if has_empulse() else "empulse is not installed here: its rows are missing."
    pieces = [
        "# Costs of each customer: savings",
        note
        or "Made by `python -m benchmarks.business --write`; do not edit. The numbers are in "
        "[business.csv](business.csv).",
        f"Machine: {machine()}, {versions(peers)}. {missing}".strip(),
        INTRODUCTION.replace("\n", " "),
        "\n".join(verdict for _, verdict in parts),
        *(text for text, _ in parts),
    ]
    return "\n\n".join(pieces) + "\n"


def write_csv(cells: list[Cell], path: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(
            ("data", "model", "savings", "ours_minus_it", "low", "high", "processor_s", "wall_s")
        )
        for cell in cells:
            for i, (name, *values) in enumerate(lines_of(cell, figures([cell]))):
                numbers = (*values, cell.processor[i], cell.wall[i])
                writer.writerow([cell.data, name, *(f"{value:.6g}" for value in numbers)])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.business",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="4,000 training rows, one split")
    parser.add_argument("--held-out", action="store_true", help="training parts only")
    parser.add_argument("--only", nargs="+", choices=SETS, help="these sets")
    parser.add_argument("--write", action="store_true", help="write the page and the CSV file")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each (2)")
    chosen = parser.parse_args(arguments)
    if chosen.write and (chosen.quick or chosen.held_out or chosen.only):
        parser.error("--write is for the whole run; leave out --quick, --held-out and --only")
    mode = "quick" if chosen.quick else f"held_out={chosen.held_out}"
    cells = []
    for name in chosen.only or SETS:
        data = read_business(name)
        parts = parts_of(data, quick=chosen.quick, held_out=chosen.held_out)
        cells.append(cell_of(data, parts, mode, chosen.jobs))
    development = chosen.quick or chosen.held_out
    note = "**Not the published figures**: "
    if development:
        note += "a run for development, on training rows of the first fold alone."
    elif chosen.only:
        note += f"only {', '.join(chosen.only)}."
    text = page(cells, note if development or chosen.only else "")
    print(text)
    if chosen.write:
        (RESULTS / "business.md").write_text(text, encoding="utf-8")
        write_csv(cells, RESULTS / "business.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
