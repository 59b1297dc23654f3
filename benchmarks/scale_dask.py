"""Dask: one pass, and averaged SGD, by two workers of one thread each against one such worker."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

WIDE_BITS, WIDE_ENTRIES, WIDE_PARTS = 18, 40, 32


@contextlib.contextmanager
def running(workers: int) -> Iterator[None]:
    """So many worker processes of one thread each."""
    import dask

    from distributed import Client, LocalCluster

    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}),
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "consistruct.distributed.dask")
        yield


def compare(folder: Path) -> list[str]:
    """Wall-clock time, files in the page cache, least of two rounds that took turns."""
    import dask.dataframe as dd

    import consistruct as cs

    data = dd.read_parquet(folder)
    X, y = data.drop(columns="y"), data["y"]
    ridge = cs.models.Ridge("linear", solver="moments", alpha=1e-4)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    coefs = []
    for _ in range(2):
        for workers in (1, 2):
            with running(workers):
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


def wide_part(number: int, rows: int) -> tuple[Any, np.ndarray]:
    """Rows of 40 entries among 2^18 hashed columns; a sparse linear score decides the class."""
    rng = np.random.default_rng([7, number])
    columns = np.minimum(rng.pareto(0.8, (rows, WIDE_ENTRIES)) * 200, 2.0**40).astype(np.int64)
    places = (columns * 2654435761) % 2**WIDE_BITS
    X = sp.csr_array(
        (np.ones(places.size), places.ravel(), WIDE_ENTRIES * np.arange(rows + 1)),
        shape=(rows, 2**WIDE_BITS),
    )
    X.sum_duplicates()
    weights = np.random.default_rng(3).standard_normal(2**WIDE_BITS)
    return X, (X @ weights + 4.0 * rng.standard_normal(rows) > 0).astype(np.int64)


def compare_averaging(rows: int) -> list[str]:
    """Averaged SGD on wide sparse rows: wall-clock time and error, one and two workers."""
    import dask.array as da
    from dask.delayed import delayed

    import consistruct as cs
    from consistruct.distributed import fit_averaged

    each = rows // WIDE_PARTS
    pairs = [delayed(wide_part, nout=2)(number, each) for number in range(WIDE_PARTS)]
    X = da.concatenate(
        [da.from_delayed(x, (each, 2**WIDE_BITS), np.float64) for x, _ in pairs], axis=0
    )
    y = da.concatenate([da.from_delayed(y_true, (each,), np.int64) for _, y_true in pairs])
    X_test, y_test = wide_part(10**6, 50_000)
    found = {}
    for workers in (1, 2):
        with running(workers):
            X_there, y_there = X.persist(), y.persist()
            _wait([X_there, y_there])
            sgd = cs.models.Ridge("linear", solver="sgd")
            model = cs.TaskLossClassifier("zero_one", sgd, random_state=0)
            start = time.perf_counter()
            fit_averaged(model, X_there, y_there, passes=4, classes=[0, 1])
            seconds = time.perf_counter() - start
            found[workers] = seconds, float(np.mean(model.predict(X_test) != y_test))
    speed = found[1][0] / found[2][0]
    return [
        "## Averaged SGD",
        "",
        f"`fit_averaged`, {rows:,} rows of {WIDE_ENTRIES} entries in 2^{WIDE_BITS} columns in the "
        f"workers' memory, four passes: one worker {found[1][0]:.1f} s (error {found[1][1]:.4f}), "
        f"two {found[2][0]:.1f} s (error {found[2][1]:.4f}) of wall-clock time, **{speed:.2f}** "
        "times the speed.",
        "",
    ]


def _wait(collections: list[Any]) -> None:
    from distributed import wait

    wait(collections)
