"""Selections of items, and whatever else a mixed-integer program describes.

Knapsacks with one integer capacity, the k best items and intervals that do not overlap have
compiled algorithms; all else goes to HiGHS through SciPy (`MixedInteger`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy  # its submodules are imported on use

from consistruct._compile import compiled
from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_count
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures.decisions import Counts, Oracle, are_binary, sizes_from_spec

__all__ = [
    "Intervals",
    "Knapsack",
    "MixedInteger",
    "TopK",
    "best_of_program",
    "interval_sets",
    "knapsacks",
]


# Items times capacity up to which the dynamic program runs: 4 MB of decisions. HiGHS beyond.
TABLE_CELLS = 2**22


# Decimals of weights that are scaled to integers; more would make tables of 10^5 cells per unit.
DECIMALS = 4


# Slack of constraints and bounds in `feasible`: what HiGHS allows itself in integer programs.
TOLERANCE = 1e-6


def best_of_program(
    cost: FloatArray, constraints: Any, bounds: Any, integrality: IntArray, where: str
) -> FloatArray:
    """Solve min ⟨c, z⟩ under linear constraints by HiGHS, to a relative gap of zero, (d,).

    Parameters
    ----------
    cost : (d,) array
    constraints, bounds
        As `scipy.optimize.milp` takes them.
    integrality : (d,) int array
        1 for variables that must be integers.
    where : str
        What is solved, for the message if there is no best decision.
    """
    result = scipy.optimize.milp(
        cost,
        constraints=constraints,
        bounds=bounds,
        integrality=integrality,
        options={"mip_rel_gap": 0.0},
    )
    if result.x is None or not result.success:
        raise ConsistructError(
            f"the program has no best decision for {where}: "
            f"{' '.join(str(result.message).split())}; check that it is feasible and bounded"
        )
    return np.asarray(result.x)


@dataclass(frozen=True, eq=False, repr=False)
class MixedInteger(Oracle):
    """Solve min ⟨c, z⟩ subject to lower ≤ A z ≤ upper, low ≤ z ≤ high, some or all z integer.

    Solved by branch and bound (HiGHS, through SciPy), to a relative gap of zero, one row of costs
    after the other: milliseconds each.

    Parameters
    ----------
    A : (m, d) array
    lower, upper : (m,) arrays or floats
        Bounds of the constraints; −inf and inf where there is none.
    low, high : (d,) arrays or floats
        Bounds of the variables.
    integer : (d,) array of bool, or bool
        Which variables must be integers.

    See Also
    --------
    Knapsack, TopK, Intervals : special programs with algorithms of their own.

    Examples
    --------
    >>> from consistruct.structures import MixedInteger
    >>> MixedInteger([[1.0, 1.0, 1.0]], upper=2.0)([[-1.0, -3.0, -2.0]])
    array([[0., 1., 1.]])
    """

    A: ArrayField
    lower: ArrayField = -np.inf
    upper: ArrayField = np.inf
    low: ArrayField = 0.0
    high: ArrayField = 1.0
    integer: ArrayField = True
    name: ClassVar[str] = "program"
    fast: ClassVar[bool] = False
    binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        matrix = np.asarray(self.A, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] < 1 or not np.isfinite(matrix).all():
            raise ValueError(
                f"A must be a finite matrix (constraints x variables), got shape {matrix.shape}"
            )
        m, d = matrix.shape
        self._set(A=frozen_array(matrix))
        for name, size, kind in (
            ("lower", m, np.float64),
            ("upper", m, np.float64),
            ("low", d, np.float64),
            ("high", d, np.float64),
            ("integer", d, np.bool_),
        ):
            try:
                values = np.broadcast_to(np.asarray(getattr(self, name), dtype=kind), (size,))
            except ValueError:
                raise ValueError(
                    f"{name} must be one value or {size}, got shape {np.shape(getattr(self, name))}"
                ) from None
            if kind is np.float64 and np.isnan(values).any():
                raise ValueError(f"{name} must not contain NaN")
            self._set(**{name: frozen_array(values, kind)})
        if (self.lower > self.upper).any() or (self.low > self.high).any():
            raise ValueError("lower bounds must not exceed upper bounds")

    @property
    def n_costs(self) -> int:
        return int(self.A.shape[1])

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any]:
        """Build constraints, bounds and integrality as HiGHS takes them, once."""
        optimize = scipy.optimize
        return (
            optimize.LinearConstraint(scipy.sparse.csc_array(self.A), self.lower, self.upper),
            optimize.Bounds(self.low, self.high),
            self.integer.astype(np.int64),
        )

    def _solve(self, costs: FloatArray) -> FloatArray:
        """Solve row by row; integer variables are rounded to the integers that they are near."""
        constraints, bounds, integrality = self._parts
        decisions = np.empty(costs.shape)
        for row, cost in enumerate(costs):
            best = best_of_program(cost, constraints, bounds, integrality, f"row {row}")
            decisions[row] = np.where(self.integer, np.rint(best), best)
        return decisions

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Accept what meets constraints, bounds and integrality up to a tolerance."""
        values = decisions @ self.A.T
        slack = TOLERANCE * np.maximum(1.0, np.abs(values))
        inside = (values >= self.lower - slack) & (values <= self.upper + slack)
        within = (decisions >= self.low - TOLERANCE) & (decisions <= self.high + TOLERANCE)
        whole = (decisions == np.rint(decisions)) | ~self.integer
        return np.asarray(inside.all(axis=1) & within.all(axis=1) & whole.all(axis=1))

    def diameter_squared(self) -> tuple[float, bool]:
        """Bound by the diagonal of the box of bounds."""
        return float(((self.high - self.low) ** 2).sum()), False


