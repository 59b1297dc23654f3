"""What chain scores say of single tokens under the quadratic surrogate."""

from __future__ import annotations

import numpy as np

from consistruct.protocols import FloatArray
from consistruct.structures.chains import ChainScores

__all__ = ["token_effects"]


def token_effects(scores: ChainScores) -> FloatArray:
    """g_t(a): how much state a at token t adds to the mean score of all sequences, (N, s).

    f(c) = const + Σ_t g_t(c_t) + Σ_t h_t(c_t, c_{t+1}) with g and h centered. The quadratic
    surrogate regresses f on minus the number of wrong tokens, so g_t(a) estimates P(y_t = a) − 1/s.
    """
    unary, edges = scores.unary, scores.edges
    effects = unary - unary.mean(axis=1, keepdims=True)
    inner = np.ones(len(unary), dtype=np.bool_)  # tokens with a next one in their sequence
    inner[scores.offsets[1:] - 1] = False
    before = np.flatnonzero(inner)
    mean = edges.mean(axis=(-2, -1), keepdims=True)[..., 0]
    leaving, entering = edges.mean(axis=-1) - mean, edges.mean(axis=-2) - mean
    if edges.ndim == 2:
        effects[before] += leaving
        effects[before + 1] += entering
    else:
        effects[before] += leaving[before]
        effects[before + 1] += entering[before]
    return effects
