"""One pass over more rows than memory: time against bare products, memory, growth, exactness.

    python -m benchmarks.scale                      # 2,000,000 rows
    python -m benchmarks.scale --rows 20000000      # 8 GB of Parquet
    python -m benchmarks.scale --only pass growth   # some of: pass growth exact kernel dask wide
    python -m benchmarks.scale --write              # their sections of benchmarks/results/scale.md

Files are generated in a temporary folder. Every figure is processor time of a process of its own
with one BLAS thread, and ratios are of jobs that took turns: wall-clock time on a shared machine
states little.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import RESULTS, machine, peak_bytes, table

FEATURES, CLASSES = 100, 10
FILE_ROWS = 250_000
PARTS = ("pass", "growth", "exact", "kernel", "dask", "wide")
ROUNDS = 2
FIRST_ROWS = 65_536  # two batches: what a pass costs before it is under way
HEAD = """# More rows than memory

Processor time of processes with one BLAS thread, least of two that took turns with what they are
compared with. Dask's and averaged SGD's figures are wall-clock times. All but the kernels ran on two
cores of a larger machine that nobody else used.

"""


def generate(folder: Path, rows: int, seed: int = 0) -> None:
    """Parquet files of `FILE_ROWS` rows: float32 columns and a class."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    weights = np.random.default_rng(1).standard_normal((FEATURES, CLASSES)).astype(np.float32)
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        rng = np.random.default_rng([seed, number])
        n = min(FILE_ROWS, rows - start)
        X = rng.standard_normal((FEATURES, n), dtype=np.float32)
        X += np.float32(0.5)
        noise = 10.0 * rng.standard_normal((n, CLASSES), dtype=np.float32)
        y = (X.T @ weights + noise).argmax(axis=1)
        columns = {f"x{i}": X[i] for i in range(FEATURES)} | {"y": y}
        pq.write_table(
            pa.table(columns),
            folder / f"{number:05d}.parquet",
            row_group_size=65_536,
            use_dictionary=False,
            compression="none",
        )


# --- jobs: each runs in a process of its own and prints one JSON object ---


def _estimator() -> Any:
    import consistruct as cs

    ridge = cs.models.Ridge("linear", solver="moments")
    return cs.TaskLossClassifier("zero_one", ridge, random_state=0)


def job_fit(folder: str) -> dict[str, Any]:
    """`fit_folder`, with a checkpoint every minute."""
    from consistruct.distributed import Folder, fit_folder

    source = Folder(folder, target=["y"])
    before = peak_bytes()
    start = time.process_time()
    with tempfile.TemporaryDirectory() as kept:
        model = fit_folder(_estimator(), source, checkpoint=Path(kept) / "checkpoint")
    seconds = time.process_time() - start
    return {
        "seconds": seconds,
        "peak": peak_bytes(),
        "libraries": before,
        "coef": model.model_.coef_.tolist(),
        "alpha": model.model_.alpha_,
        "rows": model.model_.moments_.n_rows,
    }


def job_bare(folder: str) -> dict[str, Any]:
    """Read the same batches and multiply the same chunks, nothing else."""
    from scipy.linalg import blas

    from consistruct.distributed import Folder
    from consistruct.learning.models.ridge.moments import MomentSums

    source = Folder(folder, target=["y"])
    chunks = MomentSums(FEATURES, CLASSES).chunks
    start = time.process_time()
    second = np.zeros((FEATURES, FEATURES), order="F")
    cross = np.zeros((FEATURES, CLASSES))
    reading = 0.0
    last = time.process_time()
    for batch in source:
        reading += time.process_time() - last
        for part in chunks(len(batch.y)):
            rows = np.asfortranarray(batch.X[part], dtype=np.float64)
            second = blas.dsyrk(1.0, rows, beta=1.0, c=second, trans=1, lower=1, overwrite_c=1)
            cross += rows.T @ np.eye(CLASSES)[batch.y[part]]
        last = time.process_time()
    return {"seconds": time.process_time() - start, "reading": reading, "sum": float(second.sum())}


