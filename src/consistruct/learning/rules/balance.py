"""Weights of the classes that make their recalls equal: raised while a recall is below the mean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from consistruct.learning.rules.counts import Counts
from consistruct.protocols import FloatArray

__all__ = ["CLOSE", "ROUGHLY", "balanced_weights", "nearby_weights"]

ROUNDS = 120
NEAR = 30  # of weights that are near already: as good as all rounds on 100,000 rows
CLOSE, ROUGHLY = 3e-4, 1e-3  # to the most that any rule could reach
SPREAD = 1e6  # of weights that are near: more says that a class did not count at all
PACE = 3.0
PASSES, SIZES = 3, (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01)
MOST_TRIALS, MOST_ENTRIES = 4000, 3e7  # of nearby weights, and of weighted probabilities


def balanced_weights(
    rows: Counts, near: FloatArray | None = None, close: float = CLOSE
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """(weights of the classes (k,), confusion (k, k) of their Bayes decisions), as they settle.

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


def nearby_weights(
    rows: Counts, weights: FloatArray, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Weights (k,) of ever greater least recall, by random steps from some that are good.

    The game settles where recalls are equal on average over its rounds. Where many rows tie, no
    single round is near that average, and the best one has to be looked for.
    """
    k = rows.n_classes
    logs, best = np.log(np.maximum(weights, 1e-300)), _least_recall(rows, weights)
    trials = min(MOST_TRIALS, int(MOST_ENTRIES / (len(rows) * k))) // (PASSES * len(SIZES))
    for size in np.tile(SIZES, PASSES):
        for _ in range(trials):
            moved = rng.random(k) < rng.choice((0.15, 0.5, 1.0))
            tried = logs + size * moved * rng.normal(size=k)
            value = _least_recall(rows, np.exp(tried - tried.max()))
            if value > best:
                logs, best = tried, value
                yield np.exp(tried - tried.max())


def _least_recall(rows: Counts, weights: FloatArray) -> float:
    chosen = (rows.probabilities * weights).argmax(axis=1)
    right = rows.counted[np.arange(len(chosen)), chosen]
    hits = np.bincount(chosen, weights=right, minlength=rows.n_classes)
    present = rows.priors > 0
    return float(np.min(hits[present] / rows.priors[present]))
