"""Proof of H(ε) for F-beta with its own scores over all set sizes: exact, in fractions.

Labels are distinguished by four counts (members in i∩j, i∖j, j∖i and outside). Upper end: a
distribution over counts and a function v(ŷ) = α_m + Σ_g β_{m,g}·c_g of the layer m = |ŷ|; what
rounding has left of a violation is repaired before the value is taken. Lower end: multipliers for
the pairs that Theorem 7 does not cover. Everything is a rational number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consistruct.calibration.proofs.base import PlainCertificate, WorstDistribution
from consistruct.certificates.statement import same_data
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["SetCertificate"]

PLACES = ("of both answers", "of the better answer only", "of the winning answer only", "else")
Counts = tuple[int, int, int, int]
Multipliers = tuple[Counts, float, tuple[tuple[Counts, float], ...]]  # groups, ν, weights of cells


@dataclass(frozen=True)
class SetCertificate(PlainCertificate):
    """lower ≤ H(ε) ≤ upper for FBeta(T, beta) with its own scores and all set sizes.

    Attributes
    ----------
    groups : (int, int, int, int)
        Sizes of i∩j, i∖j, j∖i and the rest.
    cells : tuple of (counts, probability)
        The distribution of the true label: a set with these counts, uniformly.
    layers : (T+1, 5) nested tuple
        α_m and β_{m,g} of v = scores + expected losses.
    multipliers : tuple of (groups, ν, weights)
        For the pairs that Theorem 7 does not cover.
    """

    kind: ClassVar[str] = "sets"

    T: int
    beta: float
    empty: float
    eps: float
    lower: float
    upper: float
    groups: Counts
    cells: tuple[tuple[Counts, float], ...]
    layers: tuple[tuple[float, ...], ...]
    multipliers: tuple[Multipliers, ...]

    @property
    def pair(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(i, j) as 0/1 vectors: the groups one after the other."""
        a, b, c, d = self.groups
        return (1,) * (a + b) + (0,) * (c + d), (1,) * a + (0,) * b + (1,) * c + (0,) * d

    def worst_distribution(self, loss: Loss) -> WorstDistribution:
        sets_of = [self._in_words(counts) for counts, _ in self.cells]
        return WorstDistribution(self.pair, sets_of, np.array([share for _, share in self.cells]))

    def _in_words(self, counts: Counts) -> str:
        """A set by how many members it takes from where."""
        parts = [
            f"{count} of {size} {place}"
            for count, size, place in zip(counts, self.groups, PLACES, strict=True)
            if size
        ]
        return "a set with " + ", ".join(parts)

    def different_loss(self, loss: Loss) -> str | None:
        from consistruct.calibration.proofs.provers.oracle import problem_of  # it imports this

        own, stated = problem_of(loss), self.statement
        if own is not None and own[0] == "sizes" and same_data(own[1], stated.data):
            return None
        return f"its loss is {stated.loss}, which {loss!r} is not"

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        return None if space == loss.score_space else f"its scores are its own, not {space!r}"
