"""Predict costs, then optimize: regret of ours, of PyEPO's surrogates and of two-stage recipes.

    python -m benchmarks.decisions --seeds 1 --only path5:6 knapsack32:6   # a look
    python -m benchmarks.decisions --seeds 3 --write     # writes benchmarks/results/decisions.*
    python -m benchmarks.decisions --marketing --write   # the budget of calls, in the same page

Data are PyEPO's own generators; every method gets the same compiled oracles. Seeds were fixed
before the first run (`SEEDS`); ours was developed on others (1 and 2).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from benchmarks.decision_cells import CELLS, EXTRA, Task, make_task
from benchmarks.decision_page import marketing_section, page, write_csv
from benchmarks.measure import RESULTS
from consistruct.learning import StructuredPredictor
from consistruct.learning.models import Costs
from consistruct.structures.decisions import counted_calls

SEEDS = (101, 102, 103, 104, 105, 106, 107, 108, 109, 110)
STORE = RESULTS.parent / "cache" / "decisions.jsonl"
EPOCHS, RATE, BATCH, SAMPLES = 30, 1e-2, 32, 3


# --- methods: each returns predicted costs of the test rows and its oracle calls -----------------


def ours(task: Task) -> tuple[np.ndarray, int]:
    model = StructuredPredictor(task.loss, random_state=0).fit(task.X, task.C)
    return task.sign * model.expected_target(task.X_test), model.model_.n_oracle_calls_


def unweighted(task: Task) -> tuple[np.ndarray, int]:
    model = Costs(["kernel"], powers=(0,), regret_rows=0)
    fitted = StructuredPredictor(task.loss, model, random_state=0).fit(task.X, task.C)
    return task.sign * fitted.expected_target(task.X_test), 0


def linear(task: Task) -> tuple[np.ndarray, int]:
    return LinearRegression().fit(task.X, task.C).predict(task.X_test), 0


def forest(task: Task) -> tuple[np.ndarray, int]:
    trees = RandomForestRegressor(100, random_state=0, min_samples_leaf=2, max_features=0.5)
    return trees.fit(task.X, task.C).predict(task.X_test), 0


def spo_linear(task: Task) -> tuple[np.ndarray, int]:
    return trained(task, "spo", task.X, task.X_test)


def spo_features(task: Task) -> tuple[np.ndarray, int]:
    """On the kernel features of our unweighted kernel ridge, from its solution on."""
    model = Costs(["kernel"], powers=(0,), regret_rows=0)
    fitted: Any = StructuredPredictor(task.loss, model, random_state=0).fit(task.X, task.C).model_
    start = task.sign * fitted.coef_, task.sign * fitted.intercept_
    features = fitted.feature_map_.transform
    return trained(task, "spo", features(task.X), features(task.X_test), start)


def fenchel_young(task: Task) -> tuple[np.ndarray, int]:
    return trained(task, "pfy", task.X, task.X_test)


def trained(
    task: Task, kind: str, X: np.ndarray, X_test: np.ndarray, start: Any = None
) -> tuple[np.ndarray, int]:
    """A linear layer by PyEPO, from least squares on, by Adam."""
    import pyepo
    import torch

    from benchmarks.decision_peers import compiled_model

    torch.manual_seed(0)
    torch.set_num_threads(1)
    if start is None:
        least = LinearRegression().fit(X, task.C)
        start = least.coef_.T, least.intercept_
    with counted_calls() as calls:
        solver = compiled_model(task)
        data = pyepo.data.dataset.optDataset(
            solver, X.astype(np.float32), task.C.astype(np.float32)
        )
        layer = torch.nn.Linear(X.shape[1], task.C.shape[1])
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(start[0].T, dtype=torch.float32))
            layer.bias.copy_(torch.tensor(start[1], dtype=torch.float32))
        adam = torch.optim.Adam(layer.parameters(), lr=RATE)
        if kind == "spo":
            surrogate = pyepo.func.SPOPlus(solver)
        else:
            surrogate = pyepo.func.perturbedFenchelYoung(solver, n_samples=SAMPLES, sigma=1.0)
        batches = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True)
        for _ in range(EPOCHS):
            for x, c, w, z in batches:
                value = surrogate(layer(x), c, w, z) if kind == "spo" else surrogate(layer(x), w)
                adam.zero_grad()
                value.backward()
                adam.step()
    with torch.no_grad():
        predicted = layer(torch.tensor(X_test, dtype=torch.float32)).numpy()
    return predicted.astype(np.float64), calls.n


METHODS: dict[str, Callable[[Task], tuple[np.ndarray, int]]] = {
    "consistruct": ours,
    "kernel ridge, unweighted": unweighted,
    "two-stage linear": linear,
    "two-stage forest": forest,
    "SPO+ linear": spo_linear,
    "SPO+ on kernel features": spo_features,
    "perturbed Fenchel–Young": fenchel_young,
}


# --- runs ----------------------------------------------------------------------------------------


def measure(cell: str, seed: int, only: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Normalized regret, processor seconds and calls of every method, and the floor."""
    task = make_task(cell, seed)
    yield {"cell": cell, "seed": seed, "method": "floor", "regret": task.regret(task.mean_test)}
    for name, method in METHODS.items():
        if only and name not in only:
            continue
        begun = time.process_time()
        predicted, calls = method(task)
        seconds = time.process_time() - begun
        yield {
            "cell": cell,
            "seed": seed,
            "method": name,
            "regret": task.regret(predicted),
            "seconds": seconds,
            "calls": calls,
        }


