"""The accuracy that plans and reports take where none is requested."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest

import consistruct as cs
from consistruct import cli
from consistruct.guarantees import sample_complexity
from consistruct.guarantees.constants import default_accuracy
from consistruct.losses import Block, CostMatrix, Hamming, Mixed, Ordinal, ZeroOne
from consistruct.report import calibration_report
from consistruct.structures import Blocks


@pytest.mark.parametrize(
    "loss",
    [
        ZeroOne(7),
        Ordinal(6),
        Block((2, 3)),
        CostMatrix([[0, 1.0, 2.0], [5.0, 0, 1.0]], rows="pred"),
    ],
)
def test_listed_losses_take_the_best_row_of_the_matrix(loss):
    constant = min(sum(row) / len(row) for row in loss.matrix().tolist())
    found = default_accuracy(loss)
    assert found.eps == pytest.approx(constant / 10, rel=0.05)  # two digits
    assert "a tenth of" in found.reason
    assert "equally likely" in found.reason


def test_labels_that_are_never_listed():
    # each part is guessed with probability 1/s
    assert default_accuracy(Hamming(1000)).eps == pytest.approx(0.05, rel=0.02)
    assert default_accuracy(Hamming(500, 4)).eps == pytest.approx(0.075, rel=0.02)
    huge = default_accuracy(Mixed((2**250, 2**250), 0.4))  # no decoder at all
    assert huge.eps == pytest.approx((0.4 + 0.6 / 2) / 10, rel=0.05)
    assert "drawn at random" in huge.reason


def test_observed_true_labels_count_where_they_are_given():
    true = np.array([0] * 90 + [1] * 10)
    found = default_accuracy(ZeroOne(10), true=true)
    assert found.eps == pytest.approx(0.01)
    assert "on the 100 true labels given" in found.reason
    plan = sample_complexity(ZeroOne(10), features=np.ones((100, 1)), true=true)
    assert (plan.eps, plan.eps_reason) == (found.eps, found.reason)


def test_the_level_is_added_and_the_range_caps():
    loss, blocks = Mixed((2, 2, 2), 0.2), Blocks((2, 2, 2))
    plan = sample_complexity(loss, blocks)
    assert plan.eps == pytest.approx(0.1 + default_accuracy(loss).eps)
    assert "above the consistency level 0.1" in plan.eps_reason
    assert math.isfinite(plan.sharp.iterations)
    assert default_accuracy(loss, max_eps=0.01).eps == 0.01


def test_a_loss_that_one_prediction_always_avoids():
    found = default_accuracy(CostMatrix([[0, 0.0], [1.0, 3.0]], rows="pred"), max_eps=3.0)
    assert found.eps == pytest.approx(0.3)
    assert "always right" in found.reason


def test_reports_say_which_eps_and_why():
    report = calibration_report(cs.calibration_function(ZeroOne(10)))
    assert report.at == 0.09
    assert report.at_reason.startswith("a tenth of 0.9")
    report = calibration_report(cs.calibration_function(ZeroOne(10)), [0.0, 0.1, 1.0])
    assert report.at == 0.1
    assert "closest to 0.09" in report.at_reason
    assert len(report.curve) == 3
    report = calibration_report(cs.calibration_function(ZeroOne(10)), at=0.3)
    assert (report.at, report.at_reason) == (0.3, "requested")


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["consistruct", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    captured = capsys.readouterr()
    return stopped.value.code, captured.out, captured.err


def test_the_command_line_plans_without_being_reported(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "plan", "zero-one:10", "--json")
    found = json.loads(out)
    assert (code, found["eps"]) == (0, 0.09)
    assert "best constant prediction" in found["eps_reason"]
    _, out, _ = run(monkeypatch, capsys, "plan", "zero-one:10")
    assert "best constant" in out
    code, _, error = run(monkeypatch, capsys, "plan", "--table")
    assert code == 2
    assert "set it with --eps" in error
