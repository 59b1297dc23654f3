"""One fault each, drawn from a number: a job, what happens to it, and what must hold afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.faults.jobs import JOBS, Job, Undisturbed
from tests.fuzzing.server import Fault, ForkServer, Outcome
from tests.seeds import generator

__all__ = ["KINDS", "check"]

KINDS = ("kill", "term", "interrupt", "full", "read-only", "rivals")
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "interrupt": signal.SIGINT}


def check(
    number: int,
    servers: list[ForkServer],
    quiet: Callable[[str], Undisturbed],
    folder: Path,
) -> str:
    """Run the case of a number; what happened, in words. Raises where something was lost."""
    rng = generator(29, number)
    kind = KINDS[number % len(KINDS)]
    job = JOBS[number // len(KINDS) % len(JOBS)]
    peace = quiet(job.name)
    work = folder / "work"
    work.mkdir(parents=True)
    if kind == "full":
        return _full(job, servers[0], peace, folder, rng)
    if kind == "read-only":
        return _read_only(job, servers[0], peace, folder)
    job.prepare(work)
    before = _state(job, work)
    if kind == "rivals":
        return _rivals(job, servers, peace, folder)
    # at any moment of the work, or in the middle of a write
    after = None if rng.random() < 0.5 else float(rng.uniform(0.0, 1.1 * peace.seconds))
    outcome = servers[0].run(job.words, folder, Fault(signal=SIGNALS[kind], after=after))
    whole(job, work, before, peace)
    ended = _ended(kind, outcome)
    recovered(job, servers[0], work, peace)
    return f"{job.name}, {kind}: {ended}"


def _state(job: Job, work: Path) -> dict[str, bytes | None]:
    """Contents of the outputs as they are; None where there is none."""
    return {
        name: (work / name).read_bytes() if (work / name).exists() else None for name in job.outputs
    }


def whole(job: Job, work: Path, before: dict[str, bytes | None], peace: Undisturbed) -> None:
    """Every output is what it was, or what it was to become."""
    for name, content in _state(job, work).items():
        allowed = (before[name], peace.outputs[name])
        size = None if content is None else len(content)
        assert content in allowed, f"{job.name}: {name} is half-written ({size} bytes)"


def _ended(kind: str, outcome: Outcome) -> str:
    """How the command may end under a signal: done before it, by it, or in one line."""
    assert "Traceback" not in outcome.stderr, outcome.stderr
    if outcome.code == 0:
        return "done before"
    if kind == "interrupt":
        lines = outcome.stderr.splitlines()
        assert outcome.code == 130, (outcome.code, outcome.signal, outcome.stderr)
        assert lines[-1:] == ["consistruct: interrupted"], outcome.stderr
        return "interrupted"
    assert outcome.signal == SIGNALS[kind], (outcome.code, outcome.signal, outcome.stderr)
    return "ended"


def recovered(job: Job, server: ForkServer, work: Path, peace: Undisturbed) -> None:
    """The same command, taken up again later, gives the same files and sweeps what was left."""
    for path in work.rglob("*.tmp"):
        long_ago = time.time() - 3600.0  # a copy that is written now is not swept
        os.utime(path, (long_ago, long_ago))
    outcome = server.run([*job.words, *job.resume(work)], work.parent)
    assert outcome.code == 0, outcome.stderr
    for name, content in peace.outputs.items():
        assert (work / name).read_bytes() == content, f"{job.name}: {name} differs after the fault"
    left = sorted(path.name for path in work.rglob("*.tmp"))
    assert not left, f"{job.name}: left behind {left}"


# --- no room ---


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[bool]:
    """A small file system in memory, where the system lets us; False where it does not."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


def _reported(outcome: Outcome) -> None:
    assert outcome.code == 2, (outcome.code, outcome.signal, outcome.stderr)
    assert "Traceback" not in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1, outcome.stderr


def _full(
    job: Job, server: ForkServer, peace: Undisturbed, folder: Path, rng: np.random.Generator
) -> str:
    """Outputs that do not fit: on a full disk if one can be made, else by a limit on files."""
    work = folder / "work"
    largest = max(map(len, peace.outputs.values()))
    room = int(rng.uniform(0.05, 0.95) * largest)
    with mounted(work, "size=256m") as real:
        job.prepare(work)
        before = _state(job, work)
        if real:
            used = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
            pages = (used // 4096 + len(list(work.rglob("*"))) + room // 4096 + 2) * 4096
            subprocess.run(["mount", "-o", f"remount,size={pages}", str(work)], check=True)
            outcome = server.run(job.words, folder)
        else:
            outcome = server.run(job.words, folder, Fault(file_bytes=max(room, 1)))
        whole(job, work, before, peace)
        if outcome.code != 0:  # the room may just suffice
            _reported(outcome)
        left = sorted(path.name for path in work.rglob("*.tmp"))
        assert not left, f"{job.name}: left behind {left}"
        if real:
            subprocess.run(["mount", "-o", "remount,size=256m", str(work)], check=True)
        recovered(job, server, work, peace)
    how = "full disk" if real else "limit on files"
    return f"{job.name}, {how}: {'refused' if outcome.code else 'there was room'}"


def _read_only(job: Job, server: ForkServer, peace: Undisturbed, folder: Path) -> str:
    """A folder that cannot be written."""
    work = folder / "work"
    with mounted(work, "size=256m") as real:
        job.prepare(work)
        before = _state(job, work)
        if real:
            subprocess.run(["mount", "-o", "remount,ro", str(work)], check=True)
        elif os.getuid() != 0:
            work.chmod(0o555)
        else:  # nothing stops this user
            return f"{job.name}, read-only: cannot be tried here"
        outcome = server.run(job.words, folder)
        whole(job, work, before, peace)
        _reported(outcome)
        if real:
            subprocess.run(["mount", "-o", "remount,rw", str(work)], check=True)
        else:
            work.chmod(0o755)
        recovered(job, server, work, peace)
    return f"{job.name}, read-only: refused"


# --- two at a time ---


def _rivals(job: Job, servers: list[ForkServer], peace: Undisturbed, folder: Path) -> str:
    """Two of the same command on the same files: each done or refused, the files whole."""
    work = folder / "work"
    before = _state(job, work)
    others = []
    for turn, server in enumerate(servers[:2]):
        place = folder / f"rival-{turn}"
        place.mkdir()
        (place / "work").symlink_to(work, target_is_directory=True)
        server.start(job.words, place)
    for server in servers[:2]:
        others.append(server.finish())
    whole(job, work, before, peace)
    codes = sorted(outcome.code if outcome.code is not None else 99 for outcome in others)
    for outcome in others:
        if outcome.code != 0:
            _reported(outcome)
    recovered(job, servers[0], work, peace)
    return f"{job.name}, rivals: exit codes {codes}"
