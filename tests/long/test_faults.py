"""Signals, full disks, read-only folders and rivals at random moments (CONSISTRUCT_NIGHTLY=1: 200).

Fits, saves, checkpoints, streams, reports, predictions and the explorer's jobs: nothing is lost or
half-written, the same command later gives the same files, and what was left behind is swept.
"""

from __future__ import annotations

import os
from functools import cache

import pytest

from tests.faults.cases import check
from tests.faults.explorer import check_explorer
from tests.faults.jobs import JOBS, undisturbed
from tests.fuzzing.server import ForkServer

NIGHT = os.environ.get("CONSISTRUCT_NIGHTLY") == "1"
COUNT, OF_EXPLORER = (180, 20) if NIGHT else (18, 2)


@pytest.fixture(scope="module")
def servers():
    with ForkServer(sequences=False) as first, ForkServer(sequences=False) as second:
        yield [first, second]


@pytest.fixture(scope="module")
def quiet(servers, tmp_path_factory):
    """What each job leaves undisturbed, found out when it is first requested."""
    folder = tmp_path_factory.mktemp("undisturbed")
    jobs = {job.name: job for job in JOBS}
    return cache(lambda name: undisturbed(jobs[name], servers[0], folder))


# in CI a sample in which every job and every fault occurs
@pytest.mark.parametrize("number", range(COUNT) if NIGHT else range(0, 36 * COUNT, 37)[:COUNT])
def test_nothing_is_lost_or_half_written(number, servers, quiet, tmp_path, record_property):
    record_property("happened", check(number, servers, quiet, tmp_path))


@pytest.mark.parametrize("number", range(OF_EXPLORER))
def test_the_explorer_leaves_no_process_and_no_file(number, tmp_path, record_property):
    record_property("happened", check_explorer(number, tmp_path))
