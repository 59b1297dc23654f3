"""No command overwrites what it reads, and what cannot be written is found before the work."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from consistruct import cli

ROWS = "a,b,kind\n" + "\n".join(f"{i},{i * i % 7},{['x', 'y'][i % 2]}" for i in range(12)) + "\n"
COSTS = ",x,y\nx,0,1\ny,1,0\n"
RIDGE = ("--learner", "ridge", "--set", "features=linear", "--set", "alpha=0.1")
posix = pytest.mark.skipif(os.name != "posix", reason="devices, pipes and limits are POSIX's")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def fit(model="m", *options, data="d.csv"):
    return run("fit", data, "--target", "kind", *RIDGE, "--model", model, *options)


def keeps(path, *arguments):
    """Run a command that must be refused in one line; the file stays as it was."""
    before = Path(path).read_bytes()
    result = run(*arguments)
    assert Path(path).read_bytes() == before
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert "cannot write" in line
    assert "name another file" in line


def test_further_tables_of_a_csv_option_do_not_replace_inputs(folder):
    Path("x.worst_case.csv").write_text(COSTS, encoding="utf-8")
    costs = "cost:x.worst_case.csv"
    keeps("x.worst_case.csv", "analyze", costs, "--csv", "x.csv")
    os.link("x.worst_case.csv", "hard.csv")
    keeps("x.worst_case.csv", "analyze", "cost:hard.csv", "--csv", "x.csv")
    Path("y.worst_case.csv").symlink_to("hard.csv")
    keeps("hard.csv", "analyze", "cost:hard.csv", "--csv", "y.csv")
    assert fit().exit_code == 0
    Path("r.confusion.csv").write_text(ROWS, encoding="utf-8")
    keeps("r.confusion.csv", "report", "m", "r.confusion.csv", "--quick", "--csv", "r.csv")
    Path("m").rename("r.path.csv")
    keeps("r.path.csv", "report", "r.path.csv", "d.csv", "--quick", "--csv", "r.csv")


def test_files_named_inside_specs_are_inputs(folder):
    Path("n.csv").write_text(COSTS, encoding="utf-8")
    Path("t.csv").write_text("child,parent\na,r\nb,r\n", encoding="utf-8")
    Path("f.csv").write_text("1,0\n0,1\n", encoding="utf-8")
    keeps("n.csv", "analyze", "partial-labels:infimum:cost:n.csv", "--html", "n.csv")
    keeps(
        "n.csv",
        "analyze",
        "partial-labels:average:partial-labels:infimum:cost:./n.csv",
        "--html",
        "n.csv",
    )
    keeps("t.csv", "analyze", "tree:t.csv:nodes", "--csv", "t.csv")
    keeps("f.csv", "analyze", "zero-one:2", "--scores", "matrix:f.csv", "--html", "f.csv")
    keeps("n.csv", "fit", "d.csv", "--target", "kind", "--loss", "Cost:n.csv", "--model", "n.csv")
    Path("a:b.csv").write_text(COSTS, encoding="utf-8")
    keeps("a:b.csv", "analyze", "cost:a:b.csv", "--html", "a:b.csv")


def test_nothing_is_written_into_a_folder_that_is_read(folder):
    Path("in").mkdir()
    for name in ("p1.csv", "p2.csv"):
        Path("in", name).write_text(ROWS, encoding="utf-8")
    keeps("in/p1.csv", *_folder_fit("in", "in/p1.csv"))
    keeps("in/p1.csv", *_folder_fit("in", "m", "--checkpoint", "in/p1.csv"))
    keeps("in/p1.csv", *_folder_fit("in", "in/new"))
    os.link("in/p2.csv", "out")  # a name outside, the file inside
    keeps("in/p2.csv", *_folder_fit("in", "out"))
    Path("elsewhere.csv").write_text(ROWS, encoding="utf-8")
    Path("in/p3.csv").symlink_to(folder / "elsewhere.csv")
    keeps("elsewhere.csv", *_folder_fit("in", "elsewhere.csv"))
    Path("again").symlink_to("in", target_is_directory=True)
    keeps("in/p1.csv", *_folder_fit("again", "in/p1.csv"))
    Path("m.checkpoint").symlink_to("in/p1.csv")  # where the sums go unless stated otherwise
    keeps("in/p1.csv", *_folder_fit("in", "m"))


def _folder_fit(data, model, *options):
    return "fit", data, "--target", "kind", *RIDGE, "--model", model, *options


def test_the_list_of_labels_and_checkpoints_among_settings_are_files_too(folder):
    Path("w.conll").write_text("a N x\nb V y\n\nb N y\na V x\n\n", encoding="utf-8")
    Path("t").write_text("w:%x[0,0]\n", encoding="utf-8")
    chain = ("fit", "w.conll", "--template", "t", "--model", "m", "--epochs", "1")
    keeps("w.conll", *chain, "--set", "checkpoint=w.conll")
    keeps("w.conll", *chain, "--set", 'checkpoint="w.conll"')  # as JSON, which settings may be
    keeps("t", *chain, "--set", "solver=sgd", "--checkpoint", "t")
    Path("l.xml").write_text("<labels><label name='kind'/></labels>", encoding="utf-8")
    keeps("l.xml", "fit", "d.arff", "--labels", "l.xml", "--model", "l.xml")


def test_outputs_of_one_command_are_different_files(folder):
    for second in ("r.worst_case.csv", "./r.worst_case.csv", "R.Worst_Case.csv"):
        result = run("analyze", "zero-one:3", "--csv", "r.csv", "--html", second)
        assert result.exit_code == 2
        assert "choose two different files" in result.stderr
    assert not list(folder.glob("r*"))


def test_a_compressed_matrix_of_scores_is_not_inflated(folder):
    """A few kilobytes would take gigabytes; sizes are bounded by that of the file."""
    for name, module in (("f.csv.gz", gzip), ("f.csv.xz", lzma), ("f.csv.bz2", bz2)):
        Path(name).write_bytes(module.compress(b"1,0\n0,1\n"))
        result = run("analyze", "zero-one:2", "--scores", f"matrix:{name}")
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert f"{name} could not be read as a matrix of numbers" in line


# --- what is no regular file is written through ---


@posix
def test_a_pipe_and_a_device_stay_what_they_are(folder):
    os.mkfifo("pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_bytes()), daemon=True)
    reader.start()
    assert run("analyze", "zero-one:3", "--html", "pipe").exit_code == 0
    reader.join(30)
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert got[0].startswith(b"<!DOCTYPE html>") or got[0].startswith(b"<!doctype html>")
    terminal, other_end = os.openpty()  # a device that a failure of this test cannot destroy
    Path("device").symlink_to(os.ttyname(other_end))
    assert fit().exit_code == 0
    assert run("predict", "m", "d.csv", "--out", "device").exit_code == 0
    assert os.read(terminal, 4) == b"kind"
    assert Path("device").is_symlink()
    assert Path("device").is_char_device()


@posix
def test_dev_stdout_is_the_open_file_and_not_a_name_to_replace(folder):
    assert fit().exit_code == 0
    with Path("all").open("wb") as stream:
        stream.write(b"before\n")
        stream.flush()
        words = ["predict", "m", "d.csv", "--out", "/dev/stdout"]
        done = subprocess.run([sys.executable, "-m", "consistruct", *words], stdout=stream)
    assert done.returncode == 0
    lines = Path("all").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["before", "kind"]
    assert len(lines) == 2 + 12 + 1


@posix
def test_several_tables_and_checkpoints_need_plain_files(folder):
    os.mkfifo("pipe")
    end = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)  # so that opening it never waits
    result = run("analyze", "zero-one:3", "--csv", "pipe")
    assert result.exit_code == 2
    assert "--csv writes several files" in result.stderr
    sgd = ("--set", "solver=sgd", "--epochs", "1", "--checkpoint", "pipe")
    result = fit("m", *sgd)
    assert result.exit_code == 2
    assert "cannot keep a checkpoint" in result.stderr
    os.close(end)


# --- found before the work: the data, which do not exist, are never looked at ---

COMMANDS = (
    ("fit", "no.csv", "--target", "y", "--model", "{}/m"),
    (
        "fit",
        "no.csv",
        "--target",
        "y",
        "--model",
        "m",
        "--checkpoint",
        "{}/c",
        "--learner",
        "ridge",
        "--set",
        "solver=sgd",
    ),
    ("predict", "no", "no.csv", "--out", "{}/p.csv"),
    ("report", "no", "no.csv", "--html", "{}/r.html"),
    ("report", "no", "no.csv", "--csv", "{}/r.csv"),
    ("analyze", "cost:no.csv", "--plot", "{}/r.png"),
    ("demo", "--folder", "{}/new"),
)


def _unwritable(folder):
    """A folder where nothing can be written, by root neither."""
    if os.geteuid() == 0:
        return Path("/proc")
    locked = folder / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    return locked


@posix
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[::5]))
def test_a_folder_without_permission_is_found_before_the_work(words, folder):
    place = _unwritable(folder)
    result = run(*(word.format(place) for word in words))
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("consistruct: cannot write")
    assert str(place) in line


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing stops root")
def test_a_file_that_was_made_read_only_is_not_replaced(folder):
    Path("m").write_bytes(b"precious")
    Path("m").chmod(0o444)
    result = run("fit", "no.csv", "--target", "y", "--model", "m")
    assert "cannot write m: Permission denied" in result.stderr
    assert Path("m").read_bytes() == b"precious"


@posix
@pytest.mark.parametrize("words", [*COMMANDS[:6:2], COMMANDS[4]], ids=lambda words: words[0])
def test_a_full_destination_is_found_before_the_work(words, folder):
    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    command = [sys.executable, "-m", "consistruct", *(word.format(".") for word in words)]
    done = subprocess.run(command, preexec_fn=no_room, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("consistruct: cannot write")
    assert "File too large" in line
    assert sorted(path.name for path in folder.iterdir()) == ["d.csv"]
