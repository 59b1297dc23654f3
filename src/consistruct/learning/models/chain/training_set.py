"""Sequences ready for training: packed features, true states, weights, the map that is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_number
from consistruct.learning.encoding.tokens import PackedTokens
from consistruct.learning.models.chain.token_maps import TokenMap
from consistruct.protocols import FloatArray, IntArray

__all__ = ["TrainingSet", "check_weights", "hold_out"]


@dataclass
class TrainingSet:
    """Sequences with their true states and weights; dense features may be mapped batch by batch."""

    tokens: PackedTokens
    states: IntArray  # (N,)
    weights: FloatArray  # (n,)
    token_map: TokenMap
    cached: bool = False  # whether `tokens` already hold what token_map.local gives

    @property
    def n_features(self) -> int:
        return self.token_map.n_outputs

    def features(self, batch: Any, offsets: IntArray) -> Any:
        """φ of the rows of a batch of whole sequences."""
        if self.cached:
            return self.token_map.spread(batch, offsets)
        return self.token_map.transform(batch, offsets)

    def mean_square_norm(self) -> float:
        """mean‖φ(x_t)‖² over the tokens of at most a thousand sequences."""
        tokens = self.tokens
        step = max(1, len(tokens) // 1000)
        if step > 1:
            tokens = tokens.take(np.arange(0, len(tokens), step))
        features = self.features(tokens.features, tokens.offsets)
        values = features.data if tokens.is_sparse else features
        total = float(np.sum(np.square(values, dtype=np.float64)))
        return total / max(tokens.n_tokens, 1)


def check_weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """One finite, non-negative weight per sequence, not all zero; ones if none are given."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(
            f"sample_weight must hold one finite non-negative number per sequence, shape ({n},), "
            f"got shape {weights.shape}"
        )
    if not weights.any():
        raise ValueError("sample_weight must not be zero for every sequence")
    return weights


def hold_out(
    data: TrainingSet, fraction: float, rng: np.random.Generator
) -> tuple[TrainingSet, TrainingSet]:
    """Split sequences at random into a part to learn from and a share `fraction` to judge by."""
    check_number(fraction, "validation_fraction", low=0.0, high=0.9, open_low=True)
    n = len(data.tokens)
    size = max(1, round(fraction * n))
    if size >= n:
        raise ValueError(f"early_stopping needs at least two sequences, got {n}")
    drawn = rng.permutation(n)
    return _take(data, np.sort(drawn[size:])), _take(data, np.sort(drawn[:size]))


def _take(data: TrainingSet, rows: IntArray) -> TrainingSet:
    offsets = data.tokens.offsets
    positions = np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in rows])
    return TrainingSet(
        data.tokens.take(rows),
        data.states[positions],
        data.weights[rows],
        data.token_map,
        data.cached,
    )