@dataclass(frozen=True, eq=False, repr=False)
class Knapsack(Oracle):
    """Choose items of least total cost within one capacity or several; for values, maximize.

    One capacity and weights that are integers, or have up to four decimals: a compiled dynamic
    program over capacities. Several capacities, or weights that are no such numbers: HiGHS.

    Parameters
    ----------
    weights : (d,) array, or (m, d) for m capacities
        Non-negative.
    capacity : float, or (m,) array
        Largest total weight of a set.

    Examples
    --------
    >>> from consistruct.structures import Knapsack
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
        """Return weights and capacity in a common unit, where one makes all weights integers."""
        # decimals are tried from none to DECIMALS: the coarsest unit has the smallest table
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
        """Say whether the compiled dynamic program applies."""
        return self._integers is not None

    @cached_property
    def _program(self) -> MixedInteger:
        """Write the same problem for HiGHS."""
        rows = np.atleast_2d(self.weights)
        return MixedInteger(rows, upper=np.atleast_1d(self.capacity), high=1.0)

    def _solve(self, costs: FloatArray) -> FloatArray:
        # no common unit, or too large a table
        if self._integers is None:
            return self._program(costs)
        return knapsacks(costs, *self._integers)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Accept 0/1 vectors within every capacity, up to rounding."""
        total = decisions @ np.atleast_2d(self.weights).T
        room = np.atleast_1d(self.capacity)
        fits = (total <= room + 1e-9 * np.maximum(1.0, np.abs(room))).all(axis=1)
        return np.asarray(are_binary(decisions) & fits)

    def counts(self) -> Counts:
        """Return exact numbers of sets that fit, by a dynamic program that counts.

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
        # the generating function Π (1 + x^w) up to x^capacity, in Python integers
        total = np.zeros(capacity + 1, dtype=object)
        total[0] = 1
        for weight in weights.tolist():
            if weight == 0:
                total = total * 2
            elif weight <= capacity:
                total[weight:] = total[weight:] + total[:-weight]
        size = int(sum(total.tolist()))
        d = self.n_costs
        # without(i) counts sets that avoid i; those with i have room for capacity − w_i beside it
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
        """Bound by how many of the smallest items fit into twice a capacity."""
        # two sets are farthest apart if disjoint; together they fit into twice the capacity, so
        # they hold at most as many items as the smallest ones that do
        most = float(self.n_costs)
        for row, room in zip(
            np.atleast_2d(self.weights), np.atleast_1d(self.capacity), strict=True
        ):
            fitting = np.sort(row[row <= room])
            count = int((np.cumsum(fitting) <= 2 * room * (1 + 1e-12)).sum())
            most = min(most, float(count))
        return most, False


def _without(counts: Any, weight: int) -> Any:
    """Divide the generating function of sets by (1 + x^weight), in exact integers.

    Q = P/(1 + x^w) has q_c = p_c − q_{c−w}: the counts of sets without one item.
    """
    if weight == 0:
        return np.array([number // 2 for number in counts.tolist()], dtype=object)
    without = counts.copy()
    for start in range(weight, len(counts), weight):
        stop = min(start + weight, len(counts))
        without[start:stop] = without[start:stop] - without[start - weight : stop - weight]
    return without


@dataclass(frozen=True, eq=False, repr=False)
class TopK(Oracle):
    """Choose the k cheapest of n items, or, with ``at_most``, those of negative cost up to k.

    A budget with equal prices: call at most k customers, whose expected values are given.

    Parameters
    ----------
    n : int
    k : int
    at_most : bool
        Whether fewer than k may be taken.

    Examples
    --------
    >>> from consistruct.structures import TopK
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
        decisions = np.zeros(costs.shape)
        # stable: of equal costs the smaller item number is taken
        chosen = np.argsort(costs, axis=1, kind="stable")[:, : self.k]
        np.put_along_axis(decisions, chosen, 1.0, axis=1)
        if self.at_most:
            decisions[costs >= 0.0] = 0.0
        return decisions

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        taken = decisions.sum(axis=1)
        return np.asarray(
            are_binary(decisions) & (taken <= self.k) & (self.at_most | (taken == self.k))
        )

    def diameter_squared(self) -> tuple[float, bool]:
        """Return twice the number of items that two choices need not share."""
        if self.at_most:
            return float(min(2 * self.k, self.n)), True
        return float(2 * min(self.k, self.n - self.k)), True

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        n, k = sizes_from_spec(cls.name, arguments, "top-k:20:3", 10**9)
        return cls(n, k)


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(Oracle):
    """Choose intervals of least total cost that do not overlap: one machine, weighted jobs.

    An interval may start where another ends. O(d) per row after one sort.

    Parameters
    ----------
    starts, ends : (d,) arrays
        ``starts < ends``; finite times in any unit.

    Examples
    --------
    >>> from consistruct.structures import Intervals
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
        """Sort intervals by their ends; count how many end before each one starts."""
        order = np.argsort(self.ends, kind="stable")
        before = np.searchsorted(self.ends[order], self.starts[order], side="right")
        return order, before.astype(np.int64)

    def _solve(self, costs: FloatArray) -> FloatArray:
        return interval_sets(costs, *self._sorted)

    @cached_property
    def _overlaps(self) -> FloatArray:
        """Mark pairs of intervals that overlap by one, (d, d)."""
        cut = (self.starts[:, None] < self.ends) & (self.starts < self.ends[:, None])
        np.fill_diagonal(cut, False)
        return cut.astype(np.float64)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Accept 0/1 vectors without a pair of overlapping intervals."""
        clashes = np.einsum("nd,nd->n", decisions @ self._overlaps, decisions)
        return np.asarray(are_binary(decisions) & (clashes == 0))


