"""A table of 200,000 rows: does the default stay affordable where fits take long?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.measure import table
from benchmarks.tabular.measured import Job, measure_all, package_digest, versions
from benchmarks.tabular.peers import RECIPE, bayes_decisions
from benchmarks.tabular.tables import proportional_costs
from consistruct.learning import TaskLossClassifier
from consistruct.losses import CostMatrix

__all__ = ["LargeRow", "large_rows", "large_section"]

ROWS, TEST, COLUMNS, CLASSES = 200_000, 50_000, 50, 4
TIMES = 3.0
BOOSTING = "HistGradientBoosting"


@dataclass(frozen=True)
class LargeRow:
    """One model: cost of each test row on the mean, its standard error, processor seconds."""

    model: str
    cost: float
    error: float
    processor: float


def _data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_classification(
        ROWS + TEST,
        COLUMNS,
        n_informative=20,
        n_redundant=10,
        n_classes=CLASSES,
        n_clusters_per_class=3,
        weights=[0.6, 0.25, 0.1, 0.05],
        random_state=0,
    )
    return X, y, proportional_costs(np.bincount(y[:ROWS], minlength=CLASSES), seed=0)


def _decisions(name: str) -> np.ndarray:
    X, y, costs = _data()
    train, test = X[:ROWS], X[ROWS:]
    if name == "consistruct":
        ours: Any = TaskLossClassifier(CostMatrix(costs, rows="pred"), random_state=0, n_jobs=1)
        return np.asarray(ours.fit(train, y[:ROWS]).predict(test))
    model = HistGradientBoostingClassifier(
        early_stopping="auto" if name == BOOSTING else True, random_state=0
    ).fit(train, y[:ROWS])
    return bayes_decisions(model.predict_proba(test), costs)


def large_rows(n_jobs: int) -> list[LargeRow]:
    """Ours and boosting, each measured once."""
    names = ("consistruct", BOOSTING, RECIPE)
    sizes = f"large {ROWS} {TEST} {COLUMNS} {CLASSES}"
    jobs = [
        Job(
            f"{sizes} {name}",
            f"{sizes} {name} {package_digest() if name == 'consistruct' else versions()}",
            partial(_decisions, name),
        )
        for name in names
    ]
    _, y, costs = _data()
    found = []
    for name, fit in zip(names, measure_all(jobs, n_jobs), strict=True):
        losses = costs[fit.values, y[ROWS:]]
        error = float(losses.std() / np.sqrt(TEST))
        found.append(LargeRow(name, float(losses.mean()), error, fit.processor))
    return found


def large_section(rows: list[LargeRow]) -> str:
    """The part of the page."""
    ours, peer = rows[0], rows[1]
    low_cost = ours.cost <= peer.cost + 2 * np.hypot(ours.error, peer.error)
    fast = ours.processor <= TIMES * peer.processor
    met = "yes" if low_cost and fast else "**no**"
    return "\n\n".join(
        [
            f"## {ROWS:,} rows",
            f"{ROWS:,} training rows, {COLUMNS} columns, {CLASSES} classes of shares .6, .25, .1 "
            f"and .05 (scikit-learn's `make_classification`), proportional costs, {TEST:,} rows "
            f"tested. Target: a cost at most that of {BOOSTING} by its defaults with Bayes "
            f"decisions, within two standard errors of the difference, in at most {TIMES:g} times "
            f"its processor time: {ours.processor / peer.processor:.2f} times; met: {met}.",
            table(
                ("model", "mean cost", "standard error", "processor s"),
                [
                    (row.model, f"{row.cost:.2f}", f"{row.error:.2f}", f"{row.processor:.1f}")
                    for row in rows
                ],
            ),
        ]
    )
