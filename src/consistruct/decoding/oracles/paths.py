"""Shortest paths: on a grid, on a directed graph without cycles, on any graph."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_count
from consistruct.decoding.oracles._path_kernels import dag_paths, graph_paths, widest_pair
from consistruct.decoding.oracles.base import Counts, Oracle, are_binary
from consistruct.exceptions import LossSpecError, TooManyLabelsError
from consistruct.protocols import FloatArray, IntArray

__all__ = ["GraphPath", "GridPath", "Path"]


class _Paths(Oracle):
    """Paths from `source` to `target` of a directed graph without cycles."""

    source: int
    target: int
    n_nodes: int

    @property
    @abstractmethod
    def _edges(self) -> IntArray:
        """(d, 2): tail and head of each edge."""

    @property
    def n_costs(self) -> int:
        return len(self._edges)

    @cached_property
    def _topological(self) -> IntArray:
        """Place of each node, (n_nodes,): tails come before heads."""
        return topological_places(self._edges, self.n_nodes)

    @cached_property
    def _order(self) -> IntArray:
        return np.argsort(self._topological[self._edges[:, 0]], kind="stable")

    def _solve(self, costs: FloatArray) -> FloatArray:
        tails, heads = (np.ascontiguousarray(column) for column in self._edges.T)
        return dag_paths(costs, tails, heads, self._order, self.n_nodes, self.source, self.target)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        # 0/1 and one unit of flow from source to target: without cycles that is a path
        flow = np.zeros((len(decisions), self.n_nodes))
        for edge, (tail, head) in enumerate(self._edges.tolist()):
            flow[:, tail] += decisions[:, edge]
            flow[:, head] -= decisions[:, edge]
        wanted = np.zeros(self.n_nodes)
        wanted[self.source] += 1.0
        wanted[self.target] -= 1.0
        return np.asarray(are_binary(decisions) & (flow == wanted).all(axis=1))

    def listed(self, *, limit: int = 4096) -> FloatArray:
        """Every path, (k, d), by walking through the graph."""
        size = self.counts().size
        if size > limit:
            raise TooManyLabelsError(size, limit, "listing paths", "use counts()")
        leaving: list[list[int]] = [[] for _ in range(self.n_nodes)]
        for edge, (tail, _) in enumerate(self._edges.tolist()):
            leaving[tail].append(edge)
        found: list[list[int]] = []
        stack: list[tuple[int, list[int]]] = [(self.source, [])]
        while stack:
            node, used = stack.pop()
            if node == self.target:
                found.append(used)
                continue
            stack += [
                (int(self._edges[edge, 1]), [*used, edge]) for edge in reversed(leaving[node])
            ]
        rows = np.zeros((len(found), self.n_costs))
        for row, used in zip(rows, found, strict=True):
            row[used] = 1.0
        return rows

    def counts(self) -> Counts:
        """Exact numbers of paths: all, through an edge, through two.

        Paths through e = (a, b) and then f = (c, d): N(s→a)·N(b→c)·N(d→t).
        """
        between = np.zeros((self.n_nodes, self.n_nodes), dtype=object)  # exact integers
        between[np.arange(self.n_nodes), np.arange(self.n_nodes)] = 1
        for edge in self._order[::-1].tolist():  # heads are complete before their tails
            tail, head = self._edges[edge].tolist()
            between[tail] += between[head]
        tails, heads = self._edges.T
        size = int(between[self.source, self.target])
        first, last = between[self.source, tails], between[heads, self.target]
        mean = np.array([int(number) / size for number in first * last], dtype=np.float64)
        joint = first[:, None] * between[np.ix_(heads, tails)] * last[None, :]
        second = np.array([[int(number) / size for number in row] for row in joint])
        second = second.reshape(len(tails), len(tails))
        second = second + second.T  # one edge comes before the other, never both ways
        second[np.arange(len(tails)), np.arange(len(tails))] = mean
        return Counts(size, mean, second)

    def diameter_squared(self) -> tuple[float, bool]:
        place = self._topological
        tails, heads = place[self._edges[:, 0]], place[self._edges[:, 1]]
        order = np.argsort(tails, kind="stable")
        starts = np.searchsorted(tails[order], np.arange(self.n_nodes + 1))
        value = widest_pair(
            starts,
            np.ascontiguousarray(heads[order]),
            int(place[self.source]),
            int(place[self.target]),
        )
        return float(value), True


@dataclass(frozen=True, eq=False, repr=False)
class Path(_Paths):
    """Shortest path of a directed graph without cycles; costs may be negative.

    One relaxation per edge, O(edges) for each row of costs.

    Parameters
    ----------
    edges : (d, 2) array of int
        Tail and head of each edge, nodes numbered from 0; edge e has the cost in column e.
    source, target : int

    Examples
    --------
    >>> from consistruct.decoding.oracles import Path
    >>> Path([[0, 1], [1, 2], [0, 2]], 0, 2)([[1.0, 1.0, 3.0], [1.0, 1.0, 1.5]])
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """

    edges: ArrayField
    source: int
    target: int
    name: ClassVar[str] = "dag-path"

    def __post_init__(self) -> None:
        edges = check_edges(self.edges)
        self._set(edges=frozen_array(edges, np.int64))
        check_ends(self.source, self.target, self.n_nodes)
        _ = self._topological  # raises where there is a cycle
        reached = {self.source}
        for edge in self._order.tolist():
            if int(edges[edge, 0]) in reached:
                reached.add(int(edges[edge, 1]))
        refuse_unreachable(self.source, self.target, self.target in reached)

    @cached_property
    def n_nodes(self) -> int:  # type: ignore[override]
        return int(self.edges.max()) + 1

    @property
    def _edges(self) -> IntArray:
        return np.asarray(self.edges)


@dataclass(frozen=True, eq=False, repr=False)
class GridPath(_Paths):
    """Shortest path on a grid from the first to the last corner, by steps right and down.

    Edges are numbered row by row: the steps right of row 0, the steps down from row 0, the steps
    right of row 1, and so on.

    Parameters
    ----------
    rows, columns : int
        Nodes of the grid.

    Examples
    --------
    >>> from consistruct.decoding.oracles import GridPath
    >>> GridPath(2, 2)([[1.0, 2.0, 2.0, 0.5]])   # right, down, down, right
    array([[0., 1., 0., 1.]])
    >>> GridPath(5, 5).counts().size
    70
    """

    rows: int
    columns: int
    name: ClassVar[str] = "path"

    def __post_init__(self) -> None:
        rows, columns = check_count(self.rows, "rows"), check_count(self.columns, "columns")
        if rows * columns < 2:
            raise ValueError("a grid path needs at least two nodes, got a grid of 1 x 1")
        self._set(rows=rows, columns=columns)

    @property
    def n_nodes(self) -> int:  # type: ignore[override]
        return self.rows * self.columns

    @property
    def source(self) -> int:  # type: ignore[override]
        return 0

    @property
    def target(self) -> int:  # type: ignore[override]
        return self.n_nodes - 1

    @cached_property
    def _edges(self) -> IntArray:
        found = []
        for row in range(self.rows):
            first = row * self.columns
            found += [(first + c, first + c + 1) for c in range(self.columns - 1)]
            if row + 1 < self.rows:
                found += [(first + c, first + c + self.columns) for c in range(self.columns)]
        return np.array(found, dtype=np.int64)

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        sizes = arguments[0].split("x") if len(arguments) == 1 else []
        if len(sizes) != 2 or not all(size.isascii() and size.isdigit() for size in sizes):
            raise LossSpecError("the spec of path names a grid; write for example path:5x5")
        if max(map(int, sizes)) > 1000:
            raise LossSpecError("a grid in a spec has at most 1000 rows and columns")
        return cls(int(sizes[0]), int(sizes[1]))


@dataclass(frozen=True, eq=False, repr=False)
class GraphPath(Oracle):
    """Shortest path of any graph with costs of at least 0, by Dijkstra's algorithm.

    Parameters
    ----------
    edges : (d, 2) array of int
    source, target : int
    directed : bool
        Whether an edge leads from its first node to its second only.

    Examples
    --------
    >>> from consistruct.decoding.oracles import GraphPath
    >>> GraphPath([[0, 1], [2, 1], [0, 2]], 0, 2, directed=False)([[1.0, 1.0, 3.0]])
    array([[1., 1., 0.]])
    """

    edges: ArrayField
    source: int
    target: int
    directed: bool = True
    name: ClassVar[str] = "graph-path"
    non_negative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set(edges=frozen_array(check_edges(self.edges), np.int64))
        check_ends(self.source, self.target, self.n_nodes)
        starts, ends, _ = self._arcs
        reached, stack = {self.source}, [self.source]
        while stack:
            node = stack.pop()
            for end in ends[starts[node] : starts[node + 1]].tolist():
                if end not in reached:
                    reached.add(end)
                    stack.append(end)
        refuse_unreachable(self.source, self.target, self.target in reached)

    @property
    def n_costs(self) -> int:
        return len(self.edges)

    @cached_property
    def n_nodes(self) -> int:
        return int(self.edges.max()) + 1

    @cached_property
    def _arcs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Arcs by tail: where those of a node start, their heads, their edges."""
        tails, heads = self.edges[:, 0], self.edges[:, 1]
        numbers = np.arange(len(self.edges))
        if not self.directed:
            tails, heads = np.concatenate([tails, heads]), np.concatenate([heads, tails])
            numbers = np.concatenate([numbers, numbers])
        order = np.argsort(tails, kind="stable")
        starts = np.searchsorted(tails[order], np.arange(self.n_nodes + 1))
        return starts, np.ascontiguousarray(heads[order]), np.ascontiguousarray(numbers[order])

    def _solve(self, costs: FloatArray) -> FloatArray:
        return graph_paths(costs, *self._arcs, self.source, self.target)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        good = are_binary(decisions)
        for row in np.flatnonzero(good).tolist():
            good[row] = self._is_path(np.flatnonzero(decisions[row]).tolist())
        return good

    def _is_path(self, used: list[int]) -> bool:
        """Whether the edges, walked from the source, end at the target and visit no node twice."""
        node, visited, left = self.source, {self.source}, set(used)
        while node != self.target:
            ways = [
                (edge, int(self.edges[edge, 1 - side]))
                for edge in left
                for side in ((0,) if self.directed else (0, 1))
                if self.edges[edge, side] == node
            ]
            if len(ways) != 1 or ways[0][1] in visited:
                return False
            left.remove(ways[0][0])
            node = ways[0][1]
            visited.add(node)
        return not left

    def diameter_squared(self) -> tuple[float, bool]:
        return float(min(self.n_costs, 2 * (self.n_nodes - 1))), False


