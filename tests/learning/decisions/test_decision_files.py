"""Decisions through files, the command line, reports and analysis."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import consistruct as cs
from consistruct.cli import app
from consistruct.exceptions import ModelFileError
from consistruct.learning import load, save
from consistruct.learning.models import Costs, Regressor, Ridge
from consistruct.losses import Decision
from consistruct.structures import GridPath, Intervals, Knapsack, MixedInteger, Path, TopK


def data(d, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.exp(X @ rng.normal(size=(2, d)) / 2) * rng.uniform(0.7, 1.3, (n, d))


@pytest.mark.parametrize(
    ("loss", "model"),
    [
        (Decision(GridPath(2, 3)), "auto"),
        (Decision(Path([[0, 1], [1, 2], [0, 2]], 0, 2), name="roads"), Costs(["linear"])),
        (Decision(Knapsack([[1, 2, 3], [2, 1, 1]], [3, 2]), sense="max"), Costs(regret_rows=0)),
        (Decision(TopK(4, 2)), Costs(["log"])),
        (Decision(Intervals([0, 1, 2], [2, 3, 4]), sense="max"), Ridge("linear")),
        (Decision(MixedInteger([[1.0, 1.0]], upper=1.5)), Regressor()),
    ],
    ids=repr,
)
def test_models_with_ready_made_oracles_are_kept_in_files(loss, model, tmp_path):
    X, C = data(loss.n_costs)
    fitted = cs.StructuredPredictor(loss, model, random_state=0).fit(X, C)
    save(fitted, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.loss_ == loss
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.expected_target(X), fitted.expected_target(X))


def test_a_function_of_ones_own_is_refused_with_the_way_out(tmp_path):
    X, C = data(3)
    own = Decision(lambda costs: np.eye(3)[costs.argmin(axis=1)], 3)
    fitted = cs.StructuredPredictor(own, Ridge("linear")).fit(X, C)
    with pytest.raises(ModelFileError, match="register_type"):
        save(fitted, tmp_path / "model.safetensors")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_fit_predict_evaluate_and_report_on_the_command_line(tmp_path):
    X, C = data(4)
    table, model = tmp_path / "roads.csv", tmp_path / "roads.safetensors"
    names = ["rain", "hour", "e0", "e1", "e2", "e3"]
    rows = [",".join(names)] + [",".join(map(str, row)) for row in np.hstack([X, C]).tolist()]
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    targets = [part for name in names[2:] for part in ("--target", name)]
    fitted = run("fit", table, *targets, "--loss", "path:2x2", "--model", model, "--json")
    assert fitted.exit_code == 0, fitted.output
    assert json.loads(fitted.stdout)["loss"] == "Decision(GridPath(2, 2), n_costs=4)"
    predicted = run("predict", model, table, "--json")
    decisions = np.array(json.loads(predicted.stdout)["predictions"])
    assert GridPath(2, 2).feasible(decisions).all()
    evaluated = json.loads(run("evaluate", model, table, "--json").stdout)
    regret = cs.metrics.regret(C, decisions, loss="path:2x2")
    assert evaluated["mean_loss"] == pytest.approx(regret.mean())
    reported = run("report", model, table, "--train", table)
    assert reported.exit_code == 0, reported.output
    assert "the oracle" in reported.stdout


def test_analysis_by_the_diameter_and_by_counting():
    H = cs.calibration_function("path:5x5")
    assert H.effective_classes == 8.0
    assert H(4.0) == pytest.approx(4.0**2 / (2 * 16.0))  # ε²/2D², D² = 16
    counted = cs.calibration_function("path:5x5", "uniform")
    assert counted.effective_classes == pytest.approx(70.0)
    assert counted.scores.n_decisions == 70
    result = run("analyze", "path:5x5", "--points", "3", "--json")
    assert result.exit_code == 0, result.output
    reported = json.loads(result.stdout)
    assert (reported["effective_classes"], reported["n_labels"]) == (8.0, "70")
    assert run("plan", "path:3x3").exit_code == 0
    for arguments in (("path:5x5", "--scores", "chain"), ("tsp:5", "--scores", "uniform")):
        wrong = run("analyze", *arguments)
        assert wrong.exit_code != 0
    with pytest.raises(ValueError, match="decisions have their own scores"):
        cs.calibration_function("path:3x3", np.eye(3))
