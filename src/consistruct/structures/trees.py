"""Assignments, spanning trees, arborescences and tours: subgraphs that touch every node.

Decisions are 0/1 vectors over edges (over pairs of worker and task for assignments). Spanning trees
(Kruskal), arborescences (Chu–Liu, Edmonds) and tours of up to a dozen cities (Held–Karp) have
compiled loops; longer tours are integer programs with cuts added as they are violated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy

from consistruct._compile import compiled
from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_count
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures.decisions import Oracle, are_binary, sizes_from_spec
from consistruct.structures.paths import EdgeOracle, check_edges
from consistruct.structures.selections import best_of_program

__all__ = [
    "Arborescence",
    "Assignments",
    "SpanningTree",
    "Tour",
    "arborescences",
    "held_karp",
    "spanning_trees",
]


@dataclass(frozen=True, eq=False, repr=False)
class Assignments(Oracle):
    """Assign one of n tasks to each of n workers at least cost.

    Costs and decisions are n × n matrices, row after row. Shortest augmenting paths, O(n³). For
    matchings as labels, with the uniform measure and marginals, see `Matchings`.

    Parameters
    ----------
    n : int

    Examples
    --------
    >>> from consistruct.structures import Assignments
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
        decisions = np.zeros((len(costs), self.n, self.n))
        for row, matrix in enumerate(costs.reshape(-1, self.n, self.n)):
            decisions[row][scipy.optimize.linear_sum_assignment(matrix)] = 1.0
        return decisions.reshape(len(costs), self.n_costs)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Accept permutation matrices."""
        tables = decisions.reshape(-1, self.n, self.n)
        once = (tables.sum(axis=1) == 1).all(axis=1) & (tables.sum(axis=2) == 1).all(axis=1)
        return np.asarray(are_binary(decisions) & once)

    def diameter_squared(self) -> tuple[float, bool]:
        # two assignments that agree nowhere differ in n ones each
        return (2.0 * self.n if self.n > 1 else 0.0), True

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        return cls(*sizes_from_spec(cls.name, arguments, "assignment:5", 1000))


@dataclass(frozen=True, eq=False, repr=False)
class SpanningTree(EdgeOracle):
    """Find the cheapest tree that joins all nodes, by Kruskal's algorithm.

    Parameters
    ----------
    edges : (d, 2) array of int
        Edges of a connected graph whose nodes are numbered from 0 without gaps.

    Examples
    --------
    >>> from consistruct.structures import SpanningTree
    >>> SpanningTree([[0, 1], [1, 2], [0, 2]])([[1.0, 2.0, 3.0], [5.0, 2.0, 3.0]])
    array([[1., 1., 0.],
           [0., 1., 1.]])

    References
    ----------
    Kruskal, *On the shortest spanning subtree of a graph*, 1956.
    """

    edges: ArrayField
    name: ClassVar[str] = "spanning-tree"

    def __post_init__(self) -> None:
        self._set(edges=frozen_array(check_edges(self.edges), np.int64))
        # a tree of the right size exists iff the graph is connected
        tree = spanning_trees(np.zeros((1, self.n_costs)), self.edges, self.n_nodes)
        if int(tree.sum()) != self.n_nodes - 1:
            raise ValueError(
                f"edges must join all nodes 0..{self.n_nodes - 1}; some node is not reached"
            )

    def _solve(self, costs: FloatArray) -> FloatArray:
        return spanning_trees(costs, self.edges, self.n_nodes)

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Accept n_nodes − 1 edges that connect all nodes."""
        good = are_binary(decisions) & (decisions.sum(axis=1) == self.n_nodes - 1)
        for row in np.flatnonzero(good).tolist():  # n − 1 edges without a cycle are a tree
            good[row] = components(self.edges[decisions[row] == 1], self.n_nodes)[0] == 1
        return np.asarray(good)

    def diameter_squared(self) -> tuple[float, bool]:
        """Bound it: two trees have at most 2(n_nodes − 1) edges, and the graph has d."""
        return float(min(2 * (self.n_nodes - 1), self.n_costs)), False

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        (size,) = sizes_from_spec(cls.name, arguments, "spanning-tree:5", 200)
        return cls(complete_edges(size, 2))


