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
    "bytes_of",
    "class_gradients",
    "descend",
    "draw_rows",
    "log_odds_loss",
    "pack",
    "some_rows",
    "square_gradients",
    "step",
    "unpack",
]


@compiled
def bytes_of(
    X: Any,  # (n, d)
    borders: Any,  # (d, m), increasing
    categorical: Any,  # (d,)
    top: int,
    found: Any,  # (d, n): filled
) -> None:
    """Of a number: 1 + the borders below it; of a category below `top`: 1 + its code; else 0."""
    for column in range(X.shape[1]):
        line, category = borders[column], categorical[column]
        for i in range(X.shape[0]):
            value = X[i, column]
            byte = 0
            if category:
                if 0.0 <= value < top:
                    byte = 1 + int(value)
            elif not np.isnan(value):
                first, last = 0, len(line)
                while first < last:
                    middle = (first + last) // 2
                    if line[middle] < value:
                        first = middle + 1
                    else:
                        last = middle
                byte = 1 + first
            found[column, i] = byte


@compiled
def draw_rows(
    gradients: Any,  # (n, c)
    weight: Any,  # (n,)
    seed: int,
    floor: float,
    unit: float,
    rows: Any,  # (n,): filled
    chances: Any,  # (n,): filled
) -> Any:
    """How many rows were drawn, into `rows`, and how many were expected; Σ‖gradient‖².

    Rows are drawn by the size of their gradient, so that few of them tell the sums of all: the
    chance of row i, kept for those drawn, is min(1, s_i/unit), s_i² = ‖gradient‖² + floor·weight²
    (minimal variance sampling; Ibragimov and Gusev 2019). Divided by their chances, gradients and
    weights of the drawn rows have the right sums.
    """
    n, c = gradients.shape
    found, expected, squares = 0, 0.0, 0.0
    state = np.uint64(seed)
    for i in range(n):
        square = 0.0
        for j in range(c):
            square += gradients[i, j] * gradients[i, j]
        squares += square
        chance = min(1.0, np.sqrt(square + floor * weight[i] * weight[i]) / unit)
        expected += chance
        # splitmix64 (Steele, Lea and Flood 2014): much faster than a generator's array
        state += np.uint64(0x9E3779B97F4A7C15)
        mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        # written in any case, and kept by moving on: a branch that nobody can foresee costs more
        rows[found], chances[found] = i, chance
        found += np.float64(mixed >> np.uint64(11)) * 2.0**-53 < chance
    return found, expected, squares


@compiled
def some_rows(
    codes: Any,  # (d, n) bytes
    rows: Any,  # (m,)
    found: Any,  # (d, m): filled
) -> None:
    """The bytes of some rows side by side, so that every level reads them in order."""
    for column in range(codes.shape[0]):
        for i in range(len(rows)):
            found[column, i] = codes[column, rows[i]]


@compiled
def pack(
    gradients: Any,  # (m, c)
    weight: Any,  # (m,)
    units: Any,  # (c + 1,): of the weight, then of each gradient
    words: Any,  # (m, c // 2 + 1): filled
) -> None:
    """Weight and gradients as whole numbers of their units, two in a word.

    One addition then adds two sums, and sums of whole numbers do not depend on their order. Every
    number is below 2^31/m, so that no sum of m of them leaves its half.
    """
    c = gradients.shape[1]
    for i in range(len(weight)):
        low = max(np.int64(1), np.int64(np.rint(weight[i] / units[0])))
        for j in range(words.shape[1]):
            if j > 0:
                low = np.int64(np.rint(gradients[i, 2 * j - 1] / units[2 * j]))
            high = np.int64(0)
            if 2 * j < c:
                high = np.int64(np.rint(gradients[i, 2 * j] / units[2 * j + 1]))
            words[i, j] = (high << 32) + low


@compiled
def unpack(word: int, place: int, units: Any, sums: Any) -> None:
    """Add the two sums of a word to those of its place."""
    low = word & 0xFFFFFFFF
    if low >= 0x80000000:
        low -= 0x100000000
    sums[2 * place] += low * units[2 * place]
    if 2 * place + 1 < len(units):
        sums[2 * place + 1] += ((word - low) >> 32) * units[2 * place + 1]


