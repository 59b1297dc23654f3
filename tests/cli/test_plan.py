"""``consistruct plan`` from a pilot data set: the forecast first, the worst case under its name."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from consistruct import cli
from consistruct.learning import refits

GRADES = "ordinal:setosa,versicolor,virginica"
RIDGE = ("--learner", "ridge", "--set", "features=linear", "--set", "alpha=1")


@pytest.fixture
def plan(monkeypatch, capsys, tmp_path):
    """Run the command in a folder with a pilot data set: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(refits, "FOLDS", 2)
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    with (tmp_path / "pilot.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = [[*X[n], ("setosa", "versicolor", "virginica")[y[n]]] for n in order]
        csv.writer(stream).writerows([["sl", "sw", "pl", "pw", "kind"], *rows])

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["consistruct", "plan", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return run


def test_the_forecast_comes_first_and_the_worst_case_by_its_name(plan):
    code, out, err = plan(
        "pilot.csv", "--target", "kind", "--loss", GRADES, *RIDGE, "--want", 0.1, "--want", 0
    )
    assert (code, err) == (0, "")
    lines = " ".join(out.split())
    forecast, _, worst = lines.partition("Worst-case guarantee, over all distributions")
    for text in ("from 150 rows", "1500", "10 times the rows", "floor of the curve"):
        assert text in forecast
    assert "a loss of 0 " in forecast
    assert "a loss of 0.1 takes" in forecast
    assert "not a forecast for these data" in worst
    assert "what the best constant prediction loses on the 150 true labels given" in worst
    assert "examples keep the expected excess" in worst


def test_json_has_both(plan):
    code, out, _ = plan(
        "pilot.csv", "--target", "kind", "--loss", "zero-one", *RIDGE, "--want", 0.5, "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert [point["n"] for point in found["forecast"]] == [150, 300, 600, 1500]
    for point in found["forecast"]:
        assert point["low"] <= point["estimate"] <= point["high"]
    assert found["rows_needed"][0]["text"].startswith("a loss of 0.5 takes no more than")
    assert found["worst_case"]["eps"] == pytest.approx(0.067)  # a tenth of two thirds


def test_column_files(plan, tmp_path):
    rng = np.random.default_rng(0)
    words = [
        [(word, "N" if word in "abc" else "V") for word in rng.choice(list("abcxyz"), 4)]
        for _ in range(60)
    ]
    text = "\n".join("".join(f"{word} {tag}\n" for word, tag in words_) for words_ in words)
    (tmp_path / "pilot.conll").write_text(text, encoding="utf-8")
    (tmp_path / "words.txt").write_text("w:%x[0,0]\n", encoding="utf-8")
    chain = ("--set", "alpha=0.01", "--set", "max_epochs=3")
    code, out, err = plan(
        "pilot.conll", "--loss", "hamming", "--template", "words.txt", *chain, "--json"
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["n"] == 60
    assert "is a family of losses" in found["worst_case"]["reason"]
    code, _, err = plan("pilot.conll", "--loss", "zero-one", "--template", "words.txt")
    assert (code, "use --loss hamming" in err) == (2, True)
    code, _, err = plan("pilot.conll", "--loss", "hamming")
    assert (code, "needs --template" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pilot.csv",), "pilot.csv is a file: use --loss to say what predictions are judged by"),
        (("--loss", "ordinal"), "--loss needs a pilot data set"),
        (("zero-one:3", "--want", "1"), "--want applies only to a pilot data set: pass --loss too"),
        (("nothing.csv", "--loss", "ordinal"), "there is no file 'nothing.csv'"),
        ((".", "--loss", "ordinal"), "a pilot data set is a single file, but . is a folder"),
        (
            ("pilot.csv", "--target", "kind", "--loss", "ordinal", "--template", "x"),
            "--template applies only to column files",
        ),
        (
            ("pilot.csv", "--target", "kind", "--loss", "ordinal", *RIDGE, "--confidence", "2"),
            "confidence must be a finite number",
        ),
        ((), "pass a pilot data set with --loss, or a loss, for example hamming:1000, or --table"),
    ],
)
def test_one_line_for_what_is_wrong(plan, arguments, message):
    code, out, err = plan(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_metrics_have_a_forecast_and_no_worst_case(plan):
    code, out, err = plan(
        "pilot.csv", "--target", "kind", "--loss", "macro-f1", *RIDGE, "--want", 0.999
    )
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    assert "macro-f1 expected" in text
    assert "macro-f1 = 0.999" in text
    assert "none: a metric that is not an average over examples has none" in text


def test_the_pilot_is_read_by_the_options_of_fit(plan, tmp_path):
    """Messages named --drop-missing-target, --missing and others, which `plan` did not have."""
    lines = [
        f"{1 + i % 8},{i % 7:03d}\t0{1 + i % 9}/0{1 + i % 5}/2023\t"
        f"{'unknown' if i % 6 == 0 else i}\t{'NA' if i == 3 else 'ab'[i % 7 > 3]}"
        for i in range(120)
    ]
    (tmp_path / "p.tsv").write_text("\n".join(["price\tday\tcount\ty", *lines]))
    data = ("p.tsv", "--loss", "zero-one", "--target", "y", *RIDGE)
    code, _, error = plan(*data)
    assert code == 2
    assert "line 5" in error
    assert "--drop-missing-target" in error
    notation = ("--missing", "unknown", "--decimal", ",", "--date-format", "%d/%m/%Y")
    code, out, error = plan(*data, "--drop-missing-target", *notation, "--json")
    assert code == 0, error
    assert json.loads(out)["n"] == 119
    (tmp_path / "w.conll").write_text("a X\nb Y\n\na X\n\n")
    code, _, error = plan("w.conll", "--loss", "hamming", "--decimal", ",")
    assert code == 2
    assert "--decimal does not apply to a column file" in error
