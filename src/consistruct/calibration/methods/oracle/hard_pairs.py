"""Which pairs of labels lie farthest apart in score space: where a mistake is cheapest."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from consistruct.exceptions import FamilyError
from consistruct.losses.base import Loss
from consistruct.protocols import IntArray, LabelArray
from consistruct.structures import Structure

__all__ = ["HardPairs", "PairGuesses", "SampledPairs"]

N_DRAWN = 24  # labels whose opposites are tried where nothing is known of the structure
N_TRIED = 4  # pairs that are solved


class PairGuesses(Protocol):
    """Pairs that may attain the bound of Theorem 7, which covers all of them at once."""

    def pairs(self, eps: float) -> list[tuple[LabelArray, LabelArray]]:
        """Labels (i, j) worth solving at ε, the most promising first."""


class HardPairs:
    """Pairs (i, j) of a product label set by the parts in which they differ.

    (F_i−F_j)ᵀḠ⁺(F_i−F_j) = 2(rank − K) with K = 1 + Σ_t x_t + Σ_edges x_t x_{t+1}, x_t = s−1 where
    i and j agree and −1 where they differ; Theorem 7 bounds H_ij by ε² over twice this.
    """

    def __init__(self, space: Structure) -> None:
        n_states = space.linked_states or space.separate_states
        if space.n_labels is None or n_states is None:
            raise FamilyError(space, "compare labels")
        self.space = space
        (self.T,), self.n_states = space.predictions.shape, n_states
        self.edges = space.linked_states is not None

    def least_difference(self, eps: float) -> int:
        """In how many parts i and j must differ for an excess risk of ε (Hamming loss)."""
        return max(1, math.ceil(eps * self.T * (1 - 1e-14)))

    def pairs(self, eps: float) -> list[tuple[LabelArray, LabelArray]]:
        """The farthest pairs that can differ by ε."""
        return list(self.candidates(self.least_difference(eps)))

    def _farthest(self, needed: int) -> IntArray:
        """The pattern that minimizes K with at least `needed` differing parts: dynamic programming.

        State: what the last part does and how many parts differ so far, capped at `needed`.
        """
        if not self.edges:
            return np.ones(self.T, dtype=np.int64)
        s = self.n_states
        levels = (s - 1, -1)  # agree, differ
        blocked = float("inf")
        best = np.full((2, needed + 1), blocked)
        best[0, 0] = levels[0]
        best[1, min(1, needed)] = levels[1]
        came_from = []
        for _ in range(self.T - 1):
            step = np.full((2, needed + 1), blocked)
            origin = np.zeros((2, needed + 1, 2), dtype=np.int64)
            for now, x in enumerate(levels):
                options = np.stack([best[before] + levels[before] * x for before in (0, 1)])
                before = options.argmin(axis=0)
                value = options.min(axis=0) + x
                counts = np.arange(needed + 1)
                target = np.minimum(counts + now, needed)
                for count in counts:  # two counts may meet at the cap
                    if value[count] < step[now, target[count]]:
                        step[now, target[count]] = value[count]
                        origin[now, target[count]] = (before[count], count)
            came_from.append(origin)
            best = step
        state: int = int(best[:, needed].argmin())
        number = needed
        pattern = [state]
        for origin in reversed(came_from):
            state, number = (int(value) for value in origin[state, number])
            pattern.append(state)
        return np.array(pattern[::-1])

    def candidates(self, needed: int) -> list[tuple[IntArray, IntArray]]:
        """Pairs worth solving, the farthest first: i is all zeros, j is one where they differ."""
        patterns = [self._farthest(needed)]
        if self.edges:
            patterns += [self._farthest(d) for d in range(needed + 1, min(needed + 3, self.T + 1))]
            patterns.append(np.ones(self.T, dtype=np.int64))
        distinct = {pattern.tobytes(): pattern for pattern in patterns}
        zeros = np.zeros(self.T, dtype=np.int64)
        return [(zeros, pattern.astype(np.int64)) for pattern in distinct.values()]


class SampledPairs:
    """Pairs of a label set of which only the oracles are known.

    The label least like j under the scores, argmin_c F_cᵀḠ⁺F_j, is one call of the decoder; it is
    tried for some drawn j.
    """

    def __init__(self, loss: Loss, space: Structure) -> None:
        self.loss, self.space = loss, space

    def pairs(self, eps: float) -> list[tuple[LabelArray, LabelArray]]:
        """The farthest of the pairs that were tried."""
        drawn = self.loss.predictions.sample(N_DRAWN, np.random.default_rng(0))
        embedded = self.space.embed(drawn)
        gram = self.space.gram()
        opposite = self.space.decode(-gram.solve(embedded))
        gap = self.space.embed(opposite) - embedded
        distance = (gap * gram.solve(gap)).sum(axis=1)
        order = np.argsort(-distance, kind="stable")[:N_TRIED]
        found = [(opposite[n], drawn[n]) for n in order if distance[n] > 0]
        return found + [(j, i) for i, j in found]
