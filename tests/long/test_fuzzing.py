"""Hostile files, specs and models against the real entry points (CONSISTRUCT_NIGHTLY=1: 10,000).

Never: a traceback, a crash, more than 1 GiB, more than 20 s, a silently changed number. Every tenth
case runs in a process of its own, the others are forked from one that has everything imported.
"""

from __future__ import annotations

import os

import pytest

from tests.fuzzing.cases import make
from tests.fuzzing.server import ForkServer
from tests.fuzzing.verdict import problems_of

# certificates are made for losses whose labels tie, too
pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")

BLOCKS = 20
COUNT = 10_000 if os.environ.get("CONSISTRUCT_NIGHTLY") == "1" else 500


@pytest.fixture(scope="module")
def server():
    with ForkServer() as started:
        yield started


@pytest.mark.parametrize("block", range(BLOCKS))
def test_nothing_but_answers_and_one_line(block, server, tmp_path, record_property):
    numbers = range(block, COUNT, BLOCKS)
    failures = []
    for number in numbers:
        fresh = number // BLOCKS % 10 == 0
        found = problems_of(make(number), server, tmp_path / "case", fresh=fresh)
        failures += [f"case {number}: {what}" for what in found]
    record_property("cases", len(numbers))
    assert not failures, "\n".join(failures)
