"""Stopping at an inner node of a label tree: the node stands for the leaves below it.

A row climbs from its leaf to the lowest ancestor below which the expected loss of the best leaf is
small enough. Losses never increase: an ancestor has more leaves below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.decisions.classes import UNSEEN
from consistruct.guarantees.risk.policies.base import Family, Options, Policy
from consistruct.guarantees.risk.views import View
from consistruct.learning.estimator import TargetEstimator
from consistruct.protocols import FloatArray, IntArray, LabelTreeLoss

__all__ = ["TreeNodes"]


class _Nodes(Family):
    def __init__(self, view: View, tree: Any, probabilities: FloatArray) -> None:
        self.view, self.tree = view, tree
        self.nodes = tree.lineage[view.codes]  # (n, J + 1), upwards
        expected = np.take_along_axis(probabilities @ tree.least_below.T, self.nodes, axis=1)
        # rung j is left once what is expected below it is above −safety
        self.thresholds = np.maximum.accumulate(-expected[:, :-1], axis=1)
        # a root that is reached early is repeated: those rungs do not exist
        same = self.nodes[:, 1:] == self.nodes[:, :-1]
        self.thresholds[same] = np.inf
        self.answered = self.nodes < len(tree.parents)
        self.sizes = tree.leaves_below[self.nodes].astype(np.float64)

    def losses(self, y: Any) -> FloatArray:
        codes = self.view.true_codes(y)
        known = codes != UNSEEN
        values = self.tree.least_below[self.nodes, np.where(known, codes, 0)[:, None]]
        return np.where(known[:, None], values, self.tree.max_value)

    def present(self, rungs: IntArray) -> Any:
        nodes = self.nodes[np.arange(len(rungs)), rungs]
        if self.tree.names is not None:
            return np.array([*self.tree.names, None], dtype=object)[nodes]
        if (nodes < len(self.tree.parents)).all():
            return nodes
        return np.array([*range(len(self.tree.parents)), None], dtype=object)[nodes]


class TreeNodes(Policy):
    """The lowest ancestor that is sure enough; None above several roots."""

    name = "ancestor"
    counts = "the smallest loss of a leaf below the node"
    size = "leaves below a node"

    def refusal(self, estimator: TargetEstimator, options: Options) -> str | None:
        if not isinstance(options.loss, LabelTreeLoss):
            return "the loss has no tree of labels"
        if not estimator.statistic_.of_classes:
            return "it needs probabilities of the leaves, which this model does not estimate"
        return None

    def monotone(self, options: Options) -> bool:
        return True  # the least loss over more leaves

    def family(self, view: View, options: Options) -> Family:
        assert view.probabilities is not None
        return _Nodes(view, options.loss, view.probabilities)
