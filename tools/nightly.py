"""What takes hours: every suite of tests/long with full counts, and a page on what came out.

    python tools/nightly.py                          # all suites, full counts
    python tools/nightly.py certified tampered       # some of them
    python tools/nightly.py --blocks 2 --sample      # reduced; the page states it
    python tools/nightly.py --blocks 2 --blocks fuzzing=6      # one suite otherwise
    python tools/nightly.py --rest fuzzing           # only what failed or was left in its last run
    python tools/nightly.py --seed 7 fuzzing faults  # other cases than every night's

Writes benchmarks/results/nightly.md, which is committed, and beside it nightly.json: the latest
outcome of every suite, so that some of them can be run again without the others being forgotten. A
suite begins no test after --minutes; what is left can be run later with --rest.
Exit code 1 if anything failed. A suite that checks many problems in one test reports their number
as the property "cases".
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.measure import machine, table  # noqa: E402

from consistruct import __version__  # noqa: E402

PAGE = ROOT / "benchmarks" / "results" / "nightly.md"
FULL, SAMPLE = "full", "those of CI"
MINUTES = 45.0  # of one suite; the longest single test takes some ten more
LEFT = "no time left"  # tests/long/conftest.py
SUITES = {
    path.stem.removeprefix("test_"): path for path in sorted(ROOT.glob("tests/long/test_*.py"))
}
BLOCKS = re.compile(r"^BLOCKS = (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What one suite did, with which counts ("full", or what was left out), and when."""

    suite: str
    cases: int
    passed: int
    failed: tuple[str, ...]
    skipped: int
    seconds: float
    counts: str = FULL
    day: str = ""
    version: str = ""
    left: tuple[str, ...] = ()
    seed: int = 0

    @property
    def verdict(self) -> str:
        """In one word; a suite in which nothing ran has shown nothing."""
        if self.failed:
            return "FAILED"
        if self.left:
            return "unfinished"
        return "passed" if self.passed else "skipped"


def description(suite: str) -> str:
    """What the suite is about: the first sentence of its file, without its counts."""
    text = ast.get_docstring(ast.parse(SUITES[suite].read_text(encoding="utf-8"))) or suite
    first = text.partition("\n\n")[0].replace("\n", " ")
    first = re.sub(r" \(CONSISTRUCT_NIGHTLY=1: [^)]*\)", "", first).rstrip(".")
    return re.sub(r"^(A thousand|Forty) (\w)", lambda found: found[2].upper(), first)


def blocks_of(suite: str) -> int | None:
    """How many blocks the suite is cut into; None if it is not."""
    found = BLOCKS.search(SUITES[suite].read_text(encoding="utf-8"))
    return None if found is None else int(found[1])


@dataclass(frozen=True)
class Share:
    """How many blocks of suites in blocks are run: all, some, or so many of each suite."""

    common: int | None = None
    single: tuple[tuple[str, int], ...] = ()

    def of(self, suite: str) -> int | None:
        """Blocks of one suite; None for all that there are."""
        total = blocks_of(suite)
        wanted = dict(self.single).get(suite, self.common)
        return None if total is None or wanted == total else wanted


def share_of(words: list[str]) -> Share:
    """Read the options --blocks: a number, or suite=number.

    >>> share_of(["2", "fuzzing=6"]).of("fuzzing")
    6
    """
    common, single = None, {}
    for word in words:
        suite, _, number = word.rpartition("=")
        if not re.fullmatch(r"[1-9][0-9]*", number):
            raise ValueError(f"--blocks must be at least 1, or suite=number, got {word!r}")
        if not suite:
            common = int(number)
        elif suite not in SUITES or blocks_of(suite) is None:
            raise ValueError(f"--blocks {word}: {suite} is no suite in blocks")
        else:
            single[suite] = int(number)
    return Share(common, tuple(single.items()))


