"""Compiled loops of knapsacks, schedules, trees and tours."""

from __future__ import annotations

import numpy as np

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray

__all__ = ["arborescences", "held_karp", "interval_sets", "knapsacks", "spanning_trees"]


@compiled
def knapsacks(costs: FloatArray, weights: IntArray, capacity: int) -> FloatArray:
    """Sets of least total cost with total weight at most `capacity`: items by capacities."""
    n, d = costs.shape
    found = np.zeros((n, d))
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
                found[row, item] = 1.0
                room -= weights[item]
    return found


@compiled
def interval_sets(costs: FloatArray, order: IntArray, before: IntArray) -> FloatArray:
    """Sets of least total cost of intervals that do not overlap.

    `order` sorts intervals by their ends; ``before[i]`` counts those, in that order, that end
    before the i-th starts.
    """
    n, d = costs.shape
    found = np.zeros((n, d))
    best = np.zeros(d + 1)
    for row in range(n):
        for place in range(d):
            with_it = best[before[place]] + costs[row, order[place]]
            best[place + 1] = min(best[place], with_it)
        place = d
        while place > 0:
            with_it = best[before[place - 1]] + costs[row, order[place - 1]]
            if with_it < best[place - 1]:
                found[row, order[place - 1]] = 1.0
                place = before[place - 1]
            else:
                place -= 1
    return found


@compiled
def spanning_trees(costs: FloatArray, edges: IntArray, n_nodes: int) -> FloatArray:
    """Kruskal's algorithm with path halving, for each row."""
    n, d = costs.shape
    found = np.zeros((n, d))
    parent = np.empty(n_nodes, dtype=np.int64)
    for row in range(n):
        for node in range(n_nodes):
            parent[node] = node
        left = n_nodes - 1
        order = np.argsort(costs[row], kind="mergesort")
        for place in range(d):
            edge = order[place]
            a, b = edges[edge, 0], edges[edge, 1]
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            if a != b:
                parent[a] = b
                found[row, edge] = 1.0
                left -= 1
                if left == 0:
                    break
    return found


@compiled
def arborescences(costs: FloatArray, edges: IntArray, n_nodes: int, root: int) -> FloatArray:
    """Chu–Liu–Edmonds for each row: contract cycles of cheapest entering arcs, then expand them.

    Contracted nodes get new numbers; ``over`` tells into which one a node went. Each edge keeps
    its current price (its cost less what the heads on its way were paid already).
    """
    n, d = costs.shape
    most = 2 * n_nodes
    found = np.zeros((n, d))
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
            found[row, chosen[node]] = 1.0
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
                        found[row, chosen[node]] = 1.0
    return found


@compiled
def held_karp(costs: FloatArray, number: IntArray) -> FloatArray:
    """Shortest tours over all subsets, for each row; ``number[i, j]`` is the edge of i and j."""
    n, d = costs.shape
    n_nodes = len(number)
    m = n_nodes - 1  # the tour starts and ends at node m
    full = (1 << m) - 1
    best = np.empty((1 << m, m))
    came = np.empty((1 << m, m), dtype=np.int8)
    found = np.zeros((n, d))
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
                rest = visited ^ (1 << last)
                least, place = np.inf, -1
                for before in range(m):
                    if rest & (1 << before):
                        length = best[rest, before] + distance[before, last]
                        if length < least:
                            least, place = length, before
                best[visited, last] = least
                came[visited, last] = place
        least, last = np.inf, 0
        for node in range(m):
            length = best[full, node] + distance[node, m]
            if length < least:
                least, last = length, node
        found[row, number[last, m]] = 1.0
        visited = full
        while came[visited, last] >= 0:
            before = came[visited, last]
            found[row, number[before, last]] = 1.0
            visited ^= 1 << last
            last = before
        found[row, number[last, m]] = 1.0
    return found
