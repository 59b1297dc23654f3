"""A limit by the clock for all tests of a run: what is left is taken up by the next run."""

from __future__ import annotations

import os
import time

import pytest

START = time.monotonic()
LIMIT = 60.0 * float(os.environ.get("CONSISTRUCT_MINUTES", "inf"))


def pytest_runtest_setup() -> None:
    """Skip a test that would begin too late; tools/nightly.py knows it by these words."""
    if time.monotonic() - START > LIMIT:
        pytest.skip("no time left")
