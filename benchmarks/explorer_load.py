"""The explorer under load: many requests, more connections than it takes, full uploads and queues.

    python -m benchmarks.explorer_load --write

Starts `consistruct explore` as a user does, with its usual limits, and visits it from this process.
Exit code 1 if memory grew by more than 10 MB, a request was not answered, or the server did not
recover from idle and slow connections.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import RESULTS, machine, table
from consistruct.explorer import Limits

ROOT = Path(__file__).resolve().parents[1]
PAGE = RESULTS / "explorer_load.md"
GROWTH = 10.0  # MB that the server may grow by over all requests
LIMITS = Limits()
AT_ONCE = 40  # clients of the flood, below the number of connections that are answered
WARM_UP = 400  # requests before memory is measured: interpreters and buffers grow at first
FILL = LIMITS.matrices + 4  # uploads until the oldest are forgotten


# --- the server as a process ---


@contextlib.contextmanager
def running(folder: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server of its own with its address; ended by Ctrl-C afterwards."""
    process, address = started(folder, port)
    try:
        yield process, address
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(30)


def started(folder: Path, port: int = 0) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server that writes to `folder`; its address once it states it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    stdout, stderr = folder / "stdout", folder / "stderr"
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "consistruct", "explore", "--no-browser", "--port", str(port)],
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=err,
        )
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        found = re.search(r"http://\S+", stdout.read_text(encoding="utf-8"))
        if found:
            return process, found[0].rstrip("/")
        if process.poll() is not None:
            raise AssertionError(stderr.read_text(encoding="utf-8"))
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise AssertionError("the explorer did not start")


def memory(pid: int) -> float:
    """Megabytes of a process, its own without what it shares with others."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return sum(int(size) for size in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.M)) / 1000.0


# --- one visitor ---


@dataclass(frozen=True)
class Reply:
    """Status and body of an answer."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body)


