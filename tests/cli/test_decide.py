"""The command decide: tables of probabilities to tables of decisions."""

import csv
import json

import numpy as np
import pytest

from consistruct.decisions import decide
from consistruct.losses import read_cost_csv
from tests.cli.test_all_commands import consistruct  # noqa: F401 - a fixture

COSTS = "pred\\true,good,bad\npay,0,20\nreview,5,2\nreject,9,0\n"
ROWS = [("a", 0.9, 0.1), ("b", 0.2, 0.8), ("c", 0.55, 0.45), ("=d", 0.6, 0.4)]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "costs.csv").write_text(COSTS)
    lines = [f"{name},{bad},{good}" for name, good, bad in ROWS]
    (tmp_path / "p.csv").write_text("\n".join(["case,bad,good", *lines]) + "\n")
    return tmp_path


def read(text):
    return list(csv.DictReader(text.splitlines()))


def test_decisions_go_to_a_file_or_to_stdout(consistruct, files):  # noqa: F811
    words = ["decide", "p.csv", "--loss", "cost:costs.csv", "--id", "case"]
    code, out, err = consistruct(*words)
    assert (code, err) == (0, "")
    loss = read_cost_csv(files / "costs.csv")
    expected = decide(
        loss, np.array([[good, bad] for _, good, bad in ROWS]), classes=["good", "bad"]
    )
    found = read(out)
    assert [row["label"] for row in found] == expected.labels.tolist()
    assert [float(row["expected_loss"]) for row in found] == expected.expected_loss.tolist()
    assert [row["runner_up"] for row in found] == expected.runner_up.tolist()
    assert [row["case"] for row in found] == ["a", "b", "c", "'=d"]  # no formula for spreadsheets
    code, out, _ = consistruct(*words, "--out", "d.csv", "--json")
    result = json.loads(out)
    assert code == 0
    assert result["mean_expected_loss"] == pytest.approx(expected.expected_loss.mean())
    assert read((files / "d.csv").read_text()) == found


def test_limits(consistruct, files):  # noqa: F811
    words = ["decide", "p.csv", "--loss", "cost:costs.csv", "--id", "case"]
    code, out, err = consistruct(*words, "--limit", "review=1", "--limit", "reject=0.25")
    labels = [row["label"] for row in read(out)]
    assert code == 0
    assert (labels.count("review"), labels.count("reject")) == (1, 1)
    assert "review: at most 1 of 4 rows" in err
    for wrong in ("review", "review=x", "=3"):
        code, _, err = consistruct(*words, "--limit", wrong)
        assert (code, err.count("\n")) == (2, 1)
        assert "--limit" in err


def test_label_sets_and_wrong_tables(consistruct, files):  # noqa: F811
    (files / "sets.csv").write_text("sea,sun\n0.9,0.2\n0.1,0.7\n")
    code, out, _ = consistruct("decide", "sets.csv", "--loss", "hamming:2")
    assert code == 0
    assert [row["label"] for row in read(out)] == ["1|0", "0|1"]
    code, _, err = consistruct("decide", "p.csv", "--loss", "cost:costs.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "--id" in err
    code, _, err = consistruct(
        "decide", "p.csv", "--loss", "cost:costs.csv", "--id", "case", "--out", "costs.csv"
    )
    assert code == 2
    assert "it is the loss that this command reads" in err
