"""Sequences ready for training: packed features, true states, weights, the map that is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from consistruct._validation import check_number
from consistruct.learning.encoding.tokens import NamedTokens, PackedTokens
from consistruct.learning.models.chain.chain_weights import ChainWeights
from consistruct.learning.models.chain.token_maps import TokenMap
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Ragged
from consistruct.structures.chains import ChainScores

__all__ = ["TrainingSet", "fit_identity", "hold_out"]


@dataclass
class TrainingSet:
    """Sequences with their true states and weights; dense features may be mapped batch by batch."""

    tokens: PackedTokens
    states: IntArray  # (N,)
    weights: FloatArray  # (n,), mean one
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

    def take(self, rows: IntArray) -> TrainingSet:
        """Some of the sequences, by number."""
        states = Ragged(self.states, self.tokens.offsets).take(rows).values
        return TrainingSet(
            self.tokens.take(rows), states, self.weights[rows], self.token_map, self.cached
        )

    def scores(self, weights: ChainWeights) -> Iterator[ChainScores]:
        """θ by these weights, for runs of whole sequences."""
        for first, last in self.tokens.runs(weights.tokens_at_once):
            begin, stop = self.tokens.offsets[first], self.tokens.offsets[last]
            offsets = self.tokens.offsets[first : last + 1] - begin
            yield weights.scores(self.features(self.tokens.features[begin:stop], offsets), offsets)

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


def hold_out(
    data: TrainingSet, fraction: float, rng: np.random.Generator
) -> tuple[TrainingSet, TrainingSet]:
    """Split sequences at random into a part to learn from and a share `fraction` to validate on."""
    check_number(fraction, "validation_fraction", low=0.0, high=0.9, open_low=True)
    n = len(data.tokens)
    size = max(1, round(fraction * n))
    if size >= n:
        raise ValueError(f"holding sequences out needs at least two, got {n}")
    drawn = rng.permutation(n)
    return data.take(np.sort(drawn[size:])), data.take(np.sort(drawn[:size]))


def fit_identity(
    settings: dict[str, Any],
    X: PackedTokens | NamedTokens,
    codes: Ragged,
    sample_weight: FloatArray | None,
    rng: np.random.Generator,
) -> str:
    """Identifies the fit that a checkpoint belongs to; it may go on for longer, from any file."""
    kept = {key: settings[key] for key in settings if key not in ("max_epochs", "checkpoint")}
    content = X.sequences if isinstance(X, NamedTokens) else X.features
    labels = (codes.offsets, codes.values, sample_weight)
    return str(joblib.hash((kept, content, labels, rng.bit_generator.state)))
