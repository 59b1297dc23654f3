"""The weights of a linear chain: θ_t = Wᵀx_t + bias, shared transitions, start and end scores."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from consistruct.decoding import ChainScores, boundary_scores
from consistruct.protocols import FloatArray, IntArray

__all__ = ["ChainModel"]


@dataclass
class ChainModel:
    """Parameters tied along the sequence; −inf in transitions, start or end forbids.

    Parameters
    ----------
    weights : (d, s) array
    bias : (s,) array
    edges : (s, s) array
        ``edges[a, b]`` scores state a followed by state b.
    start, end : (s,) array
        Scores of the first and of the last state.
    """

    weights: NDArray[Any]
    bias: FloatArray
    edges: FloatArray
    start: FloatArray
    end: FloatArray

    @classmethod
    def zeros(cls, n_features: int, n_states: int, dtype: Any = np.float32) -> Self:
        s = n_states
        return cls(
            np.zeros((n_features, s), dtype=dtype),
            np.zeros(s),
            np.zeros((s, s)),
            np.zeros(s),
            np.zeros(s),
        )

    @property
    def n_states(self) -> int:
        return len(self.bias)

    def arrays(self) -> list[NDArray[Any]]:
        return [getattr(self, field.name) for field in fields(self)]

    def copy(self) -> Self:
        return type(self)(*(array.copy() for array in self.arrays()))

    def forbid(self, edges: FloatArray, start: FloatArray, end: FloatArray) -> Self:
        """The model with −inf wherever the masks hold it (0 elsewhere); weights are not copied."""
        return type(self)(
            self.weights, self.bias, self.edges + edges, self.start + start, self.end + end
        )

    def scores(self, features: Any, offsets: IntArray) -> ChainScores:
        """θ of packed sequences with features (N, d), array or CSR."""
        unary = np.asarray(features @ self.weights, dtype=np.float64)
        unary += self.bias
        return ChainScores(
            boundary_scores(unary, offsets, self.start, self.end), self.edges, offsets
        )

    def move_towards(self, other: ChainModel, share: float) -> None:
        """self += share · (other − self); forbidden entries (−inf in both) stay as they are."""
        _mix(self.weights, other.weights, share)
        for mine, theirs in zip(self.arrays()[1:], other.arrays()[1:], strict=True):
            finite = np.isfinite(theirs)
            mine[finite] += share * (theirs[finite] - mine[finite])


def _mix(mine: NDArray[Any], theirs: NDArray[Any], share: float) -> None:
    """mine = (1 − share) · mine + share · theirs, block by block: one pass through memory."""
    rows = max(1, 2**15 // mine.shape[1])
    for first in range(0, len(mine), rows):
        block = mine[first : first + rows]
        block *= 1.0 - share
        block += mine.dtype.type(share) * theirs[first : first + rows]
