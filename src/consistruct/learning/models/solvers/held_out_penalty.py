"""The penalty of iterative fits, chosen on rows that are held out for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from consistruct.learning.models.features.feature_maps import ScoreMap
from consistruct.protocols import FloatArray, IntArray

__all__ = ["FEWEST_ROWS", "best_share"]

logger = logging.getLogger(__name__)

SHARES = (1.0, 0.1, 0.01, 0.001)  # of E‖φ‖²/N, the largest first: it wins ties
FEWEST_ROWS = 256  # fewer rows rank nothing
SEARCH_ROWS = 4096


def best_share(
    score_map: ScoreMap,
    inputs: Any,
    weight: FloatArray,
    rng: np.random.Generator,
    fits: Callable[[IntArray], Callable[[float], FloatArray]],
    losses_of: Callable[[FloatArray, IntArray], FloatArray],
) -> float:
    """The share c of the penalty c·E‖φ‖²/N that is best on held-out rows.

    N·α, the weight of the penalty against a single example, is what carries over from a part of
    the rows to all of them. ``fits(rows)`` gives a function from a share to the weights fitted on
    these rows, ``losses_of(theta, rows)`` how bad the scores of rows are, one by one. Fewer than
    `FEWEST_ROWS` rows are not split: the share is 1.
    """
    if len(weight) < FEWEST_ROWS:
        return SHARES[0]
    rows = rng.permutation(len(weight))[:SEARCH_ROWS]
    held_out, used = np.sort(rows[: len(rows) // 4]), np.sort(rows[len(rows) // 4 :])
    fit, losses = fits(used), []
    for share in SHARES:
        theta = score_map.apply(fit(share), inputs[held_out])
        values = losses_of(theta, held_out)
        losses.append(float(np.average(values, weights=weight[held_out])))
    best = SHARES[int(np.argmin(losses))]
    logger.info("penalty: %g E‖φ‖²/N, held-out risk %.4f", best, min(losses))
    return best
