"""Partitions of 0..k−1 into blocks; consecutive blocks may be astronomically large."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from consistruct._members import ArrayField, Member, frozen_array
from consistruct._validation import check_counts
from consistruct.labels.base import INT64_LIMIT
from consistruct.protocols import IntArray, LabelArray

__all__ = ["Partition"]


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Member):
    """Blocks of labels, given by their sizes (consecutive labels) or by the block of each label.

    Examples
    --------
    >>> from consistruct.labels.partition import Partition
    >>> Partition(sizes=(2, 3)).block_of(np.array([0, 1, 2, 4]))
    array([0, 0, 1, 1])
    >>> Partition(assignment=(1, 0, 1)).first_labels
    (1, 0)
    """

    sizes: tuple[int, ...] | None = None
    assignment: ArrayField | None = None

    def __post_init__(self) -> None:
        if (self.sizes is None) == (self.assignment is None):
            raise ValueError("pass either the block sizes or the assignment of labels to blocks")
        if self.sizes is not None:
            self._set(sizes=check_counts(self.sizes, "sizes"))
            return
        blocks = np.array(check_counts(self.assignment, "assignment", minimum=0), dtype=np.int64)
        missing = np.setdiff1d(np.arange(blocks.max() + 1), blocks)
        if len(missing):
            raise ValueError(
                f"assignment must use every block number from 0 to {blocks.max()}, "
                f"block {missing[0]} has no label"
            )
        self._set(assignment=frozen_array(blocks, np.int64))

    @cached_property
    def block_sizes(self) -> tuple[int, ...]:
        if self.sizes is not None:
            return self.sizes
        return tuple(np.bincount(self.assignment).tolist())  # type: ignore[arg-type]

    @property
    def n_blocks(self) -> int:
        return len(self.block_sizes)

    @cached_property
    def n_labels(self) -> int:
        return sum(self.block_sizes)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(self.block_sizes))

    @cached_property
    def first_labels(self) -> tuple[int, ...]:
        """Smallest label of each block, exact."""
        if self.assignment is not None:
            return tuple(np.unique(self.assignment, return_index=True)[1].tolist())
        return (0, *self._ends[:-1])

    def block_of(self, labels: LabelArray) -> IntArray:
        """Block of each (checked) label, (n,)."""
        if self.assignment is not None:
            return self.assignment[labels]
        if self.n_labels <= INT64_LIMIT:
            return np.searchsorted(np.array(self._ends), labels, side="right").astype(np.int64)
        return np.array([bisect_right(self._ends, label) for label in labels], dtype=np.int64)

    def coarser_blocks(self, other: Partition) -> IntArray | None:
        """Block of `other` that holds each block here, (n_blocks,); None if some block is split."""
        if self.n_labels != other.n_labels:
            return None
        if self.assignment is not None or other.assignment is not None:
            every = np.arange(self.n_labels)
            here, there = self.block_of(every), other.block_of(every)
            holder = there[np.array(self.first_labels)]
            return holder if np.array_equal(holder[here], there) else None
        if not set(other._ends) <= set(self._ends):
            return None
        return np.array([bisect_right(other._ends, end - 1) for end in self._ends], dtype=np.int64)
