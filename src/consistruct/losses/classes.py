"""Count errors over classes: the 0-1 loss, the loss between blocks, and mixtures of the two."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField
from consistruct._validation import check_count, check_number
from consistruct.exceptions import LossSpecError
from consistruct.losses.base import Loss, Sizes, WorstCase, minus_one_hot
from consistruct.losses.spec import at_most, count_field, number_field
from consistruct.protocols import FloatArray, LabelArray, LabelSet, Target
from consistruct.structures import Blocks, Classes, Full, Structure
from consistruct.structures.classes import Partition, block_sizes

__all__ = ["Block", "Mixed", "ZeroOne"]


@dataclass(frozen=True, eq=False, repr=False)
class ZeroOne(Loss):
    """Charge 1 for a wrong prediction and nothing for the right one.

    Formula: L(ŷ, y) = 1 − [ŷ = y]. Scores: one per class, rank k. Decoder: argmax, O(k).

    It is the hardest loss over k classes: k_eff = k, since no two classes are alike. Where some
    errors are worse than others, say so with `CostMatrix`, `Block` or `Ordinal`, which are easier.

    Parameters
    ----------
    k : int
        Number of classes.

    Examples
    --------
    >>> from consistruct.losses import ZeroOne
    >>> ZeroOne(3)([0, 1, 2], [0, 2, 2])
    array([0., 1., 0.])
    """

    is_zero_one: ClassVar[bool] = True
    constant_offset: ClassVar[float] = 1.0

    k: int

    def __post_init__(self) -> None:
        self._set(k=check_count(self.k, "k"))

    @cached_property
    def score_space(self) -> Full:
        return Full(Classes(self.k))

    @property
    def true_labels(self) -> LabelSet:
        return self.score_space.predictions

    @property
    def max_value(self) -> float:
        return float(self.k > 1)

    @property
    def block_mixture(self) -> tuple[Partition, float]:
        return Partition(sizes=(self.k,)), 1.0

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return (pred != true).astype(np.float64)

    def target(self, true: ArrayLike) -> Target:
        # k may be 2^300 as long as only counts are wanted; a target has k columns
        self.score_space.require_arrays("target")
        return minus_one_hot(self.true_labels.check(true, "true"), self.k)

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("zero-one", arguments, 1, "zero-one:10")
        return cls(count_field("zero-one", arguments, 0, sizes.n_classes, "number of classes"))


@dataclass(frozen=True, eq=False, repr=False)
class Block(Loss):
    """Charge 1 if prediction and true label lie in different blocks of classes.

    Formula: L(ŷ, y) = 1 − [block(ŷ) = block(y)]. Scores: one per block, rank b.
    Decoder: argmax over blocks, O(b); the first label of the block stands for it.

    Parameters
    ----------
    sizes : sequence of int
        Sizes of consecutive blocks, any Python ints.
    assignment : sequence of int
        Block of each label, instead of `sizes`.

    Examples
    --------
    >>> from consistruct.losses import Block
    >>> Block((2, 3))([0, 1, 2], [1, 2, 4])
    array([0., 1., 0.])
    >>> Block(assignment=(0, 1, 0))([0], [2])
    array([0.])
    """

    constant_offset: ClassVar[float] = 1.0

    sizes: tuple[int, ...] | None = None
    assignment: ArrayField | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        partition = Partition(self.sizes, self.assignment)
        self._set(sizes=partition.sizes, assignment=partition.assignment)

    @cached_property
    def score_space(self) -> Blocks:
        return Blocks(self.sizes, self.assignment)

    @property
    def partition(self) -> Partition:
        return self.score_space.partition

    @property
    def true_labels(self) -> LabelSet:
        return self.score_space.predictions

    @property
    def max_value(self) -> float:
        return float(self.partition.n_blocks > 1)

    @property
    def block_mixture(self) -> tuple[Partition, float]:
        return self.partition, 0.0

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        block_of = self.partition.block_of
        return (block_of(pred) != block_of(true)).astype(np.float64)

    def target(self, true: ArrayLike) -> Target:
        blocks = self.partition.block_of(self.true_labels.check(true, "true"))
        return minus_one_hot(blocks, self.partition.n_blocks)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        # true labels of one block share their target: the first label stands for them
        best = direction.argmin(axis=1)
        first = self.true_labels.check(np.array(self.partition.first_labels, dtype=object))
        return offset_weight - direction[np.arange(len(best)), best], first[best]

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("block", arguments, 1, "block:4x25")
        if not arguments:
            raise LossSpecError("the spec of block lacks the block sizes; write block:3,5,2")
        return cls(block_sizes(arguments[0]))


@dataclass(frozen=True, eq=False, repr=False)
class Mixed(Loss):
    """Charge η for any error and 1 − η more for an error between blocks.

    Formula: L(ŷ, y) = η[ŷ ≠ y] + (1−η)[block(ŷ) ≠ block(y)]. Scores: one per class (rank k) for
    η > 0, one per block for η = 0. Decoder: argmax.

    Parameters
    ----------
    sizes : sequence of int
        Sizes of consecutive blocks.
    eta : float in [0, 1]
        Weight of the 0-1 loss.
    assignment : sequence of int
        Block of each label; then give ``sizes=None``.

    Examples
    --------
    >>> from consistruct.losses import Mixed
    >>> Mixed((2, 2), 0.4)([0, 0, 0], [0, 1, 2])
    array([0. , 0.4, 1. ])
    """

    constant_offset: ClassVar[float] = 1.0

    sizes: tuple[int, ...] | None
    eta: float
    assignment: ArrayField | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        partition = Partition(self.sizes, self.assignment)
        eta = check_number(self.eta, "eta", low=0.0, high=1.0)
        self._set(sizes=partition.sizes, assignment=partition.assignment, eta=eta)

    @cached_property
    def block(self) -> Block:
        return Block(self.sizes, assignment=self.assignment)

    @property
    def partition(self) -> Partition:
        return self.block.partition

    @cached_property
    def score_space(self) -> Structure:
        # η = 0 needs one score per block, any η > 0 one per class: the rank jumps from b to k
        return self.block.score_space if self.eta == 0 else self._full

    @cached_property
    def _full(self) -> Full:
        return Full(self.block.predictions)

    @property
    def true_labels(self) -> LabelSet:
        return self.block.true_labels

    @property
    def max_value(self) -> float:
        # two blocks: an error between them costs η + (1 − η). One block: only η, and only if k > 1
        if self.partition.n_blocks > 1:
            return 1.0
        return self.eta * float(self.partition.n_labels > 1)

    @property
    def block_mixture(self) -> tuple[Partition, float]:
        return self.partition, self.eta

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        same = (pred == true).astype(np.float64)
        return self.eta * (1.0 - same) + (1.0 - self.eta) * self.block._value(pred, true)

    def target(self, true: ArrayLike) -> Target:
        checked = self.true_labels.check(true, "true")
        if self.eta == 0:
            return self.block.target(checked)
        self._full.require_arrays("target")
        # u_y = −η e_y − (1 − η) 1[block(·) = block(y)], one row of k numbers per true label
        blocks = self.partition.block_of(np.arange(self.partition.n_labels))
        same_block = blocks[checked][:, None] == blocks[None, :]
        target = -(1.0 - self.eta) * same_block
        target[np.arange(len(checked)), checked] -= self.eta
        return target

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        if self.eta == 0:
            return self.block.worst_true_label(direction, offset_weight)
        return super().worst_true_label(direction, offset_weight)

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("mixed", arguments, 2, "mixed:4x25:0.4")
        if len(arguments) < 2:
            raise LossSpecError("the spec of mixed needs block sizes and eta; write mixed:4x25:0.4")
        return cls(block_sizes(arguments[0]), number_field("mixed", arguments, 1, "eta"))
