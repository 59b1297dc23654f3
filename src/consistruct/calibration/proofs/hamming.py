"""Certificates for the Hamming loss with full or separable scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from consistruct.calibration.proofs.base import Exact, PlainCertificate, WorstDistribution
from consistruct.calibration.proofs.comparing import same_parts
from consistruct.certificates.exact import number
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["HammingCertificate"]


@dataclass(frozen=True, eq=False)
class HammingCertificate(PlainCertificate):
    """lower ≤ H(ε)/scale ≤ upper for T parts with n_states states each.

    Attributes
    ----------
    scores : "full" (scale 1/k) or "separable" (scale 1)
    d : in how many parts the labels i and j of the worst pair differ
    x : {d: x} with full scores, one number per orbit of pairs; see `certificates/hamming.py`
    """

    kind = "hamming"

    T: int
    n_states: int
    scores: Literal["full", "separable"]
    eps: Exact
    lower: Exact
    upper: Exact
    d: int
    x: dict[int, Exact]

    @property
    def scale(self) -> Fraction:
        return Fraction(1, self.n_states**self.T if self.scores == "full" else 1)

    @property
    def pair(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The labels (i, j): they differ in the first d parts."""
        return (0,) * self.T, (1,) * self.d + (0,) * (self.T - self.d)

    @property
    def distribution(self) -> tuple[float, float]:
        """The probabilities of i and j as true labels; no other label has any."""
        delta = number(self.eps) * self.T / self.d
        return float((1 + delta) / 2), float((1 - delta) / 2)

    def worst_distribution(self, loss: Loss) -> WorstDistribution:
        return WorstDistribution(self.pair, np.array(self.pair), np.array(self.distribution))

    def different_loss(self, loss: Loss) -> str | None:
        return same_parts(self.T, self.n_states, loss)

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        full = self.scores == "full"
        same = space.one_per_label if full else space.separate_states == self.n_states
        if same and space.measure == "uniform":
            return None
        return f"its scores are {self.scores}, with the uniform measure, not {space!r}"
