"""Losses on label trees: path length, and disagreement level by level."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consistruct._budgets import FILES
from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_choice, check_counts, check_weights
from consistruct.exceptions import LossSpecError
from consistruct.losses.base import Sizes
from consistruct.losses.matrix import MatrixLoss, require_listable
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Classes

__all__ = ["Tree"]


@dataclass(frozen=True, eq=False, repr=False)
class Tree(MatrixLoss):
    """Charge the distance in a tree of labels; true labels are its leaves.

    Formula: ``kind="path"``: Σ_v w_v [exactly one of ŷ, y lies below v], the length of the path
    between them with w_v the length of the edge above v. ``kind="level"``: Σ_t w_t [the ancestors
    of ŷ and y at depth t differ]; a node above depth t stands for itself. Scores: span of the
    columns and the constant; one per leaf where leaves have positive weight. Decoder: argmax.

    Parameters
    ----------
    parents : sequence of int
        Parent of each node, −1 for a root. Several roots hang from a common one.
    weights : sequence of float, optional
        Path: one per node (that of a single root never counts). Level: one per depth 1, 2, …
        below the common root. All ones if not given.
    kind : "path" or "level"
    predict : "leaves" or "nodes"
        Whether inner nodes may be predicted (stopping early). Predictions are numbered like the
        leaves in order of their node number, or like the nodes.
    names : sequence of str, optional
        Name of each node.

    Examples
    --------
    >>> from consistruct.losses import Tree
    >>> animals = Tree([-1, 0, 0, 1, 1, 2])  # leaves: nodes 3, 4 (siblings) and 5
    >>> animals([0, 0, 0], [0, 1, 2])
    array([0., 2., 4.])
    """

    parents: ArrayField
    weights: ArrayField | None = None
    kind: Literal["path", "level"] = field(default="path", kw_only=True)
    predict: Literal["leaves", "nodes"] = field(default="leaves", kw_only=True)
    names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        parents = np.array(check_counts(self.parents, "parents", minimum=-1), dtype=np.int64)
        self._set(parents=frozen_array(parents, np.int64))
        check_choice(self.kind, "kind", ("path", "level"))
        check_choice(self.predict, "predict", ("leaves", "nodes"))
        if self.names is not None:
            names = tuple(str(name) for name in self.names)
            if len(names) != len(parents) or len(set(names)) != len(names):
                raise ValueError(
                    f"names must be {len(parents)} distinct names, one per node, got {len(names)}"
                )
            self._set(names=names)
        n_weights = len(self._ancestors) if self.kind == "path" else self._n_levels
        if self.weights is not None:
            per = "node" if self.kind == "path" else "depth below the common root"
            weights = check_weights(self.weights, n_weights, "weights", per)
            self._set(weights=frozen_array(weights))

    @cached_property
    def _ancestors(self) -> NDArray[np.int32]:
        """Return ancestors at each depth, (nodes, depths); nodes above it stand for themselves."""
        parents = self.parents
        n = len(parents)
        impossible = (parents >= n) | (parents == np.arange(n))
        if impossible.any():
            bad = int(np.argmax(impossible))
            raise ValueError(
                f"parents[{bad}] must be another node in 0..{n - 1}, or -1 for a root, "
                f"got {parents[bad]}"
            )
        if n > FILES.tree_nodes:
            raise ValueError(
                f"a tree may have at most {FILES.tree_nodes} nodes, got {n}: its tables have nodes "
                f"x nodes entries; merge labels, or leave out nodes with a single child"
            )
        depth = self._depth
        ancestors = np.empty((n, int(depth.max()) + 1), dtype=np.int32)
        for node in np.argsort(depth, kind="stable"):  # parents before their children
            if parents[node] >= 0:
                ancestors[node] = ancestors[parents[node]]
            ancestors[node, depth[node] :] = node
        return ancestors

    @cached_property
    def _depth(self) -> IntArray:
        """Return the depth of each node, 0 for roots."""
        # every node is climbed from once, O(n) in all: climbing from each up to its root would take
        # n²/2 steps on a chain of n nodes
        depth = [-1] * len(self.parents)
        parents = self.parents.tolist()
        for start in range(len(parents)):
            path, node = [], start
            while node >= 0 and depth[node] == -1:
                depth[node] = -2  # being climbed from
                path.append(node)
                node = parents[node]
            if node >= 0 and depth[node] == -2:
                raise ValueError("parents must form a tree, but some nodes form a cycle")
            below = -1 if node < 0 else depth[node]
            for step, visited in enumerate(reversed(path), 1):
                depth[visited] = below + step
        return np.array(depth)

    @cached_property
    def leaves(self) -> IntArray:
        """Return the node number of each leaf, in order."""
        return np.setdiff1d(np.arange(len(self.parents)), self.parents)

    @cached_property
    def _prediction_nodes(self) -> IntArray:
        return self.leaves if self.predict == "leaves" else np.arange(len(self.parents))

    def _named(self, nodes: IntArray) -> Classes:
        names = None if self.names is None else tuple(self.names[node] for node in nodes)
        return Classes(len(nodes), names)

    @cached_property
    def _prediction_set(self) -> Classes:
        return self._named(self._prediction_nodes)

    @cached_property
    def true_labels(self) -> Classes:
        return self._named(self.leaves)

    @cached_property
    def _node_weights(self) -> FloatArray:
        return np.ones(len(self.parents)) if self.weights is None else self.weights

    @cached_property
    def _first_level(self) -> int:
        """Return the depth that the first level weight is about."""
        # several roots hang from a common one that is not listed: their own depth 0 tells apart
        return 0 if (self.parents < 0).sum() > 1 else 1

    @cached_property
    def _n_levels(self) -> int:
        return max(1, self._ancestors.shape[1] - self._first_level)

    @cached_property
    def _level_weights(self) -> FloatArray:
        return np.ones(self._n_levels) if self.weights is None else self.weights

    @cached_property
    def _columns(self) -> FloatArray:
        require_listable(len(self._prediction_nodes), "a tree loss")
        rows, columns = self._ancestors[self._prediction_nodes], self._ancestors[self.leaves]
        if self.kind == "level":
            total = np.zeros((len(rows), len(columns)))
            for level, weight in enumerate(self._level_weights):
                depth = min(level + self._first_level, rows.shape[1] - 1)
                total += weight * (rows[:, depth, None] != columns[None, :, depth])
            return frozen_array(total)
        # v lies above exactly one of i and j: [v∋i] + [v∋j] − 2[v∋i][v∋j], so that one product of
        # indicator matrices gives all distances; `_value` climbs instead
        weights = self._node_weights
        left, right = self._below(self._prediction_nodes), self._below(self.leaves)
        shared = (left * weights) @ right.T
        lengths = (left @ weights)[:, None] + (right @ weights)[None, :]
        # a leaf is at distance 2w − 2w from itself, which rounding may leave at −1e-17
        return frozen_array(np.maximum(lengths - 2 * shared, 0.0))

    def _below(self, nodes: IntArray) -> FloatArray:
        """Return [node lies at or below v], (nodes given, all v)."""
        indicator = np.zeros((len(nodes), len(self.parents)))
        np.put_along_axis(indicator, self._ancestors[nodes], 1.0, axis=1)
        return indicator

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        # climb the deeper node, then both, until they meet
        first, second = self._prediction_nodes[pred], self.leaves[true]
        if self.kind == "level":
            return self._level_value(first, second)
        total = np.zeros(len(first))
        a, b = first.copy(), second.copy()
        active = a != b
        while active.any():
            # of two nodes the deeper one cannot be the common ancestor; at equal depth neither is
            deeper_a = active & (self._depth[a] >= self._depth[b])
            deeper_b = active & (self._depth[b] >= self._depth[a])
            total[deeper_a] += self._node_weights[a[deeper_a]]
            total[deeper_b] += self._node_weights[b[deeper_b]]
            a, b = np.where(deeper_a, self.parents[a], a), np.where(deeper_b, self.parents[b], b)
            active = a != b  # two roots both step to −1 and meet there
        return total

    def _level_value(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return Σ_t w_t [ancestors at depth t differ] of pairs of nodes, (n,), by climbing."""
        total = np.zeros(len(first))
        for example, (i, j) in enumerate(zip(first, second, strict=True)):
            for level, weight in enumerate(self._level_weights):
                depth = level + self._first_level
                total[example] += weight * (self._climb_to(i, depth) != self._climb_to(j, depth))
        return total

    def _climb_to(self, node: int, depth: int) -> int:
        """Return the ancestor at this depth, or the node itself if it stands above."""
        while self._depth[node] > depth:
            node = int(self.parents[node])
        return node

    # --- safer predictions: an inner node stands for the leaves below it ---

    @cached_property
    def lineage(self) -> IntArray:
        """Return each prediction and its ancestors, (predictions, depths + 2), upwards."""
        rows, depth = self._ancestors[self._prediction_nodes], self._depth[self._prediction_nodes]
        # from the node itself upwards: depth, depth − 1, …, 0, then any leaf
        column = depth[:, None] - np.arange(rows.shape[1] + 1)
        nodes = np.take_along_axis(rows.astype(np.int64), np.maximum(column, 0), axis=1)
        # the row behind all nodes stands for "any leaf"; one root stands for that already
        top = len(self.parents)
        if (self.parents < 0).sum() == 1:
            top = int(np.argmin(self.parents))
        return frozen_array(np.where(column >= 0, nodes, top), np.int64)

    @cached_property
    def _leaf_below(self) -> NDArray[np.bool_]:
        """Return [leaf lies at or below node], (nodes + 1, leaves); any leaf in the last row."""
        below = self._below(self.leaves).T > 0
        return np.vstack([below, np.ones((1, len(self.leaves)), dtype=bool)])

    @cached_property
    def least_below(self) -> FloatArray:
        """Return the least loss of a leaf below each node, (nodes + 1, leaves)."""
        # a node that is predicted counts as the best leaf below it, so leaves are compared with
        # leaves
        leaves = dataclasses.replace(self, predict="leaves").matrix()
        return frozen_array(np.stack([leaves[below].min(axis=0) for below in self._leaf_below]))

    @cached_property
    def leaves_below(self) -> IntArray:
        """Return how many leaves lie below each node, (nodes + 1,)."""
        return frozen_array(self._leaf_below.sum(axis=1), np.int64)

    def true_label_as_prediction(self, true: ArrayLike) -> LabelArray:
        checked = self.true_labels.check(true, "true")
        return checked if self.predict == "leaves" else self.leaves[checked]

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        from consistruct.losses.costs.files import read_tree_csv

        path, colon, option = (arguments[0] if arguments else "").rpartition(":")
        predict: Literal["leaves", "nodes"] = "nodes" if option == "nodes" else "leaves"
        if not colon or option not in ("leaves", "nodes"):  # a file name may hold colons
            path = arguments[0] if arguments else ""
        if not path:
            raise LossSpecError(
                "the spec of tree names a CSV file; write tree:FILE.csv, or tree:FILE.csv:nodes to "
                "allow inner nodes as predictions"
            )
        loss = read_tree_csv(path, predict=predict)
        assert isinstance(loss, cls)
        return loss
