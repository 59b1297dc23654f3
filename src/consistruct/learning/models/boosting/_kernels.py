"""Compiled loops of boosting: histograms and splits, gradients, leaves, predictions.

A tree is symmetric: all nodes of a level have the same split, so that a leaf is found by as many
comparisons as there are levels, and every split is judged by all rows. Leaves are vectors: one tree
serves all classes or targets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._compile import compiled

__all__ = [
    "add_trees",
    "best_split",
    "class_gradients",
    "leaves_of",
    "part_rows",
    "square_gradients",
    "step",
]


@compiled
def best_split(
    codes: Any,  # (d, n) bytes
    tops: Any,  # (d,) the largest byte of each column
    categorical: Any,  # (d,) bool
    columns: Any,  # (m,) columns to try
    order: Any,  # (r,) rows, those of a node together
    starts: Any,  # (nodes + 1,) where the rows of each node begin in `order`
    gradients: Any,  # (r, c + 1), in that order: gradients, then the weight
    penalty: float,
) -> Any:
    """(score, column, cut) of the best split of a level: Σ_nodes ‖sum of gradients‖²/(weight + λ).

    A row goes left if its byte is at most the cut, or of a category if it is the cut. Column −1
    where no split is better than none.
    """
    width = gradients.shape[1]
    c = width - 1
    nodes = len(starts) - 1
    totals, nothing = np.zeros((nodes, width)), np.zeros(nodes)
    best, best_column, best_cut = 0.0, -1, 0
    for node in range(nodes):
        for i in range(starts[node], starts[node + 1]):
            for j in range(width):
                totals[node, j] += gradients[i, j]
        for j in range(c):
            nothing[node] += totals[node, j] * totals[node, j]
        nothing[node] /= totals[node, c] + penalty
        best += nothing[node]
    best += 1e-10 * abs(best)
    # sums are all zero between nodes: clearing 256 rows of them would take longer than few rows do
    score, sums, left = np.empty(256), np.zeros((256, width)), np.empty(width)
    for column in columns:
        column_codes, category, n_codes = codes[column], categorical[column], tops[column] + 1
        if n_codes == 1:
            continue
        score[:n_codes] = 0.0
        for node in range(nodes):
            start, end = starts[node], starts[node + 1]
            if start == end:
                continue
            for i in range(start, end):
                code = column_codes[order[i]]
                for j in range(width):
                    sums[code, j] += gradients[i, j]
            left[:] = 0.0
            part = nothing[node]
            for cut in range(n_codes):
                if sums[cut, c] > 0.0:
                    below, above = 0.0, 0.0
                    for j in range(width):
                        left[j] = sums[cut, j] if category else left[j] + sums[cut, j]
                        sums[cut, j] = 0.0
                    for j in range(c):
                        rest = totals[node, j] - left[j]
                        below += left[j] * left[j]
                        above += rest * rest
                    rest = max(totals[node, c] - left[c], 0.0)
                    part = below / (left[c] + penalty) + above / (rest + penalty)
                elif category:
                    part = nothing[node]
                score[cut] += part  # without rows of its own, a cut parts those of the one before
        for cut in range(n_codes):
            if score[cut] > best:
                best, best_column, best_cut = score[cut], column, cut
    return best, best_column, best_cut


@compiled
def part_rows(
    codes: Any,  # (n,) bytes of the column
    category: bool,
    cut: int,
    order: Any,  # (r,)
    starts: Any,  # (nodes + 1,)
    found: Any,  # (r,): the new order
) -> Any:
    """Rows of every node, those that go left first; where the twice as many nodes begin."""
    nodes = len(starts) - 1
    begin = np.zeros(2 * nodes + 1, np.int64)
    place = 0
    for node in range(nodes):
        for right in range(2):
            begin[2 * node + right] = place
            for i in range(starts[node], starts[node + 1]):
                code = codes[order[i]]
                goes_right = code != cut if category else code > cut
                if goes_right == (right == 1):
                    found[place] = order[i]
                    place += 1
    begin[2 * nodes] = place
    return begin


@compiled
def class_gradients(
    scores: Any,  # (n, c); one column for two classes
    classes: Any,  # (n,)
    weight: Any,  # (n,)
    gradients: Any,  # (n, c): filled
    curvatures: Any,  # (n, c): filled
) -> None:
    """Downward gradients and curvatures of the log loss."""
    n, c = scores.shape
    for i in range(n):
        if c == 1:
            probability = 1.0 / (1.0 + np.exp(-scores[i, 0]))
            gradients[i, 0] = weight[i] * (classes[i] - probability)
            curvatures[i, 0] = weight[i] * probability * (1.0 - probability)
            continue
        largest = scores[i].max()
        mass = 0.0
        for j in range(c):
            gradients[i, j] = np.exp(scores[i, j] - largest)
            mass += gradients[i, j]
        for j in range(c):
            probability = gradients[i, j] / mass
            gradients[i, j] = weight[i] * ((1.0 if classes[i] == j else 0.0) - probability)
            curvatures[i, j] = weight[i] * probability * (1.0 - probability)


@compiled
def square_gradients(
    scores: Any,  # (n, c)
    targets: Any,  # (n, c)
    weight: Any,  # (n,)
    gradients: Any,  # (n, c): filled
    curvatures: Any,  # (n, c): filled
) -> None:
    """The same for half the squared error."""
    n, c = scores.shape
    for i in range(n):
        for j in range(c):
            gradients[i, j] = weight[i] * (targets[i, j] - scores[i, j])
            curvatures[i, j] = weight[i]


@compiled
def leaves_of(
    codes: Any,  # (d, n)
    categorical: Any,  # (d,)
    columns: Any,  # (depth,): −1 from where the tree ends
    cuts: Any,  # (depth,)
    leaves: Any,  # (n,): filled
) -> None:
    """Number of the leaf of every row."""
    leaves[:] = 0
    for level in range(len(columns)):
        column = columns[level]
        if column < 0:
            break
        cut, category = cuts[level], categorical[column]
        column_codes = codes[column]
        for i in range(len(leaves)):
            goes_right = column_codes[i] != cut if category else column_codes[i] > cut
            leaves[i] = 2 * leaves[i] + (1 if goes_right else 0)


@compiled
def step(
    leaves: Any,  # (n,)
    gradients: Any,  # (n, c)
    curvatures: Any,  # (n, c)
    penalty: float,
    rate: float,
    values: Any,  # (leaves, c): filled
    scores: Any,  # (n, c): moved
) -> None:
    """Newton steps of the leaves, and the scores after them."""
    n, c = gradients.shape
    bends = np.zeros_like(values)
    values[:] = 0.0
    for i in range(n):
        leaf = leaves[i]
        for j in range(c):
            values[leaf, j] += gradients[i, j]
            bends[leaf, j] += curvatures[i, j]
    for leaf in range(len(values)):
        for j in range(c):
            values[leaf, j] *= rate / (bends[leaf, j] + penalty)
    for i in range(n):
        leaf = leaves[i]
        for j in range(c):
            scores[i, j] += values[leaf, j]


@compiled
def add_trees(
    codes: Any,  # (n, d): row by row
    categorical: Any,  # (d,)
    columns: Any,  # (trees, depth)
    cuts: Any,  # (trees, depth)
    values: Any,  # (trees, leaves, c)
    scores: Any,  # (n, c): moved
) -> None:
    """The sum of all trees for every row."""
    trees, depth = columns.shape
    c = scores.shape[1]
    for i in range(codes.shape[0]):
        for tree in range(trees):
            leaf = 0
            for level in range(depth):
                column = columns[tree, level]
                if column < 0:
                    break
                code, cut = codes[i, column], cuts[tree, level]
                goes_right = code != cut if categorical[column] else code > cut
                leaf = 2 * leaf + (1 if goes_right else 0)
            for j in range(c):
                scores[i, j] += values[tree, leaf, j]
