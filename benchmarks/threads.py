"""What threads cost: processor time by default against OMP_NUM_THREADS=1, as a ratio.

    python -m benchmarks.threads --write

Threads that wait for each other spin, which takes processor time: the more, the busier the machine.
The two runs of a command take turns, so that both see the same machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import RESULTS, machine, table
from benchmarks.tasks import readme_files

ROOT = Path(__file__).resolve().parents[1]
PAGE = RESULTS / "threads.md"
ROUNDS = 3
TARGET = 1.25  # times the processor time of one thread
FIT = ["fit", "train.csv", "--target", "level", "--loss", "cost:costs.csv", "--model"]
COMMANDS = {
    "fit, 265 rows": [*FIT, "m.safetensors"],
    "report, 265 rows": ["report", "m.safetensors", "test.csv", "--train", "train.csv"],
    "evaluate, 177 rows": ["evaluate", "m.safetensors", "test.csv"],
    "analyze, 4 classes": ["analyze", "cost:costs.csv"],
}
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def processor_seconds(words: list[str], folder: Path, *, one_thread: bool) -> float:
    """User and system time of a whole command."""
    environment = {key: value for key, value in os.environ.items() if key not in LIMITS}
    environment["PYTHONPATH"] = str(ROOT / "src")
    if one_thread:
        environment["OMP_NUM_THREADS"] = "1"  # OpenBLAS and MKL obey it too
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "consistruct", *words],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured() -> list[list[object]]:
    """One row per command: processor seconds by default and of one thread, and their ratios."""
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        readme_files(folder, small=False)
        for command, words in COMMANDS.items():
            processor_seconds(words, folder, one_thread=True)  # compiled code is stored
            times = np.array(
                [
                    [processor_seconds(words, folder, one_thread=one) for one in (False, True)]
                    for _ in range(ROUNDS)
                ]
            )
            ratios = times[:, 0] / times[:, 1]
            least, largest = ratios.min(), ratios.max()
            verdict = "met" if np.median(ratios) <= TARGET else "missed"
            default, single = np.median(times, axis=0)
            rows.append(
                [
                    command,
                    f"{default:.1f}",
                    f"{single:.1f}",
                    f"{np.median(ratios):.2f} ({least:.2f} to {largest:.2f})",
                    f"at most {TARGET}: {verdict}",
                ]
            )
    return rows


def page(arguments: list[str]) -> str:
    """The results page."""
    command = " ".join(["python -m benchmarks.threads", *arguments])
    parts = [
        "# What threads cost",
        f"Made by `{command}`; do not edit.",
        f"Machine: {machine()}; load {os.getloadavg()[0]:.0f} at the end. Processor seconds of whole commands, user and system, medians of "
        f"{ROUNDS} rounds in turns; the ratio is of the two runs of a round (least and largest of the rounds).",
        table(["command", "default, s", "OMP_NUM_THREADS=1, s", "ratio", "target"], measured()),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, print, and write the page if requested to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    text = page(sys.argv[1:])
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
