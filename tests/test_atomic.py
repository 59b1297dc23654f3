"""Files that are there in full or not at all, and nothing left of writers that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from consistruct import _atomic
from consistruct._atomic import atomic_write

SOURCE = Path(__file__).resolve().parents[1] / "src"
KILLED = """
import os, signal, sys
from consistruct._atomic import atomic_write
with atomic_write(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def left_over(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".tmp"))


@pytest.mark.skipif(os.name != "posix", reason="kills with a POSIX signal")
def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path):
    target = tmp_path / "model"
    target.write_bytes(b"old")
    command = [sys.executable, "-c", KILLED, str(target)]
    done = subprocess.run(command, env={"PYTHONPATH": str(SOURCE)}, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert target.read_bytes() == b"old"
    (name,) = left_over(tmp_path)
    with atomic_write(target) as stream:
        stream.write(b"new")
    assert left_over(tmp_path) == [name]  # young: its writer may not have locked it yet
    long_ago = time.time() - 2 * _atomic.YOUNG
    os.utime(tmp_path / name, (long_ago, long_ago))
    with atomic_write(target) as stream:
        stream.write(b"newer")
    assert left_over(tmp_path) == []
    assert target.read_bytes() == b"newer"


@pytest.mark.skipif(_atomic.fcntl is None, reason="locks are those of POSIX")
def test_copies_that_are_being_written_and_other_files_stay(tmp_path):
    target = tmp_path / "model"
    others = [tmp_path / name for name in (".model.tmp", ".model.0.tmp", "model.tmp")]
    others.append(tmp_path / f".other.{16 * '0'}.tmp")
    for path in others:
        path.write_bytes(b"mine")
        os.utime(path, (0, 0))
    with atomic_write(target) as slow:
        slow.write(b"slow")
        slow.flush()
        os.utime(slow.name if isinstance(slow.name, str) else slow.fileno(), (0, 0))
        with atomic_write(target) as quick:
            quick.write(b"quick")
    assert target.read_bytes() == b"slow"  # it ended last
    assert all(path.read_bytes() == b"mine" for path in others)


def test_without_locks_a_day_must_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(_atomic, "fcntl", None)
    left = tmp_path / f".model.{16 * 'a'}.tmp"
    for age, stays in ((2 * _atomic.YOUNG, True), (2 * _atomic.OLD, False)):
        left.write_bytes(b"half")
        os.utime(left, (time.time() - age, time.time() - age))
        with atomic_write(tmp_path / "model") as stream:
            stream.write(b"whole")
        assert left.exists() == stays