@compiled
def knapsacks(costs: FloatArray, weights: IntArray, capacity: int) -> FloatArray:
    """Find sets of least total cost with total weight at most `capacity`.

    best[r] is the least cost of the items seen so far within room r; rooms are visited downwards,
    so that an item is taken once at most. O(items · capacity) per row.
    """
    n, d = costs.shape
    decisions = np.zeros((n, d))
    best = np.empty(capacity + 1)
    taken = np.zeros((d, capacity + 1), dtype=np.bool_)
    for row in range(n):
        best[:] = 0.0
        for item in range(d):
            cost, weight = costs[row, item], weights[item]
            taken[item, :] = False
            if cost >= 0.0:
                continue
            for room in range(capacity, weight - 1, -1):
                value = best[room - weight] + cost
                if value < best[room]:
                    best[room] = value
                    taken[item, room] = True
        room = capacity
        for item in range(d - 1, -1, -1):
            if taken[item, room]:
                decisions[row, item] = 1.0
                room -= weights[item]
    return decisions


@compiled
def interval_sets(costs: FloatArray, order: IntArray, before: IntArray) -> FloatArray:
    """Find sets of least total cost of intervals that do not overlap.

    best(i + 1) = min(best(i), best(before_i) + cost_i): the i-th interval is left out, or taken
    after the last one that ends before it starts.

    `order` sorts intervals by their ends; ``before[i]`` counts those, in that order, that end
    before the i-th starts.
    """
    n, d = costs.shape
    decisions = np.zeros((n, d))
    best = np.zeros(d + 1)
    for row in range(n):
        for position in range(d):
            with_it = best[before[position]] + costs[row, order[position]]
            best[position + 1] = min(best[position], with_it)
        position = d
        while position > 0:
            with_it = best[before[position - 1]] + costs[row, order[position - 1]]
            if with_it < best[position - 1]:
                decisions[row, order[position - 1]] = 1.0
                position = before[position - 1]
            else:
                position -= 1
    return decisions