def with_ortools(seed: int) -> Iterator[dict[str, Any]]:
    """One seed of path and knapsack with OR-Tools as the oracle of both."""
    from benchmarks.decision_peers import ortools_task

    for cell in ("path5:6", "knapsack32:6"):
        task = ortools_task(make_task(cell, seed), cell, seed)
        METHODS["consistruct"](ortools_task(make_task(cell, 7), cell, 7))  # first calls are slow
        for name in ("consistruct", "SPO+ linear"):
            begun = time.process_time()
            predicted, calls = METHODS[name](task)
            seconds = time.process_time() - begun  # without the oracle's work on the test rows
            yield {
                "cell": f"{cell} by OR-Tools",
                "seed": seed,
                "method": name,
                "regret": task.regret(predicted),
                "seconds": seconds,
                "calls": calls,
            }


def stored() -> list[dict[str, Any]]:
    if not STORE.exists():
        return []
    return [json.loads(line) for line in STORE.read_text(encoding="utf-8").splitlines()]


def run(cells: list[str], seeds: tuple[int, ...], ortools: bool, only: Any) -> None:
    """Measure what is not stored yet, one seed after the other, so that every prefix is whole."""
    STORE.parent.mkdir(exist_ok=True)
    known = {(one["cell"], one["seed"], one["method"]) for one in stored()}
    warm = make_task("path5:1", 7)
    for method in METHODS.values() if not only else [METHODS[name] for name in only]:
        method(warm)  # imports and compilation are nobody's time
    for seed in seeds:
        for cell in cells:
            if (cell, seed, (only or list(METHODS))[-1]) not in known:
                _keep(measure(cell, seed, only), known)
        last = ("knapsack32:6 by OR-Tools", seed, "SPO+ linear")
        if ortools and seed == seeds[0] and last not in known:
            _keep(with_ortools(seed), known)


def _keep(found: Iterator[dict[str, Any]], known: set[Any]) -> None:
    for one in found:
        if (one["cell"], one["seed"], one["method"]) in known:
            continue
        print(json.dumps(one), flush=True)
        with STORE.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(one) + "\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decisions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="the first so many seeds")
    parser.add_argument("--only", nargs="+", choices=[*CELLS, *EXTRA], help="these cells")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), help="these methods")
    parser.add_argument("--marketing", action="store_true", help="only the budget of calls")
    parser.add_argument("--stored", action="store_true", help="run nothing: what is stored")
    parser.add_argument("--write", action="store_true", help="write the page and the CSV file")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    marketing = RESULTS / "decisions_marketing.json"  # committed: the page must not lose it
    if chosen.marketing:
        from benchmarks.decision_marketing import measure_marketing

        marketing.write_text(json.dumps(measure_marketing()), encoding="utf-8")
        print(marketing_section(json.loads(marketing.read_text(encoding="utf-8"))))
    elif not chosen.stored:
        cells = chosen.only or [*CELLS, *EXTRA]
        run(cells, SEEDS[: chosen.seeds], not chosen.only, chosen.methods)
    if chosen.write:
        calls = json.loads(marketing.read_text(encoding="utf-8")) if marketing.exists() else None
        text = page(stored(), SEEDS, calls)
        (RESULTS / "decisions.md").write_text(text, encoding="utf-8")
        write_csv(stored(), RESULTS / "decisions.csv")
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
