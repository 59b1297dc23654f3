"""``python -m paper``: what it prints, writes and refuses; where the old commands point."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from consistruct import cli
from consistruct.guarantees import constants
from consistruct.losses import Hamming, ZeroOne
from paper import __main__ as program
from paper.audit import ENTRIES
from paper.pages import PAGE_END
from tests.paper import ROOT


@pytest.fixture
def paper(monkeypatch, capsys):
    """Run the command as a shell would: exit code, stdout, stderr."""

    def run(*arguments, main=program.main):
        monkeypatch.setattr(sys, "argv", ["paper", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "160")
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return run


def test_only_the_entries_named_are_audited(paper):
    command = ("audit", "--quick", "--only", "hamming-gram", "--only", "literature")
    code, out, err = paper(*command)
    assert (code, err) == (0, "")
    assert "2 entries: 1 holds, 1 not checked; as expected" in " ".join(out.split())


def test_list_names_all_entries(paper):
    _, out, _ = paper("audit", "--list")
    assert [line.split()[0] for line in out.splitlines()] == list(ENTRIES)


def test_the_pages_and_figures_are_written(paper, tmp_path, monkeypatch):
    few = {name: ENTRIES[name] for name in ("hamming-gram", "zero-one-remark")}
    monkeypatch.setattr("paper.audit.ENTRIES", few)
    monkeypatch.setattr(program, "FIGURES", ("figure_1a",))
    folder = tmp_path / "new" / "paper"
    folder.mkdir(parents=True)
    (folder / "gone.md").write_text(f"an entry that is no more\n\n{PAGE_END}\n")
    code, _, _ = paper("pages", folder, "--quick")
    assert code == 0
    pages = {page.name for page in folder.glob("*.md")}
    assert pages == {"index.md", "figures.md", "hamming-gram.md", "zero-one-remark.md"}
    assert {page.suffix for page in folder.glob("figure_1a.*")} == {".csv", ".png", ".svg"}
    text = (folder / "zero-one-remark.md").read_text(encoding="utf-8")
    assert "**misprint**" in text
    # pages of somebody else stay
    (tmp_path / "mine.md").write_text("# Mine")
    code, _, err = paper("pages", tmp_path, "--quick")
    assert (code, (tmp_path / "mine.md").read_text()) == (2, "# Mine")
    assert "is not a page of this command" in err
    # a verdict that is not the expected one is shown, and makes the build fail
    wrong = replace(few["hamming-gram"], expected="false")
    monkeypatch.setitem(few, "hamming-gram", wrong)
    code, out, _ = paper("pages", folder, "--quick")
    assert code == 1
    assert "hamming-gram: holds, expected false" in out


def test_measured_beside_guaranteed(paper):
    code, out, _ = paper("simulate", "hamming:20", "--steps", "10,100", "--repeats", "3")
    assert code == 0
    for word in ("1048576 labels", "4 anchor distributions", "Th. 5", "below their bounds"):
        assert word in out
    arguments = ("mixed:4x3:0.1", "--scores", "blocks:4x3", "--constants", "paper")
    code, out, _ = paper("simulate", *arguments, "--steps", "10,100", "--seed", "5")
    assert code == 0
    assert "paper: D = " in out


def test_a_bound_that_fails_is_exit_code_1(paper, monkeypatch):
    right = constants.sharp_constants

    def too_small(*arguments, **options):
        found = right(*arguments, **options)
        return replace(found, factor=found.factor / 1e6)

    monkeypatch.setattr("paper.learning_curves.sharp_constants", too_small)
    code, out, _ = paper("simulate", "zero-one:4", "--steps", "10,100", "--repeats", "3")
    assert code == 1
    assert "NOT below their bounds" in out


def test_the_study(paper, monkeypatch):
    monkeypatch.setattr("paper.hardness.STEPS", (10, 100, 1000))
    problems = (("0-1", ZeroOne(4), None), ("Hamming", Hamming(5), None))
    monkeypatch.setattr("paper.hardness.PROBLEMS", problems)
    code, out, _ = paper("simulate", "--study", "--repeats", "2", "--eps", "0.05")
    assert code == 0
    assert "explained by" in out
    assert len(re.findall(r"^│ (0-1|Hamming) ", out, re.M)) == 2 * 9  # all anchors, all noises


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("audit", "--only", "theorem-99"), "unknown entry 'theorem-99'; "),
        (("figures", "--only", "figure_2"), "unknown figure 'figure_2'; the figures are figure_1a"),
        (("simulate",), "pass a loss, for example hamming:20, or --study"),
        (("simulate", "hamming:3", "--study"), "pass a loss, for example hamming:20, or --study"),
        (("simulate", "hamming:3", "--steps", "10,x"), "--steps must be integers separated by"),
        (("simulate", "hamming:3", "--constants", "mine"), "variant must be one of paper, sharp"),
        (("simulate", "zero-one:100000"), "at most 4096 true labels, or a Hamming or block loss"),
        (("simulate", "hamming:3", "--noise", "-1"), "noise must be"),
        (("simulate", "nonsense:3"), "nonsense"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(paper, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = paper(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert not list(tmp_path.iterdir())


def test_without_sympy_one_line_states_how_to_get_it():
    code = "import sys; sys.modules['sympy'] = None; import paper.__main__"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 2
    assert done.stderr.startswith("paper: needs SymPy; run make paper")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["audit", "figures", "simulate"])
def test_the_old_commands_say_where_they_went(paper, command):
    for rest in ([], ["--quick", "hamming:20"], ["--help"]):
        code, out, err = paper(command, *rest, main=cli.main)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert f"python -m paper {command}" in err
    code, out, _ = paper("--help", main=cli.main)
    assert not re.search(rf"^  {command} ", out, re.M)  # not offered any more
