"""Shortest paths: on a grid, on a directed graph without cycles, on any graph.

A path is a 0/1 vector over edges. Without cycles one relaxation per edge in topological order finds
the best path for costs of either sign, paths can be counted exactly, and so can those through two
edges (the Gram operator of uniform paths). On other graphs costs must be at least 0 (Dijkstra).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from consistruct._compile import compiled
from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_count
from consistruct.exceptions import LossSpecError, TooManyLabelsError
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures.decisions import Counts, Oracle, are_binary

__all__ = ["EdgeOracle", "GraphPath", "GridPath", "Path", "dag_paths", "graph_paths", "widest_pair"]


class EdgeOracle(Oracle):
    """Choose among the edges of a graph: edge e costs what column e of the costs states.

    Write ``edges``, (d, 2): nodes are numbered from 0 on.
    """

    edges: ArrayField  # (d, 2)

    @property
    def n_costs(self) -> int:
        return len(self.edges)

    @cached_property
    def n_nodes(self) -> int:
        """Count the nodes: one more than the largest number among the edges."""
        return int(self.edges.max()) + 1


class _Paths(EdgeOracle):
    """Find paths from `source` to `target` of a directed graph without cycles.

    Write ``edges``, ``source`` and ``target``. Everything else goes by a topological order of the
    nodes: solving, listing, counting, and the largest distance between two paths.
    """

    source: int
    target: int

    @cached_property
    def _topological(self) -> IntArray:
        """Return the rank of each node in an order where tails come before heads, (n_nodes,)."""
        return topological_places(self.edges, self.n_nodes)

    @cached_property
    def _order(self) -> IntArray:
        """Sort edges by the rank of their tails."""
        return np.argsort(self._topological[self.edges[:, 0]], kind="stable")

    def _solve(self, costs: FloatArray) -> FloatArray:
        tails, heads = (np.ascontiguousarray(column) for column in self.edges.T)
        return dag_paths(costs, tails, heads, self._order, self.n_nodes, self.source, self.target)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Accept 0/1 vectors that carry one unit of flow from source to target."""
        # 0/1 and one unit of flow from source to target: without cycles that is a path
        flow = np.zeros((len(decisions), self.n_nodes))
        for edge, (tail, head) in enumerate(self.edges.tolist()):
            flow[:, tail] += decisions[:, edge]
            flow[:, head] -= decisions[:, edge]
        # all other nodes pass on what they get
        wanted = np.zeros(self.n_nodes)
        wanted[self.source] += 1.0
        wanted[self.target] -= 1.0
        return np.asarray(are_binary(decisions) & (flow == wanted).all(axis=1))

    def listed(self, *, limit: int = 4096) -> FloatArray:
        """List every path, (k, d), by walking through the graph depth first."""
        size = self.counts().size
        if size > limit:
            raise TooManyLabelsError(size, limit, "listing paths", "use counts()")
        # edges are stacked in reverse, so that paths come in the order of their edge numbers
        leaving: list[list[int]] = [[] for _ in range(self.n_nodes)]
        for edge, (tail, _) in enumerate(self.edges.tolist()):
            leaving[tail].append(edge)
        paths: list[list[int]] = []
        stack: list[tuple[int, list[int]]] = [(self.source, [])]
        while stack:
            node, used = stack.pop()
            if node == self.target:
                paths.append(used)
                continue
            stack += [(int(self.edges[edge, 1]), [*used, edge]) for edge in reversed(leaving[node])]
        rows = np.zeros((len(paths), self.n_costs))
        for row, used in zip(rows, paths, strict=True):
            row[used] = 1.0
        return rows

    def counts(self) -> Counts:
        """Count paths exactly: all, through an edge, through two.

        With N(u→v) the number of paths between two nodes, paths through e = (a, b) and then
        f = (c, d) number N(s→a)·N(b→c)·N(d→t). N is computed in Python integers, from the last
        edges to the first; only the shares are rounded.
        """
        # [u, v]: the number of paths from u to v, a node to itself by the empty one
        between = np.zeros((self.n_nodes, self.n_nodes), dtype=object)  # exact integers
        between[np.arange(self.n_nodes), np.arange(self.n_nodes)] = 1
        for edge in self._order[::-1].tolist():  # heads are complete before their tails
            tail, head = self.edges[edge].tolist()
            between[tail] += between[head]
        tails, heads = self.edges.T
        size = int(between[self.source, self.target])
        # a path through an edge is one to its tail and one from its head
        first, last = between[self.source, tails], between[heads, self.target]
        mean = np.array([int(number) / size for number in first * last], dtype=np.float64)
        joint = first[:, None] * between[np.ix_(heads, tails)] * last[None, :]
        second = np.array([[int(number) / size for number in row] for row in joint])
        second = second.reshape(len(tails), len(tails))
        second = second + second.T  # one edge comes before the other, never both ways
        second[np.arange(len(tails)), np.arange(len(tails))] = mean
        return Counts(size, mean, second)

    def diameter_squared(self) -> tuple[float, bool]:
        """Return the most edges that one of two paths uses alone, by `widest_pair`."""
        ranks = self._topological
        # nodes are renamed by their rank, which `widest_pair` takes for granted
        tails, heads = ranks[self.edges[:, 0]], ranks[self.edges[:, 1]]
        order = np.argsort(tails, kind="stable")
        starts = np.searchsorted(tails[order], np.arange(self.n_nodes + 1))
        value = widest_pair(
            starts,
            np.ascontiguousarray(heads[order]),
            int(ranks[self.source]),
            int(ranks[self.target]),
        )
        return float(value), True


