"""Guaranteed risk against measured risk, and against MAPIE where it has the same guarantee.

    python -m benchmarks.risk_control --write           # 20 splits, about ten minutes
    python -m benchmarks.risk_control --only scale      # one of real, peers, scale
    python -m benchmarks.risk_control --held-out        # training parts only, for development

Every split draws anew which rows fit the model, which calibrate and which test.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from benchmarks.measure import RESULTS, machine
from benchmarks.risk_control.peers import peers
from benchmarks.risk_control.real import real
from benchmarks.risk_control.scale import ROWS, scale
from benchmarks.tabular.measured import versions

SPLITS = 20
PEER_SPLITS = 5  # MAPIE takes its time
PARTS = ("real", "peers", "scale")

REAL = """## Levels guaranteed and risks measured

Half of the rows fit the model, a quarter calibrates, a quarter tests; drawn anew for each split,
whose number stands under *splits above* (both parts of yeast and imclef07a together, all rows of
the tables). *Mean test
risk* ± its standard error over the splits; *splits above* counts test risks above the level,
where the test rows themselves have noise: a guarantee on average is kept if the mean is at most the
level within its error, a guarantee with 90 % if in at most one split of ten, those without a rule
counted, a rule is issued whose true risk is above the level. *Coverage* is the share of rows that were answered, *mean size* classes in a set,
labels in a set, or leaves below a node. *Loss without* is the mean loss of the plain predictions
of the same model."""
PEERS = """## Against MAPIE

{splits} splits. The same model, probabilities, calibration and test rows. Sets of labels:
logistic regression per label; two classes: extra trees on 3,000 rows of adult, 2,000 calibration
rows, 6,000 test rows. *Splits below* counts test values below the guarantee, *kept* what the
guarantee costs. MAPIE's thresholds are its 100 defaults unless stated; for the precision of two
classes those to 0.9, from the safest on, since it finds none if one calls nothing positive. Split fixed-sequence testing
uses a fifth of its rows to find the order, as ours does. Precision of label sets: an empty set
counts precision 0 for us and in this table."""
SCALE = "## A million calibration rows"
TEXTS = {"real": REAL, "peers": PEERS, "scale": SCALE}


def sections(page: str) -> dict[str, str]:
    """The parts of a page that was written before, by name."""
    titles = {part: TEXTS[part].partition("\n")[0] for part in PARTS}
    found = {}
    for part, title in titles.items():
        if title in page:
            found[part] = title + page.split(title, 1)[1].split("\n## ")[0].rstrip()
    return found


def main() -> None:
    """Read the arguments, run, print or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=PARTS, help="one part; the page keeps the others")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--rows", type=int, default=ROWS, help="of the part scale")
    parser.add_argument("--data", nargs="*", default=[], help="of the part real, by first letters")
    parser.add_argument("--held-out", action="store_true", help="training parts only")
    parser.add_argument("--write", action="store_true", help="write the results page")
    options = parser.parse_args()
    if options.write and options.held_out:
        parser.error("--write goes with all rows, not with --held-out")
    page = RESULTS / "risk_control.md"
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    few = min(options.splits, PEER_SPLITS)
    work: dict[str, tuple[int, Iterable[str]]] = {
        "real": (options.splits, real(options.splits, options.held_out, options.data, before)),
        "peers": (few, peers(few, options.held_out)),
        "scale": (0, scale(options.rows)),
    }
    for part in PARTS if options.only is None else (options.only,):
        splits, tables = work[part]
        for found in tables:  # one more row, or a few, each time: a long run leaves what it has
            text = f"{TEXTS[part].format(splits=splits)}\n\n{found}"
            print(text, flush=True)
            if options.write:
                write_part(part, text)


def write_part(part: str, text: str) -> None:
    """The page with this part new and the others as they are."""
    page = RESULTS / "risk_control.md"
    known = sections(page.read_text(encoding="utf-8")) if page.exists() else {}
    opening = [
        "# Risk control",
        "Made by `python -m benchmarks.risk_control --write` (a part: `--only PART`); do not edit.",
        f"Machine: {machine()}, {versions(('mapie',))}.",
    ]
    parts = {**known, part: text}
    kept = [parts[name] for name in PARTS if name in parts]
    page.write_text("\n\n".join([*opening, *kept]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
