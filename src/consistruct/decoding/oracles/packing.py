"""Choosing items: knapsacks, the best k, intervals that do not overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_count
from consistruct.decoding.oracles._selection_kernels import interval_sets, knapsacks
from consistruct.decoding.oracles.base import Counts, Oracle, are_binary
from consistruct.decoding.oracles.programs import MixedInteger
from consistruct.exceptions import CapabilityError, LossSpecError
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Intervals", "Knapsack", "TopK"]

TABLE_CELLS = 2**22  # items times capacity that the dynamic programme takes; HiGHS beyond
DECIMALS = 4  # weights with so many decimals become integers


@dataclass(frozen=True, eq=False, repr=False)
class Knapsack(Oracle):
    """Items of least total cost within one capacity or several; with sense="max", most value.

    One capacity and weights that are integers, or have up to four decimals: a compiled dynamic
    programme over capacities. Several capacities, or weights that are no such numbers: HiGHS.

    Parameters
    ----------
    weights : (d,) array, or (m, d) for m capacities
        Non-negative.
    capacity : float, or (m,) array

    Examples
    --------
    >>> from consistruct.decoding.oracles import Knapsack
    >>> Knapsack([2, 3, 4], 5)([[-3.0, -4.0, -5.0], [-1.0, -1.0, -5.0]])
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """

    weights: ArrayField
    capacity: Any
    name: ClassVar[str] = "knapsack"
    sense: ClassVar[str] = "max"

    def __post_init__(self) -> None:
        weights = np.atleast_2d(np.asarray(self.weights, dtype=np.float64))
        capacity = np.atleast_1d(np.asarray(self.capacity, dtype=np.float64))
        if weights.ndim != 2 or capacity.shape != (len(weights),) or not weights.size:
            raise ValueError(
                f"weights must have shape (items,), or (capacities, items) with one capacity each, "
                f"got {np.shape(self.weights)} and capacities of shape {np.shape(self.capacity)}"
            )
        numbers = np.concatenate([weights.ravel(), capacity])
        if not np.isfinite(numbers).all() or (numbers < 0).any():
            raise ValueError("weights and capacity must be finite numbers of at least 0")
        if np.ndim(self.weights) == 1:
            self._set(weights=frozen_array(weights[0]), capacity=float(capacity[0]))
        else:
            self._set(weights=frozen_array(weights), capacity=tuple(capacity.tolist()))

    @property
    def n_costs(self) -> int:
        return int(self.weights.shape[-1])

    @cached_property
    def _integers(self) -> tuple[IntArray, int] | None:
        """Weights and capacity in a common unit, where one makes all weights integers."""
        rows = np.atleast_2d(self.weights)
        if len(rows) > 1:
            return None
        for decimals in range(DECIMALS + 1):
            scaled = rows[0] * 10.0**decimals
            whole = np.rint(scaled)
            if np.abs(scaled - whole).max() <= 1e-9 * max(1.0, float(whole.max())):
                capacity = int(np.floor(float(self.capacity) * 10.0**decimals * (1 + 1e-12)))
                capacity = min(capacity, int(whole.sum()))
                if self.n_costs * (capacity + 1) > TABLE_CELLS:
                    return None
                return whole.astype(np.int64), capacity
        return None

    @property
    def fast(self) -> bool:  # type: ignore[override]
        return self._integers is not None

    @cached_property
    def _program(self) -> MixedInteger:
        rows = np.atleast_2d(self.weights)
        return MixedInteger(rows, upper=np.atleast_1d(self.capacity), high=1.0)

    def _solve(self, costs: FloatArray) -> FloatArray:
        if self._integers is None:
            return self._program(costs)
        return knapsacks(costs, *self._integers)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        total = decisions @ np.atleast_2d(self.weights).T
        room = np.atleast_1d(self.capacity)
        fits = (total <= room + 1e-9 * np.maximum(1.0, np.abs(room))).all(axis=1)
        return np.asarray(are_binary(decisions) & fits)

    def counts(self) -> Counts:
        """Exact numbers of sets that fit, by a dynamic programme that counts.

        P(c) counts the sets of weight c. The sets with i and j are those of the other items with
        weight at most W − w_i − w_j: P divided by (1 + x^w_i)(1 + x^w_j).
        """
        if self._integers is None:
            raise CapabilityError(
                self,
                "counts",
                "the uniform measure on sets",
                "it needs one capacity and integer weights; use the identity Gram",
            )
        weights, capacity = self._integers
        total = np.zeros(capacity + 1, dtype=object)
        total[0] = 1
        for weight in weights.tolist():
            if weight == 0:
                total = total * 2
            elif weight <= capacity:
                total[weight:] = total[weight:] + total[:-weight]
        size = int(sum(total.tolist()))
        d = self.n_costs
        second = np.zeros((d, d))
        for i in range(d):
            without = _without(total, int(weights[i]))
            for j in range(i, d):
                room = capacity - int(weights[i]) - (int(weights[j]) if j != i else 0)
                if room < 0:
                    continue
                rest = without if j == i else _without(without, int(weights[j]))
                second[i, j] = second[j, i] = int(sum(rest[: room + 1].tolist())) / size
        return Counts(size, np.diag(second).copy(), second)

    def diameter_squared(self) -> tuple[float, bool]:
        # two disjoint sets: at most the smallest items that fit into twice the capacity
        most = float(self.n_costs)
        for row, room in zip(
            np.atleast_2d(self.weights), np.atleast_1d(self.capacity), strict=True
        ):
            fitting = np.sort(row[row <= room])
            count = int((np.cumsum(fitting) <= 2 * room * (1 + 1e-12)).sum())
            most = min(most, float(count))
        return most, False


def _without(counts: Any, weight: int) -> Any:
    """counts of sets divided by (1 + x^weight), in exact integers."""
    if weight == 0:
        return np.array([number // 2 for number in counts.tolist()], dtype=object)
    found = counts.copy()
    for start in range(weight, len(counts), weight):
        stop = min(start + weight, len(counts))
        found[start:stop] = found[start:stop] - found[start - weight : stop - weight]
    return found


@dataclass(frozen=True, eq=False, repr=False)
class TopK(Oracle):
    """The k cheapest of n items, or, with ``at_most``, those of negative cost up to k.

    A budget with equal prices: call at most k customers, whose expected values are given.

    Parameters
    ----------
    n : int
    k : int
    at_most : bool
        Whether fewer than k may be taken.

    Examples
    --------
    >>> from consistruct.decoding.oracles import TopK
    >>> TopK(4, 2)([[3.0, 1.0, 2.0, 1.0]]), TopK(3, 2, at_most=True)([[-1.0, 2.0, 3.0]])
    (array([[0., 1., 0., 1.]]), array([[1., 0., 0.]]))
    """

    n: int
    k: int
    at_most: bool = False
    name: ClassVar[str] = "top-k"
    sense: ClassVar[str] = "max"

    def __post_init__(self) -> None:
        n, k = check_count(self.n, "n"), check_count(self.k, "k")
        if k > n:
            raise ValueError(f"k must be at most n = {n}, got {k}")
        self._set(n=n, k=k, at_most=bool(self.at_most))

    @property
    def n_costs(self) -> int:
        return self.n

    def _solve(self, costs: FloatArray) -> FloatArray:
        found = np.zeros(costs.shape)
        chosen = np.argsort(costs, axis=1, kind="stable")[:, : self.k]
        np.put_along_axis(found, chosen, 1.0, axis=1)
        if self.at_most:
            found[costs >= 0.0] = 0.0
        return found

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        taken = decisions.sum(axis=1)
        return np.asarray(
            are_binary(decisions) & (taken <= self.k) & (self.at_most | (taken == self.k))
        )

    def diameter_squared(self) -> tuple[float, bool]:
        if self.at_most:
            return float(min(2 * self.k, self.n)), True
        return float(2 * min(self.k, self.n - self.k)), True

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        if len(arguments) != 2 or not all(a.isascii() and a.isdigit() for a in arguments):
            raise LossSpecError("the spec of top-k has two fields; write for example top-k:20:3")
        return cls(int(arguments[0]), int(arguments[1]))


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(Oracle):
    """Intervals of least total cost that do not overlap: weighted scheduling on one machine.

    An interval may start where another ends. O(d) per row after one sort.

    Parameters
    ----------
    starts, ends : (d,) arrays
        ``starts < ends``.

    Examples
    --------
    >>> from consistruct.decoding.oracles import Intervals
    >>> Intervals([0, 1, 2], [2, 3, 4])([[-2.0, -3.0, -2.0], [-1.0, -3.0, -1.0]])
    array([[1., 0., 1.],
           [0., 1., 0.]])
    """

    starts: ArrayField
    ends: ArrayField
    name: ClassVar[str] = "intervals"
    sense: ClassVar[str] = "max"

    def __post_init__(self) -> None:
        starts, ends = frozen_array(self.starts), frozen_array(self.ends)
        if starts.ndim != 1 or starts.shape != ends.shape or not len(starts):
            raise ValueError(
                f"starts and ends must be two arrays of one length, got {starts.shape} and "
                f"{ends.shape}"
            )
        if not (np.isfinite(starts).all() and np.isfinite(ends).all() and (starts < ends).all()):
            raise ValueError("every interval must start before it ends, at finite times")
        self._set(starts=starts, ends=ends)

    @property
    def n_costs(self) -> int:
        return len(self.starts)

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        order = np.argsort(self.ends, kind="stable")
        before = np.searchsorted(self.ends[order], self.starts[order], side="right")
        return order, before.astype(np.int64)

    def _solve(self, costs: FloatArray) -> FloatArray:
        return interval_sets(costs, *self._sorted)

    @cached_property
    def _overlaps(self) -> FloatArray:
        """[i, j] = 1 where two intervals overlap, (d, d)."""
        cut = (self.starts[:, None] < self.ends) & (self.starts < self.ends[:, None])
        np.fill_diagonal(cut, False)
        return cut.astype(np.float64)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        clashes = np.einsum("nd,nd->n", decisions @ self._overlaps, decisions)
        return np.asarray(are_binary(decisions) & (clashes == 0))
