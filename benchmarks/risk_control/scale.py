"""How long a million calibration rows take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import consistruct as cs
from benchmarks.measure import table
from consistruct.guarantees.risk import RiskControl

ROWS = 1_000_000
CLASSES = 10


def scale(rows: int = ROWS) -> Iterator[str]:
    """Processor and wall-clock seconds of `RiskControl.fit`, and of the estimator alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 8))
    y = (X @ rng.normal(size=(8, CLASSES)) + rng.gumbel(size=(rows, CLASSES))).argmax(axis=1)
    costs = rng.random((CLASSES, CLASSES))
    np.fill_diagonal(costs, 0.0)
    ridge = cs.models.Ridge(features="linear", alpha=1e-3)
    model = cs.TaskLossClassifier("zero_one", ridge).fit(X[:2000], y[:2000])
    priced = cs.TaskLossClassifier(cs.losses.CostMatrix(costs, rows="pred"), ridge).fit(
        X[:2000], y[:2000]
    )
    jobs: list[tuple[str, Any, dict[str, Any]]] = [
        ("0-1, sets", model, {"level": 0.2}),
        ("cost matrix, sets", priced, {"level": 0.1}),
        ("0-1, abstain, selective, 90 %", model,
         {"level": 0.3, "policy": "abstain", "risk": "selective", "confidence": 0.9}),
        ("cost matrix, sets, 90 %", priced, {"level": 0.1, "confidence": 0.9}),
    ]  # fmt: skip
    header = [
        "loss and policy", "rows", "processor s", "wall s",
        "of these the estimator's own, processor s", "calibration risk",
    ]  # fmt: skip
    found = []
    for name, estimator, requested in jobs:
        RiskControl(estimator, random_state=0, **requested).fit(X[:5000], y[:5000])  # compile
        wall, processor = time.perf_counter(), time.process_time()
        control = RiskControl(estimator, random_state=0, **requested).fit(X, y)
        times = time.perf_counter() - wall, time.process_time() - processor
        start = time.process_time()
        estimator.predict_expected_loss(X)
        alone = time.process_time() - start
        risk = control.calibration_.risk.estimate
        found.append(
            [name, f"{rows:,}", f"{times[1]:.1f}", f"{times[0]:.1f}", f"{alone:.1f}", f"{risk:.4f}"]
        )
        yield table(header, found)
