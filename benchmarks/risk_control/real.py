"""Levels guaranteed on real data, and what test rows show of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import consistruct as cs
from benchmarks import data as sources
from benchmarks.measure import table
from benchmarks.risk_control.common import CONFIDENCE, both_parts, forest, parts, ridge
from benchmarks.tabular.tables import read_table
from consistruct.exceptions import RiskLevelError
from consistruct.guarantees.risk import RiskControl


@dataclass(frozen=True)
class Task:
    """Rows, what estimates on them, and what is guaranteed."""

    name: str
    X: Any
    y: Any
    estimator: Callable[[], Any]
    requested: tuple[dict[str, Any], ...]


def tasks(held_out: bool) -> Iterator[Task]:
    table_ = read_table("page_blocks")
    costs = 1.0 - np.eye(table_.n_classes)
    costs[:, np.bincount(table_.y).argmin()] *= 10.0
    loss = cs.losses.CostMatrix(costs, rows="pred")
    yield Task(
        "page_blocks, rare class 10:1", table_.X, table_.y, lambda: forest(loss),
        (
            {"level": 0.02, "policy": "sets"},
            {"level": 0.03, "policy": "sets", "confidence": CONFIDENCE},
            {"level": 0.02, "policy": "abstain"},
            {"level": 0.04, "policy": "abstain", "risk": "selective", "confidence": CONFIDENCE},
        ),
    )  # fmt: skip
    wine = read_table("wine_white")
    yield Task(
        "wine_white, absolute error", wine.X, wine.y, lambda: forest("ordinal"),
        (
            {"level": 0.2, "policy": "sets"},
            {"level": 0.2, "policy": "sets", "confidence": CONFIDENCE},
            {"level": 0.2, "policy": "abstain"},
            {"level": 0.4, "policy": "abstain", "risk": "selective", "confidence": CONFIDENCE},
            {"level": 0.3, "policy": "defer", "defer_cost": 0.1, "confidence": CONFIDENCE},
        ),
    )  # fmt: skip
    X, y = both_parts("yeast", held_out)
    yield Task(
        "yeast, 1 - F1", X, y, lambda: ridge("fbeta"),
        (
            {"level": 0.15, "policy": "grow"},
            {"level": 0.15, "policy": "grow", "confidence": CONFIDENCE},
            {"level": 0.15, "policy": "shrink"},
            {"level": 0.45, "policy": "threshold", "confidence": CONFIDENCE},
            {"level": 0.2, "policy": "abstain"},
        ),
    )  # fmt: skip
    tree = sources.label_tree()
    X, y = both_parts("imclef07a", held_out, target="leaf")
    yield Task(
        "imclef07a, path length", X.astype(np.float64), np.searchsorted(tree.leaves, y),
        lambda: forest(tree, 40),
        (
            {"level": 0.3, "policy": "ancestor"},
            {"level": 0.3, "policy": "ancestor", "confidence": CONFIDENCE},
            {"level": 0.5, "policy": "abstain", "risk": "selective", "confidence": CONFIDENCE},
        ),
    )  # fmt: skip


HEADER = [
    "data and loss", "policy", "guarantee", "level", "mean test risk", "largest", "splits above",
    "coverage", "mean size", "loss without",
]  # fmt: skip


def real(splits: int, held_out: bool, names: Sequence[str], known: str) -> Iterator[str]:
    """The table, longer by one data set each time; with `names` only those, the others as known."""
    rows: list[list[object]] = []
    for task in tasks(held_out):
        if names and not any(task.name.startswith(name) for name in names):
            rows += known_rows(known, task.name)
            continue
        reports: list[list[Any]] = [[] for _ in task.requested]
        plain = []
        for seed in range(splits):
            fit, calibrate, test = parts(len(task.y), seed)
            estimator = task.estimator().fit(task.X[fit], task.y[fit])
            plain.append(float(estimator.task_losses(task.X[test], task.y[test]).mean()))
            for number, requested in enumerate(task.requested):
                control = RiskControl(estimator, random_state=seed, **requested)
                try:
                    control.fit(task.X[calibrate], task.y[calibrate])
                except RiskLevelError:
                    continue
                reports[number].append(control.evaluate(task.X[test], task.y[test]))
        for requested, found in zip(task.requested, reports, strict=True):
            rows.append(real_row(task.name, requested, found, float(np.mean(plain)), splits))
        yield table(HEADER, rows)


def known_rows(page: str, name: str) -> list[list[object]]:
    """Rows of a data set on a page that was written before."""
    lines = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
    return [list(line.strip("| ").split(" | ")) for line in lines]


def real_row(
    name: str, requested: dict[str, Any], found: list[Any], plain: float, splits: int
) -> list[object]:
    selective = requested.get("risk") == "selective"
    kind = "selective" if selective else "marginal"
    guarantee = kind if "confidence" not in requested else f"{kind}, {requested['confidence']:.0%}"
    if not found:
        return [
            name,
            requested["policy"],
            guarantee,
            requested["level"],
            *["none"] * 5,
            f"{plain:.4f}",
        ]
    risks = np.array([(one.selective_risk if selective else one.risk).estimate for one in found])
    missing = "" if len(found) == splits else f" ({splits - len(found)} without a rule)"
    return [
        name,
        requested["policy"],
        guarantee,
        requested["level"],
        f"{risks.mean():.4f} ± {risks.std() / np.sqrt(len(risks)):.4f}",
        f"{risks.max():.4f}",
        f"{(risks > requested['level']).sum()} of {len(found)}{missing}",
        f"{np.mean([one.coverage for one in found]):.3f}",
        f"{np.mean([one.size for one in found]):.2f}",
        f"{plain:.4f}",
    ]
