"""Metrics that predictions are reported by: our defaults against what people use now.

    python -m benchmarks.metrics --quick               # few rows, a check that everything runs
    python -m benchmarks.metrics --held-out            # training rows only: for development
    python -m benchmarks.metrics --write               # the real run: page, plot and CSV file
    python -m benchmarks.metrics --write --only yeast  # one data set anew, the others kept
    python -m benchmarks.metrics --page                # page and plot anew from the CSV file

Test parts are read by runs without --quick, --held-out and --page, and by nothing else. Data
sets without a test part are cut into folds; with --held-out only a part of their rows is used.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

from benchmarks.measure import RESULTS
from benchmarks.metrics.label_ranking import label_ranking
from benchmarks.metrics.multilabel import multilabel
from benchmarks.metrics.ordinal import ordinal
from benchmarks.metrics.page import by_section, draw, machine_with_peers, page, section
from benchmarks.metrics.ranking import ranking
from benchmarks.metrics.rows import Row, read, write
from benchmarks.metrics.targets import judge
from consistruct._atomic import atomic_write

QUICK_ROWS = 300
PARTS: dict[str, Callable[..., list[Row]]] = {
    "yeast": multilabel,
    "scene": multilabel,
    "bibtex": multilabel,
    "ordinal_era": ordinal,
    "ordinal_swd": ordinal,
    "lightgbm_rank": ranking,
    "labelrank_pendigits": label_ranking,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few training rows")
    parser.add_argument("--held-out", action="store_true", help="training rows only")
    parser.add_argument("--write", action="store_true", help="write page, plot and CSV file")
    parser.add_argument("--page", action="store_true", help="write the page from the CSV file")
    parser.add_argument("--only", help=f"data sets, by commas: {', '.join(PARTS)}")
    options = parser.parse_args(arguments)
    chosen = options.only.split(",") if options.only else list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        parser.error(f"unknown data set {unknown[0]!r}; allowed are {', '.join(PARTS)}")
    held_out = options.held_out or options.quick
    if options.write and held_out:
        parser.error("--write needs the real run: no --quick, no --held-out")
    kept, machines = read(RESULTS / "metrics.csv")
    if not options.page:
        kept = kept if options.write else []
        for name in chosen:
            start = time.perf_counter()
            run = partial(PARTS[name], name, held_out=held_out)
            measured = run(rows=QUICK_ROWS if options.quick else None)
            kept = [row for row in kept if row.data != name] + measured
            machines[name] = machine_with_peers()
            for group in by_section(measured):
                print(section(group) + "\n", flush=True)
            print(f"{name}: {time.perf_counter() - start:.0f} s\n", flush=True)
            if options.write:  # after every data set: a stopped run loses one at most
                save(kept, machines)
    elif kept:
        save(kept, machines)
    else:
        parser.error("there is no metrics.csv yet; run with --write first")
    for verdict in [] if options.quick else judge(kept):  # few rows say nothing about targets
        print(f"{'met   ' if verdict.met else 'MISSED'} {verdict.target}: {verdict.measured}")


def save(rows: list[Row], machines: dict[str, str]) -> None:
    order = list(PARTS)
    rows = sorted(rows, key=lambda row: order.index(row.data))  # stable: metrics keep their order
    RESULTS.mkdir(exist_ok=True)
    machines = {name: machines[name] for name in order if name in machines}
    with atomic_write(RESULTS / "metrics.csv") as stream:
        stream.write(write(rows, machines).encode())
    with atomic_write(RESULTS / "metrics.png") as stream:
        draw(rows, stream)
    with atomic_write(RESULTS / "metrics.md") as stream:
        stream.write(page(rows, machines).encode())


if __name__ == "__main__":
    main()