def job_memory_fit(folder: str) -> dict[str, Any]:
    """The closed form on all rows in memory, in float64, at the penalty of the pass."""
    from consistruct.distributed import Folder

    batches = list(Folder(folder, target=["y"]))
    X = np.concatenate([np.asarray(b.X, dtype=np.float64) for b in batches])
    y = np.concatenate([b.y for b in batches])
    alpha = float(os.environ["ALPHA"])
    model = _estimator().set_params(model__solver="closed_form", model__alpha=alpha).fit(X, y)
    return {"coef": model.model_.coef_.tolist()}


def job_kernel(rows: str) -> dict[str, Any]:
    """A kernel with 1,000 landmarks against scikit-learn's and against boosting."""
    from benchmarks.scale_kernels import compare

    return {"lines": compare(int(rows))}


JOBS: dict[str, Callable[[str], dict[str, Any]]] = {
    "fit": job_fit,
    "bare": job_bare,
    "memory_fit": job_memory_fit,
    "kernel": job_kernel,
}


def run(job: str, argument: object, **environment: str) -> dict[str, Any]:
    """The job in a process with one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--job", job, str(argument)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **threads, "ARROW_DEFAULT_MEMORY_POOL": "system", **environment},
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- parts ---


def part_pass(work: Path, rows: int) -> list[str]:
    """The pass against reading and bare products."""
    folder = work / "pass"
    generate(folder, rows)
    size = sum(file.stat().st_size for file in folder.iterdir())
    turns = [(run("fit", folder), run("bare", folder)) for _ in range(ROUNDS)]
    fit = min(turns, key=lambda turn: turn[0]["seconds"])[0]
    bare = min(turns, key=lambda turn: turn[1]["seconds"])[1]
    ratio = fit["seconds"] / bare["seconds"]
    cells = [
        (f"rows x {FEATURES} float32", f"{rows:,} ({size / 1e9:.2f} GB of Parquet)", ""),
        ("processor seconds of `fit_folder`", f"{fit['seconds']:.1f}", ""),
        (
            "reading + bare products of the same chunks",
            f"{bare['seconds']:.1f} (reading {bare['reading']:.1f})",
            "",
        ),
        ("ratio", f"{ratio:.2f}", "at most 1.3"),
        (
            "peak resident memory",
            f"{fit['peak'] / 2**20:.0f} MiB (libraries {fit['libraries'] / 2**20:.0f} MiB)",
            "below 1,024 MiB",
        ),
    ]
    return ["## One pass", "", table(("what", "measured", "required"), cells), ""]


def part_growth(work: Path, rows: int) -> list[str]:
    """Time over two decades of rows, or over as many as begin after the first batches; memory."""
    fewest = max(rows // 100, 2 * FIRST_ROWS)
    if rows <= 2 * fewest:
        raise SystemExit(f"growth needs more than {4 * FIRST_ROWS:,} rows, got --rows {rows:,}")
    counts = [fewest, isqrt(fewest * rows), rows]
    found = []
    for count in [FIRST_ROWS, *counts]:
        folder = work / f"growth-{count}"
        generate(folder, count)
        results = [run("fit", folder) for _ in range(ROUNDS)]
        found.append(min(results, key=lambda result: result["seconds"]))
        shutil.rmtree(folder)
    first, *found = found
    more = np.array(counts) - FIRST_ROWS
    seconds = np.array([result["seconds"] for result in found]) - first["seconds"]
    slope = np.polyfit(np.log(more), np.log(np.maximum(seconds, 1e-3)), 1)[0]
    cells = [
        (
            f"{count:,}",
            f"{result['seconds']:.2f}",
            "" if count == FIRST_ROWS else f"{1e6 * extra / (count - FIRST_ROWS):.2f}",
            f"{result['peak'] / 2**20:.0f}",
        )
        for count, result, extra in zip(
            [FIRST_ROWS, *counts], [first, *found], [0.0, *seconds], strict=True
        )
    ]
    return [
        "## Growth",
        "",
        table(("rows", "processor seconds", "µs per row beyond the first batches", "MiB"), cells),
        "",
        f"Slope of log time over log rows, both beyond the {FIRST_ROWS:,} rows of two batches: "
        f"**{slope:.2f}** (required: 0.95 to 1.05). The first batches pay for the memory that all "
        "others use again and for the sample that chooses the penalty.",
        "",
    ]


def part_exact(work: Path, rows: int) -> list[str]:
    """Coefficients of the pass against a fit in memory, for two splits and orders of the files."""
    count = min(rows, 200_000)
    first = work / "exact"
    generate(first, count)
    passed = run("fit", first)
    whole = run("memory_fit", first, ALPHA=repr(passed["alpha"]))
    second = work / "exact-split"
    _split_again(first, second)
    other = run("fit", second)
    exact = np.array(whole["coef"])
    scale = np.abs(exact).max()
    gaps = [np.abs(np.array(found["coef"]) - exact).max() / scale for found in (passed, other)]
    return [
        "## The model of one big fit",
        "",
        f"{count:,} rows, coefficients against the closed form in memory (float64), relative to "
        f"the largest: as written {gaps[0]:.1e}; rows shuffled and cut into seven other files "
        f"{gaps[1]:.1e} (required: 1e-8).",
        "",
    ]


def _split_again(source: Path, target: Path) -> None:
    import pyarrow.parquet as pq

    data = pq.read_table(source)
    order = np.random.default_rng(5).permutation(data.num_rows)
    target.mkdir()
    for number, part in enumerate(np.array_split(order, 7)):
        pq.write_table(data.take(part), target / f"{number}.parquet")


def part_kernel(work: Path, rows: int) -> list[str]:
    """A kernel with 1,000 landmarks against scikit-learn's and against boosting."""
    return list(run("kernel", rows)["lines"])


