"""Out-of-fold rows as the search for decisions uses them: probabilities and codes.

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
MOST_SHORT = 255  # classes that one byte can count


@dataclass(frozen=True, eq=False)
class Counts:
    """Rows with classes.

    Attributes
    ----------
    probabilities : (n, k) array
        Estimates by models that did not see the row, recalibrated.
    codes : (n,) int array
    weight : (n,) array
        Summing to one.
    groups : (n,) int array or None
        Codes of groups of rows that constraints tell apart.
    n_groups : int
    evidence : float or None
        Rows that margins of constraints go by; those of equal weight that would tell as much as
        these if None. Folds keep it: they stand for all rows.
    """

    probabilities: FloatArray
    codes: IntArray
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
    def counted(self) -> FloatArray:
        """q times the weight, (n, k)."""
        found = ((1.0 - LABEL_SHARE) * self.weight)[:, None] * self.probabilities
        found[np.arange(len(self)), self.codes] += LABEL_SHARE * self.weight
        return np.asarray(found)

    @cached_property
    def priors(self) -> FloatArray:
        """Shares of the classes, (k,)."""
        return np.asarray(self.counted.sum(axis=0))

    @cached_property
    def columns(self) -> FloatArray:
        """Probabilities with a row for each class, (k, n): what is least goes column by column."""
        return np.ascontiguousarray(self.probabilities.T)

    def decide(self, costs: FloatArray) -> IntArray:
        """The decision of least expected cost for each row, (n,); costs (k, k) or (g, k, k)."""
        if costs.ndim == 2:
            return _first_least(costs @ self.columns)
        if self.groups is None:
            return self.decide(costs[0])
        found = np.zeros(len(self), dtype=np.int64)
        for group in range(self.n_groups):
            rows = np.flatnonzero(self.groups == group)
            found[rows] = _first_least(costs[group] @ self.columns[:, rows])
        return found

    def decide_by_weights(self, weights: FloatArray) -> IntArray:
        """The same, faster, where missing a class costs its weight: argmax_c weight_c · p(c)."""
        return _first_least(-weights[:, None] * self.columns)

    def confusion(self, decisions: IntArray) -> FloatArray:
        """Of each group, (g, k, k), by `counted`."""
        n, k, groups = len(self), self.n_classes, self.n_groups
        shape = (n, groups * k)
        chosen = sp.csr_array((np.ones(n), self._places(decisions), np.arange(n + 1)), shape=shape)
        return np.asarray(chosen.T @ self.counted).reshape(groups, k, k)

    def observed(self, decisions: IntArray) -> FloatArray:
        """Of each group, (g, k, k), by labels alone."""
        k, groups = self.n_classes, self.n_groups
        entries = self._places(decisions) * k + self.codes
        found = np.bincount(entries, weights=self.weight, minlength=groups * k * k)
        return np.asarray(found, dtype=np.float64).reshape(groups, k, k)

    def _places(self, decisions: IntArray) -> IntArray:
        return decisions if self.groups is None else self.groups * self.n_classes + decisions

    def take(self, rows: IntArray, weight: FloatArray | None = None) -> Counts:
        """Some of the rows, weights (m,) summing to one: those given, or their own."""
        kept = self.weight[rows] if weight is None else weight
        return Counts(
            self.probabilities[rows],
            self.codes[rows],
            kept / kept.sum(),
            None if self.groups is None else self.groups[rows],
            self.n_groups,
            self.effective,
        )


def _first_least(table: FloatArray) -> IntArray:
    """Row of the least entry of every column, the first of equal ones; as argmin(axis=0), faster.

    NumPy's argmin over the short axis takes five times as long as finding what is least.
    """
    k = len(table)
    if k > MOST_SHORT:
        return np.asarray(table.argmin(axis=0))
    least = (table == table.min(axis=0)).view(np.uint8)
    least *= np.arange(k, 0, -1, dtype=np.uint8)[:, None]
    return np.asarray(k - least.max(axis=0).astype(np.int64))
