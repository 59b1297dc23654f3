"""``consistruct report``: from a CSV to a page, and one line for whatever is wrong."""

from __future__ import annotations

import csv
import json
import sys

import jsonschema
import numpy as np
import pytest
from sklearn.datasets import load_iris

from consistruct import cli
from consistruct.report import report_schema


@pytest.fixture
def consistruct(monkeypatch, capsys):
    """Run the command line as a shell would: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["consistruct", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return run


@pytest.fixture
def flowers(tmp_path, consistruct):
    """train.csv, test.csv and a model of them; one name holds markup."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["<b>setosa</b>", "versicolor", "virginica"])[y]
    order = np.random.default_rng(0).permutation(len(y))
    for file, rows in (("train.csv", order[:100]), ("test.csv", order[100:])):
        with (tmp_path / file).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["sl", "sw", "pl", "pw", "kind"])
            writer.writerows([*X[row], names[row]] for row in rows)
    code, _, err = consistruct(
        "fit",
        tmp_path / "train.csv",
        "--target",
        "kind",
        "--loss",
        "ordinal:<b>setosa</b>,versicolor,virginica",
        "--learner",
        "ridge",
        "--model",
        tmp_path / "flowers.safetensors",
    )
    assert (code, err) == (0, "")
    return tmp_path