def part_dask(work: Path, rows: int) -> list[str]:
    """Two workers of one thread against one."""
    from benchmarks.scale_dask import compare

    folder = work / "dask"
    generate(folder, rows)
    return compare(folder)


def part_wide(work: Path, rows: int) -> list[str]:
    """Averaged SGD on wide sparse rows, two workers against one."""
    from benchmarks.scale_dask import compare_averaging

    return compare_averaging(min(rows, 1_600_000))


def main() -> None:
    """Run the parts and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--kernel-rows", type=int, default=200_000, help="of the part kernel")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--job", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        name, folder = arguments.job
        print(json.dumps(JOBS[name](folder)))
        return
    parts = {
        "pass": part_pass,
        "growth": part_growth,
        "exact": part_exact,
        "kernel": part_kernel,
        "dask": part_dask,
        "wide": part_wide,
    }
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as work:
            rows = arguments.kernel_rows if name == "kernel" else arguments.rows
            found = parts[name](Path(work), rows)
        print("\n".join(found), flush=True)
        if arguments.write:
            option = f"--kernel-rows {rows}" if name == "kernel" else f"--rows {rows}"
            write_section(name, found, f"python -m benchmarks.scale {option} --only {name} --write")


def write_section(name: str, lines: list[str], command: str) -> None:
    """Replace one section of the page; the others stay as the runs before left them."""
    page = RESULTS / "scale.md"
    sections = {}
    if page.exists():
        found = re.split(r"<!-- (\w+) -->\n", page.read_text(encoding="utf-8"))[1:]
        sections = dict(zip(found[::2], found[1::2], strict=True))
    body = [lines[0], "", f"`{command}`, {machine()}.", "", *lines[2:]]
    sections[name] = "\n".join(body)
    shown = [part for part in PARTS if part in sections]
    text = "\n\n".join(f"<!-- {part} -->\n{sections[part].strip()}" for part in shown)
    page.write_text(HEAD + text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
