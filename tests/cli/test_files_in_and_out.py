"""What a command reads it never overwrites, and what it writes runs nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from consistruct import cli
from consistruct._plain_data import csv_text
from consistruct.learning import TaskLossClassifier, load, save
from consistruct.learning.models.ridge.model import Ridge
from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD

ROWS = "a,b,kind\n" + "\n".join(f"{i},{i * i % 7},{['x', 'y'][i % 2]}" for i in range(12)) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "costs.csv").write_text("pred,x,y\nx,0,1\ny,2,0\n", encoding="utf-8")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def fit(model, *options, data="d.csv"):
    linear = ("--learner", "ridge", "--set", "features=linear")
    return run("fit", data, "--target", "kind", *linear, "--model", model, *options)


def refused(result, words):
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert words in line
    assert "name another file" in line or "choose two different files" in line


def test_fit_keeps_its_data(folder):
    os.link("d.csv", "hard.csv")
    Path("soft.csv").symlink_to("d.csv")
    for model in ("d.csv", "./d.csv", folder / "d.csv", "hard.csv", "soft.csv"):
        refused(fit(model), "it is the data that this command reads")
    refused(fit("costs.csv", "--loss", "cost:costs.csv"), "it is the loss that this command reads")
    sgd = ("--set", "solver=sgd", "--epochs", 1, "--checkpoint")
    refused(fit("m", *sgd, "d.csv"), "it is the data that this command reads")
    refused(fit("m", *sgd, "m"), "--model and --checkpoint both name m")
    assert (folder / "d.csv").read_text() == ROWS


def test_predict_keeps_model_and_data(folder):
    assert fit("m").exit_code == 0
    before = (folder / "m").read_bytes()
    refused(run("predict", "m", "d.csv", "--out", "m"), "it is the model that this command reads")
    refused(run("predict", "m", "d.csv", "--out", "d.csv"), "it is the data that this command")
    assert (folder / "m").read_bytes() == before
    assert (folder / "d.csv").read_text() == ROWS
    assert run("predict", "m", "d.csv", "--out", "p.csv").exit_code == 0


def test_reports_keep_what_they_read(folder):
    assert fit("m").exit_code == 0
    refused(run("report", "m", "d.csv", "--html", "d.csv"), "it is the data that this command")
    refused(run("report", "m", "d.csv", "--csv", "m"), "it is the model that this command reads")
    found = run("report", "m", "d.csv", "--html", "r", "--csv", "r")
    refused(found, "--html and --csv both name r")
    found = run("analyze", "cost:costs.csv", "--csv", "costs.csv")
    refused(found, "it is the loss that this command reads")


def test_formulas_do_not_reach_spreadsheets(folder):
    names = ["=1+1", "@sum", "-x", "+y", "plain", "-1", "=1+1", "@sum", "-x", "+y", "plain", "-1"]
    lines = ["=a,b,=kind", *(f"{i},{i * i % 7},{name}" for i, name in enumerate(names))]
    (folder / "d.csv").write_text("\n".join(lines), encoding="utf-8")
    exact = ("--learner", "ridge", "--set", "features=rbf", "--set", "alpha=1e-6")
    done = run("fit", "d.csv", "--target", "=kind", *exact, "--model", "m")
    assert done.exit_code == 0, done.output
    cells = run("predict", "m", "d.csv").stdout.splitlines()
    assert cells[0] == "'=kind"
    assert set(cells[1:]) <= {"'=1+1", "'@sum", "'-x", "'+y", "plain", "-1"}
    assert "'=1+1" in cells


def test_numbers_stay_as_they_are():
    text = csv_text(["a", "b"], [[-1, "-1.5"], [-0.5, "+3"], ["-1 ", "\tx"], [None, "=1"]])
    assert text.splitlines() == ["a,b", "-1,-1.5", "-0.5,+3", "'-1 ,'\tx", ",'=1"]


def test_a_loaded_model_does_not_say_where_to_write(folder):
    solver = AveragedSGD(max_epochs=2, checkpoint=str(folder / "state"))
    model = TaskLossClassifier("zero-one", Ridge("linear", solver=solver), random_state=0)
    model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert (folder / "state").exists()
    save(model, "m")
    assert str(folder).encode() not in (folder / "m").read_bytes()
    loaded = load("m")
    assert loaded.model.solver == AveragedSGD(max_epochs=2)
    (folder / "state").unlink()
    loaded.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert not (folder / "state").exists()
