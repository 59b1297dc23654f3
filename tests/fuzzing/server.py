"""A process with everything imported that forks once per case, with limits on memory and time.

A `Fault` ends the case by a signal after a while or in the middle of its first write, or bounds the
size of its files (tests/faults).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

__all__ = ["MEMORY", "SECONDS", "Fault", "ForkServer", "Outcome", "run_fresh"]

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 2**30  # bytes in memory at most
SECONDS = 20  # of the processor
FIRST = 0.002  # seconds until the program has begun to handle signals
PATIENCE = 120  # seconds by the clock, on a machine that others use too
# addresses, not memory: libraries reserve about two gigabytes of them before they do anything
ADDRESSES = 4 * 2**30


@dataclass(frozen=True)
class Outcome:
    """How one command ended."""

    code: int | None  # None: a signal ended it
    signal: int | None
    timed_out: bool
    seconds: float  # of the processor
    peak: int  # bytes in memory
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Fault:
    """What happens to a command: a signal at some moment, or no room for more than some bytes."""

    signal: int | None = None
    after: float | None = None  # seconds, from 0.002; None: once an unfinished file is seen
    file_bytes: int = 2**30


NONE = Fault()


def _limit(fault: Fault = NONE) -> None:
    """In the child, before the command."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 5, SECONDS + 6))
    resource.setrlimit(resource.RLIMIT_FSIZE, (fault.file_bytes, fault.file_bytes))


def _is_due(fault: Fault, start: float, folder: Path) -> bool:
    """Whether the moment of the signal has come."""
    if fault.after is not None:
        return time.monotonic() - start >= max(fault.after, FIRST)
    return any(name.endswith(".tmp") for name in os.listdir(folder / "work"))  # noqa: PTH208


def _wait(pid: int, folder: Path, fault: Fault = NONE) -> Outcome:
    """Wait for a child, not longer than the limits; then read what it stated."""
    start = time.monotonic()
    deadline = start + PATIENCE
    armed = fault.signal is not None
    timed_out = False
    pause = 0.002
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            break
        if time.monotonic() > deadline:
            timed_out = True
            os.killpg(pid, signal.SIGKILL)
        if armed and fault.signal is not None and _is_due(fault, start, folder):
            os.kill(pid, fault.signal)
            armed = False
        time.sleep(0.0002 if armed else pause)
        pause = min(0.05, pause * 1.5)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # what it started ends with it
        os.killpg(pid, signal.SIGKILL)
    ended = os.WIFEXITED(status)
    return Outcome(
        os.WEXITSTATUS(status) if ended else None,
        None if ended else os.WTERMSIG(status),
        timed_out,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
        (folder / "stdout").read_text(encoding="utf-8", errors="backslashreplace"),
        (folder / "stderr").read_text(encoding="utf-8", errors="backslashreplace"),
    )


def _fork(words: list[str], folder: Path, fault: Fault) -> Outcome:
    from tests.fuzzing import entry

    begun, begins = os.pipe()
    pid = os.fork()
    if pid:
        os.close(begins)
        os.read(begun, 1)  # the clock of a fault starts with the program, not with this file
        os.close(begun)
        return _wait(pid, folder, fault)
    code = 99
    try:
        _limit(fault)
        os.chdir(folder / "work")
        for number, name in ((1, "stdout"), (2, "stderr")):
            target = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(target, number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.write(begins, b"1")
        code = entry.run(words)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def run_fresh(words: list[str], folder: Path) -> Outcome:
    """The same in a process of its own, started as a user starts it."""
    module = (
        ["consistruct", *words[1:]]
        if words[0] == "consistruct"
        else ["tests.fuzzing.entry", *words]
    )
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=folder / "work",
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=_limit,
        )
    outcome = _wait(process.pid, folder)
    process.returncode = 0  # already waited for
    return outcome


def _environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
    return {**os.environ, **single, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


class ForkServer:
    """Starts the server as a process of its own; ends it on exit.

    With `sequences` the loops that sequences need are compiled before the first case.
    """

    def __init__(self, *, sequences: bool = True) -> None:
        self._words = ["sequences"] if sequences else []

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzzing.server", *self._words],
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE + 10)
        self._process.stdout.close()

    def run(self, words: list[str], folder: Path, fault: Fault = NONE) -> Outcome:
        """Run one command in folder/work; what it states is kept in folder/stdout and stderr."""
        self.start(words, folder, fault)
        return self.finish()

    def start(self, words: list[str], folder: Path, fault: Fault = NONE) -> None:
        """Begin a command; `finish` waits for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([words, str(folder), asdict(fault)]) + "\n")
        self._process.stdin.flush()

    def finish(self) -> Outcome:
        """How the command ended that was begun last."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the fork server has ended"
        return Outcome(**json.loads(line))


def _compile_loops() -> None:
    """Compile what sequences need, once: that takes longer than the limits of a case."""
    from tests.fuzzing import entry

    words = ["consistruct", "fit", "d.conll", "--template", "t", "--model", "m", "--epochs", "1"]
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        Path("d.conll").write_text("a N x\nb V y\n\nb N y\na V x\n\n", encoding="utf-8")
        Path("t").write_text("w:%x[0,0]\n", encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            code = entry.run(words)
            code = code or entry.run(["consistruct", "predict", "m", "d.conll", "--out", "p"])
    assert code == 0, "sequences cannot be fitted"


def serve() -> None:
    """Read cases from standard input, one a line; answer one a line."""
    import matplotlib.figure  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401
    import sklearn.ensemble
    import sklearn.linear_model  # noqa: F401

    import consistruct
    from consistruct import cli, report  # noqa: F401
    from consistruct.calibration import proofs  # noqa: F401
    from consistruct.guarantees import risk  # noqa: F401

    for name in consistruct.__all__:
        getattr(consistruct, name)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing else may speak on it
    if "sequences" in sys.argv[1:]:
        _compile_loops()
    for line in sys.stdin:
        words, folder, fault = json.loads(line)
        outcome: dict[str, Any] = asdict(_fork(words, Path(folder), Fault(**fault)))
        answers.write(json.dumps(outcome) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
