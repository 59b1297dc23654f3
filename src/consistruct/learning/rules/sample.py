"""Fewer rows that stand for all of them: a sample by class, in which rare classes keep their rows.

A rule has a few numbers, and the error of finding them on 50,000 rows is far below everything else
that is uncertain about it (`docs/design/0017-metrics.md` has the trial). What would suffer is a
rare class, so each keeps a share that does not depend on how rare it is.
"""

from __future__ import annotations

import numpy as np

from consistruct.protocols import FloatArray, IntArray

__all__ = ["MANY", "MORE", "sampled_rows"]

MANY = 50_000  # rows of a sample
MORE = 160_000  # or half of them: of the least recall, which moves with the noise of every class
FEWEST = 500  # rows that every class keeps, if it has them


def sampled_rows(
    strata: IntArray,  # (n,): the class of each row, or its class and group
    weight: FloatArray,  # (n,)
    most: int,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray]:
    """About `most` rows in their order, and weights with which every stratum weighs what it did.

    Half of them are shared out by size, half equally: means over rows and recalls of classes are
    both counted well.
    """
    counts = weight > 0.0  # rows without weight tell nothing
    sizes = np.bincount(strata, weights=counts)
    present = max(1, int(np.count_nonzero(sizes)))
    kept = np.maximum(0.5 * most * (sizes / sizes.sum() + 1.0 / present), FEWEST)
    rate = kept / np.maximum(sizes, 1.0)
    rows = np.flatnonzero((rng.random(len(strata)) < rate[strata]) & counts)
    there = strata[rows]
    total = np.bincount(strata, weights=weight)
    part = np.bincount(there, weights=weight[rows], minlength=len(sizes))
    return rows, weight[rows] * (total / np.maximum(part, np.finfo(float).tiny))[there]
