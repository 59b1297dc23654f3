"""Timing, intervals and pages that all benchmarks share."""

from __future__ import annotations

import os
import platform
import re
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import consistruct

RESULTS = Path(__file__).parent / "results"


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall-clock time of one call, and what it returned."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def taking_turns(jobs: Sequence[Callable[[], Any]], rounds: int) -> np.ndarray:
    """Least wall-clock and processor seconds of each job, (n_jobs, 2).

    The jobs take turns, so that all of them see the same machine; processor time is what counts
    on one that is shared.
    """
    times = np.empty((rounds, len(jobs), 2))
    for turn in range(rounds):
        for place, job in enumerate(jobs):
            wall, processor = time.perf_counter(), time.process_time()
            job()
            times[turn, place] = time.perf_counter() - wall, time.process_time() - processor
    return np.asarray(times.min(axis=0))


def bootstrap_difference(
    ours: np.ndarray, theirs: np.ndarray, *, rounds: int = 10_000, seed: int = 0
) -> tuple[float, float, float]:
    """Mean of ours − theirs over the same examples, and its 95 % paired bootstrap interval."""
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    rng = np.random.default_rng(seed)
    n = len(difference)
    # resampling n examples with replacement gives each a multinomial count
    means = np.array(
        [rng.multinomial(n, np.full(n, 1.0 / n)) @ difference / n for _ in range(rounds)]
    )
    low, high = np.quantile(means, [0.025, 0.975])
    return float(difference.mean()), float(low), float(high)


def interval(ours: np.ndarray, theirs: np.ndarray) -> str:
    """The paired interval as a cell of a table."""
    mean, low, high = bootstrap_difference(ours, theirs)
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def machine() -> str:
    """What the figures were measured on."""
    return (
        f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, consistruct {consistruct.__version__}"
    )


def peak_bytes() -> int:
    """Largest resident set of this process so far.

    Linux keeps it with the memory of the process (VmHWM). Its ``ru_maxrss`` would also count the
    parent before the program was replaced, which may be far larger.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"))
        if found:
            return 1024 * int(found[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts in bytes


def resident_bytes() -> int:
    """The resident set now, from Linux; elsewhere its peak so far, which is no less."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return peak_bytes()
    return int(statm.read_text(encoding="ascii").split()[1]) * resource.getpagesize()