def check_edges(edges: object) -> IntArray:
    """(d, 2) node numbers from 0 on."""
    found = np.asarray(edges)
    if found.ndim != 2 or found.shape[1] != 2 or not len(found) or found.dtype.kind not in "iu":
        raise ValueError(
            f"edges must be pairs of node numbers, an integer array of shape (d, 2), got "
            f"{found.dtype} of shape {found.shape}"
        )
    if found.min() < 0 or (found[:, 0] == found[:, 1]).any():
        raise ValueError("edges must join two different nodes, numbered from 0 on")
    return found.astype(np.int64)


def check_ends(source: int, target: int, n_nodes: int) -> None:
    """Source and target are two nodes."""
    if not (0 <= source < n_nodes and 0 <= target < n_nodes and source != target):
        raise ValueError(
            f"source and target must be two different nodes in 0..{n_nodes - 1}, "
            f"got {source} and {target}"
        )


def refuse_unreachable(source: int, target: int, reached: bool) -> None:
    """Raise unless some path leads to the target."""
    if not reached:
        raise ValueError(f"no path leads from node {source} to node {target}; check the edges")


def topological_places(edges: IntArray, n_nodes: int) -> IntArray:
    """Place of each node in an order where tails come before heads; raises on a cycle."""
    entering = np.bincount(edges[:, 1], minlength=n_nodes)
    leaving: list[list[int]] = [[] for _ in range(n_nodes)]
    for tail, head in edges.tolist():
        leaving[tail].append(head)
    ready = [node for node in range(n_nodes) if entering[node] == 0]
    places = np.full(n_nodes, -1)
    for place in range(n_nodes):
        if not ready:
            raise ValueError(
                "edges must not form a cycle; use GraphPath, which accepts any graph and costs of "
                "at least 0"
            )
        node = ready.pop(0)
        places[node] = place
        for head in leaving[node]:
            entering[head] -= 1
            if entering[head] == 0:
                ready.append(head)
    return places