class Visitor:
    """One connection that is kept open, as a browser does."""

    def __init__(self, address: str) -> None:
        self.address = address
        host, _, port = address.removeprefix("http://").partition(":")
        self._host, self._port = host, int(port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> Reply:
        """Send one request and read the answer; opens a connection where there is none."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(self._head(path, body, kind) + (body or b""))
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", head)
        content = await reader.readexactly(int(length[1])) if length else b""
        if "connection: close" in head:
            await self.close()
        return Reply(int(head.split()[1]), content)

    def _head(self, path: str, body: bytes | None, kind: str) -> bytes:
        lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1"]
        lines += [f"Host: {self._host}:{self._port}", f"Origin: {self.address}"]
        if body is not None:
            lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            with contextlib.suppress(OSError):
                await self._streams[1].wait_closed()
            self._streams = None


@contextlib.asynccontextmanager
async def visiting(address: str) -> AsyncIterator[Visitor]:
    """A visitor who leaves."""
    visitor = Visitor(address)
    try:
        yield visitor
    finally:
        await visitor.close()


# --- what is done to it ---


@dataclass
class Load:
    """What was done and what came of it."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def expect(self, holds: bool, what: str) -> None:
        """Note a failure."""
        if not holds:
            self.failures.append(what)


def full_upload(seed: int, size: int = LIMITS.upload_bytes) -> bytes:
    """A cost matrix as large as is taken, each with another content."""
    rng = np.random.default_rng(seed)
    k = LIMITS.labels
    costs = rng.integers(1, 10, (k, k))
    np.fill_diagonal(costs, 0)
    width = size // (k * k) - 2
    rows = [
        ",".join(f"{cost}.{'0' * width}"[: width + 1] for cost in row) for row in costs.tolist()
    ]
    text = "\n".join(rows) + "\n"
    return (text + "\n" * (size - len(text))).encode()


async def flood(address: str, load: Load, n_requests: int) -> None:
    """Many requests of all kinds from some visitors at a time; each must be answered."""
    paths = ("/", "/api/options", "/static/explorer.css", "/nothing", "/api/jobs/unknown")
    numbers = iter(range(n_requests))
    waits: list[float] = []

    async def visit() -> None:
        async with visiting(address) as visitor:
            for number in numbers:
                start = time.perf_counter()
                if number % 7 == 3:
                    reply = await visitor.ask("/api/jobs", b'{"loss": "no-such:\xff"}')
                elif number % 7 == 5:
                    reply = await visitor.ask("/api/jobs", b'{"loss": "../../etc/passwd"}')
                else:
                    reply = await visitor.ask(paths[number % len(paths)])
                waits.append(time.perf_counter() - start)
                load.statuses[reply.status] += 1
                load.requests += 1
                if number % 11 == 0:  # another connection
                    await visitor.close()

    start = time.perf_counter()
    await asyncio.gather(*(visit() for _ in range(AT_ONCE)))
    load.seconds["requests"] = load.seconds.get("requests", 0.0) + time.perf_counter() - start
    load.facts["median wait, ms"] = round(1000 * float(np.median(waits)), 1)
    load.facts["longest wait, ms"] = round(1000 * max(waits), 1)


async def uploads(address: str, load: Load, count: int, first: int = 0) -> None:
    """Files at the limit are taken, one byte more is refused."""
    async with visiting(address) as visitor:
        for number in range(first, first + count):
            reply = await visitor.ask("/api/matrices?rows=pred", full_upload(number), "text/csv")
            load.expect(reply.status == 200, f"an upload at the limit: {reply.status}")
            load.requests += 1
        too_large = full_upload(0) + b"\n"
        reply = await visitor.ask("/api/matrices?rows=pred", too_large, "text/csv")
        load.expect(reply.status == 413, f"an upload above the limit: {reply.status}")
        load.requests += 1


async def crowd(address: str, load: Load, connections: int) -> None:
    """Connections that say nothing, say it slowly, or do not read; then the page must come back."""
    host, _, port = address.removeprefix("http://").partition(":")
    opened: list[asyncio.StreamWriter] = []
    start = time.perf_counter()

    async def bother(number: int) -> None:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            load.facts["refused by the system"] = load.facts.get("refused by the system", 0) + 1
            return
        opened.append(writer)
        with contextlib.suppress(OSError):
            if number % 3 == 1:  # half a request, a byte at a time
                for byte in b"GET / HTTP/1.1\r\nHost: x":
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.5)
            elif number % 3 == 2:  # requests megabytes and reads none of them
                request = f"GET /plotly.min.js HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
                writer.write(request.encode() * 3)
                await writer.drain()

    botherers = [asyncio.create_task(bother(number)) for number in range(connections)]
    await asyncio.sleep(2.0)
    load.facts["connections open at a time"] = len(opened)
    statuses: Counter[int] = Counter()
    limit = LIMITS.request_seconds + 15.0
    while time.perf_counter() - start < limit + 30.0:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async with visiting(address) as visitor:
                reply = await visitor.ask("/api/options")
                load.requests += 1
                statuses[reply.status] += 1
                if reply.status == 200:
                    break
        await asyncio.sleep(0.25)
    seconds = time.perf_counter() - start
    load.seconds["crowd"] = seconds
    load.facts["answers while crowded"] = dict(statuses)
    load.facts["seconds until the page came back"] = round(seconds, 1)
    load.expect(statuses[200] > 0 and seconds < limit, f"the page came back after {seconds:.0f} s")
    for task in botherers:
        task.cancel()
    await asyncio.gather(*botherers, return_exceptions=True)
    for writer in opened:
        writer.close()
    await asyncio.sleep(1.0)


async def queue(address: str, load: Load) -> None:
    """More jobs than are taken; then all are cancelled, and the next one is done."""
    start = time.perf_counter()
    async with visiting(address) as visitor:
        taken: list[str] = []
        refused = 0
        for number in range(LIMITS.workers + LIMITS.waiting + 5):
            setting = {"loss": "map:5", "eps": 0.1 + 0.001 * number}
            reply = await visitor.ask("/api/jobs", json.dumps(setting).encode())
            load.requests += 1
            if reply.status == 202:
                taken.append(reply.json()["id"])
            else:
                refused += reply.status == 503
        load.expect(len(taken) == LIMITS.workers + LIMITS.waiting, f"{len(taken)} jobs were taken")
        load.expect(refused == 5, f"{refused} jobs were refused")
        for job in taken:
            reply = await visitor.ask(f"/api/jobs/{job}/cancel", b"{}")
            load.requests += 1
            load.expect(reply.status == 200, f"cancelling: {reply.status}")
        states: Counter[str] = Counter()
        for job in taken:
            states[await _finished(visitor, job, load)] += 1
        load.expect(states["cancelled"] == len(taken), f"states after cancelling: {dict(states)}")
        reply = await visitor.ask("/api/jobs", b'{"loss": "hamming:8"}')
        state = await _finished(visitor, reply.json()["id"], load)
        load.expect(state == "done", f"the job after them: {state}")
        load.facts["jobs queued and cancelled"] = load.facts.get(
            "jobs queued and cancelled", 0
        ) + len(taken)
    load.seconds["queue"] = load.seconds.get("queue", 0.0) + time.perf_counter() - start


