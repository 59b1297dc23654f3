"""Warm worker processes: one computation each, killed to cancel it, replaced at once.

Messages are lines of JSON: nothing that a worker sends is executed or unpickled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from consistruct.explorer.limits import Limits

__all__ = ["OnProgress", "WorkerError", "WorkerPool"]

OnProgress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all
MAX_REPLY = 256 * 2**20
N_FAILED_STARTS = 3
N_KEYS = 8  # curves that a worker keeps (worker.N_CURVES)


class WorkerError(RuntimeError):
    """A worker ended without an answer, or answered that it cannot; the message is for people."""


class _Worker:
    """One process and the pipes to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.keys: OrderedDict[str, None] = OrderedDict()  # curves that it holds, oldest first

    @classmethod
    async def start(cls, limits: Limits) -> _Worker:
        # -P: a module of that name in the user's folder is not ours. A session of its own: Ctrl-C
        # reaches the server alone, which then ends its workers.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "consistruct.explorer.worker",
            str(limits.memory_bytes),
            str(limits.log2_labels),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MAX_REPLY,
            start_new_session=True,
        )
        worker = cls(process)
        try:
            ready = await worker._receive()
        except BaseException:
            await worker.stop()
            raise
        if "ready" not in ready:
            await worker.stop()
            raise WorkerError("a worker process did not start")
        return worker

    async def request(self, request: dict[str, Any], on_progress: OnProgress) -> Any:
        """Send a request and follow it to its result."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise WorkerError("the worker process ended unexpectedly; try again") from None
        while True:
            message = await self._receive()
            if "progress" in message:
                on_progress(*message["progress"])
            elif "error" in message:
                raise _RefusalError(message["error"])
            else:
                return message["result"]

    async def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise WorkerError(
                "the worker process ended unexpectedly, perhaps because it ran out of memory; try "
                "smaller sizes"
            )
        message: dict[str, Any] = json.loads(line)
        return message

    async def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()


class _RefusalError(WorkerError):
    """The worker is well; the request cannot be answered."""


class WorkerPool:
    """A fixed number of processes that are kept warm."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free: list[_Worker] = []
        self._alive: set[_Worker] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()
        self._failed_starts = 0

    def start(self) -> None:
        """Begin to warm the workers; requests wait for the first of them."""
        for _ in range(self._limits.workers):
            self._add()

    async def close(self) -> None:
        """End all workers, busy or not."""
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        await asyncio.gather(*(worker.stop() for worker in self._alive), *self._stopping)
        self._alive.clear()
        self._free.clear()

    async def run(self, request: dict[str, Any], *, key: str, on_progress: OnProgress) -> Any:
        """The answer to a request; cancelling this task kills the process that works on it.

        `key` names what the worker will remember: a later request with the same key goes to the
        same worker if it is free.
        """
        worker = await self._acquire(key)
        try:
            async with asyncio.timeout(self._limits.seconds):
                result = await worker.request(request, on_progress)
        except _RefusalError:
            await self._release(worker)
            raise
        except TimeoutError:
            self._replace(worker)
            raise WorkerError(
                f"stopped after {self._limits.seconds:g} seconds; try smaller sizes, or "
                f"`consistruct analyze`, which has no time limit"
            ) from None
        except BaseException:
            self._replace(worker)
            raise
        worker.keys[key] = None
        worker.keys.move_to_end(key)
        while len(worker.keys) > N_KEYS:
            worker.keys.popitem(last=False)
        await self._release(worker)
        return result

    async def _acquire(self, key: str) -> _Worker:
        async with self._changed:
            await self._changed.wait_for(lambda: self._free or not self._hopeful)
            if not self._free:
                raise WorkerError(
                    "no worker process could be started; see the terminal for the reason"
                )
            # the worker that holds the curve, or the one that has been free for longest
            chosen = next((worker for worker in self._free if key in worker.keys), self._free[0])
            self._free.remove(chosen)
            return chosen

    @property
    def _hopeful(self) -> bool:
        return bool(self._alive or self._starting)

    async def _release(self, worker: _Worker) -> None:
        async with self._changed:
            self._free.append(worker)
            self._changed.notify()

    def _replace(self, worker: _Worker) -> None:
        self._alive.discard(worker)
        ending = asyncio.create_task(worker.stop())
        self._stopping.add(ending)
        ending.add_done_callback(self._stopping.discard)
        self._add()

    def _add(self) -> None:
        task = asyncio.create_task(self._start_one())
        self._starting.add(task)

    async def _start_one(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        worker = None
        try:
            worker = await _Worker.start(self._limits)
            self._failed_starts = 0
        except (WorkerError, OSError, ValueError):
            self._failed_starts += 1
            if self._failed_starts < N_FAILED_STARTS:
                self._add()
        finally:
            self._starting.discard(task)
        async with self._changed:
            if worker is not None:
                self._alive.add(worker)
                self._free.append(worker)
            self._changed.notify_all()
