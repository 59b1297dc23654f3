"""Proof of H(ε) for the Hamming loss with binary chain scores: plain numbers, checked exactly.

Upper end: a pattern, a flow z and contrasts y, of which every choice is feasible; the value is a
sum of squares in fractions. Lower end: multipliers ν; for each a dynamic program bounds all
patterns at once. It is run again: in fractions up to 20 parts, beyond in integers that are rounded
down (compiled here, `chain_bounds`; a second implementation in `certificates/chain.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from consistruct.calibration.methods.orbits.chain_bounds import chain_bounds
from consistruct.calibration.proofs.base import PlainCertificate, WorstDistribution
from consistruct.calibration.proofs.comparing import same_parts
from consistruct.certificates import chain as checker
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["ChainCertificate"]

TrueLabel = tuple[int, ...]


@dataclass(frozen=True)
class ChainCertificate(PlainCertificate):
    """lower ≤ H(ε) ≤ upper for Hamming(T) with Chain(T, 2).

    Attributes
    ----------
    fraction : str
        ε as a fraction: H jumps at multiples of 1/T, where the nearest float may be on either side.
    differs : tuple of bool
        The parts in which i and j differ.
    flow : tuple of float
        z along the T−1 edges; their scores are |z|/2T.
    contrast : tuple of float
        y of the differing parts: the distribution puts (1+y)/2 on the state of i.
    multipliers : tuple of float
        ν of the dynamic programs; Theorem 7 covers what none of them does.
    """

    kind: ClassVar[str] = "chain"

    T: int
    fraction: str
    lower: float
    upper: float
    differs: tuple[bool, ...]
    flow: tuple[float, ...]
    contrast: tuple[float, ...]
    multipliers: tuple[float, ...]

    @property
    def eps(self) -> float:
        return float(Fraction(self.fraction))

    @property
    def exact_eps(self) -> Fraction:
        return Fraction(self.fraction)

    @property
    def pair(self) -> tuple[TrueLabel, TrueLabel]:
        """(i, j): j is all zeros, as labels of the loss, and i is one where they differ."""
        return tuple(int(differ) for differ in self.differs), (0,) * self.T

    @property
    def distribution(self) -> tuple[tuple[TrueLabel, float], ...]:
        """Few true labels with the marginals that the contrasts request, and their probabilities.

        One uniform number decides all parts: a part has the state of i below (1+y)/2.
        """
        shares = iter((1 + min(max(y, -1.0), 1.0)) / 2 for y in self.contrast)
        share = [next(shares) if differ else 1.0 for differ in self.differs]
        cuts = sorted({0.0, 1.0, *share})
        i, j = self.pair
        found: dict[TrueLabel, float] = {}
        for low, high in pairwise(cuts):
            true_label = tuple(a if s >= high else b for a, b, s in zip(i, j, share, strict=True))
            found[true_label] = found.get(true_label, 0.0) + high - low
        return tuple(found.items())

    def worst_distribution(self, loss: Loss) -> WorstDistribution:
        true_labels, distribution = zip(*self.distribution, strict=True)
        return WorstDistribution(self.pair, np.array(true_labels), np.array(distribution))

    def different_loss(self, loss: Loss) -> str | None:
        return same_parts(self.T, 2, loss)

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        if space.linked_states == 2 and space.measure == "uniform":
            return None
        return f"its scores are those of a chain, with the uniform measure, not {space!r}"

    @property
    def faster(self) -> dict[str, Any]:
        return {"run": _program}


def _program(T: int, most: int, nu: Fraction) -> list[Fraction]:
    """In fractions where that is quick, else in compiled integers that are rounded down."""
    if T <= checker.EXACT_UP_TO:
        return checker.program(T, most, nu)
    return chain_bounds(T, most, float(nu))
