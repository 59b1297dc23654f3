"""Sequences: time against size, memory, time of the first call."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import peak_bytes, resident_bytes
from consistruct.learning import StructuredPredictor
from consistruct.learning.encoding.tokens import PackedTokens
from consistruct.learning.models.chain.model import Chain

Section = tuple[str, list[str]]  # title and lines of Markdown


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [" | ".join(header), " | ".join("---" for _ in header)]
    lines += [" | ".join(str(cell) for cell in row) for row in rows]
    return [f"| {line} |" for line in lines]


def chain(*arguments: Any, **settings: Any) -> StructuredPredictor:
    """The estimator of sequences with a chain of these settings."""
    return StructuredPredictor("hamming", Chain(*arguments, **settings), random_state=0)


def warm_up() -> None:
    """Compile (or load from the cache on disk) everything that is timed below."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(3, 4)).astype(np.float32) for _ in range(20)]
    tags = [["a", "b", "a"] for _ in rows]
    for settings in (
        {},
        {"features": "random", "n_components": 5, "window": 1},
        {"decoding": "bayes"},
    ):
        chain(max_epochs=1, **settings).fit(rows, tags).predict(rows)
    names = [[["f", "g"], ["f"], ["g"]] for _ in rows]
    for surrogate in ("log", "hinge", "softmax_margin", "quadratic"):
        chain(surrogate, max_epochs=1).fit(names, tags).predict(names)


def random_problem(n_tokens: int, n_active: int, n_states: int) -> tuple[PackedTokens, np.ndarray]:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    offsets = np.arange(0, n_tokens + 1, 20)
    n_tokens = int(offsets[-1])
    indices = rng.integers(5_000, size=n_tokens * n_active, dtype=np.int32)
    indptr = np.arange(n_tokens + 1, dtype=np.int32) * n_active
    data = np.ones(len(indices), dtype=np.float32)
    matrix = sp.csr_array((data, indices, indptr), shape=(n_tokens, 5_000))
    return PackedTokens(matrix, offsets), rng.integers(n_states, size=n_tokens)


def epoch_seconds(n_tokens: int, n_active: int, n_states: int) -> float:
    """Processor seconds of one further epoch, the fixed costs of a fit taken away."""
    tokens, tags = random_problem(n_tokens, n_active, n_states)
    times = []
    for epochs in (1, 4):
        model = chain(max_epochs=epochs, alpha=0.0)
        begin = time.process_time()
        model.fit(tokens, tags)
        times.append(time.process_time() - begin)
    return (times[1] - times[0]) / 3


def scaling(folder: Path | None = None) -> Section:
    series: list[tuple[str, list[int], Callable[[int], float], int]] = [
        ("tokens", [10_000, 20_000, 40_000, 80_000], lambda n: epoch_seconds(n, 20, 20), 1),
        # many, so that they and not the chain take the time
        (
            "active features per token",
            [160, 320, 640, 1280],
            lambda n: epoch_seconds(4_000, n, 20),
            1,
        ),
        ("states", [40, 80, 160, 320], lambda n: epoch_seconds(4_000, 2, n), 2),
    ]
    epoch_seconds(2_000, 5, 5)  # compile for these types
    rows, curves = [], []
    for name, sizes, measure, power in series:
        seconds = [measure(size) for size in sizes]
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        cells = ", ".join(
            f"{size}: {value:.3f}" for size, value in zip(sizes, seconds, strict=True)
        )
        rows.append([name, cells, f"{slope:.2f}", power])
        curves.append((name, sizes, seconds))
    picture = []
    if folder is not None:
        plot_scaling(curves, folder / "sequences_scaling.svg")
        picture = ["![CPU seconds per epoch](sequences_scaling.svg)", ""]
    return (
        "Scaling",
        [
            "Processor seconds per epoch on random sparse sequences of 20 tokens, log loss; the "
            "slope is that of a line through the logarithms, the order what it should not exceed "
            "(fixed costs make it smaller).",
            "",
            *table(["size", "CPU seconds per epoch", "slope", "order"], rows),
            "",
            *picture,
            memory_line(),
        ],
    )


def plot_scaling(curves: list[tuple[str, list[int], list[float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for axis, (name, sizes, seconds) in zip(axes, curves, strict=True):
        axis.loglog(sizes, seconds, "o-")
        axis.set_xlabel(name)
        axis.set_ylabel("CPU seconds per epoch")
        axis.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def memory_probe() -> None:
    """Peak memory over the data when one million tokens are trained (dense, 64 features)."""
    warm_up()
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 1_000_001, 20)
    before = resident_bytes()
    features = rng.random((1_000_000, 64), dtype=np.float32)
    tags = rng.integers(10, size=1_000_000)
    packed = PackedTokens(features, offsets)
    chain(max_epochs=1, alpha=0.0).fit(packed, tags)
    print((peak_bytes() - before) / (features.nbytes + tags.nbytes))


def memory_line() -> str:
    command = [sys.executable, "-m", "benchmarks.sequence_scaling"]
    ratio = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]
    return (
        f"One million tokens with 64 dense float32 features and 10 tags, packed: peak memory "
        f"{float(ratio):.2f} times the data (features and tags together; target 1.5)."
    )


# --- compilation ---

COMPILE_SCRIPT = """
import time, numpy as np
from benchmarks.sequence_scaling import warm_up
begin = time.process_time(); warm_up(); print(time.process_time() - begin)
"""


def compile_times() -> Section:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        seconds = [
            float(
                subprocess.run(
                    [sys.executable, "-c", COMPILE_SCRIPT],
                    check=True,
                    capture_output=True,
                    text=True,
                    env=environment,
                ).stdout.split()[-1]
            )
            for _ in range(2)
        ]
    return (
        "First call",
        [
            f"Tiny fits that touch every compiled function: {seconds[0]:.1f} CPU s in the first "
            f"process of an installation (compiling), {seconds[1]:.1f} s in the next (from the "
            "cache on disk).",
        ],
    )


if __name__ == "__main__":
    memory_probe()
