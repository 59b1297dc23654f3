"""Bars for work that takes longer than two seconds, in a terminal or a notebook, and nowhere else.

Whoever starts long work reports it (`showing`); whoever loops inside reports how far it is
(`advance`). Of nested ones the outermost is shown: its bar counts, the inner loops only tell what
they are at. Where the output is no terminal and no notebook, in workers and in threads nothing is
shown.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

__all__ = ["advance", "showing", "shown_by_others"]

PATIENCE = 2.0  # seconds
RHYTHM = 0.2  # seconds between two drawings in a notebook


class _Display(ABC):
    """What is on the screen: a label, what is done of how much, and what is being done."""

    def __init__(self, label: str) -> None:
        self.label, self.detail = label, ""
        self.done, self.total = 0, 0
        self.counted = 0  # steps of the loop that is counted
        self.by_others = False  # whoever shows it counts
        self.started = time.monotonic()
        self.running = False

    @abstractmethod
    def start(self) -> None:
        """Appear; called once, by the clock."""

    @abstractmethod
    def draw(self) -> None:
        """Show the state; called after each change while it runs."""

    @abstractmethod
    def stop(self) -> None:
        """Vanish."""

    def change(self, **state: Any) -> None:
        self.__dict__.update(state)
        if self.running:
            self.draw()

    @property
    def text(self) -> str:
        return f"{self.label}: {self.detail}" if self.detail else self.label


class _Terminal(_Display):
    """A bar of rich on stderr that leaves no trace."""

    def start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        columns = [TextColumn("{task.description}", markup=False), BarColumn(), Elapsed()]
        if self.total:
            columns.insert(2, MofNCompleteColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self.text, total=None)
        self._bar.start()
        self.running = True
        self.draw()

    def draw(self) -> None:
        self._bar.update(
            self._task, description=self.text, completed=self.done, total=self.total or None
        )

    def stop(self) -> None:
        if self.running:
            self._bar.stop()
        self.running = False


class _Notebook(_Display):
    """A bar of HTML below the cell."""

    def start(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._handle = display(HTML(self.html()), display_id=True)
        self._drawn = time.monotonic()
        self.running = self._handle is not None

    def draw(self) -> None:
        if time.monotonic() - self._drawn >= RHYTHM:
            self._drawn = time.monotonic()
            self._handle.update(self._html(self.html()))

    def stop(self) -> None:
        if self.running:
            self._handle.update(self._html(""))
        self.running = False

    def html(self) -> str:
        """Colors and letters are those of the notebook, light or dark."""
        share = f' value="{self.done}" max="{self.total}"' if self.total else ""
        count = f" {self.done} of {self.total}," if self.total else ""
        seconds = time.monotonic() - self.started
        return (
            f'<div style="font-family:system-ui,sans-serif;font-size:0.9em"><progress{share} '
            f'style="width:14em;vertical-align:middle"></progress>{count} {seconds:.0f} s, '
            f"{escape(self.text)}</div>"
        )


class _Silent(_Display):
    """Somebody else shows something."""

    def start(self) -> None:
        pass

    def draw(self) -> None:
        pass

    def stop(self) -> None:
        pass


_active: _Display | None = None


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, where stderr is no terminal but is seen."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and hasattr(found, "kernel")


def _display(label: str) -> _Display | None:
    """Where to show something, if anywhere."""
    alone = multiprocessing.current_process().name == "MainProcess"
    if not alone or threading.current_thread() is not threading.main_thread():
        return None
    if in_notebook():
        return _Notebook(label)
    if sys.stderr is not None and sys.stderr.isatty():
        return _Terminal(label)
    return None


@contextmanager
def showing(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for what is done inside, if it takes longer than two seconds.

    Yields a function (done, total) for those who count by themselves. Nothing is shown inside
    another `showing`, whose bar goes on.
    """
    global _active
    display = _display(label) if _active is None else None
    if display is None:
        yield lambda done, total: None
        return
    _active = display
    lock = threading.Lock()
    over = False

    def appear() -> None:
        with lock:
            if not over:
                display.start()

    clock = threading.Timer(PATIENCE, appear)
    clock.daemon = True
    clock.start()
    try:
        yield lambda done, total: display.change(done=done, total=total, by_others=True)
    finally:
        clock.cancel()
        with lock:
            over = True
            display.stop()
        _active = None


def advance(detail: str, done: int, total: int) -> None:
    """Called by loops before each step: its name, how many are done, and of how many.

    Only the loop that speaks first is counted; those inside it tell their names alone.
    """
    display = _active
    if display is None:
        return
    if not display.total:
        display.counted = total
    if display.by_others or (display.total and display.counted != total):
        display.change(detail=detail)
    else:
        display.change(detail=detail, done=done, total=total)


@contextmanager
def shown_by_others() -> Iterator[None]:
    """Show nothing inside: a terminal has room for one bar, and there is one already."""
    global _active
    before, _active = _active, _Silent("")
    try:
        yield
    finally:
        _active = before
