"""The picture of the documentation's home page, from benchmarks/results/tabular.csv.

python tools/figure_tables.py     # writes docs/figures/tables_with_costs.svg
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "results" / "tabular.csv"
PICTURE = ROOT / "docs" / "figures" / "tables_with_costs.svg"
SHOWN = {
    "consistruct": "consistruct, defaults",
    "CatBoost": "CatBoost",
    "random forest, isotonic": "random forest, calibrated",
    "LightGBM, isotonic": "LightGBM, calibrated",
    "boosting, early stopping": "boosting, early stopping",
    "logistic regression": "logistic regression",
    "extra trees": "extra trees",
}


def ratios() -> dict[str, float]:
    """Geometric mean over tables and costs of each model's cost over that of the best peer."""
    found: dict[str, list[float]] = defaultdict(list)
    with PAGE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["model"]].append(float(row["over_best_peer"]))
    return {SHOWN[name]: float(np.exp(np.mean(np.log(found[name])))) for name in SHOWN}


def main() -> int:
    """Draw one bar per model."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "consistruct"
    import matplotlib.pyplot as plt

    means = dict(sorted(ratios().items(), key=lambda entry: -entry[1]))
    figure, axes = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
    names, values = list(means), [100 * (value - 1) for value in means.values()]
    ours = [name.startswith("consistruct") for name in names]
    bars = axes.barh(names, values, color=["#c2410c" if own else "#64748b" for own in ours])
    axes.bar_label(bars, [f"+{value:.0f} %" for value in values], padding=3)
    axes.set_xlabel("cost above the best model in hindsight, all with Bayes decisions")
    axes.set_xlim(0, 1.15 * max(values))
    axes.xaxis.set_major_formatter("{x:.0f} %")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None}, facecolor="white")
    return 0


if __name__ == "__main__":
    sys.exit(main())
