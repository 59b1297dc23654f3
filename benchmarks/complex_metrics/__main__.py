"""Non-decomposable metrics: ours against the usual recipes, from the same probabilities.

    python -m benchmarks.complex_metrics                  # every section; prints the page
    python -m benchmarks.complex_metrics --only tables    # one section, see --help
    python -m benchmarks.complex_metrics --write          # writes results/complex_metrics.*

Fits are kept in benchmarks/cache; the numbers of each section in results/complex_metrics.json.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from benchmarks.complex_metrics.page import page
from benchmarks.complex_metrics.sections import SECTIONS
from benchmarks.measure import RESULTS, machine

NUMBERS = RESULTS / "complex_metrics.json"
PAGE = RESULTS / "complex_metrics.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="sections to run")
    parser.add_argument("--write", action="store_true", help="write the page and its numbers")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for name in options.only or SECTIONS:
        found[name] = {"machine": machine(), "found": SECTIONS[name](options.jobs)}
    before = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    known = {**before, **found}
    if options.write:
        NUMBERS.write_text(json.dumps(known, indent=1) + "\n")
    text = page(known)
    if options.write:
        PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
