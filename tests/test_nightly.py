"""tools/nightly.py counts what ran, and never calls a reduced or empty run a full one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import asdict, replace

import pytest
from tools import nightly

REPORT = """<testsuites><testsuite>
<testcase name="a[0]"><properties><property name="cases" value="250"/></properties></testcase>
<testcase name="a[1]"><properties><property name="cases" value="7"/></properties>
<failure/></testcase>
<testcase name="b"/><testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase>
<testcase name="e"><skipped message="no time left"/></testcase>
</testsuite></testsuites>"""


def outcome(report=REPORT, suite="certified"):
    return nightly.read(suite, ET.fromstring(report), 3.0)


def test_only_what_passed_is_counted():
    found = outcome()
    assert (found.cases, found.passed, found.skipped) == (251, 2, 1)
    assert found.failed == ("a[1]", "d")
    assert found.left == ("e",)
    assert found.verdict == "FAILED"
    assert replace(found, failed=()).verdict == "unfinished"


def test_a_suite_that_ran_nothing_has_not_passed():
    found = outcome("<testsuites><testcase name='c'><skipped/></testcase></testsuites>")
    assert found.verdict == "skipped"


def test_a_run_that_pytest_refuses_is_a_failure():
    found = nightly.run("certified", full=False, blocks=41)  # there are forty
    assert found.cases == 0
    assert found.verdict == "FAILED"
    assert found.failed[0].startswith("did not run")


def test_the_page_states_what_was_omitted():
    counts = nightly.counts_of("certified", full=False, share=nightly.Share(1))
    assert counts == "those of CI, 1 of 40 blocks"
    reduced = nightly.page([replace(outcome(), counts=counts)])
    assert "**Not everything**: reduced: certified (those of CI, 1 of 40 blocks), cert" in reduced
    assert "certified (1 tests left); not run: defaults" in reduced
    assert "- certified: a[1]" in reduced
    passed = "<testsuites><testcase name='b'/></testsuites>"
    everything = [outcome(passed, suite) for suite in nightly.SUITES]
    assert "Full counts throughout." in nightly.page(everything)
    assert "## Failures" not in nightly.page(everything)


def test_suites_that_were_not_run_again_are_kept(tmp_path):
    store = tmp_path / "nightly.json"
    old = [outcome(), replace(outcome(suite="defaults"), day="2026-01-01")]
    store.write_text(json.dumps([*map(asdict, old), {**asdict(old[0]), "suite": "gone"}]))
    new = replace(outcome("<testsuites><testcase name='b'/></testsuites>"), day="2026-02-02")
    latest = nightly.merged(nightly.known(store), [new])
    assert [(one.suite, one.verdict, one.day) for one in latest] == [
        ("certified", "passed", "2026-02-02"),
        ("defaults", "FAILED", "2026-01-01"),
    ]


@pytest.mark.parametrize("suite", sorted(nightly.SUITES))
def test_every_suite_states_what_it_is_about(suite):
    assert len(nightly.description(suite)) > 20
    assert "NIGHTLY" not in nightly.description(suite)


def test_blocks_are_named_where_there_are_some():
    assert len(nightly.tests_of("random_problems", 3)) == 3
    assert nightly.tests_of("random_problems", 3)[2].endswith("_definition[2]")
    assert nightly.tests_of("defaults", 3) == nightly.tests_of("defaults", None)


def test_one_suite_may_have_blocks_of_its_own():
    share = nightly.share_of(["2", "fuzzing=6"])
    assert (share.of("fuzzing"), share.of("certified"), share.of("defaults")) == (6, 2, None)
    assert nightly.share_of(["fuzzing=20"]).of("fuzzing") is None  # all of them
    assert nightly.counts_of("fuzzing", full=True, share=share) == "6 of 20 blocks"
    assert nightly.counts_of("defaults", full=True, share=share) == "full"
    for wrong in ("0", "x", "defaults=2", "none=1", "fuzzing="):
        with pytest.raises(ValueError, match="--blocks"):
            nightly.share_of([wrong])


def test_a_seed_and_a_limit_by_the_clock_reach_the_tests():
    found = nightly.run("log_loss_bayes", full=False, blocks=None, seed=7, minutes=0.0)
    assert found.seed == 7
    assert found.left
    assert (found.passed, found.failed) == (0, ())
    assert found.verdict == "unfinished"
    code = "from tests.seeds import generator; print(generator(3).integers(2**40))"
    drawn = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=nightly.ROOT,
            text=True,
            check=True,
            capture_output=True,
            env={**os.environ, "CONSISTRUCT_SEED": str(seed)},
        ).stdout
        for seed in (0, 0, 7)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_tests_that_failed_or_were_left_are_run_again_and_count_then():
    last = replace(outcome(), version="1", day="2026-01-01")
    now = replace(
        outcome("<testsuites><testcase name='a[1]'/><testcase name='d'/></testsuites>"),
        version="2", day="2026-01-02",
    )  # fmt: skip
    found = nightly.again(last, now)
    assert found.verdict == "passed"
    assert found.passed == last.passed + 2
    assert found.cases == last.cases + 2
    assert found.seconds == last.seconds + now.seconds
    assert found.version == "1; 2 tests that failed and 1 tests that were left: 2"
    still = nightly.again(last, replace(now, failed=("d",)))
    assert still.verdict == "FAILED"
