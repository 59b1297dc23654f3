"""Matchings, spanning trees and arborescences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy  # its submodules are imported on use

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_count
from consistruct.decoding.oracles._selection_kernels import arborescences, spanning_trees
from consistruct.decoding.oracles.base import Oracle, are_binary
from consistruct.decoding.oracles.paths import check_edges
from consistruct.exceptions import LossSpecError
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Arborescence", "Assignments", "SpanningTree", "size_from_spec"]


def size_from_spec(name: str, arguments: tuple[str, ...], most: int) -> int:
    """The one size of a spec such as ``assignment:5``."""
    if len(arguments) != 1 or not (arguments[0].isascii() and arguments[0].isdigit()):
        raise LossSpecError(f"the spec of {name} has one size; write for example {name}:5")
    size = int(arguments[0][:9])
    if size > most:
        raise LossSpecError(f"the size in a spec of {name} may be at most {most}, got {size}")
    return size


@dataclass(frozen=True, eq=False, repr=False)
class Assignments(Oracle):
    """Who does what at least cost: one of n tasks for each of n workers.

    Costs and decisions are n × n matrices, row after row. Shortest augmenting paths, O(n³).

    Examples
    --------
    >>> from consistruct.decoding.oracles import Assignments
    >>> Assignments(2)([[1.0, 0.0, 0.5, 3.0]])
    array([[0., 1., 1., 0.]])
    """

    n: int
    name: ClassVar[str] = "assignment"

    def __post_init__(self) -> None:
        self._set(n=check_count(self.n, "n"))

    @property
    def n_costs(self) -> int:
        return self.n**2

    def _solve(self, costs: FloatArray) -> FloatArray:
        found = np.zeros((len(costs), self.n, self.n))
        for row, matrix in enumerate(costs.reshape(-1, self.n, self.n)):
            found[row][scipy.optimize.linear_sum_assignment(matrix)] = 1.0
        return found.reshape(len(costs), self.n_costs)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        tables = decisions.reshape(-1, self.n, self.n)
        once = (tables.sum(axis=1) == 1).all(axis=1) & (tables.sum(axis=2) == 1).all(axis=1)
        return np.asarray(are_binary(decisions) & once)

    def diameter_squared(self) -> tuple[float, bool]:
        return (2.0 * self.n if self.n > 1 else 0.0), True

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        return cls(size_from_spec(cls.name, arguments, 1000))


@dataclass(frozen=True, eq=False, repr=False)
class SpanningTree(Oracle):
    """The cheapest tree that joins all nodes, by Kruskal's algorithm.

    Parameters
    ----------
    edges : (d, 2) array of int
        Edges of a connected graph whose nodes are numbered from 0 without gaps.

    Examples
    --------
    >>> from consistruct.decoding.oracles import SpanningTree
    >>> SpanningTree([[0, 1], [1, 2], [0, 2]])([[1.0, 2.0, 3.0], [5.0, 2.0, 3.0]])
    array([[1., 1., 0.],
           [0., 1., 1.]])
    """

    edges: ArrayField
    name: ClassVar[str] = "spanning-tree"

    def __post_init__(self) -> None:
        self._set(edges=frozen_array(check_edges(self.edges), np.int64))
        tree = spanning_trees(np.zeros((1, self.n_costs)), self.edges, self.n_nodes)
        if int(tree.sum()) != self.n_nodes - 1:
            raise ValueError(
                f"edges must join all nodes 0..{self.n_nodes - 1}; some node is not reached"
            )

    @property
    def n_costs(self) -> int:
        return len(self.edges)

    @cached_property
    def n_nodes(self) -> int:
        return int(self.edges.max()) + 1

    def _solve(self, costs: FloatArray) -> FloatArray:
        return spanning_trees(costs, self.edges, self.n_nodes)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        good = are_binary(decisions) & (decisions.sum(axis=1) == self.n_nodes - 1)
        for row in np.flatnonzero(good).tolist():  # n − 1 edges without a cycle are a tree
            good[row] = _parts(self.edges[decisions[row] == 1], self.n_nodes) == 1
        return np.asarray(good)

    def diameter_squared(self) -> tuple[float, bool]:
        return float(min(2 * (self.n_nodes - 1), self.n_costs)), False

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        return cls(complete_edges(size_from_spec(cls.name, arguments, 200), 2))


@dataclass(frozen=True, eq=False, repr=False)
class Arborescence(Oracle):
    """The cheapest directed tree that leads from the root to all nodes (Chu–Liu, Edmonds).

    Dependency parsing is this one: node 0 is the root, an edge leads from a head to a word, and
    its cost is minus its score.

    Parameters
    ----------
    edges : (d, 2) array of int
        Directed edges; every node must be reachable from the root.
    root : int

    Examples
    --------
    >>> from consistruct.decoding.oracles import Arborescence
    >>> Arborescence([[0, 1], [0, 2], [1, 2], [2, 1]])([[5.0, 5.0, 1.0, 2.0]])
    array([[1., 0., 1., 0.]])
    """

    edges: ArrayField
    root: int = 0
    name: ClassVar[str] = "arborescence"

    def __post_init__(self) -> None:
        self._set(edges=frozen_array(check_edges(self.edges), np.int64))
        if not 0 <= self.root < self.n_nodes:
            raise ValueError(
                f"root must be one of the nodes 0..{self.n_nodes - 1}, got {self.root}"
            )
        if not self._spans(np.ones(self.n_costs)):
            raise ValueError(f"some node cannot be reached from the root {self.root}")

    @property
    def n_costs(self) -> int:
        return len(self.edges)

    @cached_property
    def n_nodes(self) -> int:
        return int(self.edges.max()) + 1

    def _solve(self, costs: FloatArray) -> FloatArray:
        return arborescences(costs, self.edges, self.n_nodes, self.root)

    def _spans(self, decision: FloatArray) -> bool:
        reached, grown = {self.root}, True
        used = self.edges[decision == 1].tolist()
        while grown:
            new = {head for tail, head in used if tail in reached and head not in reached}
            reached |= new
            grown = bool(new)
        return len(reached) == self.n_nodes

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        good = are_binary(decisions) & (decisions.sum(axis=1) == self.n_nodes - 1)
        for row in np.flatnonzero(good).tolist():
            good[row] = self._spans(decisions[row])
        return np.asarray(good)

    def diameter_squared(self) -> tuple[float, bool]:
        return float(min(2 * (self.n_nodes - 1), self.n_costs)), False

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        size = size_from_spec(cls.name, arguments, 200)
        pairs = [(i, j) for i in range(size) for j in range(1, size) if i != j]
        return cls(np.array(pairs, dtype=np.int64).reshape(-1, 2))


def complete_edges(n: int, least: int) -> IntArray:
    """All pairs i < j of n nodes, (n(n−1)/2, 2), in lexicographic order."""
    if n < least:
        raise ValueError(f"at least {least} nodes are needed, got {n}")
    return np.column_stack(np.triu_indices(n, 1)).astype(np.int64)


def _parts(edges: IntArray, n_nodes: int) -> int:
    """Number of connected components."""
    ones = np.ones(len(edges))
    graph = scipy.sparse.coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n_nodes, n_nodes))
    return int(scipy.sparse.csgraph.connected_components(graph, directed=False)[0])
