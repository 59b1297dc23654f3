"""A progress bar on stderr that appears only when work takes longer than two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["progress_bar"]

PATIENCE = 2.0  # seconds


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function (done, total) to call after each step."""
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    start = time.monotonic()
    task = bar.add_task(label, total=None)
    running = False

    def step(done: int, total: int) -> None:
        nonlocal running
        if not running and time.monotonic() - start > PATIENCE:
            bar.start()
            running = True
        bar.update(task, completed=done, total=total)

    try:
        yield step
    finally:
        if running:
            bar.stop()
