"""Columns of a statistic that follow from the others and need not be learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from consistruct.decisions.statistics import Statistic
from consistruct.protocols import FloatArray, Target

__all__ = ["OutputColumns"]


class OutputColumns:
    """All columns, or all but the first state of every part where the states have a fixed sum.

    Probabilities of classes sum to 1, the Hamming targets of each part to −1/T, for every true
    label; least squares with an intercept keeps that sum for the estimates, so one state of each
    part follows from the others: two states cost what one does.
    """

    def __init__(self, statistic: Statistic, *, fit_intercept: bool) -> None:
        self.width = statistic.width
        self.n_states = 0  # 0: all columns are kept
        self.kept = np.arange(self.width)
        self.part_sums = np.zeros(0)
        parts = _parts(statistic) if fit_intercept else None
        if parts is None:
            return
        n_parts, total = parts
        if self.width == n_parts:  # one state each: nothing would be left to learn
            return
        self.n_states = self.width // n_parts
        self.part_sums = np.full(n_parts, total)
        self.kept = np.arange(self.width).reshape(n_parts, self.n_states)[:, 1:].ravel()

    def reduce(self, values: Target) -> Any:
        """τ with the kept columns only, as CSR of float64."""
        kept = values if self.n_states == 0 else values[:, self.kept]
        return sp.csr_array(kept, dtype=np.float64)

    def expand(self, weights: FloatArray) -> FloatArray:
        """Weights (m + 1, kept) -> (m + 1, width): the first state is minus the sum of the others.

        The intercept row makes the estimates of a part sum to what its values do.
        """
        if self.n_states == 0:
            return weights
        others = weights.reshape(len(weights), -1, self.n_states - 1)
        first = -others.sum(axis=2)
        first[-1] += self.part_sums
        return np.concatenate([first[:, :, None], others], axis=2).reshape(len(weights), -1)


def _parts(statistic: Statistic) -> tuple[int, float] | None:
    """Number of parts and the sum of the columns of each; None where no sum is fixed."""
    if statistic.of_classes:
        return 1, 1.0
    space, parts = statistic.score_space, statistic.loss.hamming_shape
    if space is None or space.separate_states is None or parts is None or parts[0] is None:
        return None
    return parts[0], -1.0 / parts[0]
