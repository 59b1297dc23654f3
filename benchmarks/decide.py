"""Decide for a million rows of ten classes: `cs.decide` against ``(p @ C).argmin(1)``, one run.

python -m benchmarks.decide            # print the table
python -m benchmarks.decide --write    # and write benchmarks/results/decide.md
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import consistruct as cs
from consistruct.decisions import from_probabilities

RESULT = Path(__file__).parent / "results" / "decide.md"
ROUNDS = 9
LIMIT = 0.5  # seconds for a million rows and ten classes


def seconds(action: Callable[[], Any]) -> float:
    """CPU time: the wall clock of a shared machine says more about its other users."""
    start = time.process_time()
    action()
    return time.process_time() - start


def compare(n: int = 1_000_000, k: int = 10) -> tuple[float, float, float]:
    """Median CPU seconds of both in alternating rounds, and the share of equal decisions."""
    rng = np.random.default_rng(0)
    p, C = rng.dirichlet(np.ones(k), n), rng.random((k, k))
    np.fill_diagonal(C, 0.0)
    loss = cs.losses.CostMatrix(C, rows="pred")
    alike = float((cs.decide(loss, p).labels == (p @ C.T).argmin(axis=1)).mean())
    times = [
        (seconds(lambda: cs.decide(loss, p)), seconds(lambda: (p @ C.T).argmin(axis=1)))
        for _ in range(ROUNDS)
    ]
    ours, plain = (statistics.median(column) for column in zip(*times, strict=True))
    return ours, plain, alike


def chunk_sizes(exponents: range) -> list[tuple[int, float]]:
    """Median seconds of `decide` by the numbers of one chunk."""
    before, found = from_probabilities.CHUNK, []
    try:
        for exponent in exponents:
            from_probabilities.CHUNK = 2**exponent
            found.append((exponent, compare()[0]))
    finally:
        from_probabilities.CHUNK = before
    return found


def page() -> str:
    ours, plain, alike = compare()
    lines = [
        "# Decide: a million rows, ten classes",
        "",
        f"`python -m benchmarks.decide --write`; CPU seconds of one thread, median of {ROUNDS} alternating rounds; equal decisions in {alike:.0%} of the rows. `decide` also checks the probabilities and",
        "returns expected losses, runners-up and gaps, which the plain line does not.",
        "",
        "| `cs.decide(loss, p)`, s | `(p @ C).argmin(1)`, s | ratio | required, s |",
        "|--:|--:|--:|--:|",
        f"| {ours:.3f} | {plain:.3f} | {ours / plain:.2f} | {LIMIT} |",
        "",
        "By the numbers that one chunk of rows holds (`CHUNK` in `decisions/from_probabilities.py`):",
        "",
        "| numbers | s |",
        "|--:|--:|",
        *(f"| 2^{exponent} | {value:.3f} |" for exponent, value in chunk_sizes(range(13, 22, 2))),
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    text = page()
    print(text)
    if parser.parse_args().write:
        RESULT.write_text(text, encoding="utf-8")
