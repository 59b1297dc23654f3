"""What the benchmark of risk control measures with: splits, qualities, parts of its page."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.risk_control import __main__ as page
from benchmarks.risk_control.common import parts
from benchmarks.risk_control.peers import set_quality
from benchmarks.risk_control.real import real_row


def test_every_row_has_one_use():
    fit, calibrate, test = parts(101, seed=3)
    assert sorted(np.concatenate([fit, calibrate, test])) == list(range(101))
    assert abs(len(calibrate) - len(test)) <= 1
    assert not np.array_equal(fit, parts(101, seed=4)[0])


def test_quality_of_sets_by_hand():
    sets = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]])
    y_true = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    recall, precision, size = set_quality(sets, y_true)
    assert recall == pytest.approx((1 + 0 + 1) / 3)
    assert precision == pytest.approx((0.5 + 0 + 0) / 3)
    assert size == pytest.approx(1.0)


def test_a_guarantee_without_a_rule_is_reported():
    row = real_row("data", {"level": 0.1, "policy": "abstain"}, [], 0.3, 20)
    assert row[4] == "none"


def test_a_part_is_replaced_and_the_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    for part in ("scale", "real", "peers"):
        page.write_part(part, f"{page.TEXTS[part].format(splits=2)}\n\n| old {part} |")
    page.write_part("peers", f"{page.TEXTS['peers'].format(splits=2)}\n\n| new |")
    text = (tmp_path / "risk_control.md").read_text()
    assert text.count("## ") == 3
    assert "| old real |" in text
    assert "| old scale |" in text
    assert "| new |" in text
    assert "| old peers |" not in text
    assert text.index("old real") < text.index("| new") < text.index("old scale")
