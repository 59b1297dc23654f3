"""Signs of life on stderr: bars that appear after two seconds, in a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from consistruct._progress import showing, shown_by_others

__all__ = ["activity", "byte_bar", "progress_bar"]


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function (done, total) to call after each step; the bar appears after two seconds."""
    with showing(label) as advance:
        yield advance


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
    with (
        shown_by_others(),
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task(label, total=None, rows=0)
        yield lambda done, total, rows: bar.update(task, completed=done, total=total, rows=rows)


@contextmanager
def activity(what: str) -> Iterator[None]:
    """A bar for work whose loops tell how far they are, if they do."""
    with showing(what):
        yield
