"""Dask: one pass by two workers of one thread each against one such worker."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np


def compare(folder: Path) -> list[str]:
    """Wall-clock time, files in the page cache, least of two rounds that took turns."""
    import dask
    import dask.dataframe as dd

    import consistruct as cs
    from distributed import Client, LocalCluster

    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    os.environ.update(threads)
    data = dd.read_parquet(folder)
    X, y = data.drop(columns="y"), data["y"]
    ridge = cs.models.Ridge("linear", solver="moments", alpha=1e-4)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    coefs = []
    for _ in range(2):
        for workers in (1, 2):
            with (
                dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}),
                LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=None
                ) as cluster,
                Client(cluster) as client,
            ):
                client.run(__import__, "consistruct.distributed.dask")
                start = time.perf_counter()
                model = cs.TaskLossClassifier("zero_one", ridge, random_state=0).fit(X, y)
                seconds[workers].append(time.perf_counter() - start)
                coefs.append(model.model_.coef_)
    speed = min(seconds[1]) / min(seconds[2])
    gap = max(np.abs(coef - coefs[0]).max() for coef in coefs) / np.abs(coefs[0]).max()
    return [
        "## Dask",
        "",
        f"One worker {min(seconds[1]):.1f} s, two workers {min(seconds[2]):.1f} s of wall-clock "
        f"time: **{speed:.2f}** times the speed (required: 1.6, on two free cores). Coefficients "
        f"differ by {gap:.1e}.",
        "",
    ]
