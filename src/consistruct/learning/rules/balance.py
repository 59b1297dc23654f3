"""Weights of the classes that make their recalls equal: raised while a recall is below the mean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from consistruct.learning.rules.counts import Counts
from consistruct.protocols import FloatArray

__all__ = ["balanced_weights"]

ROUNDS = 120
PACE = 3.0


def balanced_weights(rows: Counts) -> Iterator[tuple[FloatArray, FloatArray]]:
    """(weights of the classes (k,), confusion (k, k) of their Bayes decisions), as they settle.

    A zero-sum game: multiplicative weights against Bayes decisions. The least recall of any rule is
    at most the weighted mean of recalls here, in which class c counts weight_c · share_c.
    """
    logs = -np.log(np.maximum(rows.priors, 1e-12))
    off = 1.0 - np.eye(rows.n_classes)
    for number in range(ROUNDS):
        weights = np.exp(logs - logs.max())
        confusion = rows.confusion(rows.decide(off * weights)).sum(axis=0)
        yield weights, confusion
        recalls = np.diagonal(confusion) / np.maximum(confusion.sum(axis=0), 1e-12)
        logs = logs - PACE / (1.0 + number) ** 0.6 * (recalls - recalls.mean())
