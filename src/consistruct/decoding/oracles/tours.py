"""The travelling salesperson: Held–Karp for few cities, HiGHS with subtour cuts for more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy  # its submodules are imported on use

from consistruct._validation import check_count
from consistruct.decoding.oracles._selection_kernels import held_karp
from consistruct.decoding.oracles.base import Oracle, are_binary
from consistruct.decoding.oracles.trees import complete_edges, size_from_spec
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Tour"]

HELD_KARP = 12  # cities: the table has 2^11 x 11 entries


@dataclass(frozen=True, eq=False, repr=False)
class Tour(Oracle):
    """The shortest round trip through n cities; the costs are those of the pairs i < j.

    Up to 12 cities by a compiled dynamic programme over sets of cities, O(2ⁿn²); beyond by HiGHS,
    which gets a cut for every part that its answer leaves closed in itself, until none is left.

    Parameters
    ----------
    n : int
        Number of cities, at least 3.

    Examples
    --------
    >>> from consistruct.decoding.oracles import Tour
    >>> Tour(4)([[1.0, 5.0, 1.0, 1.0, 5.0, 1.0]])   # pairs 01 02 03 12 13 23
    array([[1., 0., 1., 1., 0., 1.]])
    """

    n: int
    name: ClassVar[str] = "tsp"

    def __post_init__(self) -> None:
        self._set(n=check_count(self.n, "n", minimum=3))

    @property
    def n_costs(self) -> int:
        return self.n * (self.n - 1) // 2

    @property
    def fast(self) -> bool:  # type: ignore[override]
        return self.n <= HELD_KARP

    @cached_property
    def _pairs(self) -> IntArray:
        return complete_edges(self.n, 3)

    @cached_property
    def _number(self) -> IntArray:
        """Edge of each pair of cities, (n, n)."""
        number = np.zeros((self.n, self.n), dtype=np.int64)
        first, second = self._pairs.T
        number[first, second] = number[second, first] = np.arange(self.n_costs)
        return number

    def _solve(self, costs: FloatArray) -> FloatArray:
        if self.fast:
            return held_karp(costs, self._number)
        return np.array([self._by_cuts(row) for row in costs]).reshape(costs.shape)

    def _by_cuts(self, cost: FloatArray) -> FloatArray:
        degree = np.zeros((self.n, self.n_costs))
        for edge, (i, j) in enumerate(self._pairs.tolist()):
            degree[i, edge] = degree[j, edge] = 1.0
        cuts: list[FloatArray] = []
        while True:
            constraints = [scipy.optimize.LinearConstraint(degree, 2.0, 2.0)]
            if cuts:
                constraints.append(scipy.optimize.LinearConstraint(np.array(cuts), 2.0, np.inf))
            answer = scipy.optimize.milp(
                cost,
                constraints=constraints,
                bounds=scipy.optimize.Bounds(0.0, 1.0),
                integrality=np.ones(self.n_costs, dtype=np.int64),
                options={"mip_rel_gap": 0.0},
            )
            if answer.x is None:
                raise ConsistructError(f"HiGHS found no tour: {answer.message}")
            tour = np.rint(answer.x)
            n_parts, part = self._components(tour)
            if n_parts == 1:
                return np.asarray(tour)
            for number in range(n_parts):  # two edges at least leave every closed part
                inside = part == number
                cuts.append((inside[self._pairs[:, 0]] != inside[self._pairs[:, 1]]).astype(float))

    def _components(self, tour: FloatArray) -> tuple[int, IntArray]:
        first, second = self._pairs[tour == 1].T
        shape = (self.n, self.n)
        graph = scipy.sparse.coo_array((np.ones(len(first)), (first, second)), shape=shape)
        found, part = scipy.sparse.csgraph.connected_components(graph, directed=False)
        return int(found), np.asarray(part, dtype=np.int64)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        good = are_binary(decisions)
        degree = np.zeros((len(decisions), self.n))
        for edge, (i, j) in enumerate(self._pairs.tolist()):
            degree[:, i] += decisions[:, edge]
            degree[:, j] += decisions[:, edge]
        good &= (degree == 2).all(axis=1)
        for row in np.flatnonzero(good).tolist():
            good[row] = self._components(decisions[row])[0] == 1
        return np.asarray(good)

    def diameter_squared(self) -> tuple[float, bool]:
        return float(min(2 * self.n, self.n_costs)), False

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        return cls(size_from_spec(cls.name, arguments, 50))