@dataclass(frozen=True, eq=False, repr=False)
class Arborescence(EdgeOracle):
    """Find the cheapest directed tree from the root to all nodes (Chu–Liu, Edmonds).

    Dependency parsing is this one: node 0 is the root, an edge leads from a head to a word, and
    its cost is minus its score.

    Parameters
    ----------
    edges : (d, 2) array of int
        Directed edges, tail and head; every node must be reachable from the root.
    root : int
        Node that no chosen edge enters.

    Examples
    --------
    >>> from consistruct.structures import Arborescence
    >>> Arborescence([[0, 1], [0, 2], [1, 2], [2, 1]])([[5.0, 5.0, 1.0, 2.0]])
    array([[1., 0., 1., 0.]])

    References
    ----------
    Chu and Liu, 1965; Edmonds, *Optimum branchings*, 1967; for parsing McDonald et al., 2005.
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

    def _solve(self, costs: FloatArray) -> FloatArray:
        return arborescences(costs, self.edges, self.n_nodes, self.root)

    def _spans(self, decision: FloatArray) -> bool:
        """Say whether the chosen edges lead from the root to every node."""
        # grow by whole layers until nothing new is reached: as many passes as the tree is deep
        reached, grown = {self.root}, True
        used = self.edges[decision == 1].tolist()
        while grown:
            new = {head for tail, head in used if tail in reached and head not in reached}
            reached |= new
            grown = bool(new)
        return len(reached) == self.n_nodes

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Accept n_nodes − 1 edges that lead from the root to every node."""
        # n − 1 edges that reach everything enter every node but the root exactly once
        good = are_binary(decisions) & (decisions.sum(axis=1) == self.n_nodes - 1)
        for row in np.flatnonzero(good).tolist():
            good[row] = self._spans(decisions[row])
        return np.asarray(good)

    def diameter_squared(self) -> tuple[float, bool]:
        return float(min(2 * (self.n_nodes - 1), self.n_costs)), False

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        """Take all edges between nodes but those into the root."""
        (size,) = sizes_from_spec(cls.name, arguments, "arborescence:5", 200)
        # edges into the root are never chosen and would only cost columns
        pairs = [(i, j) for i in range(size) for j in range(1, size) if i != j]
        return cls(np.array(pairs, dtype=np.int64).reshape(-1, 2))


def complete_edges(n: int, least: int) -> IntArray:
    """Return all pairs i < j of n nodes, (n(n−1)/2, 2), in lexicographic order."""
    if n < least:
        raise ValueError(f"at least {least} nodes are needed, got {n}")
    return np.column_stack(np.triu_indices(n, 1)).astype(np.int64)


def components(edges: IntArray, n_nodes: int) -> tuple[int, IntArray]:
    """Return the number of connected components and the one of each node, (n_nodes,)."""
    ones = np.ones(len(edges))
    graph = scipy.sparse.coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n_nodes, n_nodes))
    number, part = scipy.sparse.csgraph.connected_components(graph, directed=False)
    return int(number), np.asarray(part, dtype=np.int64)


# Cities up to which a table of 2^(n−1)·(n−1) lengths is filled: 22,528 of them at 12, under a
# millisecond. Every further city doubles time and memory, and HiGHS takes over.
HELD_KARP = 12


