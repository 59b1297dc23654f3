"""Rounding decides nothing: ties go the same way on every machine and with any number of threads.

Another number of threads sums in another order, which is a relative change of about 1e-16 in the
inputs of what follows. The tests make such changes themselves.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.learning.estimators import classifier

LINE = np.arange(-40.0, 41.0)[:, None]
GRID = np.array([[a, b] for a in np.arange(-4.0, 5.0) for b in np.arange(-4.0, 5.0)])
BITS = np.array([[number >> bit & 1 for bit in range(6)] for number in range(64)] * 3, dtype=float)

# X, y, loss: symmetric, so that several labels have exactly the same score where a row is left out
CASES = {
    # the row at 0 is the only one of its class, the labels on both sides of it tie
    "line": (LINE, np.sign(LINE[:, 0]).astype(int) + 1, "ordinal"),
    "corners": (GRID, np.sign(GRID[:, 0] * GRID[:, 1]).astype(int) + 1, "zero_one"),
    # on bits some Laplace kernels are RBF kernels
    "bits": (BITS, (BITS[:, 0] + BITS[:, 1]).astype(int), "ordinal"),
    # nothing to learn: everything ties
    "copies": (np.repeat(np.eye(6), 20, axis=0), np.tile([0, 1], 60), "zero_one"),
}


def rounded_otherwise(X, seed):
    """X with another last bit here and there; zeros stay."""
    noise = np.random.default_rng(seed).integers(-1, 2, size=X.shape)
    return X * (1.0 + noise * np.finfo(float).eps)


@pytest.mark.parametrize("name", CASES)
def test_rounding_does_not_choose_the_model(name):
    X, y, loss = CASES[name]
    model = classifier(loss=loss, random_state=0).fit(X, y)
    expected = model.predict_expected_loss(X)
    for seed in range(5):
        other = classifier(loss=loss, random_state=0)
        other.fit(rounded_otherwise(X, seed), y)
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        # another penalty or kernel would change the second or third digit
        found = other.predict_expected_loss(X)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def digest(model, X):
    parts = (model.predict(X), model.predict_expected_loss(X))
    return hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in parts)).hexdigest()


def test_the_same_seed_gives_the_same_bits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))  # more than the search of kernels looks at at first
    y = np.digitize(X[:, 0] + rng.normal(size=600), [-1.0, 0.0, 1.0])
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            models = [classifier(loss="ordinal", random_state=3).fit(X, y) for _ in range(2)]
            assert len({digest(model, X) for model in models}) == 1
