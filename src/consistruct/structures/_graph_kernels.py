"""Compiled loops of `graphs`: trees by dynamic programming, minimum cuts, and a dual bound.

θ of one example is flat: s scores for each node, then an s × s table for each edge (i, j), rows by
the state of i. Loops read edges through ``link``, the incident edges of each node:
``link[start[i]:start[i + 1]]`` has rows (neighbor, edge, 1 if i is the second end).
"""

from __future__ import annotations

import numpy as np

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray

__all__ = ["best_of_trees", "dual_rows", "graph_score", "minimum_cut", "trees_of"]

# Sweeps without progress (relative to the bound, below) after which the bound has converged.
PATIENCE = 10
PROGRESS = 1e-7
# A gap below this share of the bound is rounding: the label is optimal.
CLOSED = 1e-10


@compiled
def _pair(theta: FloatArray, table: int, s: int, second: int, x: int, y: int) -> float:
    """Return the score of a node in state x and its neighbor in state y on their edge.

    Parameters
    ----------
    table : int
        Where the edge's s × s table starts in θ.
    second : int
        Whether the node is the second end of the edge, whose states number the columns.
    """
    value: float = theta[table + (y * s + x if second else x * s + y)]
    return value


@compiled
def graph_score(theta: FloatArray, edges: IntArray, s: int, label: IntArray) -> float:
    """Return Σ_i θ_i(y_i) + Σ_ij θ_ij(y_i, y_j)."""
    total = 0.0
    n_nodes = len(label)
    for i in range(n_nodes):
        total += theta[i * s + label[i]]
    for e in range(len(edges)):
        total += theta[(n_nodes + e * s + label[edges[e, 0]]) * s + label[edges[e, 1]]]
    return total


# --- trees ----------------------------------------------------------------------------------------


@compiled
def _upward(
    theta: FloatArray, order: IntArray, up: IntArray, soft: bool, b: FloatArray, m: FloatArray
) -> float:
    """Pass messages from leaves to roots; return the largest score, or log Z if ``soft``.

    b_i(x) collects a node and all below it; m_i(y) = max or log Σ exp over x of b_i(x) + θ(x, y) is
    what its parent in state y sees of it. O(V s²).

    Parameters
    ----------
    order : (V,) array
        Nodes, parents before children.
    up : (V, 3) array
        (parent, edge, 1 if the node is its second end); roots have parent −1.
    soft : bool
        log Σ exp instead of max.
    b, m : (V, s) arrays
        Overwritten; a root's message has one entry, over all its states.
    """
    n_nodes, s = b.shape
    total = 0.0
    for i in range(n_nodes):
        for x in range(s):
            b[i, x] = theta[i * s + x]
    for position in range(n_nodes - 1, -1, -1):
        i = order[position]
        parent, table = up[i, 0], (n_nodes + up[i, 1] * s) * s
        for y in range(s if parent >= 0 else 1):
            high = -np.inf
            for x in range(s):
                value = b[i, x]
                if parent >= 0:
                    value += _pair(theta, table, s, up[i, 2], x, y)
                high = max(high, value)
            if soft and high > -np.inf:
                mass = 0.0
                for x in range(s):
                    value = b[i, x]
                    if parent >= 0:
                        value += _pair(theta, table, s, up[i, 2], x, y)
                    mass += np.exp(value - high)
                high += np.log(mass)
            m[i, y] = high
            if parent >= 0:
                b[parent, y] += high
            else:
                total += high
    return total


@compiled
def best_of_trees(
    thetas: FloatArray, s: int, order: IntArray, up: IntArray, labels: IntArray, best: FloatArray
) -> None:
    """Write the best label of each row, ties to the smallest state from the roots on.

    Parameters
    ----------
    thetas : (n, width) array
    s : int
        States.
    order, up : (V,) and (V, 3) arrays
        As in `_upward`.
    labels, best : (n, V) and (n,) arrays
        Overwritten; best is −inf where every label is forbidden.
    """
    n_nodes = len(order)
    b, m = np.empty((n_nodes, s)), np.empty((n_nodes, s))
    for row in range(len(thetas)):
        theta = thetas[row]
        best[row] = _upward(theta, order, up, False, b, m)
        for i in order:
            parent, table = up[i, 0], (n_nodes + up[i, 1] * s) * s
            high = -np.inf
            labels[row, i] = 0
            for x in range(s):
                value = b[i, x]
                if parent >= 0:
                    value += _pair(theta, table, s, up[i, 2], x, labels[row, parent])
                if value > high:
                    high, labels[row, i] = value, x


