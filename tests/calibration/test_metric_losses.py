"""The calibration engine on losses of sets and rankings: levels, certificates, the command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from consistruct import calibration_function, cli
from consistruct.exceptions import LossSpecError
from consistruct.losses import NDCG, FBeta, Kendall, MeanAveragePrecision
from consistruct.structures import Positions
from consistruct.structures.registry import parse_scores


@pytest.mark.parametrize(("discount", "level"), [([6, 3, 2], 7 / 166), ([3, 2, 1], 1 / 26)])
def test_sortable_scores_are_inconsistent_for_average_precision(discount, level):
    # MATH 6: Σθ_i/σ(i) and the linear discount at three items; [6, 3, 2] is 6/σ
    curve = calibration_function(MeanAveragePrecision(3), Positions(discount))
    assert curve.consistency_level == pytest.approx(level, abs=1e-9)
    assert curve(level / 2) == 0.0


def test_the_sortable_scores_of_the_loss_are_those():
    space = MeanAveragePrecision(3).sortable_scores()
    assert space.matrix() == pytest.approx(Positions([6, 3, 2]).matrix() / 6)
    level = calibration_function(MeanAveragePrecision(3), space).consistency_level
    assert level == pytest.approx(7 / 166, abs=1e-9)


@pytest.mark.parametrize("loss", [FBeta(3), NDCG(3), Kendall(3), MeanAveragePrecision(3)], ids=repr)
def test_own_scores_are_consistent_and_certified(loss):
    curve = calibration_function(loss)
    assert curve.consistency_level == 0.0
    eps = 0.5 * curve.max_eps
    lower, upper = curve.interval(eps)
    assert 0 < lower <= upper * (1 + 1e-9)
    assert upper - lower <= 1e-6 * upper
    # Theorem 7
    assert lower >= eps**2 / (4 * curve.effective_classes) * (1 - 1e-6)
    curve.certificate(eps).check()


@pytest.mark.parametrize(
    ("spec", "n_labels", "rank"),
    [("fbeta:4", 16, 14), ("ndcg:3", 6, 3), ("map:3", 6, 5), ("precision-at:3:1", 6, 3)],
)
def test_analyze(spec, n_labels, rank):
    result = CliRunner().invoke(cli.app, ["analyze", spec, "--points", "3", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert (report["n_labels"], report["rank"]) == (str(n_labels), str(rank))
    assert report["consistency_level"] == 0.0
    lowers = [point["lower"] for point in report["curve"]]
    assert lowers[0] == 0.0
    assert np.all(np.diff(lowers) > 0)
    if spec.startswith("fbeta"):
        assert report["measure"] == "uniform over sizes, then over sets"


def test_analyze_with_sortable_scores():
    arguments = ["analyze", "map:3", "--scores", "sortable", "--eps", "0.01,0.2", "--json"]
    result = CliRunner().invoke(cli.app, arguments)
    report = json.loads(result.output)
    assert report["consistency_level"] == pytest.approx(7 / 166, abs=1e-9)
    assert report["curve"][0]["lower"] == 0.0 < report["curve"][1]["lower"]
    with pytest.raises(LossSpecError, match="an alternative that only map offers"):
        parse_scores("sortable", NDCG(3))
