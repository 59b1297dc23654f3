"""Rows whose probabilities are known."""

from __future__ import annotations

import numpy as np

from consistruct.learning.rules.counts import Counts


def drawn_classes(n: int, k: int, seed: int, *, spread: float = 1.5) -> Counts:
    """Rows with right probabilities, true labels drawn from them."""
    rng = np.random.default_rng(seed)
    logits = spread * rng.normal(size=(n, k)) + np.log(rng.dirichlet(np.full(k, 2.0)))
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    codes = (chances.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return Counts(chances, codes, np.full(n, 1.0 / n))


def drawn_labels(n: int, n_labels: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, T) and labels drawn from them, rare and frequent ones."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n, n_labels)) + rng.uniform(-3.0, 0.5, n_labels)
    chances = 1.0 / (1.0 + np.exp(-logits))
    return chances, (rng.random(chances.shape) < chances).astype(np.int64)
