"""What holds for every command: an example in its help, exit code 2 and one line on bad input."""

from __future__ import annotations

import re
import shlex
import sys

import pytest
from typer.main import get_command

from consistruct import cli

COMMANDS = sorted(
    name
    for name, command in get_command(cli.app).commands.items()  # type: ignore[attr-defined]
    if not command.hidden  # those say where they went: tests/paper/test_command.py
)


@pytest.fixture
def consistruct(monkeypatch, capsys, tmp_path):
    """Run the command line as a shell would, in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["consistruct", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return run


# Wrong words for each command: a file that is not there, a number that is none, a place that
# cannot be written. A new command needs its line.
WRONG = {
    "demo": [["--folder", "taken/inside"]],
    "analyze": [
        ["zero-one:3", "--eps", "x"],
        ["no-such-loss"],
        ["zero-one:3", "--html", "taken/a"],
    ],
    "plan": [["hamming:10", "--eps", "0"], ["--table"], ["nothing", "--eps", "0.1"]],
    "advise": [["ordinal:4"], ["ordinal:4", "--eps", "-1"]],
    "lint": [["none"], ["cost:none.csv"], ["zero-one:2", "--plot", "regions.png"]],
    "decide": [
        ["none.csv", "--loss", "zero-one"],
        ["taken", "--loss", "no-such-loss"],
        ["taken", "--loss", "cost:none.csv", "--out", "taken/inside"],
    ],
    "fit": [["none.csv", "--target", "y", "--model", "m"], ["taken", "--model", "m"]],
    "predict": [["none.safetensors", "none.csv"], ["taken", "taken"]],
    "evaluate": [["none.safetensors", "none.csv"]],
    "check": [["none.json"], ["taken"]],
    "report": [["none.safetensors", "none.csv"], ["m", "d", "--plot", "figure.gif"]],
}


def test_every_command_is_tried_with_wrong_words():
    untried = set(COMMANDS) - set(WRONG) - ELSEWHERE
    assert not untried, f"add lines to WRONG for {sorted(untried)}"


ELSEWHERE = {"doctor", "explore"}  # have tests of their own


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(consistruct, command):
    code, out, err = consistruct(command, "--help")
    assert (code, err) == (0, "")
    assert f"Example: consistruct {command}" in " ".join(out.split())


def test_the_main_help_shows_an_example(consistruct):
    code, out, _ = consistruct("--help")
    assert code == 0
    assert "Example: consistruct analyze" in out
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("command", "words"),
    [(command, words) for command, lines in WRONG.items() for words in lines],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_wrong_words_are_one_line_and_exit_code_2(consistruct, tmp_path, command, words):
    (tmp_path / "taken").write_text("a file where a folder is wanted\n")
    code, out, err = consistruct(command, *words)
    assert code == 2, err
    assert out == ""
    assert err.startswith("consistruct: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert len(err) > 30  # states something


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_options_are_one_line_and_exit_code_2(consistruct, command):
    code, out, err = consistruct(command, "--no-such-option")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--no-such-option" in err or "Missing" in err


@pytest.mark.parametrize("command", ["analyze", "plan", "advise", "lint"])
def test_examples_of_the_help_run(consistruct, command):
    _, help_text, _ = consistruct(command, "--help")
    example = re.search(r"Example: consistruct (.*?)(?:\n\n|\Z)", help_text, re.DOTALL)
    assert example is not None
    code, out, err = consistruct(*shlex.split(" ".join(example[1].split())))
    assert (code, err) == (0, "")
    assert out
