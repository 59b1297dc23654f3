"""Proof of H(ε) for F-beta with its own scores over all set sizes: exact, in fractions.

Labels are told apart by four counts (members in i∩j, i∖j, j∖i and outside). Upper end: a
distribution over counts and a function v(ŷ) = α_m + Σ_g β_{m,g}·c_g of the layer m = |ŷ|; what
rounding has left of a violation is repaired before the value is taken. Lower end: multipliers for
the pairs that Theorem 7 does not cover. Everything is a rational number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from consistruct.calibration.proofs.base import PlainCertificate
from consistruct.calibration.proofs.checkers import sets

__all__ = ["SetCertificate"]

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
        The distribution of the truth: a set with these counts, uniformly.
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

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        sets.verify(document)
