"""The explorer under requests, idle and slow connections, full uploads and a full queue
(CONSISTRUCT_NIGHTLY=1: 10,000 requests, 500 connections): all answered, memory flat."""

from __future__ import annotations

import os

from benchmarks.explorer_load import measure

NIGHT = os.environ.get("CONSISTRUCT_NIGHTLY") == "1"
REQUESTS, CONNECTIONS = (10_000, 500) if NIGHT else (600, 150)


def test_every_request_is_answered_and_memory_stays_flat(record_property):
    load = measure(REQUESTS, CONNECTIONS)
    record_property("cases", load.requests)
    assert not load.failures, load.failures