def tests_of(suite: str, blocks: int | None) -> list[str]:
    """Tests to name to pytest: the file, or its first blocks."""
    path = SUITES[suite]
    if blocks is None or blocks_of(suite) is None:
        return [str(path)]
    text = path.read_text(encoding="utf-8")
    (name,) = re.findall(r"^def (test_\w+)\(block", text, re.MULTILINE)
    return [f"{path}::{name}[{block}]" for block in range(blocks)]


def run(
    suite: str,
    *,
    full: bool,
    blocks: int | None,
    names: tuple[str, ...] = (),
    seed: int = 0,
    minutes: float = MINUTES,
) -> Outcome:
    """Run one suite in a process of its own, or tests of it, and read what pytest reports."""
    tests = [f"{SUITES[suite]}::{name}" for name in names] or tests_of(suite, blocks)
    environment = {
        **os.environ,
        "CONSISTRUCT_NIGHTLY": "1" if full else "0",
        "CONSISTRUCT_SEED": str(seed),
        "CONSISTRUCT_MINUTES": str(minutes),
    }
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # the older family has room for properties of a test
        command = [sys.executable, "-m", "pytest", "-q", "-o", "junit_family=xunit1"]
        command.append(f"--junitxml={report}")
        done = subprocess.run(
            [*command, *tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - start
        if done.returncode > 1 or not report.exists():  # pytest itself could not do it
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            return Outcome(suite, 0, 0, (f"did not run: {' '.join(last)}",), 0, seconds)
        return replace(read(suite, ET.parse(report).getroot(), seconds), seed=seed)


def read(suite: str, report: ET.Element, seconds: float) -> Outcome:
    """Counts of a JUnit report; only tests that passed count as cases."""
    cases = passed = skipped = 0
    failed, left = [], []
    for test in report.iter("testcase"):
        fault = test.find("failure") if test.find("failure") is not None else test.find("error")
        if fault is not None:
            failed.append(str(test.get("name")))
            sys.stderr.write(f"{suite}: {test.get('name')}: {fault.get('message')}\n")
        elif (reason := test.find("skipped")) is not None:
            if reason.get("message") == LEFT:
                left.append(str(test.get("name")))
            else:
                skipped += 1
        else:
            passed += 1
            reported = test.find("properties/property[@name='cases']")
            cases += 1 if reported is None else int(str(reported.get("value")))
    return Outcome(suite, cases, passed, tuple(failed), skipped, seconds, left=tuple(left))


def counts_of(suite: str, *, full: bool, share: Share) -> str:
    """How much of a suite is run, in words."""
    part, total = share.of(suite), blocks_of(suite)
    words = [FULL] if full else [SAMPLE]
    if part:
        words = [*([] if full else words), f"{part} of {total} blocks"]
    return ", ".join(words)


def known(path: Path) -> list[Outcome]:
    """The latest outcome of every suite that still exists."""
    if not path.exists():
        return []
    entries = json.loads(path.read_text(encoding="utf-8"))
    found = [
        Outcome(**{**one, "failed": tuple(one["failed"]), "left": tuple(one.get("left", ()))})
        for one in entries
    ]
    return [one for one in found if one.suite in SUITES]


def merged(old: list[Outcome], new: list[Outcome]) -> list[Outcome]:
    """New outcomes in place of older ones, in the order of the suites."""
    latest = {one.suite: one for one in [*old, *new]}
    return [latest[suite] for suite in SUITES if suite in latest]


def again(last: Outcome, now: Outcome) -> Outcome:
    """An earlier outcome with what had failed, or been left, replaced by the run of these tests."""
    repeated = f"{len(last.failed)} tests that failed" if last.failed else ""
    rest = f"{len(last.left)} tests that were left" if last.left else ""
    return replace(
        last,
        cases=last.cases + now.cases,
        passed=last.passed + now.passed,
        skipped=last.skipped + now.skipped,
        failed=now.failed,
        left=now.left,
        seconds=last.seconds + now.seconds,
        day=now.day,
        version=f"{last.version}; {' and '.join(filter(None, (repeated, rest)))}: {now.version}",
    )


def page(outcomes: list[Outcome]) -> str:
    """The results page."""
    reduced = [f"{one.suite} ({one.counts})" for one in outcomes if one.counts != FULL]
    reduced += [f"{one.suite} ({len(one.left)} tests left)" for one in outcomes if one.left]
    missing = [suite for suite in SUITES if suite not in {one.suite for one in outcomes}]
    parts_of = [f"reduced: {', '.join(reduced)}"] if reduced else []
    parts_of += [f"not run: {', '.join(missing)}"] if missing else []
    kind = f"**Not everything**: {'; '.join(parts_of)}." if parts_of else "Full counts throughout."
    rows = [
        [
            one.suite,
            description(one.suite),
            one.counts,
            one.seed,
            f"{one.cases:,}",
            one.passed,
            len(one.failed),
            one.skipped,
            f"{one.seconds:.0f}",
            one.day,
            one.version,
            one.verdict,
        ]
        for one in outcomes
    ]
    header = [
        "suite", "what", "counts", "seed", "cases", "tests passed", "failed", "skipped", "seconds",
        "day", "version", "verdict",
    ]  # fmt: skip
    parts = [
        "# What runs at night",
        "Made by `make nightly`, or suite by suite by `python tools/nightly.py NAME …`; do not "
        "edit. Each row is the latest run of its suite.",
        kind,
        f"Machine: {machine()}. Seconds by the clock, start of Python included.",
        "*Cases* are problems, certificates or settings that were checked in tests that passed; "
        "where a suite names none, its tests.",
        table(header, rows),
    ]
    failures = [f"- {one.suite}: {name}" for one in outcomes for name in one.failed]
    if failures:
        parts += ["## Failures", "\n".join(failures)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def main() -> None:
    """Read the arguments, run, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", nargs="*", help=f"of {', '.join(SUITES)}; all if none is named")
    parser.add_argument("--sample", action="store_true", help="counts of CI, not of the night")
    parser.add_argument(
        "--blocks", action="append", default=[], help="only so many blocks: number, suite=number"
    )
    parser.add_argument(
        "--rest", action="store_true", help="only what failed, or was left, in the last run"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the cases that are drawn")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="after which a suite begins no test"
    )
    parser.add_argument("--jobs", type=int, default=1, help="suites at a time")
    parser.add_argument("--out", type=Path, default=PAGE, help="where the page goes")
    options = parser.parse_args()
    unknown = sorted(set(options.suite) - set(SUITES))
    if unknown:
        parser.error(f"no suite {unknown[0]}; suites are {', '.join(SUITES)}")
    try:
        share = share_of(options.blocks)
    except ValueError as error:
        parser.error(str(error))
    full = not options.sample

    store = options.out.with_suffix(".json")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()

    before = {one.suite: one for one in known(store) if one.failed or one.left}
    if options.rest and not set(options.suite) <= set(before):
        parser.error(f"--rest: nothing is left in {', '.join(set(options.suite) - set(before))}")

    def report(suite: str) -> Outcome:
        rest = before[suite] if options.rest else None
        last = run(
            suite,
            full=full if rest is None else not rest.counts.startswith(SAMPLE),
            blocks=share.of(suite),
            names=() if rest is None else (*rest.failed, *rest.left),
            seed=options.seed if rest is None else rest.seed,
            minutes=options.minutes,
        )
        sys.stdout.write(f"{suite}: {last.cases} cases, {last.verdict}, {last.seconds:.0f} s\n")
        sys.stdout.flush()
        done = replace(last, day=today, version=__version__)
        if rest is not None:
            return again(rest, done)
        return replace(done, counts=counts_of(suite, full=full, share=share))

    failed = False
    with ThreadPoolExecutor(options.jobs) as pool:
        chosen = options.suite or (before if options.rest else SUITES)
        for outcome in pool.map(report, chosen):  # kept one by one: a later suite may be killed
            failed |= bool(outcome.failed)
            everything = merged(known(store), [outcome])
            entries = [asdict(one) for one in everything]
            store.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
            options.out.write_text(page(everything), encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
