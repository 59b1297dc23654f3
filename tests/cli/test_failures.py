"""Whatever fails, the command line states one line and exits with the code of that kind."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from consistruct import cli
from consistruct.calibration import calibration_function
from consistruct.cli.failures import BUG, LONGEST, is_for_users
from consistruct.exceptions import LossSpecError
from consistruct.losses import Mixed

SOURCE = Path(__file__).resolve().parents[2] / "src"


def failing(monkeypatch, error):
    """Let `analyze` raise `error`."""

    def fail(*_):
        raise error

    monkeypatch.setattr("consistruct.cli.commands.analyze.read_loss", fail)


def run(*arguments):
    return CliRunner().invoke(cli.app, list(arguments))


def main(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["consistruct", *arguments])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return raised.value.code


def one_line_of(result, code=2):
    assert result.exit_code == code, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("consistruct: ")
    assert "Traceback" not in result.output
    return lines[0]


def process(*arguments, **options):
    """The command in a process of its own, as a user starts it."""
    command = [sys.executable, "-m", "consistruct", *arguments]
    environment = {"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, env=environment, text=True, stderr=subprocess.PIPE, timeout=120, **options
    )


# --- kinds of failures ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (LossSpecError("a clear\n line"), "consistruct: a clear line"),
        (OSError(errno.ENOSPC, "No space left on device", "out"), "out: No space left on device"),
        (MemoryError("Unable to allocate 21.8 TiB"), "not enough memory (Unable to allocate 21.8"),
        (MemoryError(), "not enough memory (no more could be allocated); use smaller sizes"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_code_2(monkeypatch, error, line):
    failing(monkeypatch, error)
    assert line in one_line_of(run("analyze", "hamming:3"))


@pytest.mark.parametrize(
    "error",
    [KeyError("k"), OverflowError("math range error"), RecursionError("deep"), AssertionError()],
)
def test_a_bug_is_one_line_that_states_where_the_trace_is(monkeypatch, tmp_path, error):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    failing(monkeypatch, error)
    line = one_line_of(run("analyze", "hamming:3"), BUG)
    assert f"this is a bug in consistruct ({type(error).__name__}" in line
    (trace,) = tmp_path.glob("consistruct-trace-*.txt")
    assert str(trace) in line
    text = trace.read_text()
    assert "Traceback" in text
    assert "in fail" in text


def test_a_call_that_failed_inside_is_a_bug_too(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(
        "consistruct.cli.commands.analyze.read_loss", lambda *_: np.zeros(3) + np.zeros(2)
    )
    assert "broadcast" in one_line_of(run("analyze", "hamming:3"), BUG)


def test_where_no_trace_can_be_written_it_is_shown(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    failing(monkeypatch, KeyError("k"))
    result = run("analyze", "hamming:3")
    assert result.exit_code == BUG
    assert "Traceback" in result.stderr
    assert "the traceback is above" in result.stderr


def test_an_interruption_is_reported(monkeypatch, capsys):
    failing(monkeypatch, KeyboardInterrupt())
    assert main(monkeypatch, "analyze", "hamming:3") == 130
    assert capsys.readouterr().err == "consistruct: interrupted\n"


def test_the_entry_point_tells_alike(monkeypatch, capsys):
    assert main(monkeypatch, "analyze", "hamming:0") == 2
    assert main(monkeypatch, "no-such-command") == 2
    assert main(monkeypatch, "analyze", "hamming:3", "--points", "x") == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("consistruct: ") for line in lines)


def test_long_messages_are_cut(monkeypatch):
    failing(monkeypatch, LossSpecError("x" * 10**6))
    assert len(one_line_of(run("analyze", "hamming:3"))) < LONGEST + 20


def test_errors_raised_on_purpose_are_reported_from_failed_calls():
    with pytest.raises(TypeError) as raised:
        calibration_function(3)
    assert is_for_users(raised.value)
    with pytest.raises(ValueError) as failed:
        Mixed((2, 2), 0.1).matrix() + np.zeros(3)
    assert not is_for_users(failed.value)
    assert not is_for_users(ValueError("never raised"))


# --- standard output -----------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["plan", "hamming:3", "--eps", "0.1", "--json"], ["--help"]])
def test_a_full_disk_behind_stdout(arguments):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = process(*arguments, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "consistruct: No space left on device\n"


def test_a_reader_that_went_away_is_no_error():
    command = (
        f"{sys.executable} -m consistruct analyze hamming:3 --json | true; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(
        ["bash", "-c", command],
        env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "141")


# --- specs that name more than there is ----------------------------------------------------------

HUGE = [
    ("ndcg:10:5:999999999", "number of grades in a spec of ndcg may be at most 100"),
    ("hamming:3x999999999999", "parts times states in a spec of hamming may be at most 1000000"),
    ("hamming:999999999999", "parts times states in a spec of hamming may be at most 1000000"),
    ("spearman-rho:999999999", "number of items in a spec of spearman-rho may be at most 4096"),
    ("block:100000000x1", "a spec may name at most 100000 blocks, got 100000000"),
    ("mixed:100000000x1:0.5", "a spec may name at most 100000 blocks, got 100000000"),
    ("kendall:999999999", "may be at most 512, got 999999999; choose a smaller one"),
    ("map:999999999", "may be at most 512"),
    ("footrule:999999999", "may be at most 512"),
    ("matching:999999999", "may be at most 512"),
    ("pairwise:999999999", "may be at most 512"),
    ("precision-at:999999999:5", "may be at most 4096"),
    ("eru:999999999", "may be at most 4096"),
    ("fbeta:999999999", "may be at most 1000"),
    ("fbeta:10:1e300", "beta must be a finite number in (0.0, 1e+150]"),
    ("partial-labels:infimum:" * 100 + "zero-one:3", "may be nested 4 times in a spec, got 100"),
    ("partial-labels:infimum:" * 500 + "zero-one:3", "may have at most 4096 characters"),
    ("zero-one:" + "9" * 200, "must be a positive integer of at most 100 digits"),
    ("hamming:" + "9" * 5000, "may have at most 4096 characters"),
    ("abstain:5:1e300", "the largest of the costs must be between 1e-150 and 1e+150"),
    ("ordinal:5:300", "the largest of the costs must be between 1e-150 and 1e+150"),
]


@pytest.mark.parametrize(("spec", "message"), HUGE, ids=lambda text: text[:24])
def test_specs_have_a_size_budget(spec, message):
    assert message in one_line_of(run("analyze", spec))
    assert message in one_line_of(run("plan", spec, "--eps", "0.1"))


def test_sizes_without_lists_have_none():
    assert run("plan", "zero-one:999999999999", "--eps", "0.1").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["analyze", "hamming:3", "--points", "1000000000"], "--points"),
        (["analyze", "hamming:3", "--scores", "blocks:100000000x1"], "at most 100000 blocks"),
        (["analyze", "hamming:3", "--scores", "x" * 5000], "at most 4096 characters"),
        (["analyze", "hamming:3", "--scores", "matrix:/dev/zero"], "it is a device"),
        (["analyze", "cost:/dev/zero"], "it is a device"),
        (["analyze", "tree:/dev/zero"], "it is a device"),
        (["analyze", "hamming:3", "--eps", "1_0"], "--eps must be numbers"),
    ],
)
def test_options_have_one_too(monkeypatch, capsys, arguments, message):
    assert main(monkeypatch, *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_what_is_logged_as_a_warning_is_reported_like_one():
    """Without a handler Python prints the bare message."""
    script = (
        "import logging, sys\n"
        "from consistruct import cli\n"
        "from consistruct.cli.commands import check\n"
        "sys.argv = ['consistruct', 'check', 'none']\n"
        "try:\n    cli.main()\nexcept SystemExit: pass\n"
        "logging.getLogger('consistruct.learning').warning('step halved\\nto %g', 2)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "consistruct: warning: step halved to 2"


def test_parts_of_a_model_that_do_not_fit_are_the_fault_of_its_file(tmp_path):
    """The checksum of a file made by hand can be right."""
    from consistruct.cli.model_data import using
    from consistruct.exceptions import ModelFileError

    reported = pytest.raises(
        ModelFileError, match=r"m cannot be used.*AttributeError: .*score_space"
    )
    with reported, using(Path("m")):
        "loss".score_space  # noqa: B018
    with pytest.raises(OSError, match="gone"), using(Path("m")):
        raise OSError("gone")
    with pytest.raises(LossSpecError, match="reported"), using(Path("m")):
        raise LossSpecError("reported")


@pytest.mark.parametrize("moment", ["import", "commands"])
def test_control_c_before_a_command_has_begun(moment, tmp_path):
    """While modules are imported, and while typer builds the commands."""
    place = {
        "import": "import builtins\nold = builtins.__import__\n"
        "def fail(name, *rest, **more):\n"
        "    if name == 'typer': raise KeyboardInterrupt\n"
        "    return old(name, *rest, **more)\nbuiltins.__import__ = fail\n",
        "commands": "import typer.main\n"
        "def fail(*_): raise KeyboardInterrupt\ntyper.main.get_command = fail\n",
    }[moment]
    script = f"{place}import sys\nsys.argv = ['consistruct', '--help']\n"
    script += "from consistruct.__main__ import main\nmain()\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "consistruct: interrupted\n")


def test_control_c_dropped_by_compiled_code_is_repeated():
    """As in a destructor: nothing can be raised there, so the command would go on."""
    script = (
        "import sys, time\nfrom consistruct import cli\n"
        "class Busy:\n    def __del__(self): raise KeyboardInterrupt\n"
        "def slow(**_):\n    Busy()\n    time.sleep(60)\n"
        "cli.app = slow\nfrom consistruct.__main__ import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "consistruct: interrupted\n")


def test_other_exceptions_that_cannot_be_raised_are_shown():
    script = (
        "from consistruct import cli\n"
        "class Busy:\n    def __del__(self): raise ValueError('lost')\n"
        "def quick(**_): Busy()\n"
        "cli.app = quick\nfrom consistruct.__main__ import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    assert "ValueError: lost" in done.stderr
