"""``consistruct analyze``: text, JSON, pictures, and one line for whatever is wrong."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pytest

from consistruct import calibration_function, cli
from consistruct.losses import Mixed

INTRUSION = """0,1,2,2,2
1,0,2,2,2
2,1,0,2,2
3,2,2,0,2
4,2,2,2,0
"""


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


def test_json_has_the_fields_of_the_schema(consistruct):
    code, out, err = consistruct("analyze", "mixed:2x2:0.2", "--eps", "0,0.5,2", "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert (report["schema_version"], report["kind"]) == ("3.0", "calibration")
    assert (report["loss"], report["surrogate"]) == ("Mixed((2, 2), 0.2)", "quadratic")
    assert (report["measure"], report["n_labels"]) == ("uniform", "4")
    assert report["rank"].isdigit()
    assert report["max_eps"] == 1.0
    assert report["consistency_level"] == 0.0
    zero, middle, beyond = report["curve"]
    fields = {"eps", "lower", "upper", "log_lower", "log_upper", "method", "pair"}
    assert fields <= set(middle)
    assert (zero["lower"], zero["log_lower"]) == (0.0, None)
    expected = calibration_function(Mixed((2, 2), 0.2))(0.5)
    assert middle["lower"] == pytest.approx(expected, rel=1e-6)
    assert (beyond["lower"], beyond["upper"], beyond["pair"]) == (None, None, None)


def test_json_of_huge_label_sets(consistruct):
    code, out, _ = consistruct("analyze", "hamming:2000", "--scores", "full", "--json", "--eps=.5")
    report = json.loads(out)
    assert code == 0
    assert report["n_labels"] == str(2**2000)
    assert report["effective_classes"] is None
    assert report["effective_classes_log"] == pytest.approx(2000 * np.log(2))
    assert report["curve"][0]["lower"] == 0.0
    assert report["curve"][0]["log_lower"] < -1300


def test_text(consistruct):
    code, out, err = consistruct("analyze", "hamming:10", "--points", "5")
    assert (code, err) == (0, "")
    assert "share of wrong labels, of 10" in out
    assert "20 classes" in out
    assert "calibration function" in out
    assert "Is learning consistent, and to what level?" in out
    code, out, _ = consistruct("analyze", "mixed:2x2:0.2", "--scores", "blocks:2x2", "--eps", "0.5")
    assert "Only up to level 0.1" in out
    assert "approximation error" in out
    code, out, _ = consistruct("analyze", "hamming:2000", "--scores", "full", "--eps", "0.5")
    assert "10^-603." in out  # between ε²/4k and ε²/2k, k = 2^2000


def test_rows_of_a_cost_file(consistruct, tmp_path):
    path = tmp_path / "kdd.csv"
    path.write_text(INTRUSION)
    code, _, err = consistruct("analyze", f"cost:{path}")
    assert code == 2
    assert err.count("\n") == 1
    assert "rows" in err
    answers = {}
    for rows in ("pred", "true"):
        code, out, err = consistruct("analyze", f"cost:{path}", "--rows", rows, "--json")
        assert (code, err) == (0, "")
        answers[rows] = json.loads(out)
    # rows are true labels: the worst a prediction can do is 4, for R2L taken for normal
    assert answers["true"]["max_eps"] == 4.0
    assert answers["true"]["curve"] != answers["pred"]["curve"]


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_plots_are_real_pictures(consistruct, tmp_path, suffix, start):
    path = tmp_path / f"curve.{suffix}"
    code, out, err = consistruct("analyze", "zero-one:3", "--plot", path)
    assert (code, err) == (0, "")
    assert path.read_bytes().startswith(start)
    assert path.stat().st_size > 3000
    assert f"written: {path}" in out
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_no_half_written_files(consistruct, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def fails(self, stream, **_):
        stream.write(b"half")
        raise RuntimeError("disk full")

    monkeypatch.setattr(Figure, "savefig", fails)
    target = tmp_path / "curve.png"
    target.write_bytes(b"the picture of yesterday")
    monkeypatch.setattr(
        sys, "argv", ["consistruct", "analyze", "zero-one:3", "--plot", str(target)]
    )
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 70
    assert target.read_bytes() == b"the picture of yesterday"
    assert len(list(tmp_path.iterdir())) == 1


def test_html_and_csv(consistruct, tmp_path):
    page, table = tmp_path / "report.html", tmp_path / "data.csv"
    code, out, err = consistruct(
        "analyze", "zero-one:3", "--html", page, "--csv", table, "--at", "0.4"
    )
    assert (code, err) == (0, "")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 101  # a formula costs nothing
    middle = next(row for row in rows if row["eps"] == "0.4")
    assert float(middle["lower"]) == pytest.approx(0.16 / 12, rel=1e-9)  # ε²/4k
    text = (tmp_path / "data.worst_case.csv").read_text(encoding="utf-8")
    distribution = list(csv.DictReader(text.splitlines()))
    assert sum(float(row["probability"]) for row in distribution) == pytest.approx(1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "data.csv", "data.worst_case.csv", "report.html",
    ]  # fmt: skip
    for path in tmp_path.iterdir():
        assert f"written: {path}" in out


def test_json_alone_on_stdout_beside_files(consistruct, tmp_path):
    code, out, _ = consistruct(
        "analyze", "zero-one:3", "--json", "--html", tmp_path / "a.html", "--points", "3"
    )
    assert code == 0
    assert len(json.loads(out)["curve"]) == 4  # with the ε that the answers are about


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["analyze", "no-such-loss:3"], "no-such-loss"),
        (["analyze", "zero-one:x"], "zero-one"),
        (["analyze", "zero-one:0"], "0"),
        (["analyze", "hamming:10x1"], "1"),
        (["analyze", "mixed:2x2:1.5"], "eta"),
        (["analyze", "block:2,0"], "block sizes"),
        (["analyze", "cost:no/such/file.csv"], "no/such/file.csv"),
        (["analyze", "zero-one:3", "--scores", "chain"], "chain scores need labels made of parts"),
        (["analyze", "zero-one:3", "--scores", "blocks:2x2"], "scores are over 4 predictions"),
        (["analyze", "zero-one:3", "--scores", "matrix:none.csv"], "none.csv"),
        (["analyze", "zero-one:3", "--eps", "a,b"], "--eps must be numbers"),
        (["analyze", "zero-one:3", "--eps", "-1"], "--eps must be finite and non-negative"),
        (["analyze", "zero-one:3", "--eps", "nan"], "--eps must be finite and non-negative"),
        (["analyze", "zero-one:3", "--rows", "columns"], "--rows must be pred or true"),
        (["analyze", "zero-one:3", "--plot", "curve.gif"], ".png, .svg or .pdf"),
        (["analyze", "zero-one:3", "--plot", "no/such/folder/a.png"], "does not exist"),
        (["analyze", "zero-one:3", "--html", "no/such/folder/a.html"], "does not exist"),
        (["analyze", "zero-one:3", "--csv", "."], "is a folder"),
        (["analyze", "zero-one:3", "--at", "2"], "at must be at most the largest excess risk, 1"),
        (["analyze", "zero-one:3", "--at", "nan"], "at must"),
        (["analyze", "zero-one:3", "--radius", "0"], "radius must"),
        (["analyze", "zero-one:3", "--points", "1"], "points"),
        (["analyze", "zero-one:3", "--jobs", "0"], "jobs"),
        (["analyze", "zero-one:3", "--no-such-option"], "--no-such-option"),
        (["analyze"], "Missing argument"),
        (["no-such-command"], "no-such-command"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(consistruct, arguments, message):
    code, out, err = consistruct(*arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("consistruct: ")
    assert message in err


def test_bad_matrix_of_scores_is_one_line(consistruct, tmp_path):
    path = tmp_path / "F.csv"
    path.write_text("1,0\n0,1\n")
    code, _, err = consistruct("analyze", "zero-one:3", "--scores", f"matrix:{path}")
    assert (code, err.count("\n")) == (2, 1)
    assert "one row per label" in err


def test_negative_costs_are_one_line(consistruct, tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("0,-1\n1,0\n")
    code, _, err = consistruct("analyze", f"cost:{path}", "--rows", "pred")
    assert (code, err.count("\n")) == (2, 1)


def test_help_shows_an_example(consistruct):
    code, out, _ = consistruct("analyze", "--help")
    assert code == 0
    assert "Example: consistruct analyze hamming:10" in out
    code, out, err = consistruct()
    assert "analyze" in out + err


def test_a_matrix_of_scores_and_its_warning(consistruct, tmp_path):
    path = tmp_path / "F.csv"
    path.write_text("1,0\n1,1\n1,2\n")
    spec = f"matrix:{path}"
    code, out, err = consistruct("analyze", "ordinal:3", "--scores", spec, "--json", "--eps", "0.5")
    assert code == 0
    assert json.loads(out)["scores"].startswith("Dense")
    assert err.startswith("consistruct: warning: the labels 1 cannot win outright")
    assert err.count("\n") == 1


def test_jobs(consistruct):
    code, out, _ = consistruct("analyze", "ordinal:4", "--jobs", "2", "--json", "--eps", "0.5")
    assert code == 0
    assert json.loads(out)["curve"][0]["status"] == "certified"
