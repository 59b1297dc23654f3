"""Run a case and say what it did that no case may do."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.fuzzing.cases import Case
from tests.fuzzing.server import MEMORY, SECONDS, ForkServer, Outcome, run_fresh

__all__ = ["problems_of"]

JUDGES = {"check", "evaluate", "doctor"}  # commands whose exit code 1 is a verdict, not a failure


def problems_of(case: Case, server: ForkServer, folder: Path, *, fresh: bool) -> list[str]:
    """Empty if the case went well: done, or refused in one line with nothing left behind."""
    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "work"
    work.mkdir(parents=True)
    for name, content in case.files.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_bytes(content)
    found: list[str] = []
    for words in case.commands:
        apart = fresh and not any("\x00" in word for word in words)
        outcome = run_fresh(words, folder) if apart else server.run(words, folder)
        found += [f"{what} in {words!r}" for what in _wrong(words, outcome)]
        if outcome.code != 0:
            break
    else:
        changed = None if case.judge is None else case.judge(work)
        if changed is not None:
            found.append(f"silently changed: {changed}")
    for name, content in case.files.items():
        if name != "state" and (work / name).read_bytes() != content:
            found.append(f"{name} was written to")
    left = [path.name for path in work.rglob("*") if path.name.endswith(".tmp")]
    if left:
        found.append(f"left behind: {left[0]}")
    return found


def _wrong(words: list[str], outcome: Outcome) -> list[str]:
    """What is wrong with how a command ended."""
    found = []
    if outcome.timed_out or outcome.seconds > SECONDS:
        found.append(f"{outcome.seconds:.0f} s of the processor")
    if outcome.peak > MEMORY or "not enough memory" in outcome.stderr:
        found.append(f"{outcome.peak / 2**20:.0f} MiB of memory")
    if outcome.signal is not None:
        found.append(f"ended by signal {outcome.signal}")
    if "Traceback" in outcome.stderr + outcome.stdout:
        found.append("a traceback")
    allowed = {0, 2} | ({1} if len(words) > 1 and words[1] in JUDGES else set())
    if outcome.code is not None and outcome.code not in allowed:
        found.append(f"exit code {outcome.code}")
    lines = [line for line in outcome.stderr.splitlines() if line.strip()]
    reported = [line for line in lines if not line.startswith("consistruct: warning:")]
    if outcome.code == 2 and (len(reported) != 1 or not reported[0].startswith("consistruct: ")):
        found.append(f"{len(reported)} lines")
    if outcome.code == 0 and reported:
        found.append("words on standard error")
    return [f"{what}: {outcome.stderr[-600:]!r}" for what in found]
