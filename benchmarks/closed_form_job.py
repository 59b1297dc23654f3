"""One process of its own for `benchmarks.learning`: times and peak memory of the closed form.

    python -m benchmarks.closed_form_job N D K

prints, as JSON, wall-clock and processor seconds of the fit and of the bare products, and the peak
of the resident set over the bytes of X.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import peak_bytes, resident_bytes, taking_turns
from consistruct.learning import StructuredPredictor, TaskLossClassifier
from consistruct.learning.models.ridge.model import Ridge
from consistruct.losses import CostVectors, ZeroOne

CLASSES, COSTS = "classes (one-hot targets, sparse)", "cost vectors (dense targets)"


def make_inputs(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    X = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 4096):  # no temporary of the size of X
        part = X[start : start + 4096]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
    return X


def make_labels(kind: str, X: np.ndarray, k: int, rng: np.random.Generator) -> Any:
    scores = X @ rng.standard_normal((X.shape[1], k)).astype(np.float32)
    if kind == CLASSES:
        return scores.argmax(axis=1)
    scores -= scores.min()
    scores /= scores.max()
    return scores.astype(np.float64)


def make_model(kind: str, k: int) -> Any:
    if kind == CLASSES:
        return TaskLossClassifier(ZeroOne(k), Ridge("linear"), random_state=0)
    return StructuredPredictor(CostVectors(k), Ridge("linear"), random_state=0)


def products(kind: str, X: np.ndarray, y_true: Any, k: int) -> None:
    """What ridge regression cannot do without: XᵀX and XᵀU, in the precision of X."""
    X.T @ X
    if kind == CLASSES:
        ones = np.ones(len(X), dtype=np.float32)
        indicator = sp.csr_array((ones, y_true, np.arange(len(X) + 1)), shape=(len(X), k))
        indicator.T @ X
    else:
        X.T @ y_true.astype(np.float32)


def peak_of_fit(kind: str, n: int, d: int, k: int) -> float:
    """Peak of a fresh process that makes the data and fits once, over the bytes of X."""
    command = [sys.executable, "-m", "benchmarks.closed_form_job", *map(str, (n, d, k)), kind]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    n, d, k = map(int, sys.argv[1:4])
    rng = np.random.default_rng(0)
    if len(sys.argv) > 4:
        kind = sys.argv[4]
        small = make_inputs(2000, d, rng)  # libraries and caches are loaded before we measure
        make_model(kind, k).fit(small, make_labels(kind, small, k, rng))
        before = resident_bytes()
        X = make_inputs(n, d, rng)
        y_true = make_labels(kind, X[:1000], k, rng)[np.arange(n) % 1000]
        make_model(kind, k).fit(X, y_true)
        print((peak_bytes() - before) / X.nbytes)
        return
    X = make_inputs(n, d, rng)
    result: dict[str, dict[str, Any]] = {}
    for kind in (CLASSES, COSTS):
        y_true = make_labels(kind, X, k, rng)
        model = make_model(kind, k)
        model.fit(X[:2000], y_true[:2000])  # whatever is loaded or compiled on first use
        jobs = (partial(model.fit, X, y_true), partial(products, kind, X, y_true, k))
        fit, bare = taking_turns(jobs, rounds=5).tolist()
        result[kind] = {"fit": fit, "products": bare}
    for kind, row in result.items():
        row["peak"] = peak_of_fit(kind, n, d, k)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
