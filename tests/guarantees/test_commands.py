"""``consistruct plan`` and ``consistruct advise``."""

from __future__ import annotations

import json
import sys
import time

import pytest

from consistruct import cli


def run(monkeypatch, capsys, *arguments):
    """The command as a user runs it: exit code, stdout, stderr."""
    monkeypatch.setattr(sys, "argv", ["consistruct", *arguments])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    captured = capsys.readouterr()
    return raised.value.code, captured.out, captured.err


def test_plan_answers_for_a_thousand_bits_within_a_second(monkeypatch, capsys):
    run(monkeypatch, capsys, "plan", "hamming:2", "--eps", "0.1")  # imports, measured elsewhere
    start = time.perf_counter()
    code, out, _ = run(monkeypatch, capsys, "plan", "hamming:1000", "--eps", "0.1", "--json")
    assert time.perf_counter() - start < 1
    assert code == 0
    found = json.loads(out)
    assert found["n_labels"] == str(2**1000)
    assert found["sharp"]["iterations"] == pytest.approx(160000, rel=1e-6)
    assert set(found["paper"]["assumptions"]) == {"D", "M", "Q", "R", "N"}


def test_plan_as_text_and_as_a_table(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "plan", "zero-one:5", "--eps", "0.2")
    assert code == 0
    for word in ("paper", "sharp", "sharp assumes", "N*"):
        assert word in out
    code, out, _ = run(monkeypatch, capsys, "plan", "--table", "--eps", "0.1", "--json")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert {row["family"] for row in rows} == {"zero-one", "block", "hamming", "mixed"}
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run(monkeypatch, capsys, "plan", "--table", "--eps", "0.1")
    assert code == 0
    assert "O(log³ k)" in out


def test_advise_prints_its_reason(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run(monkeypatch, capsys, "advise", "mixed:20x5:0.1", "--eps", "0.5")
    assert code == 0
    assert out.startswith("20 blocks: an excess of 0.5")
    assert "0.0929" in out
    arguments = ("--n-samples", "1000000", "--candidate", "blocks:10x10", "--json")
    code, out, _ = run(monkeypatch, capsys, "advise", "mixed:20x5:0.1", *arguments)
    assert code == 0
    found = json.loads(out)
    assert found["recommended"] in {entry["name"] for entry in found["families"]}
    assert "candidate 0" in {entry["name"] for entry in found["families"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "hamming:5", "--eps", "-1"), "eps must be a finite number in (0.0, inf], got"),
        (("plan", "--eps", "0.1"), "or a loss, for example hamming:1000, or --table"),
        (("plan", "hamming:5", "--table", "--eps", "0.1"), "or a loss, for example"),
        (("advise", "hamming:5"), "pass either n_samples (a budget) or eps (an accuracy)"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(monkeypatch, capsys, arguments, message):
    code, out, err = run(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
