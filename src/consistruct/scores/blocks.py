"""One score per block of labels: labels in a block are not told apart."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_measure
from consistruct.decoding import BlockArgmax
from consistruct.exceptions import NotInSpanError
from consistruct.labels import Classes
from consistruct.labels.base import integer_array
from consistruct.labels.partition import Partition
from consistruct.protocols import (
    Decoder,
    FloatArray,
    Gram,
    LabelSet,
    LinearMap,
    ScoreSpace,
)
from consistruct.scores.base import BaseScoreSpace, Predictable
from consistruct.scores.full import DiagonalGram
from consistruct.scores.linear import FunctionMap

__all__ = ["Blocks"]


@dataclass(frozen=True, eq=False, repr=False)
class Blocks(BaseScoreSpace):
    """Block indicators: F_c is the unit vector of the block of c; width = rank = n blocks.

    Only the first label of each block can be predicted.

    Parameters
    ----------
    sizes : sequence of int
        Sizes of consecutive blocks; any Python ints, 2^200 included.
    assignment : sequence of int
        Block of each label, instead of `sizes`.
    reference : (k,) array, optional
        Reference measure on the labels; uniform if not given.

    Examples
    --------
    >>> from consistruct.scores import Blocks
    >>> Blocks((2, 3)).embed([0, 4])
    array([[1., 0.],
           [0., 1.]])
    >>> Blocks((2, 2, 2)).effective_classes()
    3.0
    """

    sizes: tuple[int, ...] | None = None
    assignment: ArrayField | None = None
    reference: ArrayField | None = None

    def __post_init__(self) -> None:
        partition = Partition(self.sizes, self.assignment)
        reference = self.reference
        if reference is not None:
            reference = frozen_array(check_measure(reference, partition.n_labels))
        self._set(sizes=partition.sizes, assignment=partition.assignment, reference=reference)

    @cached_property
    def partition(self) -> Partition:
        return Partition(self.sizes, self.assignment)

    @cached_property
    def predictions(self) -> LabelSet:
        return Classes(self.partition.n_labels, reference=self.reference)

    @property
    def width(self) -> int:
        return self.partition.n_blocks

    @property
    def rank(self) -> int:
        return self.width

    @cached_property
    def _block_weights(self) -> FloatArray:
        """μ(block), (width,)."""
        if self.reference is not None:
            blocks = self.partition.block_of(np.arange(self.partition.n_labels))
            return np.asarray(np.bincount(blocks, weights=self.reference), np.float64)
        total = self.partition.n_labels
        weights = np.array([float(Fraction(size, total)) for size in self.partition.block_sizes])
        if (weights < np.finfo(np.float64).tiny).any():
            raise ValueError(
                f"block {int(weights.argmin())} is too small a share of all labels for float64; "
                "arithmetic with the reference measure would divide by zero"
            )
        return weights

    def embed(self, labels: ArrayLike) -> FloatArray:
        blocks = self.partition.block_of(self.predictions.check(labels))
        rows = np.zeros((len(blocks), self.width))
        rows[np.arange(len(blocks)), blocks] = 1.0
        return rows

    def gram(self) -> Gram:
        return DiagonalGram(self._block_weights)

    def decoder(self) -> Decoder:
        return BlockArgmax(self.partition.first_labels)

    def mean_embedding(self) -> FloatArray:
        return self._block_weights

    @property
    def contains_constant(self) -> bool:
        return True

    def predictable(self) -> Predictable:
        total = self.partition.n_labels
        if total == self.width:
            return Predictable(self.width)
        first = np.array(self.partition.first_labels, dtype=object)
        return Predictable(self.width, integer_array(np.sort(first), total), order_matters=True)

    def diameter_squared(self) -> Fraction | float:
        # Ḡ = diag(μ(block)), so the two lightest blocks are farthest apart
        if self.width == 1:
            return Fraction(0)
        if self.reference is not None:
            light = np.sort(self._block_weights)
            return float(1 / light[0] + 1 / light[1])
        total = self.partition.n_labels
        small, next_small = sorted(self.partition.block_sizes)[:2]
        return Fraction(total, small) + Fraction(total, next_small)

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        self._check_same_predictions(other)
        if not isinstance(other, Blocks):
            return super().coordinates(other)
        holder = self.partition.coarser_blocks(other.partition)
        if holder is None:
            raise NotInSpanError(
                f"{other!r} splits a block of {self!r}: its scores cannot be expressed there; "
                f"use the finer blocks"
            )
        n_there = other.width

        def backward(theta: FloatArray) -> FloatArray:
            result = np.zeros((n_there, len(theta)))
            np.add.at(result, holder, theta.T)
            return result.T

        return FunctionMap(lambda theta: theta[:, holder], backward)
