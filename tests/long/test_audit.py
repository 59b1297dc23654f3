"""The audit on its full grids."""

from __future__ import annotations

from consistruct.audit import run_audit


def test_every_claim_on_the_full_grids():
    report = run_audit()
    assert [(one.entry.name, one.verdict) for one in report.surprises] == []
    assert report.passed
    assert report.seconds < 20 * 60
