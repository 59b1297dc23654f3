"""Independent parts: one argmax per part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_theta, refuse_all_forbidden
from consistruct.decoding.base import BaseDecoder
from consistruct.exceptions import FamilyError
from consistruct.labels.ragged import Ragged
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = ["PerPart"]


@dataclass(frozen=True, eq=False, repr=False)
class PerPart(BaseDecoder):
    """Scores θ of shape (n, T·s), part after part; the first best state of each part.

    The smallest state in every part is the lexicographically smallest label, so the tie rule is
    the smallest index. A family (``n_parts`` None) takes packed scores, see `decode_packed`.
    """

    n_parts: int | None
    n_states: int

    def __post_init__(self) -> None:
        n_parts = None if self.n_parts is None else check_count(self.n_parts, "n_parts")
        self._set(n_parts=n_parts, n_states=check_count(self.n_states, "n_states"))

    def __call__(self, theta: ArrayLike) -> LabelArray:
        if self.n_parts is None:
            raise FamilyError(self, "decode a plain array (decode_packed takes Ragged scores)")
        scores = check_theta(theta, self.n_parts * self.n_states)
        return self._states(scores).reshape(len(scores), self.n_parts)

    def decode_packed(self, theta: Ragged) -> Ragged:
        """Packed scores with values (N, s) -> packed states (N,)."""
        return theta.with_values(self._states(check_theta(theta.values, self.n_states)))

    def _states(self, scores: FloatArray) -> IntArray:
        parts = scores.reshape(-1, self.n_states)
        best = parts.argmax(axis=1)
        refuse_all_forbidden(parts[np.arange(len(parts)), best])
        return np.asarray(best, dtype=np.int64)
