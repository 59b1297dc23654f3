"""Plain classes 0..k-1, with an optional name and reference weight for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_count, check_measure, integer_labels
from consistruct.labels.base import ENUMERATION_LIMIT, FiniteLabels, integer_array
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["Classes"]


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
