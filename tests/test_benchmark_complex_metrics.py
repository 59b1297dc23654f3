"""The page of non-decomposable metrics states what its numbers say."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.complex_metrics.page import page

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"


def numbers(ours: float) -> dict:
    row = {"consistruct": ours, "likeliest class": 50.0, "class weights": 52.0, "prior shift": 53.0}
    names = ("macro-f1", "g-mean", "balanced-accuracy", "mcc")
    return {"tables": {"machine": "m", "found": {name: {"t": row} for name in names}}}


def test_targets_are_met_or_not():
    good, bad = page(numbers(60.0)), page(numbers(52.4))
    assert "Targets: 6 of 6 met" in good
    assert "| macro-f1: likeliest class + 2.5 | 52.40 against 50.00 | **no** |" in bad
    assert "Targets: 1 of 6 met" in bad


def test_the_page_is_that_of_its_numbers():
    known = json.loads((RESULTS / "complex_metrics.json").read_text(encoding="utf-8"))
    assert (RESULTS / "complex_metrics.md").read_text(encoding="utf-8") == page(known)
