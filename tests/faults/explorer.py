"""The explorer with jobs under way, ended at a random moment."""

from __future__ import annotations

import contextlib
import json
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.explorer_load import started

from tests.seeds import generator

__all__ = ["check_explorer"]

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LOSSES = ("hamming:6", "ordinal:5", "zero-one:7", "mixed:2x3:0.4", "map:4", "kendall:4")


def check_explorer(number: int, folder: Path) -> str:
    """Start it, give it work, end it; its workers end too, and it starts again on the same port."""
    rng = generator(31, number)
    how = SIGNALS[number % len(SIGNALS)]
    process, address = started(folder)
    port = int(address.rpartition(":")[2])
    for place in range(int(rng.integers(1, 6))):
        spec = LOSSES[(number + place) % len(LOSSES)]
        with contextlib.suppress(urllib.error.HTTPError):  # as busy as it may be
            ask(address, "/api/jobs", {"loss": spec})
    time.sleep(float(rng.uniform(0.0, 2.0)))
    workers = _children(process.pid)
    process.send_signal(how)
    process.wait(20)
    _wait_for_end(workers)
    assert b"Traceback" not in (folder / "stderr").read_bytes(), (folder / "stderr").read_text()
    again, address = started(folder, port)  # the port is free again
    try:
        assert json.loads(ask(address, "/api/options"))["version"]
    finally:
        again.send_signal(signal.SIGINT)
        again.wait(20)
    left = [path.name for path in folder.iterdir() if path.name not in ("stdout", "stderr")]
    assert not left, f"the explorer left {left}"
    return f"explorer, {how.name}: {len(workers)} workers ended"


def ask(address: str, path: str, data: Any = None) -> bytes:
    """One request, as the page sends it."""
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(address + path, data=body)
    request.add_header("origin", address)
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as reply:
        content: bytes = reply.read()
    return content


def _children(pid: int) -> list[int]:
    """Processes that a process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(entry.parent.name))
    return found


def _wait_for_end(workers: list[int]) -> None:
    deadline = time.monotonic() + 15
    alive = workers
    while alive and time.monotonic() < deadline:
        alive = [pid for pid in alive if Path(f"/proc/{pid}").exists() and not _is_zombie(pid)]
        time.sleep(0.05)
    assert not alive, f"workers {alive} outlive their server"


def _is_zombie(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