@compiled
def trees_of(
    thetas: FloatArray,
    s: int,
    order: IntArray,
    up: IntArray,
    uniform: FloatArray,
    log_z: FloatArray,
    shares: FloatArray,
    labels: IntArray,
) -> None:
    """Write log Z and either marginals, or one exact draw per row where ``uniform`` has numbers.

    From the roots down, P(x | parent in y) = exp(b(x) + θ(x, y) − m(y)): the upward pass has done
    all sums, so that nothing is normalized here and no digits are lost on the way down.

    Parameters
    ----------
    uniform : (n, V) array
        Numbers in [0, 1), one per node; (0, V) for marginals.
    log_z, shares, labels : (n,), (n, width) and (n, V) arrays
        Overwritten: log Z, and marginals laid out as θ (zeros on entry), or draws.
    """
    n_nodes = len(order)
    b, m = np.empty((n_nodes, s)), np.empty((n_nodes, s))
    for row in range(len(thetas)):
        theta = thetas[row]
        log_z[row] = _upward(theta, order, up, True, b, m)
        if log_z[row] == -np.inf:
            continue
        for i in order:
            parent, table = up[i, 0], (n_nodes + up[i, 1] * s) * s
            below, drawn = 0.0, -1
            for y in range(s if parent >= 0 else 1):
                if parent >= 0 and len(uniform) > 0 and labels[row, parent] != y:
                    continue
                for x in range(s):
                    value = b[i, x] - m[i, y]
                    if parent >= 0:
                        value += _pair(theta, table, s, up[i, 2], x, y)
                    # NaN where no state of this node goes with y: −inf − (−inf); y has share zero
                    if not value > -np.inf:
                        continue
                    share = np.exp(value)
                    if len(uniform) > 0:
                        if drawn < 0 or below <= uniform[row, i]:
                            drawn = x
                        below += share
                        continue
                    if parent >= 0:
                        share *= shares[row, parent * s + y]
                        shares[row, table + (y * s + x if up[i, 2] else x * s + y)] = share
                    shares[row, i * s + x] += share
            if len(uniform) > 0:
                labels[row, i] = drawn


# --- binary labels: minimum cuts ------------------------------------------------------------------


