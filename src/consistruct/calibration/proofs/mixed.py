"""Certificates for 0-1, block and mixed losses of any size."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np

from consistruct._plain_data import form
from consistruct.calibration.proofs.base import Exact, PlainCertificate, WorstLaw, probabilities
from consistruct.calibration.proofs.checkers import mixed
from consistruct.losses.base import Loss

__all__ = ["MixedCertificate"]

Points = dict[str, tuple[list[Exact], Exact]]  # {orbit: (w, ν)}


def _write_points(points: Points) -> dict[str, Any]:
    return {key: {"w": w, "nu": nu} for key, (w, nu) in points.items()}


def _read_points(entries: dict[str, Any]) -> Points:
    return {key: (entry["w"], entry["nu"]) for key, entry in entries.items()}


@dataclass(frozen=True, eq=False)
class MixedCertificate(PlainCertificate):
    """lower ≤ H(ε)/scale ≤ upper; numbers are per cell of labels that the pair cannot tell apart.

    Attributes
    ----------
    sizes, assignment, eta, scores : the loss, and "full" or "blocks" scores
    pair : (i, j), j is predicted though i is better by ε
    law : mass of each cell of truths (see `cells`)
    level : the score of j; a cell has minus its expected loss if that is less
    points : {orbit: (w, ν)} dual points of the orbits of pairs
    """

    kind = "mixed"

    sizes: tuple[int, ...]
    assignment: list[int] | None
    eta: Exact
    scores: Literal["full", "blocks"]
    eps: Exact
    lower: Exact
    upper: Exact
    pair: tuple[int, int]
    law: list[Exact]
    level: Exact
    points: Annotated[Points, form(_write_points, _read_points)]

    @property
    def scale(self) -> Fraction:
        return Fraction(1 if self.scores == "full" else min(self.sizes), sum(self.sizes))

    @property
    def cells(self) -> tuple[tuple[str, int], ...]:
        """What each entry of `law` stands for: a name, and how many labels it has."""
        orbit = self._orbit
        return tuple(zip(orbit.names, orbit.counts, strict=True))

    @property
    def _orbit(self) -> mixed.Orbit:
        document = self.document()
        sizes, block, first = mixed.block_sizes(document)
        key = mixed.orbit_of(document, sizes, block, first)
        return mixed.Orbit(sizes, mixed.number(self.eta), self.scores, key)

    @property
    def probabilities(self) -> list[float]:
        """`law` as probabilities, rounded."""
        return probabilities(self.law)

    def worst_law(self, loss: Loss) -> WorstLaw:
        return WorstLaw(self.pair, self._cells_in_words(), np.array(self.probabilities))

    def _cells_in_words(self) -> list[str]:
        """Cells of labels that the pair cannot tell apart; {i} and {j} for the pair."""
        inside = "" if len(self.sizes) == 1 else "in the block of {i} and {j}"
        found = []
        for name, size in self.cells:
            words = {
                "i": "{i}",
                "j": "{j}",
                "their block": _others(size, inside),
                "block of i": _others(size, "in the block of {i}"),
                "block of j": _others(size, "in the block of {j}"),
                # block scores: the first label of a block is the only one that can be predicted
                "block of i, first label": "{i} (first of its block)",
                "block of j, first label": "{j} (first of its block)",
                "block of i, other labels": _others(size, "in the block of {i}"),
                "block of j, other labels": _others(size, "in the block of {j}"),
            }
            found.append(words.get(name) or f"{_others(size, 'in')} {name}")
        return found

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        mixed.verify(document)


def _others(size: int, where: str) -> str:
    number = str(size) if size < 10**6 else f"about 10^{len(str(size)) - 1}"
    return f"{number} other label{'s' if size > 1 else ''} {where}".rstrip()
