"""Rows shared out among threads: every row once, the same answers, errors reported."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from consistruct import _threads
from consistruct._threads import share_rows
from consistruct.structures import SetSizes


@pytest.mark.parametrize("n", [0, 1, 7, 8, 15, 16, 1000])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_every_row_is_covered_once(monkeypatch, n, n_threads):
    monkeypatch.setattr(_threads, "_blas_threads", lambda: n_threads)
    count, parts = np.zeros(n, dtype=int), []

    def work(part):
        count[part] += 1
        parts.append(part)

    share_rows(work, n, 8)
    assert (count == 1).all()
    assert len(parts) <= n_threads
    assert len(parts) == 1 or min(part.stop - part.start for part in parts) >= 8


def test_they_run_at_the_same_time_and_errors_are_raised(monkeypatch):
    monkeypatch.setattr(_threads, "_blas_threads", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # it would limit the workers to one
    meeting = threading.Barrier(2, timeout=20)
    share_rows(lambda part: meeting.wait(), 100, 8)  # would time out one after the other

    def fail(part):
        if part.start > 0:
            raise ValueError("second part")

    with pytest.raises(ValueError, match="second part"):
        share_rows(fail, 100, 8)


def test_limits_of_the_linear_algebra_library_count():
    with threadpool_limits(1):
        assert _threads._blas_threads() == 1


def test_sets_are_decoded_alike_by_any_number_of_threads(monkeypatch):
    space = SetSizes(40, 1.0, (1, 2, 5))
    theta = np.random.default_rng(0).normal(size=(500, space.width)) - 0.5
    answers = []
    for n_threads in (1, 2, 4):
        monkeypatch.setattr(_threads, "_blas_threads", lambda n=n_threads: n)
        answers.append(space.decode(theta))
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
    assert answers[0].any()