@compiled
def minimum_cut(
    theta: FloatArray, edges: IntArray, start: IntArray, link: IntArray, label: IntArray
) -> float:
    """Write the best binary label and return the bound that its cut proves; NaN if it is no cut.

    A table rewards agreement by w = θ(0,0) + θ(1,1) − θ(0,1) − θ(1,0). Where all w ≥ 0, possibly
    after 0 and 1 are exchanged at some nodes, maximizing the score is a minimum cut (Greig et al.
    1989). It is found in floats by Dinic's algorithm, whose number of steps does not depend on the
    capacities; a saturated arc has residual 0 exactly.

    Parameters
    ----------
    theta : (2V + 4E,) array
        −inf forbids.
    edges : (E, 2) array
    start, link : (V + 1,) and (2E, 3) arrays
        Incident edges, see above.
    label : (V,) array
        Overwritten; among best labels the one with the fewest ones, before any exchange.
    """
    n_nodes, n_edges = len(label), len(edges)
    # −inf becomes a cost that no allowed label can reach, so that the arithmetic stays finite
    low, high = 0.0, 0.0
    for value in theta:
        if value > -np.inf:
            low, high = min(low, value), max(high, value)
    forbidden = -(1.0 + (high - low) * (n_nodes + n_edges)) + low
    scores = np.where(theta > -np.inf, theta, forbidden)
    w = np.empty(n_edges)
    for e in range(n_edges):
        t = scores[2 * n_nodes + 4 * e : 2 * n_nodes + 4 * e + 4]
        w[e] = t[0] + t[3] - t[1] - t[2]
    # exchange states along edges that reward disagreement, until all agree or a cycle forbids it
    flip = np.full(n_nodes, -1)
    stack = np.empty(n_nodes + 2, np.int64)
    for root in range(n_nodes):
        if flip[root] >= 0:
            continue
        flip[root], stack[0], top = 0, root, 1
        while top > 0:
            top -= 1
            i = stack[top]
            for k in range(start[i], start[i + 1]):
                j, e = link[k, 0], link[k, 1]
                if w[e] == 0.0:
                    continue
                wanted = flip[i] ^ (w[e] < 0.0)
                if flip[j] < 0:
                    flip[j], stack[top] = wanted, j
                    top += 1
                elif flip[j] != wanted:
                    return np.nan
    # Costs are minus scores. After the exchange a table t is a constant, two costs of single nodes
    # and a penalty: −t(y_i, y_j) = −t00 + (t00 − t01) y_j + (t01 − t11) y_i + |w| y_i (1 − y_j)
    constant, cost = 0.0, np.zeros(n_nodes)
    for i in range(n_nodes):
        constant -= scores[2 * i + flip[i]]
        cost[i] = scores[2 * i + flip[i]] - scores[2 * i + 1 - flip[i]]
    for e in range(n_edges):
        i, j = edges[e, 0], edges[e, 1]
        base, fi, fj = 2 * n_nodes + 4 * e, flip[i], flip[j]
        t00, t01 = scores[base + 2 * fi + fj], scores[base + 2 * fi + 1 - fj]
        constant -= t00
        cost[j] += t00 - t01
        cost[i] += t01 - scores[base + 2 * (1 - fi) + 1 - fj]
    # Nodes on the side of the source are 1. The source joins those whose cost is negative, so that
    # leaving one at 0 pays for it; those of positive cost are joined to the sink. Arcs come in
    # pairs k, k ^ 1, one for each direction.
    source, sink = n_nodes, n_nodes + 1
    n_arcs = 2 * (n_edges + n_nodes)
    to, room = np.empty(n_arcs, np.int64), np.zeros(n_arcs)
    for e in range(n_edges):
        to[2 * e], to[2 * e + 1], room[2 * e] = edges[e, 1], edges[e, 0], abs(w[e])
    for i in range(n_nodes):
        k = 2 * (n_edges + i)
        to[k], to[k + 1] = (sink, i) if cost[i] > 0.0 else (i, source)
        room[k] = abs(cost[i])
        constant += min(cost[i], 0.0)
    order = np.argsort(to, kind="mergesort")  # arcs k ^ 1 leave the node that k enters
    first = np.searchsorted(to[order], np.arange(n_nodes + 3))
    flow, level = 0.0, np.empty(n_nodes + 2, np.int64)
    path = np.empty(n_nodes + 2, np.int64)
    while True:
        # distances from the source along arcs with room; they grow with every round, which bounds
        # the number of rounds by the number of nodes
        level[:] = -1
        level[source], stack[0], head, tail = 0, source, 0, 1
        while head < tail:
            i = stack[head]
            head += 1
            for position in range(first[i], first[i + 1]):
                k = order[position] ^ 1
                if room[k] > 0.0 and level[to[k]] < 0:
                    level[to[k]], stack[tail] = level[i] + 1, to[k]
                    tail += 1
        if level[sink] < 0:
            break
        # a blocking flow along shortest paths: dead ends are never entered twice in a round
        current = first[: n_nodes + 2].copy()
        i, depth = source, 0
        while True:
            if i == sink:
                amount = np.inf
                for d in range(depth):
                    amount = min(amount, room[path[d]])
                flow += amount
                back = 0
                for d in range(depth - 1, -1, -1):
                    room[path[d]] -= amount
                    room[path[d] ^ 1] += amount
                    if room[path[d]] == 0.0:
                        back = d
                i, depth = to[path[back] ^ 1], back
            while current[i] < first[i + 1]:
                k = order[current[i]] ^ 1
                if room[k] > 0.0 and level[to[k]] == level[i] + 1:
                    break
                current[i] += 1
            if current[i] < first[i + 1]:
                path[depth] = order[current[i]] ^ 1
                i, depth = to[path[depth]], depth + 1
            elif i == source:
                break
            else:
                depth -= 1
                i = to[path[depth] ^ 1]
                current[i] += 1
    for i in range(n_nodes):
        label[i] = (level[i] >= 0) ^ flip[i]
    return -(constant + flow)


# --- any graph: a dual bound ----------------------------------------------------------------------


@compiled
def _beliefs(
    i: int,
    theta: FloatArray,
    messages: FloatArray,
    start: IntArray,
    link: IntArray,
    out: FloatArray,
) -> float:
    """Write a node's scores plus all messages into it, (s,); return the largest.

    ``messages[e, d]`` (s,) is what end d of edge e sends to the other end: so end 1 − d reads it.
    """
    s = len(out)
    out[:] = theta[i * s : (i + 1) * s]
    for k in range(start[i], start[i + 1]):
        out += messages[link[k, 1], 1 - link[k, 2]]
    return out.max()


