"""What all label sets share (bounded enumeration, index checks), and the plainest: classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, Member, frozen_array
from consistruct._validation import check_count, check_measure, integer_labels
from consistruct.exceptions import FamilyError, TooManyLabelsError
from consistruct.protocols import FloatArray, LabelArray

__all__ = [
    "ENUMERATION_LIMIT",
    "INT64_LIMIT",
    "VECTOR_LIMIT",
    "Classes",
    "FiniteLabels",
    "draw_integers",
    "integer_array",
]

ENUMERATION_LIMIT = 4096
VECTOR_LIMIT = 2**16  # labels for which arrays of one number per label are allowed
INT64_LIMIT = 2**63  # sizes up to here have int64 indices, larger ones Python ints


class FiniteLabels(Member, ABC):
    """A finite label set. Required: `size`, `shape`, `check`, `index` and `unindex`.

    A family (sequences of every length) has ``size`` None and answers `check` and `at` only.
    """

    labels_as: ClassVar[str] = "codes"  # how users write them, see `Loss.labels_as`

    @property
    @abstractmethod
    def size(self) -> int | None: ...

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]: ...

    @abstractmethod
    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray: ...

    @abstractmethod
    def index(self, labels: ArrayLike) -> LabelArray: ...

    @abstractmethod
    def unindex(self, indices: ArrayLike) -> LabelArray: ...

    # --- with a default ---

    @property
    def measure(self) -> str:
        return "uniform"

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        return self.unindex(draw_integers(self._finite_size("be sampled"), n, rng))

    def enumerate(self, *, limit: int = ENUMERATION_LIMIT) -> LabelArray:
        size = self._bounded_size(limit, "listing all labels")
        return self.unindex(np.arange(size))

    def weights(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        size = self._bounded_size(limit, "the measure of every label")
        return np.full(size, 1.0 / size)

    # --- for subclasses ---

    def _finite_size(self, action: str) -> int:
        if self.size is None:
            raise FamilyError(self, action)
        return self.size

    def _bounded_size(self, limit: int, what: str) -> int:
        size = self._finite_size("be enumerated")
        if size > limit:
            raise TooManyLabelsError(
                size, limit, f"{what} of {self!r}", "use embed, gram and decoder instead, or sample"
            )
        return size

    def _check_indices(self, indices: ArrayLike) -> LabelArray:
        size = self._finite_size("be indexed")
        array = integer_labels(indices, (), "indices")
        outside = (array < 0) | (array >= size)
        if outside.any():
            raise ValueError(f"indices must be in 0..{size - 1}, got {array[outside][0]}")
        return integer_array(array, size)


@dataclass(frozen=True, eq=False, repr=False)
class Classes(FiniteLabels):
    """The labels 0, 1, …, n_classes − 1, each its own index.

    Parameters
    ----------
    n_classes : int
        Number of labels; beyond 2^63 labels are Python ints in object arrays.
    names : tuple of str, optional
        One name per label, for reports.
    reference : (n_classes,) array, optional
        Reference measure μ, positive; normalised to sum to one. Uniform if not given.

    Examples
    --------
    >>> from consistruct.labels import Classes
    >>> Classes(3).enumerate()
    array([0, 1, 2])
    >>> Classes(2**200).size == 2**200
    True
    """

    labels_as: ClassVar[str] = "classes"

    n_classes: int
    names: tuple[str, ...] | None = None
    reference: ArrayField | None = None

    def __post_init__(self) -> None:
        size = check_count(self.n_classes, "n_classes")
        if isinstance(self.names, str):
            raise TypeError(f"names must be a sequence of names, got the string {self.names!r}")
        names = None if self.names is None else tuple(str(name) for name in self.names)
        if names is not None and len(names) != size:
            raise ValueError(f"names must have {size} entries, one per class, got {len(names)}")
        reference = self.reference
        if reference is not None:
            reference = frozen_array(check_measure(reference, size))
        self._set(n_classes=size, names=names, reference=reference)

    @property
    def size(self) -> int:
        return self.n_classes

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def measure(self) -> str:
        return "uniform" if self.reference is None else "weighted"

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        array = integer_labels(labels, (), name)
        outside = (array < 0) | (array >= self.size)
        if outside.any():
            position = int(np.argmax(outside))
            raise ValueError(
                f"{name} must be in 0..{self.size - 1}, got {array[position]} at row {position}"
            )
        return integer_array(array, self.size)

    def index(self, labels: ArrayLike) -> LabelArray:
        return self.check(labels)

    def unindex(self, indices: ArrayLike) -> LabelArray:
        return self._check_indices(indices)

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        if self.reference is None:
            return super().sample(n, rng)
        return rng.choice(self.size, size=n, p=self.reference)

    def weights(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        if self.reference is None:
            return super().weights(limit=limit)
        self._bounded_size(limit, "the measure of every label")
        return self.reference


def integer_array(values: LabelArray, size: int) -> LabelArray:
    """int64 while every value below `size` fits, Python ints in an object array above that."""
    if size <= INT64_LIMIT:
        return values.astype(np.int64)
    # astype(object) of an integer array yields Python ints already; NumPy scalars would overflow.
    return np.array([int(value) for value in values.ravel()], dtype=object).reshape(values.shape)


def draw_integers(size: int, n: int, rng: np.random.Generator) -> LabelArray:
    """n integers uniform on 0..size-1, exact for any Python int."""
    if size <= INT64_LIMIT:
        return rng.integers(size, size=n, dtype=np.int64)
    n_bytes = (size.bit_length() + 7) // 8
    mask = (1 << size.bit_length()) - 1
    drawn: list[int] = []
    while len(drawn) < n:  # rejection: at most two tries on average
        candidate = int.from_bytes(rng.bytes(n_bytes), "little") & mask
        if candidate < size:
            drawn.append(candidate)
    result = np.empty(n, dtype=object)
    result[:] = drawn
    return result
