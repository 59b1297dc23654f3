"""Costs on tables: ours against logistic regression, forests and boosting with Bayes decisions.

    python -m benchmarks.tabular --quick       # three small tables, two splits of training rows
    python -m benchmarks.tabular --held-out    # full size, test parts replaced: for development
    python -m benchmarks.tabular --write       # the real run; writes benchmarks/results/tabular.*

Fits are kept in benchmarks/cache (not under version control): peers run once, ours after every
change of the package. Test parts are read by the run without --quick and --held-out alone.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.measure import RESULTS
from benchmarks.tabular.large import large_rows
from benchmarks.tabular.page import page, write_csv
from benchmarks.tabular.run import Run
from benchmarks.tabular.tables import QUICK, SPLITS, TABLES


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tabular",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small tables, two held-out splits")
    parser.add_argument("--held-out", action="store_true", help="training parts only")
    parser.add_argument("--only", nargs="+", choices=TABLES, help="these tables")
    parser.add_argument("--peers", action="store_true", help="fit the peers alone, for later runs")
    parser.add_argument("--write", action="store_true", help="write the page and the CSV file")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each (2)")
    chosen = parser.parse_args(arguments)
    if chosen.write and (chosen.quick or chosen.held_out or chosen.only):
        parser.error("--write is for the whole run; leave out --quick, --held-out and --only")
    runs = [
        Run.of(
            name,
            n_splits=2 if chosen.quick else SPLITS,
            held_out=chosen.held_out or chosen.quick,
            n_jobs=chosen.jobs,
        )
        for name in chosen.only or (QUICK if chosen.quick else TABLES)
    ]
    for run in runs:
        run.peers()
    if chosen.peers:
        return 0
    cells = [cell for run in runs for cell in run.cells()]
    note = ""
    if chosen.quick or chosen.held_out:
        note = (
            f"**Not the published figures**: a run for development, on the training part of the "
            f"first fold alone, {len(runs[0].splits)} splits of it."
        )
    elif chosen.only:
        note = f"**Not the published figures**: only {', '.join(chosen.only)}."
    text = page(cells, [] if note else large_rows(chosen.jobs), note)
    print(text)
    if chosen.write:
        (RESULTS / "tabular.md").write_text(text, encoding="utf-8")
        write_csv(cells, RESULTS / "tabular.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
