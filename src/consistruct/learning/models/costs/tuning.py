"""Fine-tuning by a surrogate that calls the oracle, from a closed-form fit on."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.protocols import FloatArray
from consistruct.surrogates import BaseSurrogate

__all__ = ["tuned"]

BATCH, RATE = 32, 0.01  # the step is a share of the mean size of the targets
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8  # Adam's
LEAST_SPREAD = 1e-6  # of the largest: features with less are left as they are


def tuned(
    surrogate: BaseSurrogate,
    features: FloatArray,  # (n, m)
    codes: Any,  # (n, d)
    weight: FloatArray,  # (n,)
    coef: FloatArray,  # (m, d): estimates of u_y, so that θ = −(features @ coef + intercept)
    intercept: FloatArray,  # (d,)
    n_epochs: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Adam from the given solution on, averaged over the second half of the epochs.

    Features are standardized first: the steps are alike in all directions.
    """
    mean, spread = features.mean(axis=0), features.std(axis=0)
    kept = spread > LEAST_SPREAD * spread.max(initial=0.0)
    scaled = (features[:, kept] - mean[kept]) / spread[kept]
    design = np.column_stack([scaled, np.ones(len(features))])
    start = np.vstack([coef[kept] * spread[kept, None], intercept + mean[kept] @ coef[kept]])
    rest = features[:, ~kept] @ coef[~kept]  # stays
    level = float(np.abs(design @ start + rest).mean()) or 1.0
    weights = start.copy()
    moment, square = np.zeros_like(weights), np.zeros_like(weights)
    total, count, step = np.zeros_like(weights), 0, 0
    for epoch in range(n_epochs):
        order = rng.permutation(len(features))
        for begin in range(0, len(order), BATCH):
            rows = order[begin : begin + BATCH]
            theta = -(design[rows] @ weights + rest[rows])
            _, slopes = surrogate.value_and_gradient(theta, codes[rows])
            gradient = -design[rows].T @ (slopes * weight[rows, None]) / weight[rows].sum()
            step += 1
            moment += (1 - FIRST) * (gradient - moment)
            square += (1 - SECOND) * (gradient**2 - square)
            size = np.sqrt(square / (1 - SECOND**step)) + TINY
            weights -= RATE * level * (moment / (1 - FIRST**step)) / size
            if 2 * epoch >= n_epochs:
                total += weights
                count += 1
    final = total / count if count else weights
    found = coef.copy()
    found[kept] = final[:-1] / spread[kept, None]
    return found, final[-1] - mean[kept] @ found[kept]
