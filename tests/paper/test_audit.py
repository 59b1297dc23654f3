"""The audit decides every entry as expected, and notices what is broken."""

from __future__ import annotations

import io
import math
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner

from consistruct.calibration.methods.orbits import closed_forms
from consistruct.calibration.methods.orbits.closed_forms import ClosedForm, Quadratic
from consistruct.losses import Mixed, ZeroOne
from consistruct.structures import Full
from paper.__main__ import app
from paper.audit import ENTRIES, run_audit
from paper.model import Deviation, Evidence
from paper.pages import PAGE_END, audit_pages, audit_text


@pytest.fixture(scope="module")
def quick():
    return run_audit(quick=True)


def test_every_entry_is_decided_as_expected(quick):
    surprises = [(one.entry.name, one.verdict, one.entry.expected) for one in quick.surprises]
    assert surprises == []
    assert quick.passed
    assert len(quick.results) == len(ENTRIES)
    assert {"holds", "imprecise", "misprint", "false", "not checked"} == set(quick.counts)
    assert quick.seconds < 60


def test_every_entry_has_a_page_that_can_be_read(quick):
    pages = audit_pages(quick)
    assert set(pages) == {"index.md", "figures.md"} | {f"{name}.md" for name in ENTRIES}
    for one in quick.results:
        page = pages[f"{one.entry.name}.md"]
        assert page.startswith(f"# {one.entry.name}\n")
        assert f"**{one.verdict}**" in page
        assert ("* Correction: " in page) == (one.verdict in ("imprecise", "misprint", "false"))
        assert ("* The paper has it right in " in page) == (one.verdict == "misprint")
        assert page.endswith(f"[All entries](index.md)\n\n{PAGE_END}\n")


def test_the_index_leads_to_every_entry_and_is_short(quick):
    index = audit_pages(quick)["index.md"]
    table = index.split("## All entries")[1]
    assert re.findall(r"^\| \[([\w-]+)\]\(\1\.md\)", table, re.M) == list(ENTRIES)
    assert len(index) < 80_000


def test_every_number_is_there(quick):
    for one in quick.results:
        if one.verdict == "not checked":
            continue
        evidence = one.evidence
        assert evidence.worst.what
        assert evidence.grid
        if one.verdict != "holds":
            assert evidence.correction
            assert evidence.worst_corrected.within


def test_text_names_corrections(quick):
    text = io.StringIO()
    Console(width=200, file=text).print(audit_text(quick))
    assert "zero-one-remark" in text.getvalue()
    assert "0.2525 instead of 0.0025" in text.getvalue()


# --- the rule ---

FINE, BAD = Deviation("x", 0.5, 1.0), Deviation("y", 2.0, 1.0)


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (Evidence((FINE,), ""), "holds"),
        (Evidence((FINE,), "", edge=(FINE,)), "holds"),
        (Evidence((FINE,), "", edge=(BAD,)), "undecided"),
        (Evidence((FINE,), "", edge=(BAD,), corrected=(FINE,)), "imprecise"),
        (Evidence((FINE,), "", edge=(BAD,), corrected=(FINE, BAD)), "undecided"),
        (Evidence((BAD,), "", corrected=(FINE,)), "false"),
        (Evidence((BAD,), "", corrected=(FINE,), right_at="eq. (3)"), "misprint"),
        # where the paper has it right excuses nothing that is not mended or does not fail
        (Evidence((BAD,), "", right_at="eq. (3)"), "undecided"),
        (Evidence((BAD,), "", corrected=(BAD,), right_at="eq. (3)"), "undecided"),
        (Evidence((FINE,), "", edge=(BAD,), corrected=(FINE,), right_at="eq. (3)"), "imprecise"),
        (Evidence((FINE,), "", right_at="eq. (3)"), "holds"),
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
    assert CliRunner().invoke(app, command).exit_code == 0
    monkeypatch.setitem(closed_forms.FORMS, loss, (wrong, *closed_forms.FORMS[loss]))
    result = CliRunner().invoke(app, command)
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


def test_randomness_is_that_of_the_entry():
    first = run_audit(["theorem-rate"], quick=True).results[0].evidence
    second = run_audit(["joint-kernel", "theorem-rate"], quick=True).results[1].evidence
    assert first == second