@compiled
def _sweep(
    forward: bool,
    theta: FloatArray,
    messages: FloatArray,
    start: IntArray,
    link: IntArray,
    label: IntArray,
) -> float:
    """Visit all nodes, send messages ahead and choose states; return a bound on all labels.

    Edges fall into chains along which node numbers grow, max(number ahead, number behind) of them
    through each node, which share its belief equally. The bound adds up the best scores of all
    chains: what is taken off beliefs and messages to keep their maxima at zero (Kolmogorov 2006).

    Why this is a bound, whatever the messages were before: give each chain through i the share
    γ b_i − (messages into i along the chain) of its scores, with b_i as i is visited. Shares add up
    to θ_i, as every message belongs to one chain. Along a chain, what a node sends is then the
    recursion of the best score, and so the maxima add up to Σ over chains of their best scores,
    which is at least the score of any one label.

    Parameters
    ----------
    forward : bool
        Whether nodes are visited in the order of their numbers.
    messages : (E, 2, s) array
        Changed in place.
    label : (V,) array
        Overwritten: each node's best state given those behind and the messages from ahead.
    """
    n_nodes, s = len(label), messages.shape[2]
    bound = 0.0
    belief, fixed = np.empty(s), np.empty(s)
    for step in range(n_nodes):
        i = step if forward else n_nodes - 1 - step
        high = _beliefs(i, theta, messages, start, link, belief)
        if high == -np.inf:
            return -np.inf
        bound += high
        n_behind = 0
        fixed[:] = belief - high
        for k in range(start[i], start[i + 1]):
            j, e, second = link[k, 0], link[k, 1], link[k, 2]
            if (j < i) == forward:
                n_behind += 1
                table = (n_nodes + e * s) * s
                for x in range(s):
                    # the state already chosen behind takes the place of its message
                    if belief[x] > -np.inf:
                        fixed[x] += _pair(theta, table, s, second, x, label[j])
                        fixed[x] -= messages[e, 1 - second, x]
        label[i] = fixed.argmax()
        degree = start[i + 1] - start[i]
        share = 1.0 / max(n_behind, degree - n_behind, 1)
        for k in range(start[i], start[i + 1]):
            j, e, second = link[k, 0], link[k, 1], link[k, 2]
            if (j < i) == forward:
                continue
            table = (n_nodes + e * s) * s
            top = -np.inf
            for y in range(s):
                best = -np.inf
                for x in range(s):
                    # a state that is proven impossible sends nothing: −inf − (−inf) is no number
                    if belief[x] > -np.inf:
                        value = share * (belief[x] - high) - messages[e, 1 - second, x]
                        best = max(best, value + _pair(theta, table, s, second, x, y))
                messages[e, second, y] = best
                top = max(top, best)
            if top == -np.inf:
                return -np.inf
            for y in range(s):
                messages[e, second, y] -= top
            bound += top
    return bound


@compiled
def dual_rows(
    theta: FloatArray,
    s: int,
    edges: IntArray,
    start: IntArray,
    link: IntArray,
    sweeps: int,
    label: IntArray,
) -> tuple[float, float]:
    """Write the best label that sweeps of TRW-S meet; return its score and the smallest bound.

    The bounds of forward and of backward sweeps both hold. They converge to a point where no single
    chain can improve them, which may be above the value of the relaxation.

    Parameters
    ----------
    sweeps : int
        Most sweeps forwards; as many go backwards.
    label : (V,) array
        Overwritten.
    """
    messages = np.zeros((len(edges), 2, s))
    trial = np.zeros(len(label), np.int64)
    score, bound, last, stale = -np.inf, np.inf, np.inf, 0
    for sweep in range(2 * sweeps):
        found = _sweep(sweep % 2 == 0, theta, messages, start, link, trial)
        if found == -np.inf:
            return -np.inf, -np.inf
        value = graph_score(theta, edges, s, trial)
        if value > score:
            score, label[:] = value, trial
        bound = min(bound, found)
        scale = max(1.0, abs(bound))
        if bound - score <= CLOSED * scale:
            break
        stale = stale + 1 if last - bound <= PROGRESS * scale else 0
        last = bound
        if stale >= 2 * PATIENCE:
            break
    return score, max(bound, score)
