"""Forty fits on a busy machine: the same bits with equal threads, the same answers with others."""

from __future__ import annotations

import hashlib
import multiprocessing
import os

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from threadpoolctl import threadpool_limits

import consistruct as cs

FITS = {1: 14, 2: 13, 4: 13}  # threads of the linear algebra library: fits
CASES = {
    "diabetes": (load_diabetes().data, np.digitize(load_diabetes().target, [75, 140, 215])),
    # labels on both sides of 0 tie exactly when its row is left out
    "line": (np.arange(-20.0, 21.0)[:, None], np.sign(np.arange(-20, 21)) + 1),
}


def burn(stop):
    """Keep a core busy, with pauses that the scheduler does not foresee."""
    values = np.random.default_rng(os.getpid()).normal(size=(150, 150))
    while not stop.is_set():
        values = np.tanh(values @ values.T)


@pytest.fixture(scope="module")
def load():
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    workers = [context.Process(target=burn, args=(stop,)) for _ in range(os.cpu_count() or 1)]
    for worker in workers:
        worker.start()
    yield
    stop.set()
    for worker in workers:
        worker.join(20)
        if worker.is_alive():
            worker.kill()


def junk(rng):
    """Memory in use, so that the arrays of the next fit lie elsewhere."""
    return [np.empty(int(size)) for size in rng.integers(1, 5000, size=40)]


@pytest.mark.parametrize(("name", "share"), [("diabetes", 0.2), ("line", 0.8)])
def test_forty_fits_agree(load, name, share):
    X, y = CASES[name]
    X, y = X[:60], y[:60]
    rng = np.random.default_rng(0)
    predictions: set[bytes] = set()
    expected: list[np.ndarray] = []
    bits: dict[int, set[str]] = {}
    for n_threads, n_fits in FITS.items():
        bits[n_threads] = set()
        with threadpool_limits(n_threads):
            for _ in range(max(2, round(share * n_fits))):
                _kept = junk(rng)
                model = cs.TaskLossClassifier(loss="ordinal", random_state=0).fit(X.copy(), y)
                losses = np.asarray(model.predict_expected_loss(X))
                predictions.add(np.asarray(model.predict(X)).tobytes())
                expected.append(losses)
                bits[n_threads].add(hashlib.sha256(losses.tobytes()).hexdigest())
    assert {n_threads: len(found) for n_threads, found in bits.items()} == dict.fromkeys(FITS, 1)
    assert len(predictions) == 1
    for losses in expected[1:]:  # coefficients agree: so do all expected losses
        np.testing.assert_allclose(losses, expected[0], rtol=1e-9, atol=1e-9)
