"""Closed form on 200,000 x 1,000 float32 with 100 targets against the bare products it needs.

Both run in one process, alternating; peak memory is that of the whole process. On a busy machine
look at the CPU times, with OPENBLAS_NUM_THREADS=1 so that no thread spins. Run:
    python -m benchmarks.closed_form_scale
"""

from __future__ import annotations

import json
import resource
import time

import numpy as np

from consistruct.learning import ClosedForm, LinearFeatures, ScoreMap
from consistruct.losses import CostMatrix
from consistruct.surrogates import QuadraticSurrogate

N, D, K, REPEATS = 200_000, 1_000, 100, 2


def main() -> None:
    rng = np.random.default_rng(0)
    X = np.empty((N, D), dtype=np.float32)
    for start in range(0, N, 10_000):
        X[start : start + 10_000] = rng.normal(size=(10_000, D))
    true = rng.integers(K, size=N)
    loss = CostMatrix(rng.random((K, K)) * (1 - np.eye(K)))
    surrogate, score_map = QuadraticSurrogate(loss), ScoreMap(LinearFeatures(D))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    bare, ours, bare_cpu, ours_cpu = [], [], [], []
    for _ in range(REPEATS):
        started, cpu = time.perf_counter(), time.process_time()
        ClosedForm().solve(surrogate, score_map, X, true, rng=np.random.default_rng(0))
        ours.append(time.perf_counter() - started)
        ours_cpu.append(time.process_time() - cpu)
        if len(ours) == 1:  # before the bare products take memory of their own
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        targets = loss.target(true).astype(np.float32)
        started, cpu = time.perf_counter(), time.process_time()
        X.T @ X
        X.T @ targets
        bare.append(time.perf_counter() - started)
        bare_cpu.append(time.process_time() - cpu)
    result = {
        "seconds_closed_form": ours,
        "seconds_bare_products": bare,
        "ratio_of_least": min(ours) / min(bare),
        "cpu_seconds_closed_form": ours_cpu,
        "cpu_seconds_bare_products": bare_cpu,
        "cpu_ratio_of_least": min(ours_cpu) / min(bare_cpu),
        "input_bytes": X.nbytes,
        "peak_bytes_before": before,
        "peak_bytes_closed_form": peak,
        "peak_over_input": peak / X.nbytes,
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