@dataclass(frozen=True, eq=False, repr=False)
class Path(_Paths):
    """Find the shortest path of a directed graph without cycles; costs may be negative.

    One relaxation per edge, O(edges) for each row of costs.

    Parameters
    ----------
    edges : (d, 2) array of int
        Tail and head of each edge, nodes numbered from 0; edge e has the cost in column e.
    source, target : int
        Two nodes; some path must lead from the first to the second.

    Examples
    --------
    >>> from consistruct.structures import Path
    >>> Path([[0, 1], [1, 2], [0, 2]], 0, 2)([[1.0, 1.0, 3.0], [1.0, 1.0, 1.5]])
    array([[1., 1., 0.],
           [0., 0., 1.]])

    See Also
    --------
    GridPath : the graph of a grid, which a spec such as ``path:5x5`` can name.
    GraphPath : graphs with cycles.
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
        # forward reachability in topological order: one pass over the edges
        reached = {self.source}
        for edge in self._order.tolist():
            if int(edges[edge, 0]) in reached:
                reached.add(int(edges[edge, 1]))
        refuse_unreachable(self.source, self.target, self.target in reached)


@dataclass(frozen=True, eq=False, repr=False)
class GridPath(_Paths):
    """Find the shortest path on a grid between two corners, by steps right and down.

    Edges are numbered row by row: the steps right of row 0, the steps down from row 0, the steps
    right of row 1, and so on.

    Parameters
    ----------
    rows, columns : int
        Nodes of the grid.

    Examples
    --------
    >>> from consistruct.structures import GridPath
    >>> GridPath(2, 2)([[1.0, 2.0, 2.0, 0.5]])   # right, down, down, right
    array([[0., 1., 0., 1.]])
    >>> GridPath(5, 5).counts().size
    70

    See Also
    --------
    Path : any graph without cycles.
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
    def n_nodes(self) -> int:
        return self.rows * self.columns

    @property
    def source(self) -> int:  # type: ignore[override]
        return 0

    @property
    def target(self) -> int:  # type: ignore[override]
        return self.n_nodes - 1

    @cached_property
    def edges(self) -> IntArray:
        """Return tail and head of each edge, numbered row by row, (d, 2)."""
        pairs = []
        for row in range(self.rows):
            first = row * self.columns
            pairs += [(first + c, first + c + 1) for c in range(self.columns - 1)]
            if row + 1 < self.rows:
                pairs += [(first + c, first + c + self.columns) for c in range(self.columns)]
        return np.array(pairs, dtype=np.int64)

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        sides = tuple(arguments[0].split("x")) if len(arguments) == 1 else ()
        if len(sides) != 2 or not all(side.isascii() and side.isdigit() for side in sides):
            raise LossSpecError("the spec of path names a grid; write for example path:5x5")
        rows, columns = (int(side[:10]) for side in sides)
        if max(rows, columns) > 1000:
            raise LossSpecError("a grid in a spec has at most 1000 rows and columns")
        return cls(rows, columns)


