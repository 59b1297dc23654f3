"""Signs of life on stderr: a bar where steps are counted, a spinner where they are not."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["activity", "byte_bar", "progress_bar"]

PATIENCE = 2.0  # seconds


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function (done, total) to call after each step; the bar appears after two seconds."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    # in a log file even an empty bar would leave a line
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
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


@contextmanager
def byte_bar(label: str) -> Iterator[Callable[[int, int, int], None]]:
    """Yield a function (bytes done, bytes in all, rows done): a bar with rows and time left."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(label, total=None, rows=0)
        yield lambda done, total, rows: bar.update(task, completed=done, total=total, rows=rows)


@contextmanager
def activity(what: str) -> Iterator[None]:
    """A spinner with the time, on stderr, that also shows the package's progress messages."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what)

        class Relay(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                progress.update(task, description=f"{what}: {record.getMessage()}")

        logger, relay = logging.getLogger("consistruct"), Relay()
        level = logger.level
        logger.addHandler(relay)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(relay)
            logger.setLevel(level)
