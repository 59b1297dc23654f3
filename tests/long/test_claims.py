"""Every claim of the paper by its entry of the audit, on the full grids."""

from __future__ import annotations

import pytest

from consistruct.audit import ENTRIES, run_audit


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.check])
def test_claim(name):
    (found,) = run_audit([name]).results
    assert found.verdict == found.entry.expected, found.evidence
