"""The report as data and as text."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from rich.console import Console

from consistruct import calibration_function
from consistruct.losses import Block, CostMatrix, Hamming, ZeroOne
from consistruct.report import calibration_report
from consistruct.report.calibration.output import calibration_text
from consistruct.report.schema import CALIBRATION_SCHEMA

NAMED = CostMatrix([[0, 2.0], [1.0, 0]], ("ham", "spam"), ("ham", "spam"), rows="pred")


def rendered(report):
    text = io.StringIO()
    Console(width=160, file=text).print(calibration_text(report))
    return text.getvalue()


def test_default_grid_ends_at_the_largest_excess_risk():
    report = calibration_report(calibration_function(NAMED))
    assert len(report.curve) == 22  # with the ε that the answers are about
    assert (report.curve[0].eps, report.curve[-1].eps) == (0.0, 2.0)
    assert report.as_dict()["schema_version"] == CALIBRATION_SCHEMA


def test_labels_are_shown_by_name():
    report = calibration_report(calibration_function(NAMED), [1.5])
    assert report.as_dict()["curve"][0]["pair"] == ["spam", "ham"]
    assert "spam, ham" in rendered(report)


def test_every_number_is_valid_json():
    for loss, scores in [
        (Hamming(1500), "full"),
        (Block((2**250, 2**250)), None),
        (ZeroOne(1), None),
    ]:
        curve = calibration_function(loss, scores)
        text = json.dumps(calibration_report(curve, [0.0, 0.5, 3.0]).as_dict(), allow_nan=False)
        assert json.loads(text)["n_labels"] == str(loss.n_labels)


def test_progress_is_reported():
    steps = []
    curve = calibration_function(CostMatrix(np.random.default_rng(0).random((3, 3)), rows="pred"))
    calibration_report(curve, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (21, 21)  # ε = 0 needs no work, the ε of the answers joins


def test_text_of_underflowing_curves_is_in_logarithms():
    text = rendered(calibration_report(calibration_function(Hamming(2000), "full"), [0.5]))
    assert "10^-603." in text  # between ε²/4k and ε²/2k, k = 2^2000
    assert "2^2000" in text
    assert str(math.inf) not in text


def test_the_worst_distribution_names_each_true_label_once():
    # Hamming: i and j differ in all parts; ε = 2P(i) − 1
    report = calibration_report(calibration_function(Hamming(10)), at=0.25)
    assert report.worst_case is not None
    distribution = {entry.true_label: entry.probability for entry in report.worst_case.distribution}
    assert len(distribution) == len(report.worst_case.distribution) == 2
    assert distribution["0" * 10] == pytest.approx(0.625, abs=1e-6)
