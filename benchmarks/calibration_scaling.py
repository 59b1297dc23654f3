"""How time and memory of calibration functions grow with the number of parts and of labels.

    python -m benchmarks.calibration_scaling [--write]

Structured: Hamming(T) with full scores (2^T labels), 101 values of ε. Oracle: Hamming(T) with
chain scores, one ε. Explicit: uniform random costs, full scores, 21 values of ε, one thread.
Documented growth: T² cells per value of ε at most (in practice the few orbits below a level, times
T), the oracle a few rounds of a T-sized quadratic program, explicit matrices between k² and k³.
With --write the page and the plot go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np

import consistruct as cs

RESULTS = Path(__file__).parent / "results"
PARTS = (10, 30, 100, 300, 1000, 3000)
CHAINS = (10, 20, 40, 80)
LABELS = (16, 32, 64, 128)


def _timed(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def structured(T: int) -> float:
    grid = np.linspace(0.0, 1.0, 101)
    logs: list[np.ndarray] = []
    seconds = _timed(
        lambda: logs.append(cs.calibration_function(cs.losses.Hamming(T), "full").log(grid[1:]))
    )
    assert np.isfinite(logs[0]).all()
    return seconds


def oracle(T: int) -> float:
    loss, scores = cs.losses.Hamming(T), cs.structures.Chain(T, 2)
    return _timed(lambda: cs.calibration_function(loss, scores).interval(0.25))


def explicit(k: int) -> float:
    from consistruct.calibration.methods.explicit_full import explicit_curve

    L = np.random.default_rng(k).random((k, k))
    np.fill_diagonal(L, 0.0)
    return _timed(lambda: explicit_curve(L, np.linspace(0.0, float(L.max()), 21)))


def _slope(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Exponent of growth over the larger half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    structured(10), explicit(24)  # compile and warm up
    runs = [
        ("Hamming(T), full scores, 101 ε", "T", PARTS, [structured(T) for T in PARTS]),
        ("Hamming(T), chain scores, oracle, 1 ε", "T", CHAINS, [oracle(T) for T in CHAINS]),
        ("uniform costs, full scores, 21 ε", "k", LABELS, [explicit(k) for k in LABELS]),
    ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lines = ["| problem | size | seconds |", "|---|---|---|"]
    for name, axis, sizes, seconds in runs:
        rows = zip(sizes, seconds, strict=True)
        lines += [f"| {name} | {axis} = {size} | {value:.3g} |" for size, value in rows]
    for name, axis, sizes, seconds in runs:
        lines.append(f"\n{name}: grows about as {axis}^{_slope(sizes, seconds):.1f}.")
    lines.append(f"\nLargest resident size of the whole run: {peak:.2f} GiB.")
    page = "\n".join(lines)
    print(page)
    if write:
        command = "python -m benchmarks.calibration_scaling --write"
        header = f"# Growth of calibration functions\n\nMade by `{command}`."
        picture = "![time against size](calibration_scaling.png)"
        (RESULTS / "calibration_scaling.md").write_text(f"{header}\n\n{page}\n\n{picture}\n")
        _plot(runs)


def _plot(runs) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for (name, axis, sizes, seconds), color, marker in zip(
        runs, ("#0072B2", "#D55E00", "#009E73"), "osD", strict=True
    ):
        ax.loglog(sizes, seconds, marker=marker, color=color, label=f"{name} (against {axis})")
    ax.set_xlabel("parts T, or labels k")
    ax.set_ylabel("seconds")
    ax.legend(frameon=False, fontsize=8)
    ax.grid(True, which="major", lw=0.3)
    figure.savefig(RESULTS / "calibration_scaling.png", dpi=150)


if __name__ == "__main__":
    main()
