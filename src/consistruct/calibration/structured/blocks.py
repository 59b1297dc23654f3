"""0-1, block and mixed losses: pairs and labels fall into a handful of orbits, however large.

Given i and j, labels are told apart only by: being i, being j, the rest of i's block, the rest of
j's block, and the other blocks, which are alike if they have the same size. With full scores and
the uniform measure a cell of n labels enters ½Σ_c (f_c + ℓ_c)² with weight n; the factor 1/k is
kept apart.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from consistruct.calibration.pool import ListedPairs
from consistruct.calibration.problem import ExplicitProblem, PairProblem
from consistruct.labels.partition import Partition
from consistruct.losses.base import Loss
from consistruct.losses.block import Block, Mixed
from consistruct.losses.zero_one import ZeroOne
from consistruct.protocols import FloatArray
from consistruct.scores import Blocks

__all__ = ["BlockOrbits", "Cell", "as_mixed", "block_level_problem"]


@dataclass(frozen=True)
class Cell:
    """Labels that the pair (i, j) cannot tell apart."""

    name: str
    size: int
    block: int | None  # 0: the block of i, 1: that of j if another one; None: other blocks
    block_size: int  # size of each block the cell is made of

    @property
    def description(self) -> str:
        """For certificates."""
        return f"{self.name} ({self.size} label{'s' if self.size > 1 else ''})"


def as_mixed(loss: Loss) -> tuple[Partition, float] | None:
    """The loss as η·(0-1) + (1−η)·block, or None if it is no such loss."""
    if isinstance(loss, ZeroOne):
        return Partition(sizes=(loss.k,)), 1.0
    if isinstance(loss, Block):
        return loss.partition, 0.0
    if isinstance(loss, Mixed):
        return loss.partition, loss.eta
    return None


@dataclass(frozen=True)
class BlockOrbits:
    """Orbits of pairs of a mixed loss under full scores and the uniform measure."""

    partition: Partition
    eta: float

    @cached_property
    def orbits(self) -> list[tuple[tuple[int, int], list[Cell]]]:
        """One representative pair (i, j) per orbit, and its cells (i first, j second)."""
        sizes = self.partition.block_sizes
        first = self._members
        counts = Counter(sizes)
        found: list[tuple[tuple[int, int], list[Cell]]] = []
        block_of_size = {size: block for block, size in reversed(list(enumerate(sizes)))}
        for size in counts:  # i and j in one block
            if size > 1:
                block = block_of_size[size]
                pair = (first(block, 0), first(block, 1))
                cells = [Cell("i", 1, 0, size), Cell("j", 1, 0, size)]
                cells += [Cell("their block", size - 2, 0, size)] * (size > 2)
                found.append((pair, cells + self._others(counts, [size])))
        for size in counts:  # i and j in two blocks
            for other in counts:
                if size == other and counts[size] < 2:
                    continue
                block = block_of_size[size]
                second = next(
                    number
                    for number, candidate in enumerate(sizes)
                    if candidate == other and number != block
                )
                pair = (first(block, 0), first(second, 0))
                cells = [Cell("i", 1, 0, size), Cell("j", 1, 1, other)]
                cells += [Cell("block of i", size - 1, 0, size)] * (size > 1)
                cells += [Cell("block of j", other - 1, 1, other)] * (other > 1)
                found.append((pair, cells + self._others(counts, [size, other])))
        return found

    def _members(self, block: int, position: int) -> int:
        """The label at a position within a block."""
        if self.partition.assignment is not None:
            return int(np.flatnonzero(self.partition.assignment == block)[position])
        return self.partition.first_labels[block] + position

    @staticmethod
    def _others(counts: Counter[int], used: list[int]) -> list[Cell]:
        left = counts.copy()
        left.subtract(used)
        return [
            Cell(f"other blocks of size {size}", number * size, None, size)
            for size, number in left.items()
            if number > 0
        ]

    def _average_loss(self, row: Cell, column: Cell) -> float:
        """Loss of one label of the row cell, averaged over the truths of the column cell."""
        same_label = Fraction(1, column.size) if row == column else Fraction(0)
        if row.block is not None and column.block is not None:
            same_block = Fraction(int(row.block == column.block))
        elif row == column:
            same_block = Fraction(column.block_size, column.size)
        else:
            same_block = Fraction(0)
        return self.eta * float(1 - same_label) + (1 - self.eta) * float(1 - same_block)

    def pair_problem(self, cells: list[Cell]) -> PairProblem:
        """The reduced problem; cell 0 is i and cell 1 is j."""
        L = np.array([[self._average_loss(row, column) for column in cells] for row in cells])
        embedding = np.diag([_inverse_root(cell.size) for cell in cells])
        others = [c for c in range(len(cells)) if c != 1]
        return PairProblem(
            order=embedding[others] - embedding[1],
            order_rhs=L[others] - L[1],
            gap=L[1] - L[0],
            row_cells=tuple(np.array([c]) for c in others),
            column_cells=tuple(np.array([c]) for c in range(len(cells))),
        )

    def scores(self, orbit: int, excess: FloatArray, law: FloatArray) -> FloatArray:
        """f = v/√n − ℓ of the labels in each cell, from the excess v and the law over cells."""
        _, cells = self.orbits[orbit]
        L = np.array([[self._average_loss(row, column) for column in cells] for row in cells])
        inverse_root = np.array([_inverse_root(cell.size) for cell in cells])
        return np.asarray(excess * inverse_root - L @ law)

    @cached_property
    def source(self) -> ListedPairs:
        """All orbits as a source of pairs; H = value / k."""
        problems = [self.pair_problem(cells) for _, cells in self.orbits]
        log_k = math.log(self.partition.n_labels)
        return ListedPairs(problems, [0] * len(problems), -log_k)


def _inverse_root(size: int | Fraction) -> float:
    """1/√n, also for n beyond the range of floats."""
    if size < 2**1000:
        return 1.0 / math.sqrt(size)
    exact = Fraction(size)
    return math.exp(0.5 * (math.log(exact.denominator) - math.log(exact.numerator)))


def block_level_problem(loss: Mixed | Block | ZeroOne, space: Blocks) -> ExplicitProblem:
    """A mixed loss under the scores of its own blocks: one row per block, blocks of any size.

    Only the first label of a block can be predicted; truths of a block are the first or another.
    """
    found = as_mixed(loss)
    assert found is not None
    partition, eta = found
    sizes, total = partition.block_sizes, partition.n_labels
    b = len(sizes)
    # weights relative to the smallest block: the common factor may be below all floats
    smallest = min(sizes)
    kinds = [(v, other) for v, size in enumerate(sizes) for other in range(1 + (size > 1))]
    L = np.ones((b, len(kinds)))
    P = np.ones((b, len(kinds)))
    for column, (v, other) in enumerate(kinds):
        L[v, column] = eta * other
        P[v, column] = eta * float(1 - Fraction(1, sizes[v]))  # average over the block
    first: FloatArray = np.array(partition.first_labels, dtype=object)
    expresses = eta == 0 or max(sizes) == 1
    inverse_root = np.array([_inverse_root(Fraction(size, smallest)) for size in sizes])
    return ExplicitProblem(
        L,
        np.diag(inverse_root),
        P / inverse_root[:, None],
        first,
        expresses,
        math.log(smallest) - math.log(total),
    )
