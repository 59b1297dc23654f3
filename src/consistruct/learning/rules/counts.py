"""Left-out rows as a search for decisions sees them: probabilities to decide by, truths to count.

    decide   d_i = argmin_c Σ_y p_i(y) G[c, y]             by probabilities, as for new rows
    count    C = Σ_i w_i e_{d_i} q_iᵀ,  q = ½ p + ½ e_y     half from the model, half from labels

Counted by labels alone, a rare class is a handful of rows and the best rule for them is chance;
counted by the model alone, a wrong model is believed. Half and half did best in trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from consistruct.protocols import FloatArray, IntArray

__all__ = ["LABEL_SHARE", "Counts"]

LABEL_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Counts:
    """Rows with classes.

    Attributes
    ----------
    probabilities : (n, k) array
        Estimates by models that did not see the row, recalibrated.
    truths : (n,) int array
    weight : (n,) array
        Summing to one.
    groups : (n,) int array or None
        Codes of groups of rows that constraints tell apart.
    n_groups : int
    evidence : float or None
        Rows that margins of constraints go by; those of equal weight that would tell as much as
        these if None. Parts keep it: they stand for all rows.
    """

    probabilities: FloatArray
    truths: IntArray
    weight: FloatArray
    groups: IntArray | None = None
    n_groups: int = 1
    evidence: float | None = None

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def n_classes(self) -> int:
        return int(self.probabilities.shape[1])

    @cached_property
    def effective(self) -> float:
        """How many rows of equal weight would tell as much."""
        return self.evidence or float(1.0 / np.sum(self.weight**2))

    @cached_property
    def truth(self) -> FloatArray:
        """One-hot truths times the weight, (n, k)."""
        found = np.zeros_like(self.probabilities)
        found[np.arange(len(self)), self.truths] = self.weight
        return found

    @cached_property
    def counted(self) -> FloatArray:
        """q times the weight, (n, k)."""
        model = (1.0 - LABEL_SHARE) * self.weight[:, None] * self.probabilities
        return np.asarray(model + LABEL_SHARE * self.truth)

    @cached_property
    def priors(self) -> FloatArray:
        """Shares of the classes, (k,)."""
        return np.asarray(self.counted.sum(axis=0))

    def decide(self, costs: FloatArray) -> IntArray:
        """The decision of least expected cost for each row, (n,); costs (k, k) or (g, k, k)."""
        if costs.ndim == 2:
            return np.asarray((self.probabilities @ costs.T).argmin(axis=1))
        if self.groups is None:
            return self.decide(costs[0])
        found = np.zeros(len(self), dtype=np.int64)
        for group in range(self.n_groups):
            rows = np.flatnonzero(self.groups == group)
            found[rows] = (self.probabilities[rows] @ costs[group].T).argmin(axis=1)
        return found

    def confusion(self, decisions: IntArray, truth: FloatArray | None = None) -> FloatArray:
        """Of each group, (g, k, k); truths as `counted` unless given."""
        k, groups = self.n_classes, self.n_groups
        place = decisions if self.groups is None else self.groups * k + decisions
        n = len(self)
        chosen = sp.csr_array((np.ones(n), place, np.arange(n + 1)), shape=(n, groups * k))
        found = chosen.T @ (self.counted if truth is None else truth)
        return np.asarray(found).reshape(groups, k, k)

    def take(self, rows: IntArray, probabilities: FloatArray | None = None) -> Counts:
        """Some of the rows, their weights summing to one; with other probabilities if given."""
        weight = self.weight[rows]
        return Counts(
            self.probabilities[rows] if probabilities is None else probabilities,
            self.truths[rows],
            weight / weight.sum(),
            None if self.groups is None else self.groups[rows],
            self.n_groups,
            self.effective,
        )
