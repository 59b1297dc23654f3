"""Weights of the classes that make their recalls equal: raised while a recall is below the mean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from consistruct.learning.rules.counts import Counts
from consistruct.protocols import FloatArray

__all__ = ["CLOSE", "ROUGHLY", "balanced_weights"]

ROUNDS = 120
NEAR = 30  # of weights that are near already: as good as all rounds on 100,000 rows
CLOSE, ROUGHLY = 3e-4, 1e-3  # to the most that any rule could reach
SPREAD = 1e6  # of weights that are near: more states that a class did not count at all
PACE = 3.0


def balanced_weights(
    rows: Counts, near: FloatArray | None = None, close: float = CLOSE
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """(weights of the classes (k,), confusion (k, k) of their Bayes decisions), as they converge.

    `near` (k, k) are costs found on fewer rows, from which the game goes on.

    A zero-sum game: multiplicative weights against Bayes decisions. The least recall of any rule is
    at most the weighted mean of recalls here, in which class c counts weight_c · share_c; the game
    ends where the two are close.
    """
    logs, rounds, slower = -np.log(np.maximum(rows.priors, 1e-12)), ROUNDS, 1.0
    weights = np.zeros(1) if near is None else near.max(axis=0)
    if weights.min() * SPREAD > weights.max():
        logs, rounds, slower = np.log(weights), NEAR, 0.15
    for number in range(rounds):
        weights = np.exp(logs - logs.max())
        confusion = rows.confusion(rows.decide_by_weights(weights)).sum(axis=0)
        yield weights, confusion
        true = confusion.sum(axis=0)
        recalls = np.diagonal(confusion) / np.maximum(true, 1e-12)
        most = (weights * true) @ recalls / (weights @ true)
        if most - recalls[true > 0].min() <= close:
            return
        logs = logs - PACE / (1.0 + slower * number) ** 0.6 * (recalls - recalls.mean())
