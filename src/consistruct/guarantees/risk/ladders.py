"""A ladder per row: safer and safer predictions, what each costs, and when the row climbs to it.

One number for all rows, the *safety* s, states how far up they stand: row i is on the rung whose
threshold is the last one at or below s. All that calibration needs, the mean of any function of the
losses for every s at once, is one sort of the thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consistruct.protocols import FloatArray, IntArray

__all__ = ["Ladder"]


@dataclass(frozen=True, eq=False)
class Ladder:
    """Rungs 0, 1, …, J of n rows; rung 0 is the least safe.

    Attributes
    ----------
    thresholds : (n, J) array, non-decreasing along a row
        Safety from which a row stands on rung 1, 2, …; inf where the row has no such rung.
    losses : (n, J + 1) array
        What each rung counts in the risk; a rung that does not exist repeats the one before.
    answered : (n, J + 1) bool array
        Whether the rung is an answer: an abstention is not.
    sizes : (n, J + 1) array
        The size of the rung: classes in a set, items in a list, 1 for a single answer.
    """

    thresholds: FloatArray
    losses: FloatArray
    answered: np.ndarray
    sizes: FloatArray

    def __len__(self) -> int:
        return len(self.losses)

    def take(self, rows: IntArray) -> Ladder:
        """The ladders of some rows."""
        return Ladder(
            self.thresholds[rows], self.losses[rows], self.answered[rows], self.sizes[rows]
        )

    def rungs(self, safety: float | FloatArray) -> IntArray:
        """The rung of each row, (n,), at one safety or at one per row."""
        level = np.broadcast_to(np.asarray(safety, dtype=np.float64), (len(self),))
        return (self.thresholds <= level[:, None]).sum(axis=1)

    def at(self, safety: float | FloatArray, values: np.ndarray | None = None) -> np.ndarray:
        """The losses, or other `values` of the rungs, of each row at this safety, (n,)."""
        table = self.losses if values is None else values
        return table[np.arange(len(self)), self.rungs(safety)]

    def monotonized(self) -> Ladder:
        """Each rung counts the worst loss of itself and of all safer rungs: never increasing."""
        worst = np.maximum.accumulate(self.losses[:, ::-1], axis=1)[:, ::-1]
        return Ladder(self.thresholds, worst, self.answered, self.sizes)

    def steps(self) -> Steps:
        """The thresholds of all rows in order."""
        return Steps.of(self.thresholds)


@dataclass(frozen=True, eq=False)
class Steps:
    """All thresholds sorted: where sums over rows change.

    Attributes
    ----------
    safeties : (S,) array
        −inf and the distinct thresholds, ascending.
    order : (m,) int array
        Finite thresholds of the flattened (n, J) table, sorted.
    last : (S − 1,) int array
        Where in `order` the last of each group of equal thresholds stands.
    """

    safeties: FloatArray
    order: IntArray
    last: IntArray

    @classmethod
    def of(cls, thresholds: FloatArray) -> Steps:
        flat = thresholds.ravel()
        order = np.argsort(flat, kind="stable")
        finite = int(np.searchsorted(flat[order], np.inf))
        order = order[:finite]
        ordered = flat[order]
        last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)[:finite])
        return cls(np.concatenate([[-np.inf], ordered[last]]), order, last)

    def totals(self, values: FloatArray) -> FloatArray:
        """Σ_i value of row i's rung at each safety, (S,), for (n, J + 1) values of the rungs."""
        start = values[:, 0].sum()
        changes = np.diff(values, axis=1).ravel()[self.order].cumsum()
        return np.concatenate([[start], start + changes[self.last]])
