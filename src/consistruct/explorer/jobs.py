"""Computations that a page started: their progress, their result, and how they are cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Literal

from consistruct.exceptions import ConsistructError
from consistruct.explorer.limits import Limits
from consistruct.explorer.matrices import Matrices
from consistruct.explorer.messages import page_message
from consistruct.explorer.pool import WorkerError, WorkerPool
from consistruct.explorer.settings import Setting

__all__ = ["Job", "Jobs", "State", "TooBusyError"]

State = Literal["waiting", "running", "done", "failed", "cancelled"]


class TooBusyError(ConsistructError):
    """More computations wait than the limits allow."""


@dataclass(eq=False)
class Job:
    """One computation; `version` counts the changes that a page can see."""

    identifier: str
    setting: Setting
    state: State = "waiting"
    version: int = 0
    stage: str = "waiting for a free worker"
    done: int = 0
    total: int = 0
    error: str | None = None
    result: dict[str, Any] | None = None
    watchers: int = 0
    seen: float = field(default_factory=time.monotonic)
    started: float = field(default_factory=time.monotonic)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def finished(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    def update(self, **fields: Any) -> None:
        """Change what pages see and wake those that wait."""
        for name, value in fields.items():
            setattr(self, name, value)
        self.version += 1
        self.changed.set()
        self.changed = asyncio.Event()

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "id": self.identifier,
            "version": self.version,
            "state": self.state,
            "stage": self.stage,
            "done": self.done,
            "total": self.total,
            "seconds": round(time.monotonic() - self.started, 3),
            "error": self.error,
            "result": self.result,
        }


class Jobs:
    """All computations of a server."""

    def __init__(self, pool: WorkerPool, matrices: Matrices, limits: Limits) -> None:
        self._pool = pool
        self._matrices = matrices
        self._limits = limits
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._stopping = asyncio.Event()

    def submit(self, setting: Setting) -> Job:
        """Start a computation, or find the same one among the results."""
        for job in reversed(self._jobs.values()):
            if job.setting == setting and job.state == "done":
                return job
        unfinished = sum(not job.finished for job in self._jobs.values())
        if unfinished >= self._limits.workers + self._limits.waiting:
            raise TooBusyError(
                f"{unfinished} computations are already running; wait, or cancel some of them"
            )
        request: dict[str, Any] = {"task": "analyze", "setting": setting.as_dict()}
        if setting.matrix:
            upload = self._matrices.get(setting.matrix)
            request["matrix"] = {"text": upload.text, "rows": upload.rows}
        job = Job(secrets.token_urlsafe(16), setting)
        self._jobs[job.identifier] = job
        job.task = asyncio.create_task(self._run(job, request))
        self._forget()
        return job

    def get(self, identifier: str) -> Job:
        """A computation that is still remembered."""
        job = self._jobs.get(identifier)
        if job is None:
            raise KeyError(identifier)
        job.seen = time.monotonic()
        return job

    async def wait(self, job: Job, version: int, seconds: float) -> None:
        """Until the job has changed since `version`, for so long at most."""
        if job.version > version or job.finished:
            return
        waiters = [asyncio.ensure_future(event.wait()) for event in (job.changed, self._stopping)]
        job.watchers += 1
        try:
            await asyncio.wait(waiters, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            job.watchers -= 1
            job.seen = time.monotonic()
            for waiter in waiters:
                waiter.cancel()

    def cancel(self, job: Job) -> None:
        """End a computation and the process that works on it."""
        if not job.finished and job.task is not None:
            job.task.cancel()

    async def render(self, job: Job, kind: str) -> str:
        """A finished report as the base64 text of a file."""
        assert job.result is not None
        text = await self._pool.run(
            {"task": "render", "kind": kind, "report": job.result["report"]},
            key=job.setting.curve_key,
            on_progress=lambda *_: None,
        )
        return str(text)

    async def watch(self) -> None:
        """Cancel what no page has requested for a while; runs for ever."""
        while True:
            await asyncio.sleep(self._limits.patience / 4)
            horizon = time.monotonic() - self._limits.patience
            for job in list(self._jobs.values()):
                if not job.watchers and job.seen < horizon:
                    self.cancel(job)

    def stop_waiting(self) -> None:
        """Let pages that wait go, so that the server can end."""
        self._stopping.set()

    async def close(self) -> None:
        """Cancel everything."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job: Job, request: dict[str, Any]) -> None:
        def on_progress(stage: str, done: int, total: int) -> None:
            job.update(state="running", stage=stage, done=done, total=total)

        try:
            result = await self._pool.run(
                request, key=job.setting.curve_key, on_progress=on_progress
            )
            job.update(state="done", result=result)
        except WorkerError as error:
            job.update(state="failed", error=page_message(error))
        except asyncio.CancelledError:
            job.update(state="cancelled", error="cancelled")
            raise

    def _forget(self) -> None:
        with contextlib.suppress(StopIteration):
            while len(self._jobs) > self._limits.results:
                oldest = next(job for job in self._jobs.values() if job.finished)
                del self._jobs[oldest.identifier]