@dataclass(frozen=True, eq=False, repr=False)
class Tour(Oracle):
    """Find the shortest round trip through n cities; the costs are those of the pairs i < j.

    Up to 12 cities by a compiled dynamic program over sets of cities, O(2ⁿn²); beyond by HiGHS,
    which gets a cut for every part that its solution leaves closed in itself, until none is left.

    Parameters
    ----------
    n : int
        Number of cities, at least 3.

    Examples
    --------
    >>> from consistruct.structures import Tour
    >>> Tour(4)([[1.0, 5.0, 1.0, 1.0, 5.0, 1.0]])   # pairs 01 02 03 12 13 23
    array([[1., 0., 1., 1., 0., 1.]])

    References
    ----------
    Held and Karp, 1962; Dantzig, Fulkerson and Johnson, 1954: cuts for tours.
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
        """Return the edge of each pair of cities, (n, n)."""
        number = np.zeros((self.n, self.n), dtype=np.int64)
        first, second = self._pairs.T
        number[first, second] = number[second, first] = np.arange(self.n_costs)
        return number

    def _solve(self, costs: FloatArray) -> FloatArray:
        """Solve by Held–Karp while its table is small, by cuts above that."""
        if self.fast:
            return held_karp(costs, self._number)
        return np.array([self._by_cuts(row) for row in costs]).reshape(costs.shape)

    def _by_cuts(self, cost: FloatArray) -> FloatArray:
        """Solve with two edges at every city, then cut off closed parts until one is left.

        All 2ⁿ subtour constraints Σ_{e leaves S} z_e ≥ 2 are valid, few are ever violated.
        """
        # Σ of the edges at each city = 2; subtours satisfy this too, hence the cuts
        degree = np.zeros((self.n, self.n_costs))
        for edge, (i, j) in enumerate(self._pairs.tolist()):
            degree[i, edge] = degree[j, edge] = 1.0
        cuts: list[FloatArray] = []
        while True:
            constraints = [scipy.optimize.LinearConstraint(degree, 2.0, 2.0)]
            if cuts:
                constraints.append(scipy.optimize.LinearConstraint(np.array(cuts), 2.0, np.inf))
            box = scipy.optimize.Bounds(0.0, 1.0)
            whole = np.ones(self.n_costs, dtype=np.int64)
            tour = np.rint(best_of_program(cost, constraints, box, whole, "a tour"))
            n_parts, part = components(self._pairs[tour == 1], self.n)
            if n_parts == 1:
                return np.asarray(tour)
            for number in range(n_parts):  # two edges at least leave every closed part
                inside = part == number
                cuts.append((inside[self._pairs[:, 0]] != inside[self._pairs[:, 1]]).astype(float))

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Accept two edges at every city in one closed part."""
        good = are_binary(decisions)
        degree = np.zeros((len(decisions), self.n))
        for edge, (i, j) in enumerate(self._pairs.tolist()):
            degree[:, i] += decisions[:, edge]
            degree[:, j] += decisions[:, edge]
        good &= (degree == 2).all(axis=1)
        for row in np.flatnonzero(good).tolist():
            good[row] = components(self._pairs[decisions[row] == 1], self.n)[0] == 1
        return np.asarray(good)

    def diameter_squared(self) -> tuple[float, bool]:
        return float(min(2 * self.n, self.n_costs)), False

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Self:
        return cls(*sizes_from_spec(cls.name, arguments, "tsp:5", 50))


@compiled
def spanning_trees(costs: FloatArray, edges: IntArray, n_nodes: int) -> FloatArray:
    """Run Kruskal's algorithm for each row: edges by cost, those that join two parts are taken.

    Parts are trees of parents; every look-up halves the path to the root, so that edges cost next
    to nothing after the sort.
    """
    n, d = costs.shape
    decisions = np.zeros((n, d))
    parent = np.empty(n_nodes, dtype=np.int64)
    for row in range(n):
        for node in range(n_nodes):
            parent[node] = node
        left = n_nodes - 1
        order = np.argsort(costs[row], kind="mergesort")
        for position in range(d):
            edge = order[position]
            a, b = edges[edge, 0], edges[edge, 1]
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            if a != b:
                parent[a] = b
                decisions[row, edge] = 1.0
                left -= 1
                if left == 0:
                    break
    return decisions


