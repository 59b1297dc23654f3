"""Compiled dynamic programs over lists of hyperedges: inside, outside, best, k best, samples.

A recursion is four arrays: node v has the edges ``start[v]:start[v + 1]``, and edge e has up to
two tails ``first[e]``, ``second[e]`` (earlier nodes, −1 for none) and a part ``part[e]`` (−1 for
none). With the score x_e = θ_part(e) + Σ_tails α_tail, one pass from the first node to the goal is

    α_v = log Σ_e exp x_e   (inside)      or      α_v = max_e x_e   (best)

The inside pass keeps P(e | v) = exp(x_e − α_v). The outside pass, which walks back from the goal
with P(goal) = 1, and sampling then multiply probabilities only: no second exponential, nothing
that overflows at scores of ±1e4. A node without edges has no derivation: α = −inf.

Lists of size n are a prefix of those of size N, so a batch of different sizes is one array of
lists, the goal node of each example, and flat scores with offsets.

References: Goodman, *Semiring parsing*, 1999; Eisner, *Inside-outside and forward-backward
algorithms are just backprop*, 2016; Huang and Chiang, *Better k-best parsing*, 2005.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "Lists",
    "Packed",
    "Used",
    "best_edges",
    "best_packed",
    "k_best_packed",
    "marginals_packed",
    "sample_packed",
]

Index = NDArray[np.int32]
Lists = tuple[Index, Index, Index, Index]  # start, first, second, part
# lists, the goal of each example (n,), offsets (n + 1,) of its scores, flat scores (N,)
Packed = tuple[Lists, IntArray, IntArray, FloatArray]
Used = NDArray[np.int8]  # how often each part is used


@compiled
def _n_nodes(goals: IntArray) -> int:
    return goals.max() + 1 if len(goals) else 0


@compiled
def _take(e: int, lists: Lists, used: Used, stack: Index, top: int) -> int:
    """Mark the part of an edge, put its tails on the stack, and return how many are there."""
    _, first, second, part = lists
    if part[e] >= 0:
        used[part[e]] += 1
    if first[e] >= 0:
        stack[top] = first[e]
        top += 1
    if second[e] >= 0:
        stack[top] = second[e]
        top += 1
    return top


@compiled
def _inside(
    lists: Lists,
    goal: int,
    scores: FloatArray,  # (parts of the size,)
    alpha: FloatArray,  # (> goal,) out
    share: FloatArray,  # (edges,) out: P(e | v)
) -> None:
    start, first, second, part = lists
    for v in range(goal + 1):
        low, high = start[v], start[v + 1]
        largest = -np.inf
        for e in range(low, high):
            # written out in every loop: as a function it counts references to five arrays for each
            # edge, ten times the cost of everything else
            x = scores[part[e]] if part[e] >= 0 else 0.0
            if first[e] >= 0:
                x += alpha[first[e]]
            if second[e] >= 0:
                x += alpha[second[e]]
            share[e] = x
            if x > largest:
                largest = x
        # no legal derivation: −inf − (−inf) would be NaN
        if largest == -np.inf:
            alpha[v] = largest
            share[low:high] = 0.0
            continue
        # a node with one edge needs no exponential
        if high == low + 1:
            alpha[v] = largest
            share[low] = 1.0
            continue
        total = 0.0
        for e in range(low, high):
            share[e] = np.exp(share[e] - largest)
            total += share[e]
        alpha[v] = largest + np.log(total)
        factor = 1.0 / total  # total ≥ 1
        for e in range(low, high):
            share[e] *= factor


@compiled
def marginals_packed(
    packed: Packed,
    marginals: FloatArray,  # (N,) out
    log_partition: FloatArray,  # (n,) out
) -> None:
    """Compute log Z and the expected use of every part, example after example."""
    lists, goals, offsets, scores = packed
    start, first, second, part = lists
    n_nodes = _n_nodes(goals)
    alpha, reach = np.empty(n_nodes), np.empty(n_nodes)
    share = np.empty(start[n_nodes])
    for row in range(len(goals)):
        goal = goals[row]
        low, high = offsets[row], offsets[row + 1]
        _inside(lists, goal, scores[low:high], alpha, share)
        log_partition[row] = alpha[goal]
        expected = marginals[low:high]
        expected[:] = 0.0
        # outside: P(v is used), spread over its edges by P(e | v)
        reach[: goal + 1] = 0.0
        reach[goal] = 1.0
        for v in range(goal, -1, -1):
            q = reach[v]
            if q == 0.0:
                continue
            for e in range(start[v], start[v + 1]):
                p = q * share[e]
                if first[e] >= 0:
                    reach[first[e]] += p
                if second[e] >= 0:
                    reach[second[e]] += p
                if part[e] >= 0:
                    expected[part[e]] += p


@compiled
def best_edges(
    lists: Lists,
    goal: int,
    scores: FloatArray,
    alpha: FloatArray,  # (> goal,) out
    back: Index,  # (> goal,) out: the first best edge of each node, −1 where there is none
) -> None:
    """Run the maximizing pass; ties go to the edge that was listed first."""
    start, first, second, part = lists
    for v in range(goal + 1):
        largest, choice = -np.inf, -1
        for e in range(start[v], start[v + 1]):
            x = scores[part[e]] if part[e] >= 0 else 0.0
            if first[e] >= 0:
                x += alpha[first[e]]
            if second[e] >= 0:
                x += alpha[second[e]]
            if x > largest:
                largest, choice = x, e
        alpha[v], back[v] = largest, choice


@compiled
def best_packed(
    packed: Packed,
    used: Used,  # (N,) out, zero on entry
    best: FloatArray,  # (n,) out
) -> None:
    """Mark the parts of the best derivation of every example."""
    lists, goals, offsets, scores = packed
    n_nodes = _n_nodes(goals)
    alpha = np.empty(n_nodes)
    back = np.empty(n_nodes, dtype=np.int32)
    stack = np.empty(n_nodes + 1, dtype=np.int32)
    for row in range(len(goals)):
        low, high = offsets[row], offsets[row + 1]
        best_edges(lists, goals[row], scores[low:high], alpha, back)
        best[row] = alpha[goals[row]]
        if best[row] == -np.inf:
            continue
        # tails are earlier nodes, so the stack never holds more than one entry per node of a path
        stack[0] = goals[row]
        top = 1
        while top > 0:
            top -= 1
            top = _take(back[stack[top]], lists, used[low:high], stack, top)


@compiled
def sample_packed(
    packed: Packed,
    rng: np.random.Generator,
    used: Used,  # (draws, N) out, zero on entry
    log_partition: FloatArray,  # (n,) out
) -> None:
    """Draw derivations from p ∝ exp score: at every node one edge from P(e | v), from the goal."""
    lists, goals, offsets, scores = packed
    start = lists[0]
    n_nodes = _n_nodes(goals)
    alpha, share = np.empty(n_nodes), np.empty(start[n_nodes])
    stack = np.empty(n_nodes + 1, dtype=np.int32)
    for row in range(len(goals)):
        low, high = offsets[row], offsets[row + 1]
        _inside(lists, goals[row], scores[low:high], alpha, share)
        log_partition[row] = alpha[goals[row]]
        if log_partition[row] == -np.inf:
            continue
        for draw in range(len(used)):
            stack[0] = goals[row]
            top = 1
            while top > 0:
                top -= 1
                v = stack[top]
                left = rng.random()
                e = -1
                # rounding may leave a little of `left` behind the last edge: the last possible
                # edge takes it, never one of probability zero
                for candidate in range(start[v], start[v + 1]):
                    if share[candidate] > 0.0:
                        e = candidate
                        left -= share[candidate]
                        if left < 0.0:
                            break
                top = _take(e, lists, used[draw, low:high], stack, top)


@compiled
def _k_best_of_nodes(
    lists: Lists,
    goal: int,
    scores: FloatArray,
    known: Index,  # (> goal,) out: how many derivations each node has, at most k
    value: FloatArray,  # (> goal, k) out, descending
    choice: Index,  # (> goal, k, 3) out: edge, rank of its first tail, rank of its second
    pool: Index,  # (most edges of a node + 2k, 3) work space
    pool_value: FloatArray,
) -> None:
    # Bottom-up rather than lazily from the goal: more work, but no recursion whose depth grows with
    # the sentence. The next best of an edge is one of two neighbors in the grid
    # of ranks of its tails; (r1 + 1, r2) is entered from r2 = 0 only, so none comes twice.
    start, first, second, part = lists
    k = value.shape[1]
    for v in range(goal + 1):
        known[v] = 0
        n_pool = 0
        for e in range(start[v], start[v + 1]):
            if (first[e] >= 0 and known[first[e]] == 0) or (
                second[e] >= 0 and known[second[e]] == 0
            ):
                continue
            x = scores[part[e]] if part[e] >= 0 else 0.0
            x += value[first[e], 0] if first[e] >= 0 else 0.0
            x += value[second[e], 0] if second[e] >= 0 else 0.0
            if x > -np.inf:
                pool[n_pool, 0], pool[n_pool, 1], pool[n_pool, 2] = e, 0, 0
                pool_value[n_pool] = x
                n_pool += 1
        while known[v] < k and n_pool > 0:
            b = 0
            for c in range(1, n_pool):
                if pool_value[c] > pool_value[b]:
                    b = c
            e, r1, r2 = pool[b, 0], pool[b, 1], pool[b, 2]
            value[v, known[v]] = pool_value[b]
            choice[v, known[v], 0], choice[v, known[v], 1], choice[v, known[v], 2] = e, r1, r2
            known[v] += 1
            x = scores[part[e]] if part[e] >= 0 else 0.0
            n_pool -= 1
            pool[b] = pool[n_pool]
            pool_value[b] = pool_value[n_pool]
            if second[e] >= 0 and r2 + 1 < known[second[e]]:
                pool[n_pool, 0], pool[n_pool, 1], pool[n_pool, 2] = e, r1, r2 + 1
                pool_value[n_pool] = x + value[first[e], r1] + value[second[e], r2 + 1]
                n_pool += 1
            if first[e] >= 0 and r2 == 0 and r1 + 1 < known[first[e]]:
                pool[n_pool, 0], pool[n_pool, 1], pool[n_pool, 2] = e, r1 + 1, 0
                x += value[second[e], 0] if second[e] >= 0 else 0.0
                pool_value[n_pool] = x + value[first[e], r1 + 1]
                n_pool += 1


@compiled
def k_best_packed(
    packed: Packed,
    used: Used,  # (k, N) out, zero on entry
    best: FloatArray,  # (n, k) out, −inf where there are fewer than k
) -> None:
    """Mark the parts of the k best derivations of every example, best first."""
    lists, goals, offsets, scores = packed
    start, first, second, part = lists
    k = len(used)
    n_nodes = _n_nodes(goals)
    most = 0
    for v in range(n_nodes):
        most = max(most, start[v + 1] - start[v])
    known = np.empty(n_nodes, dtype=np.int32)
    value = np.empty((n_nodes, k))
    choice = np.empty((n_nodes, k, 3), dtype=np.int32)
    pool = np.empty((most + 2 * k, 3), dtype=np.int32)
    pool_value = np.empty(most + 2 * k)
    stack = np.empty((n_nodes + 1, 2), dtype=np.int32)
    best[:] = -np.inf
    for row in range(len(goals)):
        low, goal = offsets[row], goals[row]
        _k_best_of_nodes(
            lists, goal, scores[low : offsets[row + 1]], known, value, choice, pool, pool_value
        )
        for rank in range(known[goal]):
            best[row, rank] = value[goal, rank]
            stack[0, 0], stack[0, 1] = goal, rank
            top = 1
            while top > 0:
                top -= 1
                v, r = stack[top, 0], stack[top, 1]
                e = choice[v, r, 0]
                if part[e] >= 0:
                    used[rank, low + part[e]] += 1
                for tail in range(2):
                    u = first[e] if tail == 0 else second[e]
                    if u >= 0:
                        stack[top, 0], stack[top, 1] = u, choice[v, r, 1 + tail]
                        top += 1
