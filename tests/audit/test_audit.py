"""The audit decides every entry as expected, and notices what is broken."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import consistruct as cs
from consistruct import cli
from consistruct.audit import (
    ENTRIES,
    Deviation,
    Evidence,
    audit_dict,
    audit_pages,
    audit_text,
    run_audit,
)
from consistruct.calibration.methods.orbits import closed_forms
from consistruct.calibration.methods.orbits.closed_forms import ClosedForm, Quadratic
from consistruct.exceptions import ConsistructError
from consistruct.losses import Mixed, ZeroOne
from consistruct.scores import Full

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def quick():
    return run_audit(quick=True)


def test_every_entry_is_decided_as_expected(quick):
    surprises = [(one.entry.name, one.verdict, one.entry.expected) for one in quick.surprises]
    assert surprises == []
    assert quick.passed
    assert len(quick.results) == len(ENTRIES)
    assert quick.counts["false as stated"] >= 9
    assert quick.seconds < 60


def test_the_pages_of_the_documentation_are_those_of_the_code(quick):
    folder, fresh = ROOT / "docs" / "audit", audit_pages(quick)
    assert {page.name for page in folder.glob("*.md")} == set(fresh)
    again = "write docs/audit again: consistruct audit --write-docs docs/audit"
    for name in ENTRIES:
        page = (folder / f"{name}.md").read_text(encoding="utf-8")
        # heading, place, verdict and statement: everything before the numbers
        head = re.compile(r"\A.*?(?=^\* Checked by|^Not checked)", re.M | re.S)
        assert head.findall(page) == head.findall(fresh[f"{name}.md"]), again
    rows = re.compile(r"^\| \[.*$", re.M)
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert rows.findall(index) == rows.findall(fresh["index.md"]), again


def test_the_index_leads_to_every_entry_and_is_short(quick):
    index = audit_pages(quick)["index.md"]
    table = index.split("## All entries")[1]
    assert re.findall(r"^\| \[([\w-]+)\]\(\1\.md\)", table, re.M) == list(ENTRIES)
    assert len(index) < 80_000


def test_json_has_every_number_and_no_infinity(quick):
    found = json.loads(json.dumps(audit_dict(quick), allow_nan=False))
    assert found["passed"] is True
    assert [one["name"] for one in found["entries"]] == list(ENTRIES)
    for one in found["entries"]:
        assert one["statement"]
        if one["verdict"] != "not checked":
            assert one["worst"]["what"]
            assert one["grid"]
        if one["verdict"] in ("holds with correction", "false as stated"):
            assert one["correction"]
            assert all(deviation["within"] for deviation in one["corrected"])


def test_text_names_corrections(quick, capsys):
    from rich.console import Console

    Console(width=200).print(audit_text(quick))
    shown = capsys.readouterr().out
    assert "zero-one-remark" in shown
    assert "0.2525 instead of 0.0025" in shown


# --- the rule ---

FINE, BAD = Deviation("x", 0.5, 1.0), Deviation("y", 2.0, 1.0)


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (Evidence((FINE,), ""), "holds"),
        (Evidence((FINE,), "", edge=(FINE,)), "holds"),
        (Evidence((FINE,), "", edge=(BAD,)), "undecided"),
        (Evidence((FINE,), "", edge=(BAD,), corrected=(FINE,)), "holds with correction"),
        (Evidence((FINE,), "", edge=(BAD,), corrected=(FINE, BAD)), "undecided"),
        (Evidence((BAD,), "", corrected=(FINE,)), "false as stated"),
        (Evidence((BAD,), ""), "undecided"),
        (Evidence((), ""), "undecided"),
        (Evidence((Deviation("z", math.nan, 1.0),), ""), "undecided"),
    ],
)
def test_verdicts_follow_from_measurements(evidence, verdict):
    assert evidence.verdict == verdict


def test_the_worst_deviation_is_relative_to_its_tolerance():
    tight, loose = Deviation("tight", 1e-9, 1e-12), Deviation("loose", 0.5, 1.0)
    assert Evidence((loose, tight), "").worst is tight
    assert Evidence((loose, Deviation("count", 1, 0)), "").worst.what == "count"
    assert Evidence((loose,), "").worst_corrected is None


# --- broken code is noticed ---


def wrong_zero_one(loss, space):
    """ε²/3k instead of ε²/4k."""
    if not isinstance(space, Full):
        return None
    return ClosedForm("wrong", "ε²/3k", (Quadratic(0.0, 1.0, 1 / 3),), -math.log(loss.k))


def wrong_mixed_blocks(loss, space):
    """The level is moved from η/2 to η/3."""
    found = closed_forms._mixed_blocks(loss, space)
    if found is None or loss.eta == 0:
        return found
    rise = found.pieces[-1]
    level = loss.eta / 3
    a = rise.a
    moved = Quadratic(level, 1.0, a, -2 * level * a, level**2 * a)
    pieces = (Quadratic(0.0, level, 0.0), moved)
    return ClosedForm(found.name, found.formula, pieces, level=level, error=found.error)


@pytest.mark.parametrize(
    ("loss", "wrong", "noticed"),
    [
        (ZeroOne, wrong_zero_one, "prop-zero-one"),
        (Mixed, wrong_mixed_blocks, "prop-mixed-blocks"),
    ],
)
def test_a_wrong_closed_form_makes_the_audit_exit_with_1(loss, wrong, noticed, monkeypatch):
    command = ["audit", "--quick", "--only", noticed]
    assert CliRunner().invoke(cli.app, command).exit_code == 0
    monkeypatch.setitem(closed_forms.FORMS, loss, (wrong, *closed_forms.FORMS[loss]))
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code == 1
    assert "undecided, expected" in " ".join(result.output.split())


def test_a_check_that_stops_decides_nothing(monkeypatch):
    def broken(*_):
        raise RuntimeError("no answer")

    monkeypatch.setitem(closed_forms.FORMS, ZeroOne, (broken,))
    report = run_audit(["prop-zero-one", "zero-one-gradient-remark"], quick=True)
    assert [one.verdict for one in report.results] == ["undecided", "holds"]
    assert not report.passed
    evidence = report.results[0].evidence
    assert evidence is not None
    assert "RuntimeError: no answer" in evidence.worst.what


# --- the command ---


def test_only_and_json():
    command = ["audit", "--quick", "--json", "--only", "hamming-gram", "--only", "literature"]
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert [one["verdict"] for one in found["entries"]] == ["holds", "not checked"]
    assert found["quick"] is True


def test_list_names_all_entries():
    result = CliRunner().invoke(cli.app, ["audit", "--list"])
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(ENTRIES)


def test_an_unknown_entry_is_one_line_and_exit_2():
    result = CliRunner().invoke(cli.app, ["audit", "--only", "theorem-99"])
    assert result.exit_code == 2
    assert result.stderr.startswith("consistruct: unknown audit entry 'theorem-99'; ")
    assert result.stderr.count("\n") == 1


def test_pages_need_a_folder_and_all_entries(tmp_path):
    nowhere = tmp_path / "none"
    result = CliRunner().invoke(cli.app, ["audit", "--write-docs", str(nowhere)])
    assert result.exit_code == 2
    assert "does not exist" in result.stderr
    command = ["audit", "--write-docs", str(tmp_path), "--only", "hamming-gram"]
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code == 2
    assert "leave out --only" in result.stderr
    assert not list(tmp_path.iterdir())


def test_the_pages_are_written(tmp_path, monkeypatch):
    few = {name: ENTRIES[name] for name in ("hamming-gram", "zero-one-remark")}
    monkeypatch.setattr("consistruct.audit.runner.ENTRIES", few)
    (tmp_path / "gone.md").write_text("an entry that is no more")
    result = CliRunner().invoke(cli.app, ["audit", "--quick", "--write-docs", str(tmp_path)])
    assert result.exit_code == 0, result.output
    written = {page.name for page in tmp_path.iterdir()}
    assert written == {"index.md", "hamming-gram.md", "zero-one-remark.md"}
    text = (tmp_path / "zero-one-remark.md").read_text(encoding="utf-8")
    assert text.startswith("# zero-one-remark")
    assert "**false as stated**" in text


def test_without_sympy_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(ConsistructError, match=r"needs SymPy; install it with pip install consis"):
        run_audit(["hamming-gram"], quick=True)
    result = CliRunner().invoke(cli.app, ["audit", "--quick"])
    assert result.exit_code == 2
    assert result.stderr.startswith("consistruct: the audit needs SymPy")


def test_importing_the_audit_does_not_import_sympy():
    import subprocess

    code = "import sys, consistruct.audit; print('sympy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_it_is_there_lazily():
    assert cs.audit.run_audit is run_audit


def test_randomness_is_that_of_the_entry():
    first = run_audit(["theorem-rate"], quick=True).results[0].evidence
    second = run_audit(["joint-kernel", "theorem-rate"], quick=True).results[1].evidence
    assert first == second