@compiled
def arborescences(costs: FloatArray, edges: IntArray, n_nodes: int, root: int) -> FloatArray:
    """Run Chu–Liu–Edmonds for each row: contract cycles of cheapest entering arcs, then expand.

    Contracted nodes get new numbers; ``over`` tells into which one a node went. Each edge keeps
    its current price (its cost less what the heads on its way were paid already).
    """
    n, d = costs.shape
    most = 2 * n_nodes
    decisions = np.zeros((n, d))
    price = np.empty(d)
    over = np.empty(most, dtype=np.int64)
    chosen = np.empty(most, dtype=np.int64)
    mark = np.empty(most, dtype=np.int64)
    top = np.empty(n_nodes, dtype=np.int64)
    for row in range(n):
        price[:] = costs[row]
        over[:] = -1
        chosen[:] = -1
        used = n_nodes
        for node in range(n_nodes):
            top[node] = node
        while True:
            # the cheapest entering edge of every current node but the root
            for node in range(used):
                if over[node] < 0:
                    chosen[node] = -1
            for edge in range(d):
                a, b = top[edges[edge, 0]], top[edges[edge, 1]]
                if a == b or b == top[root]:
                    continue
                if chosen[b] < 0 or price[edge] < price[chosen[b]]:
                    chosen[b] = edge
            # walk along the chosen arcs; meeting a node of the same walk closes a cycle
            mark[:] = -1
            cycle = -1
            for start in range(used):
                if over[start] >= 0 or start == top[root] or mark[start] >= 0:
                    continue
                node = start
                while node != top[root] and mark[node] < 0:
                    mark[node] = start
                    node = top[edges[chosen[node], 0]]
                if node != top[root] and mark[node] == start:
                    cycle = node
                    break
            if cycle < 0:
                break
            # contract: every edge that enters the cycle pays its cost less that of the arc which it
            # would replace, so that the contracted problem has the same optimum
            node = cycle
            while over[node] < 0:  # members of the cycle go into the new node `used`
                over[node] = used
                node = top[edges[chosen[node], 0]]
            for edge in range(d):
                b = top[edges[edge, 1]]
                if over[b] == used and edge != chosen[b]:
                    price[edge] -= price[chosen[b]]
            for node in range(n_nodes):
                if over[top[node]] == used:
                    top[node] = used
            used += 1
        # expand: the edge that enters a contracted node replaces the chosen one of its head's part
        for node in range(used - 1, -1, -1):
            if over[node] >= 0 or node == top[root]:
                continue
            decisions[row, chosen[node]] = 1.0
        for whole in range(used - 1, n_nodes - 1, -1):
            edge = chosen[whole]
            inside = edges[edge, 1]
            while over[inside] != whole:
                inside = over[inside]
            for node in range(used):
                if over[node] == whole:
                    if node == inside:
                        chosen[node] = edge
                    else:
                        decisions[row, chosen[node]] = 1.0
    return decisions


@compiled
def held_karp(costs: FloatArray, number: IntArray) -> FloatArray:
    """Find shortest tours over all subsets for each row; ``number[i, j]`` is the edge of i and j.

    L(S, j) is the shortest way from the last node through the set S to its member j:
    L(S, j) = min over i in S∖j of L(S∖j, i) + d(i, j), sets in the order of their bit patterns.
    """
    n, d = costs.shape
    n_nodes = len(number)
    m = n_nodes - 1  # the tour starts and ends at node m
    full = (1 << m) - 1
    best = np.empty((1 << m, m))
    came = np.empty((1 << m, m), dtype=np.int8)
    decisions = np.zeros((n, d))
    distance = np.zeros((n_nodes, n_nodes))
    for row in range(n):
        for i in range(n_nodes):
            for j in range(n_nodes):
                if i != j:
                    distance[i, j] = costs[row, number[i, j]]
        for last in range(m):
            best[1 << last, last] = distance[m, last]
            came[1 << last, last] = -1
        for visited in range(1, full + 1):
            if visited & (visited - 1) == 0:
                continue
            for last in range(m):
                if not visited & (1 << last):
                    continue
                others = visited ^ (1 << last)
                least, predecessor = np.inf, -1
                for before in range(m):
                    if others & (1 << before):
                        length = best[others, before] + distance[before, last]
                        if length < least:
                            least, predecessor = length, before
                best[visited, last] = least
                came[visited, last] = predecessor
        least, last = np.inf, 0
        for node in range(m):
            length = best[full, node] + distance[node, m]
            if length < least:
                least, last = length, node
        decisions[row, number[last, m]] = 1.0
        # walk back through the sets from which each last city was reached
        visited = full
        while came[visited, last] >= 0:
            before = came[visited, last]
            decisions[row, number[before, last]] = 1.0
            visited ^= 1 << last
            last = before
        decisions[row, number[last, m]] = 1.0
    return decisions