@compiled
def best_split(
    codes: Any,  # (d, m) bytes
    tops: Any,  # (d,) the largest byte of each column
    categorical: Any,  # (d,) bool
    columns: Any,  # (t,) columns to try
    nodes: Any,  # (m,) node of every row
    n_nodes: int,
    words: Any,  # (m, p), of `pack`
    units: Any,  # (c + 1,)
    penalty: float,
) -> Any:
    """(score, column, cut) of the best split of a level: Σ_nodes ‖sum of gradients‖²/(weight + λ).

    A row goes left if its byte is at most the cut, or of a category if it is the cut. Column −1
    where no split is better than none.
    """
    m, p = words.shape
    width = len(units)
    packed = np.zeros((n_nodes, p), np.int64)
    for i in range(m):
        for j in range(p):
            packed[nodes[i], j] += words[i, j]
    totals, nothing, best = np.zeros((n_nodes, width)), np.zeros(n_nodes), 0.0
    for node in range(n_nodes):
        for j in range(p):
            unpack(packed[node, j], j, units, totals[node])
        for j in range(1, width):
            nothing[node] += totals[node, j] * totals[node, j]
        nothing[node] /= totals[node, 0] + penalty
        best += nothing[node]
    best += 1e-10 * abs(best)
    best_column, best_cut = -1, 0
    score, left = np.empty(256), np.empty(width)
    sums = np.empty((n_nodes * 256, p), np.int64)
    for column in columns:
        column_codes, category, n_codes = codes[column], categorical[column], tops[column] + 1
        if n_codes == 1:
            continue
        sums[: n_nodes * n_codes] = 0
        if p == 1:
            for i in range(m):
                sums[nodes[i] * n_codes + column_codes[i], 0] += words[i, 0]
        else:
            for i in range(m):
                place = nodes[i] * n_codes + column_codes[i]
                for j in range(p):
                    sums[place, j] += words[i, j]
        score[:n_codes] = 0.0
        for node in range(n_nodes):
            total, part = totals[node], nothing[node]
            left[:] = 0.0
            for cut in range(n_codes):
                place = node * n_codes + cut
                if sums[place, 0] != 0:
                    if category:
                        left[:] = 0.0
                    for j in range(p):
                        unpack(sums[place, j], j, units, left)
                    below, above = 0.0, 0.0
                    for j in range(1, width):
                        rest = total[j] - left[j]
                        below += left[j] * left[j]
                        above += rest * rest
                    in_left = left[0] + penalty
                    in_right = max(total[0] - left[0], 0.0) + penalty
                    part = (below * in_right + above * in_left) / (in_left * in_right)
                elif category:
                    part = nothing[node]
                score[cut] += part  # without rows of its own, a cut parts those of the one before
        for cut in range(n_codes):
            if score[cut] > best:
                best, best_column, best_cut = score[cut], column, cut
    return best, best_column, best_cut


@compiled
def class_gradients(
    scores: Any,  # (n, c); one column for two classes
    classes: Any,  # (n,)
    weight: Any,  # (n,)
    gradients: Any,  # (n, c): filled
    hessians: Any,  # (n, c): filled
) -> None:
    """Downward gradients and hessians of the log loss."""
    n, c = scores.shape
    for i in range(n):
        if c == 1:
            probability = 1.0 / (1.0 + np.exp(-scores[i, 0]))
            gradients[i, 0] = weight[i] * (classes[i] - probability)
            hessians[i, 0] = weight[i] * probability * (1.0 - probability)
            continue
        largest = scores[i].max()
        mass = 0.0
        for j in range(c):
            gradients[i, j] = np.exp(scores[i, j] - largest)
            mass += gradients[i, j]
        for j in range(c):
            probability = gradients[i, j] / mass
            gradients[i, j] = weight[i] * ((1.0 if classes[i] == j else 0.0) - probability)
            hessians[i, j] = weight[i] * probability * (1.0 - probability)


@compiled
def log_odds_loss(
    scores: Any,  # (n,)
    classes: Any,  # (n,)
    weight: Any,  # (n,)
) -> float:
    """Σ w log(1 + exp(∓score)) of two classes."""
    total = 0.0
    for i in range(len(scores)):
        signed = -scores[i] if classes[i] == 1 else scores[i]
        total += weight[i] * (max(signed, 0.0) + np.log1p(np.exp(-abs(signed))))
    return total


@compiled
def square_gradients(
    scores: Any,  # (n, c)
    targets: Any,  # (n, c)
    weight: Any,  # (n,)
    gradients: Any,  # (n, c): filled
    hessians: Any,  # (n, c): filled
) -> None:
    """The same for half the squared error."""
    n, c = scores.shape
    for i in range(n):
        for j in range(c):
            gradients[i, j] = weight[i] * (targets[i, j] - scores[i, j])
            hessians[i, j] = weight[i]


@compiled
def descend(
    codes: Any,  # (n,) bytes of the column that is compared
    category: bool,
    cut: int,
    nodes: Any,  # (n,): moved
) -> None:
    """The node of every row one level further down."""
    for i in range(len(nodes)):
        goes_right = codes[i] != cut if category else codes[i] > cut
        nodes[i] = 2 * nodes[i] + (1 if goes_right else 0)


@compiled
def step(
    leaves: Any,  # (n,)
    gradients: Any,  # (n, c)
    hessians: Any,  # (n, c)
    penalty: float,
    rate: float,
    values: Any,  # (leaves, c): filled
    scores: Any,  # (n, c): moved
) -> None:
    """Newton steps of the leaves, and the scores after them."""
    n, c = gradients.shape
    sums = np.zeros_like(values)
    values[:] = 0.0
    for i in range(n):
        leaf = leaves[i]
        for j in range(c):
            values[leaf, j] += gradients[i, j]
            sums[leaf, j] += hessians[i, j]
    for leaf in range(len(values)):
        for j in range(c):
            values[leaf, j] *= rate / (sums[leaf, j] + penalty)
    for i in range(n):
        leaf = leaves[i]
        for j in range(c):
            scores[i, j] += values[leaf, j]


@compiled
def add_trees(
    codes: Any,  # (d, n): column by column
    categorical: Any,  # (d,)
    columns: Any,  # (trees, depth)
    cuts: Any,  # (trees, depth)
    values: Any,  # (trees, leaves, c)
    scores: Any,  # (n, c): moved
    first: int,
    last: int,
) -> None:
    """The sum of all trees for the rows from `first` to `last`.

    Tree by tree and level by level: a comparison of one column with one number is done for many
    rows at a time.
    """
    trees, depth = columns.shape
    c = scores.shape[1]
    leaves = np.empty(last - first, np.int32)
    for tree in range(trees):
        leaves[:] = 0
        for level in range(depth):
            column = columns[tree, level]
            if column < 0:
                break
            descend(codes[column, first:last], categorical[column], cuts[tree, level], leaves)
        for i in range(last - first):
            for j in range(c):
                scores[first + i, j] += values[tree, leaves[i], j]
