"""The paper's projected averaged SGD as one compiled loop over a diagonal Gram matrix.

Step by step what `learning.PaperSGD` does: average the point, take the gradient of one example
there, step, project on the ball. `PaperSGD` takes any surrogate and features; this loop only
the quadratic surrogate in coordinates that make its Gram matrix diagonal, and is some hundred
times faster. The tests run both on the same examples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consistruct._compile import compiled
from consistruct.guarantees.simulation.coordinates import Coordinates
from consistruct.guarantees.simulation.problem import SyntheticProblem
from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = ["Descent"]

BATCH = 1 << 22  # entries of targets held at a time


@compiled
def _descend(
    features: FloatArray,  # (inputs, m)
    rows: IntArray,  # (n,)
    targets: FloatArray,  # (t, rank)
    picks: IntArray,  # (n,)
    spectrum: FloatArray,  # (rank,)
    step: float,
    radius: float,
    weights: FloatArray,  # (m, rank), changed
    total: FloatArray,  # (m, rank), changed: the sum of the points visited
) -> None:
    n_features, width = weights.shape
    slope = np.empty(width)
    for i in range(len(rows)):
        phi, target = features[rows[i]], targets[picks[i]]
        slope[:] = target
        for j in range(n_features):
            total[j] += weights[j]
            if phi[j] != 0.0:
                slope += phi[j] * weights[j]
        slope *= spectrum  # Ḡ(θ + u_y)
        square = 0.0
        for j in range(n_features):
            change = step * phi[j]
            if change != 0.0:
                weights[j] -= change * slope
            for c in range(width):
                square += weights[j, c] ** 2
        if square > radius**2:
            weights *= radius / math.sqrt(square)


@dataclass(frozen=True, eq=False)
class Descent:
    """The algorithm on one problem in one basis."""

    problem: SyntheticProblem
    basis: Coordinates

    @cached_property
    def _table(self) -> FloatArray | None:
        """u_y of every truth in the basis, (truths, rank); None if they are too many to list."""
        truths = self.problem.loss.truths
        if truths.size is None or truths.size > ENUMERATION_LIMIT:
            return None
        return self.problem.targets(truths.enumerate()) @ self.basis.forward

    def run(
        self, n_steps: int, *, step: float, radius: float, rng: np.random.Generator
    ) -> FloatArray:
        """The average of W^(0) … W^(N−1) over N fresh examples, in coordinates of the scores."""
        batch = n_steps if self._table is not None else max(1, BATCH // self.problem.scores.width)
        batches = (
            self.problem.sample(min(batch, n_steps - start), rng)
            for start in range(0, n_steps, batch)
        )
        return self.follow(batches, step=step, radius=radius)

    def follow(
        self, batches: Iterable[tuple[IntArray, LabelArray]], *, step: float, radius: float
    ) -> FloatArray:
        """The same over given examples: batches of (rows of the features, truths)."""
        problem, basis = self.problem, self.basis
        shape = (problem.laws.n_anchors, len(basis.spectrum))
        weights, total, n_steps = np.zeros(shape), np.zeros(shape), 0
        for rows, true in batches:
            targets, picks = self._targets(true)
            _descend(
                problem.features, rows, targets, picks, basis.spectrum, step, radius, weights, total
            )
            n_steps += len(rows)
        return np.asarray(total / n_steps @ basis.back)

    def _targets(self, true: LabelArray) -> tuple[FloatArray, IntArray]:
        """Targets in the basis and, for each example, which of them is its own."""
        if self._table is not None:
            return self._table, self.problem.loss.truths.index(true).astype(np.int64)
        return self.problem.targets(true) @ self.basis.forward, np.arange(len(true))
