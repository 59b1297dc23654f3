"""Columns of the targets that follow from the others and need not be learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from consistruct.losses import Hamming
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, Target
from consistruct.scores import Separable
from consistruct.scores.base import BaseScoreSpace

__all__ = ["OutputColumns"]


class OutputColumns:
    """All columns, or all but the first state of every part of separable scores.

    The Hamming targets of each part sum to −1/T for every truth, and least squares with an
    intercept keeps that sum for the scores, so one state of each part follows from the others: two
    states cost what one does.
    """

    def __init__(self, loss: Loss, space: BaseScoreSpace, *, fit_intercept: bool) -> None:
        self.width = space.width
        self.n_states = 0  # 0: all columns are kept
        self.kept = np.arange(space.width)
        self.part_sums = np.zeros(0)
        if not (isinstance(loss, Hamming) and isinstance(space, Separable) and fit_intercept):
            return
        n_states = space.n_states
        n_parts = space.width // n_states
        self.n_states = n_states
        self.part_sums = np.full(n_parts, -1.0 / n_parts)
        self.kept = np.arange(space.width).reshape(n_parts, n_states)[:, 1:].ravel()

    def reduce(self, target: Target) -> Any:
        """u with the kept columns only, as CSR of float64."""
        kept = target if self.n_states == 0 else target[:, self.kept]
        return sp.csr_array(kept, dtype=np.float64)

    def expand(self, weights: FloatArray) -> FloatArray:
        """Weights (m + 1, kept) -> (m + 1, width): the first state is minus the sum of the others.

        The intercept row makes the scores of a part sum to minus the sum of its targets.
        """
        if self.n_states == 0:
            return weights
        others = weights.reshape(len(weights), -1, self.n_states - 1)
        first = -others.sum(axis=2)
        first[-1] -= self.part_sums
        return np.concatenate([first[:, :, None], others], axis=2).reshape(len(weights), -1)
