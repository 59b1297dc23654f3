"""Columns of the targets that follow from the others and need not be learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from consistruct.protocols import FloatArray, Target
from consistruct.scores import Separable
from consistruct.scores.base import BaseScoreSpace

__all__ = ["OutputColumns"]


class OutputColumns:
    """All columns, or all but the first state of every part of separable scores.

    Where the targets of each part sum to the same number for every truth (Hamming: −1/T), least
    squares with an intercept keeps that sum for the scores, so one state of each part follows from
    the others: two states cost what one does.
    """

    def __init__(self, space: BaseScoreSpace, target: Target, *, fit_intercept: bool) -> None:
        self.width = space.width
        self.n_states = 0  # 0: all columns are kept
        self.kept = np.arange(space.width)
        self.part_sums = np.zeros(0)
        if not isinstance(space, Separable) or not fit_intercept or target.shape[0] == 0:
            return
        n_states = space.n_states
        n_parts = space.width // n_states
        ones = sp.csr_array(np.kron(np.eye(n_parts), np.ones((n_states, 1))))
        sums = target @ ones
        sums = np.asarray(sums.toarray() if sp.issparse(sums) else sums)
        if np.ptp(sums, axis=0).max() > 1e-12 * max(1.0, float(np.abs(sums).max())):
            return
        self.n_states = n_states
        self.part_sums = sums[0]
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
