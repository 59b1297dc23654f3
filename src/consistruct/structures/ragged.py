"""Packed batches of sequences of different lengths: one array of values and the offsets.

Padding to the longest sequence costs memory and needs masks in every formula; an offset array costs
one integer per sequence, and compiled loops read slices of one contiguous array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consistruct.protocols import IntArray

__all__ = ["Ragged"]


@dataclass(frozen=True, eq=False)
class Ragged:
    """Lay sequences end to end: row i is ``values[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    values : (N, …) array
        The parts of all sequences in order.
    offsets : (n + 1,) int array
        Starts at 0, never decreases, ends at N.

    Examples
    --------
    >>> from consistruct.structures import Ragged
    >>> words = Ragged.pack([[0, 1, 2], [3], [4, 5]])
    >>> len(words), words.lengths.tolist(), words[2].tolist()
    (3, [3, 1, 2], [4, 5])
    """

    values: NDArray[Any]
    offsets: IntArray

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        offsets = np.asarray(self.offsets)
        if offsets.dtype.kind not in "iu" or offsets.ndim != 1 or len(offsets) == 0:
            raise ValueError(
                "offsets must be a one-dimensional integer array with one more entry than "
                f"there are sequences, got dtype {offsets.dtype} and shape {offsets.shape}"
            )
        if values.ndim == 0:
            raise ValueError("values must have at least one dimension, one row per part")
        offsets = offsets.astype(np.int64)
        lengths = np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != len(values) or (lengths < 0).any():
            raise ValueError(
                f"offsets must start at 0, never decrease and end at the number of parts "
                f"{len(values)}, got {offsets[0]} … {offsets[-1]}"
            )
        # not a `Member`: batches are data, compared by content but never hashed
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "offsets", offsets)

    @classmethod
    def pack(cls, rows: Sequence[ArrayLike]) -> Self:
        """Concatenate a list of arrays; an empty list gives an empty batch."""
        arrays = [np.asarray(row) for row in rows]
        shapes = {array.shape[1:] for array in arrays if len(array.shape) and len(array)}
        if any(array.ndim == 0 for array in arrays) or len(shapes) > 1:
            raise ValueError(
                "pack takes a list of arrays, one per sequence, whose parts have equal shapes; "
                f"got sequences of shapes {[array.shape for array in arrays[:5]]}"
            )
        offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])])
        parts = [array for array in arrays if len(array)]  # [] is float: keep it out of the dtype
        values = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        return cls(values, offsets.astype(np.int64))

    @property
    def lengths(self) -> IntArray:
        """Count the parts of each sequence, (n,)."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> IntArray:
        """Return the number of the sequence that each part belongs to, (N,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def with_values(self, values: ArrayLike) -> Self:
        """Return the same lengths with other values."""
        return type(self)(np.asarray(values), self.offsets)

    def take(self, rows: ArrayLike) -> Self:
        """Return the sequences with the given numbers, copied, in that order.

        >>> Ragged.pack([[0, 1], [2], [3, 4]]).take([2, 0]).values.tolist()
        [3, 4, 0, 1]
        """
        numbers = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        # positions within each sequence, then shifted to where that sequence starts in `values`
        within = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)
        return type(self)(self.values[np.repeat(self.offsets[numbers], lengths) + within], offsets)

    def same_lengths(self, other: Ragged) -> bool:
        """Say whether both batches have the same sequences of lengths."""
        return np.array_equal(self.offsets, other.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        """Return one sequence, a view."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"sequence {row} of a batch of {len(self)}")
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ragged):
            return NotImplemented
        return self.same_lengths(other) and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]