@dataclass(frozen=True, eq=False, repr=False)
class GraphPath(EdgeOracle):
    """Find the shortest path of any graph with costs of at least 0, by Dijkstra's algorithm.

    Choose `Path` for graphs without cycles: it takes costs of either sign and can count paths.

    Parameters
    ----------
    edges : (d, 2) array of int
    source, target : int
    directed : bool
        Whether an edge leads from its first node to its second only.

    Examples
    --------
    >>> from consistruct.structures import GraphPath
    >>> GraphPath([[0, 1], [2, 1], [0, 2]], 0, 2, directed=False)([[1.0, 1.0, 3.0]])
    array([[1., 1., 0.]])

    References
    ----------
    Dijkstra, *A note on two problems in connexion with graphs*, 1959.
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

    @cached_property
    def _arcs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return arcs by tail: where those of a node start, their heads, their edges.

        An undirected edge is two arcs of one cost.
        """
        tails, heads = self.edges[:, 0], self.edges[:, 1]
        numbers = np.arange(len(self.edges))
        # an edge may be walked both ways: its second arc has the same number, hence the same cost
        if not self.directed:
            tails, heads = np.concatenate([tails, heads]), np.concatenate([heads, tails])
            numbers = np.concatenate([numbers, numbers])
        order = np.argsort(tails, kind="stable")
        starts = np.searchsorted(tails[order], np.arange(self.n_nodes + 1))
        return starts, np.ascontiguousarray(heads[order]), np.ascontiguousarray(numbers[order])

    def _solve(self, costs: FloatArray) -> FloatArray:
        return graph_paths(costs, *self._arcs, self.source, self.target)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Accept 0/1 vectors whose edges form one simple path."""
        good = are_binary(decisions)
        for row in np.flatnonzero(good).tolist():
            good[row] = self._is_path(np.flatnonzero(decisions[row]).tolist())
        return good

    def _is_path(self, used: list[int]) -> bool:
        """Say whether the edges, walked from the source, end at the target without a repeat."""
        # a simple path leaves each node by exactly one of its unused edges, and none are left over
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
        """Bound it by two paths of at most n_nodes − 1 edges each."""
        return float(min(self.n_costs, 2 * (self.n_nodes - 1))), False


def check_edges(edges: object) -> IntArray:
    """Return edges as node numbers from 0 on, (d, 2), or raise with one clear line."""
    pairs = np.asarray(edges)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"edges must be pairs of node numbers, an integer array of shape (d, 2), got "
            f"{pairs.dtype} of shape {pairs.shape}"
        )
    if pairs.min() < 0 or (pairs[:, 0] == pairs[:, 1]).any():
        raise ValueError("edges must join two different nodes, numbered from 0 on")
    return pairs.astype(np.int64)


def check_ends(source: int, target: int, n_nodes: int) -> None:
    """Raise unless source and target are two nodes."""
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
    """Return the rank of each node in an order where tails come before heads; raise on a cycle.

    Kahn's algorithm: take nodes without entering edges, and remove the edges that leave them.
    """
    # how many edges into each node are left; nodes without any are ready
    entering = np.bincount(edges[:, 1], minlength=n_nodes)
    leaving: list[list[int]] = [[] for _ in range(n_nodes)]
    for tail, head in edges.tolist():
        leaving[tail].append(head)
    ready = [node for node in range(n_nodes) if entering[node] == 0]
    ranks = np.full(n_nodes, -1)
    for rank in range(n_nodes):
        if not ready:
            raise ValueError(
                "edges must not form a cycle; use GraphPath, which accepts any graph and costs of "
                "at least 0"
            )
        node = ready.pop(0)
        ranks[node] = rank
        for head in leaving[node]:
            entering[head] -= 1
            if entering[head] == 0:
                ready.append(head)
    return ranks


@compiled
def dag_paths(
    costs: FloatArray,  # (n, d)
    tails: IntArray,  # (d,)
    heads: IntArray,  # (d,)
    order: IntArray,  # (d,): edges by the topological position of their tails
    n_nodes: int,
    source: int,
    target: int,
) -> FloatArray:
    """Find shortest paths of a directed graph without cycles, one relaxation per edge.

    distance(v) = min over edges (u, v) of distance(u) + cost; edges are taken by the rank of their
    tails, so that distance(u) is final. Of equal lengths the edge that comes first stays.
    """
    n, d = costs.shape
    decisions = np.zeros((n, d))
    distance = np.empty(n_nodes)
    before = np.empty(n_nodes, dtype=np.int64)
    for row in range(n):
        distance[:] = np.inf
        distance[source] = 0.0
        before[:] = -1
        for position in range(d):
            edge = order[position]
            length = distance[tails[edge]] + costs[row, edge]
            if length < distance[heads[edge]]:
                distance[heads[edge]] = length
                before[heads[edge]] = edge
        node = target
        while node != source:
            edge = before[node]
            decisions[row, edge] = 1.0
            node = tails[edge]
    return decisions


@compiled
def graph_paths(
    costs: FloatArray,  # (n, d), non-negative
    starts: IntArray,  # (n_nodes + 1,): where the arcs of each node begin
    ends: IntArray,  # (arcs,): the node at the other end of each arc
    edges: IntArray,  # (arcs,): the edge that an arc belongs to
    source: int,
    target: int,
) -> FloatArray:
    """Run Dijkstra's algorithm with a heap for each row of costs.

    Entries of the heap are never updated: a shorter way is pushed again, and entries that are
    longer than the known distance are skipped when they come up.
    """
    n, d = costs.shape
    n_nodes = len(starts) - 1
    decisions = np.zeros((n, d))
    distance = np.empty(n_nodes)
    before = np.empty(n_nodes, dtype=np.int64)
    came = np.empty(n_nodes, dtype=np.int64)
    for row in range(n):
        distance[:] = np.inf
        distance[source] = 0.0
        heap = [(0.0, source)]
        while len(heap) > 0:
            reached, node = heapq.heappop(heap)
            if reached > distance[node]:
                continue
            # the target's distance is final when it comes off the heap
            if node == target:
                break
            for arc in range(starts[node], starts[node + 1]):
                length = reached + costs[row, edges[arc]]
                if length < distance[ends[arc]]:
                    distance[ends[arc]] = length
                    before[ends[arc]] = edges[arc]
                    came[ends[arc]] = node
                    heapq.heappush(heap, (length, ends[arc]))
        node = target
        while node != source:
            decisions[row, before[node]] = 1.0
            node = came[node]
    return decisions


@compiled
def widest_pair(
    starts: IntArray,  # (n_nodes + 1,): arcs by tail, nodes in topological order
    ends: IntArray,  # (arcs,)
    source: int,
    target: int,
) -> int:
    """Count the most edges that are on one of two source-target paths and not on both.

    f(u, v): the most for the rest of the paths from u and v on. The node that comes first moves;
    at one node both move, by one edge (shared: counts 0) or by two (counts 2).
    """
    n_nodes = len(starts) - 1
    # unreachable pairs stay far below any count, also after edges are added
    none = -(10**9)
    # nodes in topological order, so f(u, v) only needs values at later nodes
    best = np.full((n_nodes, n_nodes), none)
    best[target, target] = 0
    for u in range(n_nodes - 1, -1, -1):
        for v in range(n_nodes - 1, u - 1, -1):
            value = best[u, v]
            if u < v:
                for arc in range(starts[u], starts[u + 1]):
                    value = max(value, 1 + best[ends[arc], v])
            else:
                for one in range(starts[u], starts[u + 1]):
                    value = max(value, best[ends[one], ends[one]])
                    for two in range(one + 1, starts[u + 1]):
                        value = max(value, 2 + best[ends[one], ends[two]])
            best[u, v] = value
            best[v, u] = value
    return best[source, source]
