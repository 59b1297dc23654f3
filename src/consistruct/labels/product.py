"""Labels made of T parts with s states each: bit vectors, sequences, label subsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, integer_labels
from consistruct.exceptions import FamilyError
from consistruct.labels.base import FiniteLabels, integer_array
from consistruct.protocols import LabelArray

__all__ = ["Product"]


@dataclass(frozen=True, eq=False, repr=False)
class Product(FiniteLabels):
    """All vectors in {0..s−1}^T, ordered lexicographically: the first part counts most.

    With ``n_parts`` None it is the family of all lengths, whose batches are packed (`Ragged`).

    Examples
    --------
    >>> from consistruct.labels import Product
    >>> Product(3).index([[0, 1, 1], [1, 0, 0]])
    array([3, 4])
    >>> Product(1000).size == 2**1000
    True
    """

    labels_as: ClassVar[str] = "parts"

    n_parts: int | None
    n_states: int = 2

    def __post_init__(self) -> None:
        n_parts = None if self.n_parts is None else check_count(self.n_parts, "n_parts")
        self._set(n_parts=n_parts, n_states=check_count(self.n_states, "n_states", minimum=2))

    def at(self, size: int) -> Self:
        """The member of the family with `size` parts."""
        return type(self)(size, self.n_states)

    @property
    def size(self) -> int | None:
        return None if self.n_parts is None else self.n_states**self.n_parts

    @property
    def shape(self) -> tuple[int, ...]:
        if self.n_parts is None:
            raise FamilyError(self, "give the shape of a label")
        return (self.n_parts,)

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        if self.n_parts is None:
            raise FamilyError(self, f"check {name} in a plain array (pack sequences with Ragged)")
        array = integer_labels(labels, self.shape, name)
        self._check_states(array, name)
        return array.astype(np.int64)

    def check_parts(self, values: ArrayLike, name: str = "labels") -> LabelArray:
        """Check packed states (N,) of sequences of any length."""
        array = integer_labels(values, (), name)
        self._check_states(array, name)
        return array.astype(np.int64)

    def _check_states(self, array: LabelArray, name: str) -> None:
        outside = (array < 0) | (array >= self.n_states)
        if outside.any():
            where = tuple(int(position) for position in np.argwhere(outside)[0])
            raise ValueError(
                f"{name} must contain states in 0..{self.n_states - 1}, "
                f"got {array[where]} at position {where}"
            )

    def index(self, labels: ArrayLike) -> LabelArray:
        size = self._finite_size("be indexed")
        array = integer_array(self.check(labels), size)
        index = integer_array(np.zeros(len(array), dtype=np.int64), size)
        for part in range(array.shape[1]):  # Horner's rule in base s
            index = index * self.n_states + array[:, part]
        return index

    def unindex(self, indices: ArrayLike) -> LabelArray:
        remaining = self._check_indices(indices)
        (n_parts,) = self.shape
        labels = np.empty((len(remaining), n_parts), dtype=np.int64)
        for part in reversed(range(n_parts)):
            labels[:, part] = (remaining % self.n_states).astype(np.int64)
            remaining = remaining // self.n_states
        return labels

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        return rng.integers(self.n_states, size=(n, *self.shape), dtype=np.int64)
