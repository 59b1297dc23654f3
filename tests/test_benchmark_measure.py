"""What the benchmarks measure with: intervals, turns, data that must hash right."""

from __future__ import annotations

import time

import numpy as np
import pytest
from benchmarks import data
from benchmarks.measure import bootstrap_difference, table, taking_turns


def test_bootstrap_agrees_with_the_normal_approximation():
    rng = np.random.default_rng(0)
    theirs = rng.random(1000)
    ours = theirs + rng.normal(0.1, 0.5, size=1000)  # paired: the spread of theirs cancels
    mean, low, high = bootstrap_difference(ours, theirs, rounds=4000)
    error = 1.96 * (ours - theirs).std() / np.sqrt(1000)
    assert mean == pytest.approx((ours - theirs).mean())
    assert low == pytest.approx(mean - error, abs=0.1 * error)
    assert high == pytest.approx(mean + error, abs=0.1 * error)


def test_equal_losses_have_no_interval():
    losses = np.array([0.0, 1.0, 1.0])
    assert bootstrap_difference(losses, losses, rounds=50) == (0.0, 0.0, 0.0)


def test_jobs_take_turns_and_the_least_time_counts():
    calls: list[str] = []
    delays = iter([0.05, 0.0, 0.05])

    def first() -> None:
        calls.append("first")
        time.sleep(next(delays))

    times = taking_turns([first, lambda: calls.append("second")], rounds=3)
    assert calls == ["first", "second"] * 3
    assert times.shape == (2, 2)
    assert times[0, 0] < 0.05


def test_table():
    assert table(("a", "b"), [(1, "x")]) == "| a | b |\n|---|---|\n| 1 | x |"


def test_data_folder_and_hash(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSISTRUCT_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match="set CONSISTRUCT_DATA"):
        data.data_file("yeast")
    (tmp_path / "yeast.npz").write_bytes(b"something else")
    with pytest.raises(SystemExit, match="expected 5c3398088b"):
        data.data_file("yeast")


def test_held_out_runs_never_open_the_test_part(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    archive = tmp_path / "small.npz"
    np.savez(archive, X_train=rng.normal(size=(40, 2)), y_train=np.arange(40))  # no test part
    monkeypatch.setattr(data, "data_file", lambda name: archive)
    X, y, X_test, y_test = data.train_and_test("small", held_out=True)
    assert (len(X), len(X_test)) == (30, 10)
    assert set(y.tolist()) | set(y_test.tolist()) == set(range(40))
    with pytest.raises(ValueError, match="there is no part 'test'"):
        data.train_and_test("small", held_out=False)