async def _finished(visitor: Visitor, job: str, load: Load) -> str:
    """How a job ended, within two minutes."""
    deadline, version = time.monotonic() + 120, -1
    while time.monotonic() < deadline:
        reply = await visitor.ask(f"/api/jobs/{job}?after={version}")
        load.requests += 1
        found = reply.json()
        version = found["version"]
        if found["state"] in ("done", "failed", "cancelled"):
            return str(found["state"])
    return "unfinished"


async def visit_all(address: str, pid: int, n_requests: int, connections: int) -> Load:
    """Everything once to warm up, then everything with memory measured before and after."""
    load, warm = Load(), Load()
    await flood(address, warm, WARM_UP)
    await uploads(address, warm, FILL)
    await crowd(address, warm, min(connections, 3 * LIMITS.connections // 2))
    await queue(address, warm)
    load.failures += [f"while warming up: {what}" for what in warm.failures]
    load.memory["before"] = memory(pid)
    await flood(address, load, n_requests)
    load.memory["after the requests"] = memory(pid)
    await uploads(address, load, FILL, first=1000)
    load.memory["after the uploads"] = memory(pid)
    await crowd(address, load, connections)
    load.memory["after the crowd"] = memory(pid)
    await queue(address, load)
    load.memory["after the jobs"] = memory(pid)
    growth = load.memory["after the jobs"] - load.memory["before"]
    load.expect(growth < GROWTH, f"memory grew by {growth:.1f} MB")
    load.expect(set(load.statuses) <= {200, 400, 404}, f"statuses {dict(load.statuses)}")
    return load


def measure(n_requests: int, connections: int) -> Load:
    """Start a server and visit it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder) as (process, address):
            load = asyncio.run(visit_all(address, process.pid, n_requests, connections))
        load.expect(process.returncode in (0, 130), f"the server ended with {process.returncode}")
        words = (folder / "stderr").read_text(encoding="utf-8")
        load.expect("Traceback" not in words, f"the server printed {words[-500:]!r}")
    return load


def page(load: Load, arguments: list[str], n_requests: int, connections: int) -> str:
    """The results page."""
    growth = load.memory["after the jobs"] - load.memory["before"]
    verdict = "met" if not load.failures else "MISSED: " + "; ".join(load.failures)
    rows = [
        ["requests in the flood", f"{n_requests:,}"],
        ["requests in all", f"{load.requests:,}"],
        [
            "their answers in the flood",
            ", ".join(f"{n:,} × {s}" for s, n in sorted(load.statuses.items())),
        ],
        ["requests per second", f"{n_requests / load.seconds['requests']:.0f}"],
        ["connections opened by the crowd", f"{connections:,}"],
        *([name, value] for name, value in load.facts.items()),
        ["uploads at the limit", f"{FILL} of {LIMITS.upload_bytes:,} bytes"],
        *([f"memory {when}, MB", f"{size:.1f}"] for when, size in load.memory.items()),
        ["growth, MB", f"{growth:+.1f}"],
    ]
    command = " ".join(["python -m benchmarks.explorer_load", *arguments])
    parts = [
        "# The explorer under load",
        f"Made by `{command}`; do not edit.",
        f"Machine: {machine()}.",
        "One server with its usual limits "
        f"({LIMITS.connections} connections, {LIMITS.workers} workers, {LIMITS.waiting} jobs waiting, "
        f"{LIMITS.request_seconds:g} s for a request to arrive). It is warmed up by all of the below once, so that what it "
        "may remember (uploads, results) is full. The crowd is made of connections in equal parts that say nothing, that "
        "say half a request a byte at a time, and that request megabytes and read none. Memory is that of the server's process "
        "alone, without pages it shares.",
        table(["what", "measured"], rows),
        f"Required: every request of the flood answered, the page back within {LIMITS.request_seconds + 15:g} s of the crowd, "
        f"jobs beyond the queue refused and the others cancelled, growth below {GROWTH:g} MB: **{verdict}**.",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Measure, print, and write the page if requested to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    load = measure(options.requests, options.connections)
    text = page(load, sys.argv[1:], options.requests, options.connections)
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    return int(bool(load.failures))


if __name__ == "__main__":
    sys.exit(main())
