"""``--risk``: from a data file to a guarantee, and what the other commands make of it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tests.cli.test_learning import run, run_json

LEVEL = 0.1


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("train", 500), ("test", 1500)):
        X = rng.normal(size=(n, 2))
        noise = 0.5 * rng.normal(size=(2, n))
        classes = (X[:, 0] + noise[0] > 0).astype(int) + (X[:, 1] + noise[1] > 0.5)
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["a", "b", "kind"])
            writer.writerows(
                [*row, ("low", "middle", "high")[c]]
                for row, c in zip(X.tolist(), classes, strict=True)
            )
    return tmp_path


def test_fit_evaluate_predict(files):
    model = files / "m"
    settings = ("--target", "kind", "--learner", "ridge", "--model", model)
    fitted = run_json("fit", files / "train.csv", *settings, "--risk", LEVEL, "--confidence", 0.8)
    assert fitted["estimator"] == "RiskControl"
    assert fitted["policy"] == "sets"
    assert fitted["calibration_n_examples"] == 150
    assert "at most 0.1" in fitted["guarantee"]
    assert "probability 0.8" in fitted["guarantee"]
    evaluated = run_json("evaluate", model, files / "test.csv")
    assert evaluated["guarantee"] == fitted["guarantee"]
    low, high = evaluated["interval"]
    assert low <= evaluated["mean_loss"] <= high
    assert low <= LEVEL
    assert evaluated["coverage"] == 1.0
    assert evaluated["mean_size"] > 1.0
    lines = run("predict", model, files / "test.csv", "--expected-loss").stdout.splitlines()
    assert lines[0] == "kind,expected_loss"
    sets = [line.split(",")[0].split("|") for line in lines[1:]]
    assert np.mean([len(members) for members in sets]) == pytest.approx(evaluated["mean_size"])
    listed = run_json("predict", model, files / "test.csv")["predictions"]
    assert listed[0] == sets[0]


def test_no_answer_is_an_empty_field(files):
    model = files / "m"
    settings = ("--target", "kind", "--learner", "ridge", "--model", model)
    run_json("fit", files / "train.csv", *settings, "--risk", LEVEL, "--policy", "abstain")
    evaluated = run_json("evaluate", model, files / "test.csv")
    lines = run("predict", model, files / "test.csv").stdout.splitlines()[1:]
    silent = np.mean([line in ("", '""') for line in lines])
    assert silent == pytest.approx(1 - evaluated["coverage"])
    assert 0 < silent < 1
    assert evaluated["selective_risk"] == pytest.approx(
        evaluated["mean_loss"] / evaluated["coverage"]
    )


def test_evaluate_states_how_sure_it_is(files):
    model = files / "m"
    run_json("fit", files / "train.csv", "--target", "kind", "--learner", "ridge", "--model", model)
    evaluated = run_json("evaluate", model, files / "test.csv")
    low, high = evaluated["interval"]
    assert low < evaluated["mean_loss"] < high
    # about two standard errors to each side, and a little for being right at any size
    assert 3.5 * evaluated["standard_error"] < high - low < 7 * evaluated["standard_error"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--confidence", "0.9"), "--confidence needs --risk LEVEL"),
        (("--policy", "sets"), "--policy needs --risk LEVEL"),
        (("--risk", "0.001"), "too few rows for level 0.001: it takes at least 999, got 150"),
        (("--risk", "0.1", "--policy", "list"), "does not define the cost of a truncated list"),
        (("--risk", "0.1", "--calibrate", "1.5"), "between 0 and 1"),
    ],
)
def test_bad_requests_are_one_line(files, options, message):
    settings = ("--target", "kind", "--learner", "ridge", "--model", files / "m")
    failed = run("fit", files / "train.csv", *settings, *options, code=2)
    assert message in failed.output
    assert len(failed.output.strip().splitlines()) == 1
