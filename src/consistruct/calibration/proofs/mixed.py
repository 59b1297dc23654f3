"""Certificates for 0-1, block and mixed losses of any size."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np

from consistruct._plain_data import form
from consistruct.calibration.proofs.base import (
    Exact,
    PlainCertificate,
    WorstDistribution,
    probabilities,
)
from consistruct.calibration.proofs.comparing import different_matrix
from consistruct.certificates import mixed
from consistruct.certificates.exact import exact_text, number
from consistruct.losses.base import Loss
from consistruct.structures import Structure
from consistruct.structures.classes import Partition

__all__ = ["MixedCertificate"]

MOST_LISTED = 256  # labels of a loss that is compared entry by entry

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
    distribution : mass of each cell of true labels (see `cells`)
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
    distribution: list[Exact]
    level: Exact
    points: Annotated[Points, form(_write_points, _read_points)]

    @property
    def scale(self) -> Fraction:
        return Fraction(1 if self.scores == "full" else min(self.sizes), sum(self.sizes))

    @property
    def cells(self) -> tuple[tuple[str, int], ...]:
        """What each entry of `distribution` stands for: a name, and how many labels it has."""
        orbit = self._orbit
        return tuple(zip(orbit.names, orbit.counts, strict=True))

    @property
    def _orbit(self) -> mixed.Orbit:
        document = self.document()
        sizes, block, first = mixed.block_sizes(document)
        key = mixed.orbit_of(document, sizes, block, first)
        return mixed.Orbit(sizes, number(self.eta), self.scores, key)

    @property
    def probabilities(self) -> list[float]:
        """`distribution` as probabilities, rounded."""
        return probabilities(self.distribution)

    def worst_distribution(self, loss: Loss) -> WorstDistribution:
        return WorstDistribution(self.pair, self._cells_in_words(), np.array(self.probabilities))

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

    def different_loss(self, loss: Loss) -> str | None:
        sizes, blocks = list(self.sizes), self._blocks
        own = loss.block_mixture
        if own is None:
            return different_matrix(self._rows(), loss) if sum(sizes) <= MOST_LISTED else (
                f"its loss is made of blocks, {loss!r} is not"
            )  # fmt: skip
        partition, eta = own
        mine = partition.block_sizes
        if sorted(mine) != sorted(sizes) or not self._same_blocks(partition, blocks):
            return f"its blocks have the sizes {_short(sizes)}, those of {loss!r} differ"
        if max(sizes) > 1 and number(self.eta) != Fraction(eta):
            given = exact_text(number(self.eta))
            return f"its η is {given}, that of {loss!r} is {exact_text(Fraction(eta))}"
        return None

    @property
    def _blocks(self) -> list[int] | None:
        """The block of each label; None where blocks are consecutive."""
        return self.assignment

    def _same_blocks(self, partition: Partition, blocks: list[int] | None) -> bool:
        """Whether labels are in one block here iff they are in one block there."""
        if blocks is None and partition.assignment is None:
            return tuple(self.sizes) == tuple(partition.block_sizes)
        labels = np.arange(sum(self.sizes))
        here = np.repeat(np.arange(len(self.sizes)), self.sizes) if blocks is None else blocks
        both = set(zip(here, partition.block_of(labels).tolist(), strict=True))
        return len(both) == len(self.sizes) == partition.n_blocks

    def _rows(self) -> list[list[Fraction]]:
        """The loss as a matrix."""
        eta, blocks = number(self.eta), self._blocks
        where = np.repeat(np.arange(len(self.sizes)), self.sizes) if blocks is None else blocks
        return [
            [Fraction(0) if c == y else eta if a == b else Fraction(1) for y, b in enumerate(where)]
            for c, a in enumerate(where)
        ]

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        if self.scores == "full":
            same = space.one_per_label or space.rank == sum(self.sizes)
        else:
            same = space.partition is not None and self._same_blocks(space.partition, self._blocks)
        if same and space.measure == "uniform":
            return None
        return f"its scores are those of {self.scores}, with the uniform measure, not {space!r}"


def _short(sizes: list[int]) -> str:
    """Some numbers, the first few."""
    return ", ".join(map(str, sizes[:5])) + (", …" if len(sizes) > 5 else "")


def _others(size: int, where: str) -> str:
    number = str(size) if size < 10**6 else f"about 10^{len(str(size)) - 1}"
    return f"{number} other label{'s' if size > 1 else ''} {where}".rstrip()