def test_from_csv_to_all_files(consistruct, flowers):
    code, out, err = consistruct(
        "report",
        flowers / "flowers.safetensors",
        flowers / "test.csv",
        "--train",
        flowers / "train.csv",
        "--html",
        flowers / "r.html",
        "--plot",
        flowers / "r.svg",
        "--csv",
        flowers / "r.csv",
    )
    assert (code, err) == (0, "")
    assert "How good is it on the loss that matters?" in out
    page = (flowers / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<b>" not in page
    assert "&lt;b&gt;setosa" in page
    assert b"<svg" in (flowers / "r.svg").read_bytes()
    rows = list(csv.DictReader((flowers / "r.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["name"] for row in rows] == [
        "this model",
        "best constant",
        "logistic, argmax",
        "logistic, Bayes decisions",
        "forest, Bayes decisions",
        "boosting, Bayes decisions",
    ]
    for name in ("path", "learning_curve", "confusion", "bandwidths", "expected_loss"):
        assert (flowers / f"r.{name}.csv").exists()
        assert f"r.{name}.csv" in out


def test_json_keeps_the_schema_and_agrees_with_evaluate(consistruct, flowers):
    model, test = flowers / "flowers.safetensors", flowers / "test.csv"
    code, out, err = consistruct("report", model, test, "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    jsonschema.Draft202012Validator(report_schema("learning")).validate(report)
    assert report["reasons"]["baselines"] == "the training data were not given"
    assert report["path"]  # stored with the model
    _, out, _ = consistruct("evaluate", model, test, "--json")
    assert report["scores"][0]["mean"] == pytest.approx(json.loads(out)["mean_loss"])


def test_quick_fits_nothing_but_baselines(consistruct, flowers):
    model, test = flowers / "flowers.safetensors", flowers / "test.csv"
    code, out, _ = consistruct(
        "report", model, test, "--train", flowers / "train.csv", "--quick", "--json"
    )
    report = json.loads(out)
    assert code == 0
    assert len(report["scores"]) == 6
    assert (report["learning_curve"], report["bandwidths"]) == ([], [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--plot", "a.gif"], ".png, .svg or .pdf"),
        (["--html", "no/such/folder/a.html"], "does not exist"),
        (["--train", "none.csv"], "none.csv"),
        (["--seed", "x"], "--seed"),
    ],
    ids=str,
)
def test_wrong_options_are_one_line(consistruct, flowers, options, message):
    code, out, err = consistruct(
        "report", flowers / "flowers.safetensors", flowers / "test.csv", *options
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_data_without_true_labels_are_one_line(consistruct, flowers):
    (flowers / "bare.csv").write_text("sl,sw,pl,pw\n1,2,3,4\n")
    code, _, err = consistruct("report", flowers / "flowers.safetensors", flowers / "bare.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "kind" in err


def test_missing_values_are_one_line(consistruct, flowers):
    (flowers / "holes.csv").write_text("sl,sw,pl,pw,kind\n1,,3,4,versicolor\n")
    code, _, err = consistruct("report", flowers / "flowers.safetensors", flowers / "holes.csv")
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.filterwarnings("ignore:column 'id' is dropped")
def test_what_was_made_of_each_column_is_reported(consistruct, tmp_path):
    """From a raw table to the report: dropped columns, words, dates and gaps are listed."""
    rng = np.random.default_rng(0)
    with (tmp_path / "raw.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "town", "since", "age", "same", "bought"])
        for number in range(80):
            town = ["Ulm", "Bonn", ""][rng.integers(3)]
            age = "" if number % 7 == 0 else rng.integers(20, 60)
            day = f"2024-0{rng.integers(1, 9)}-1{rng.integers(9)}"
            writer.writerow([f"c{number}", town, day, age, 1, "yes" if town == "Ulm" else "no"])
    code, _, err = consistruct(
        "fit",
        tmp_path / "raw.csv",
        "--target",
        "bought",
        "--learner",
        "ridge",
        "--model",
        tmp_path / "m.safetensors",
    )
    assert (code, err) == (0, "")
    code, out, err = consistruct(
        "report",
        tmp_path / "m.safetensors",
        tmp_path / "raw.csv",
        "--train",
        tmp_path / "raw.csv",
        "--quick",
        "--html",
        tmp_path / "r.html",
    )
    assert (code, err) == (0, "")
    assert "How was each column treated?" in out
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for words in (
        "dropped: every row has a different value",
        "dropped: it has a single value",
        "category of 2 values, ",
        "date",
        "number, 12 missing",
    ):
        assert words in page, words
    # and the test file is the training file: that is stated first
    assert "Warning: all held-out examples are also in the training data" in " ".join(out.split())


def test_sequences_and_rankings_have_reports(consistruct, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        lines = []
        for _ in range(30):
            lines += [f"{word} {tag}" for word, tag in (("Ada", "B-PER"), ("ran", "O"))]
            lines += [f"{rng.choice(['Ulm', 'home'])} O", ""]
        (tmp_path / f"{name}.conll").write_text("\n".join(lines))
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["query", "a", "b", "grade"])
            for query in range(20):
                for x in rng.normal(size=(4, 2)):
                    writer.writerow([f"q{query}", *x, int(x[0] > 0)])
    (tmp_path / "template.txt").write_text("w:%x[0,0]\n")
    tags, ranks = tmp_path / "tags.safetensors", tmp_path / "ranks.safetensors"
    for fit in (
        ("train.conll", "--template", tmp_path / "template.txt", "--model", tags),
        (
            "train.csv",
            "--target",
            "grade",
            "--groups",
            "query",
            "--loss",
            "ndcg",
            "--learner",
            "items",
            "--set",
            "model=ridge",
            "--model",
            ranks,
        ),
    ):
        code, _, err = consistruct("fit", tmp_path / fit[0], *fit[1:])
        assert (code, err) == (0, "")
    for model, suffix, words in ((tags, "conll", "per sequence"), (ranks, "csv", "per query")):
        page = tmp_path / f"{suffix}.html"
        code, out, err = consistruct(
            "report",
            model,
            tmp_path / f"test.{suffix}",
            "--train",
            tmp_path / f"train.{suffix}",
            "--quick",
            "--html",
            page,
        )
        assert (code, err) == (0, "")
        assert words in " ".join(out.split())
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    code, _, err = consistruct("report", tags, tmp_path / "test.conll", "--target", "1")
    assert (code, err.count("\n")) == (2, 1)
    assert "--target does not apply to a sequence model" in err
