"""Bars appear where somebody looks, after two seconds, and nowhere else."""

from __future__ import annotations

import io
import sys
import threading
import time
import types

import numpy as np
import pytest

import consistruct as cs
from consistruct import _progress
from consistruct._progress import advance, showing, shown_by_others


class Screen(io.StringIO):
    """A terminal that remembers."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """To be called in the test: pytest puts its own stderr back between fixtures and test."""

    def begin():
        screen = Screen()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setattr(_progress, "PATIENCE", 0.05)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        return screen

    return begin


@pytest.fixture
def notebook(monkeypatch):
    """IPython as a kernel has it; the list holds what was shown."""
    shown = []
    handle = types.SimpleNamespace(update=shown.append)

    def display(what, *, display_id):
        assert display_id
        shown.append(what)
        return handle

    shell = types.ModuleType("IPython")
    shell.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    part = types.ModuleType("IPython.display")
    part.HTML, part.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", part)
    monkeypatch.setattr(_progress, "PATIENCE", 0.05)
    monkeypatch.setattr(_progress, "RHYTHM", 0.0)
    return shown


def wait_until(found):
    for _ in range(1500):
        if found():
            return
        time.sleep(0.02)
    raise AssertionError("nothing was shown")


def test_a_terminal_sees_the_bar_and_then_nothing_of_it(terminal):
    screen = terminal()
    with showing("fitting [red]x"):
        wait_until(lambda: "fitting [red]x" in screen.getvalue())
        advance("boosting", 1, 4)
        wait_until(lambda: "boosting" in screen.getvalue())
    # the line is erased, and the cursor is back
    assert "\x1b[2K" in screen.getvalue().rpartition("boosting")[2]
    assert "\x1b[?25h" in screen.getvalue().rpartition("boosting")[2]
    assert _progress._active is None


def test_short_work_shows_nothing(terminal, monkeypatch):
    screen = terminal()
    monkeypatch.setattr(_progress, "PATIENCE", 5.0)
    with showing("fitting"):
        assert _progress._active is not None
        advance("one", 0, 2)
    assert screen.getvalue() == ""


def test_no_terminal_sees_nothing(monkeypatch):
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    with showing("fitting"):
        assert _progress._active is None
        advance("one", 0, 2)
    assert plain.getvalue() == ""


def test_a_notebook_sees_a_bar_of_html(notebook):
    with showing("fitting <b>"):
        advance("boosting", 0, 4)
        wait_until(lambda: notebook)
        advance("forest", 1, 4)
        advance("epoch 1", 0, 50)  # a loop inside: reported, not counted
    assert 'value="0" max="4"' in notebook[0]
    assert "fitting &lt;b&gt;: boosting" in notebook[0]
    assert 'value="1" max="4"' in notebook[1]
    assert 'value="1" max="4"' in notebook[2]
    assert "epoch 1" in notebook[2]
    assert notebook[-1] == ""


def test_the_outermost_is_shown_and_counts(notebook):
    with showing("forecast") as reported:
        wait_until(lambda: notebook)
        reported(3, 26)
        with showing("fitting"):
            advance("boosting", 0, 4)
    assert 'value="3" max="26"' in notebook[-2]
    assert "forecast: boosting" in notebook[-2]
    before = len(notebook)
    with shown_by_others(), showing("fitting"):
        advance("one", 0, 2)
        time.sleep(0.1)
    assert len(notebook) == before


def test_threads_and_failures_leave_nothing_behind(notebook):
    def work():
        with showing("in a thread"):
            assert _progress._active is None

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with pytest.raises(ValueError, match="no"), showing("fitting"):
        raise ValueError("no")
    assert _progress._active is None


def test_a_stack_tells_its_models_and_a_chain_its_epochs(notebook, monkeypatch):
    reported = []
    monkeypatch.setattr(_progress._Notebook, "change", lambda self, **state: reported.append(state))
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    ridge = cs.models.Ridge(alpha=1.0, features="linear")
    stack = cs.models.Stack([ridge, ridge])
    cs.TaskLossClassifier("zero_one", stack, random_state=0).fit(X, y)
    assert [(one["done"], one["total"]) for one in reported] == [(0, 2), (1, 2)]
    reported.clear()
    chain = cs.models.Chain(alpha=0.1, max_epochs=2)
    words = [X[n : n + 3] for n in range(0, 60, 3)]
    cs.StructuredPredictor("hamming", chain).fit(words, [y[n : n + 3] for n in range(0, 60, 3)])
    assert "epoch 1" in [one["detail"] for one in reported]
