"""Compiled loops of shortest paths."""

from __future__ import annotations

import heapq

import numpy as np

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray

__all__ = ["dag_paths", "graph_paths", "widest_pair"]


@compiled
def dag_paths(
    costs: FloatArray,  # (n, d)
    tails: IntArray,  # (d,)
    heads: IntArray,  # (d,)
    order: IntArray,  # (d,): edges by the topological place of their tails
    n_nodes: int,
    source: int,
    target: int,
) -> FloatArray:
    """Shortest paths of a directed graph without cycles, one relaxation per edge."""
    n, d = costs.shape
    found = np.zeros((n, d))
    distance = np.empty(n_nodes)
    before = np.empty(n_nodes, dtype=np.int64)
    for row in range(n):
        distance[:] = np.inf
        distance[source] = 0.0
        before[:] = -1
        for place in range(d):
            edge = order[place]
            length = distance[tails[edge]] + costs[row, edge]
            if length < distance[heads[edge]]:
                distance[heads[edge]] = length
                before[heads[edge]] = edge
        node = target
        while node != source:
            edge = before[node]
            found[row, edge] = 1.0
            node = tails[edge]
    return found


@compiled
def graph_paths(
    costs: FloatArray,  # (n, d), non-negative
    starts: IntArray,  # (n_nodes + 1,): where the arcs of each node begin
    ends: IntArray,  # (arcs,): the node at the other end of each arc
    edges: IntArray,  # (arcs,): the edge that an arc belongs to
    source: int,
    target: int,
) -> FloatArray:
    """Dijkstra's algorithm with a heap, for each row of costs."""
    n, d = costs.shape
    n_nodes = len(starts) - 1
    found = np.zeros((n, d))
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
            found[row, before[node]] = 1.0
            node = came[node]
    return found


@compiled
def widest_pair(
    starts: IntArray,  # (n_nodes + 1,): arcs by tail, nodes in topological order
    ends: IntArray,  # (arcs,)
    source: int,
    target: int,
) -> int:
    """Most edges that are on one of two source-target paths and not on both.

    f(u, v): the most for the rest of the paths from u and v on. The node that comes first moves;
    at one node both move, by one edge (shared: counts 0) or by two (counts 2).
    """
    n_nodes = len(starts) - 1
    none = -(10**9)
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
