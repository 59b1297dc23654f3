"""Classes: one score per label, or one per block of labels.

A class c is its own index in 0..k−1. `Full` scores every class freely (F = I), `Blocks` gives the
classes of a block one common score; `Partition` states what the blocks are. For fewer parameters of
any other kind see `dense`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct._members import ArrayField, Member, frozen_array
from consistruct._validation import (
    check_count,
    check_counts,
    check_measure,
    check_theta,
    integer_labels,
    read_integer,
    refuse_all_forbidden,
)
from consistruct.exceptions import (
    CapabilityError,
    FamilyError,
    LossSpecError,
    NotInSpanError,
    TooManyLabelsError,
)
from consistruct.protocols import (
    FloatArray,
    Gram,
    IntArray,
    LabelArray,
    LabelSet,
    LinearMap,
    ScoreSpace,
    TaskLoss,
)
from consistruct.structures.base import (
    ENUMERATION_LIMIT,
    INT64_LIMIT,
    VECTOR_LIMIT,
    FiniteLabels,
    Predictable,
    Structure,
    integer_array,
)
from consistruct.structures.operators import DiagonalGram, FunctionMap, identity_map

__all__ = [
    "Blocks",
    "Classes",
    "Full",
    "Partition",
    "block_sizes",
]


@dataclass(frozen=True, eq=False, repr=False)
class Classes(FiniteLabels):
    """List the labels 0, 1, …, n_classes − 1, each its own index.

    Parameters
    ----------
    n_classes : int
        Number of labels; beyond 2^63 labels are Python ints in object arrays.
    names : tuple of str, optional
        One name per label, for reports.
    reference : (n_classes,) array, optional
        Reference measure μ, positive; normalized to sum to one. Uniform if not given.

    Examples
    --------
    >>> from consistruct.structures import Classes
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
        """Return labels as integers in 0..n_classes−1, (n,)."""
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
        """Draw n labels from the reference measure, (n,)."""
        if self.reference is None:
            return super().sample(n, rng)
        return rng.choice(self.size, size=n, p=self.reference)

    def weights(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """Return μ, (n_classes,)."""
        if self.reference is None:
            return super().weights(limit=limit)
        self._bounded_size(limit, "the measure of every label")
        return self.reference


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Member):
    """Divide 0..k−1 into blocks, by their sizes (consecutive labels) or by the block of each label.

    Sizes may be astronomically large: nothing is listed for them.

    Parameters
    ----------
    sizes : tuple of int, optional
        Sizes of consecutive blocks, exact Python ints.
    assignment : (k,) array of int, optional
        Block of each label instead; every number from 0 up to the largest must occur.

    Examples
    --------
    >>> from consistruct.structures.classes import Partition
    >>> Partition(sizes=(2, 3)).block_of(np.array([0, 1, 2, 4]))
    array([0, 0, 1, 1])
    >>> Partition(assignment=(1, 0, 1)).first_labels
    (1, 0)
    """

    sizes: tuple[int, ...] | None = None
    assignment: ArrayField | None = None

    def __post_init__(self) -> None:
        # two ways to say the same thing: a member has one of them, never both
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
        """Count the labels of each block, exactly."""
        if self.sizes is not None:
            return self.sizes
        return tuple(np.bincount(self.assignment).tolist())  # type: ignore[arg-type]

    @property
    def n_blocks(self) -> int:
        return len(self.block_sizes)

    @cached_property
    def n_labels(self) -> int:
        """Count all labels, exactly."""
        return sum(self.block_sizes)

    @cached_property
    def _ends(self) -> list[int]:
        """Return one past the last label of each consecutive block, exact."""
        return list(accumulate(self.block_sizes))

    @cached_property
    def first_labels(self) -> tuple[int, ...]:
        """Return the smallest label of each block, exact."""
        if self.assignment is not None:
            return tuple(np.unique(self.assignment, return_index=True)[1].tolist())
        return (0, *self._ends[:-1])

    def block_of(self, labels: LabelArray) -> IntArray:
        """Return the block of each (checked) label, (n,)."""
        if self.assignment is not None:
            return self.assignment[labels]
        # the ends of consecutive blocks are sorted; beyond 63 bits NumPy cannot hold them
        if self.n_labels <= INT64_LIMIT:
            return np.searchsorted(np.array(self._ends), labels, side="right").astype(np.int64)
        return np.array([bisect_right(self._ends, label) for label in labels], dtype=np.int64)

    def coarser_blocks(self, other: Partition) -> IntArray | None:
        """Return the block of `other` that holds each block here; None if some block is split.

        A score per block there can then be written as a score per block here.
        """
        if self.n_labels != other.n_labels:
            return None
        # with an assignment there are few labels, and they are compared one by one
        if self.assignment is not None or other.assignment is not None:
            labels = np.arange(self.n_labels)
            here, there = self.block_of(labels), other.block_of(labels)
            holder = there[np.array(self.first_labels)]
            return holder if np.array_equal(holder[here], there) else None
        # consecutive blocks: those there are unions of those here iff all their ends are ends here
        if not set(other._ends) <= set(self._ends):
            return None
        return np.array([bisect_right(other._ends, end - 1) for end in self._ends], dtype=np.int64)


def block_sizes(text: str) -> tuple[int, ...]:
    """Read block sizes: ``3,5,2``, or ``4x25`` for four blocks of 25.

    >>> block_sizes("4x2"), block_sizes("3,5")
    ((2, 2, 2, 2), (3, 5))
    """
    try:
        if "x" in text:
            number, size = (read_integer(part, SPECS.digits) for part in text.split("x"))
            _check_blocks(number)
            sizes = (size,) * number
        else:
            sizes = tuple(read_integer(part, SPECS.digits) for part in text.split(","))
    except LossSpecError:
        raise
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise LossSpecError(
            f"block sizes must be written as 3,5,2 or as 4x25 (four blocks of 25), got "
            f"{text[:40]!r}"
        )
    return sizes


def _check_blocks(number: int) -> None:
    """Refuse more blocks than a spec may name, before a tuple of that length is made."""
    if number > SPECS.blocks:
        raise LossSpecError(
            f"a spec may name at most {SPECS.blocks} blocks, got {str(number)[:24]}; "
            f"choose fewer, or build the loss in Python"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Full(Structure):
    """Score every label freely: F = I, width = rank = k, Ḡ = diag(μ).

    Any loss is expressed, and learning is as hard as it gets: k_eff = k under the uniform measure.
    Choose it for few classes, or to ask what more structure would gain. Above 2^16 labels it exists
    for analysis only (through symmetry); whatever needs an array of k numbers raises
    `TooManyLabelsError`.

    Parameters
    ----------
    labels : TaskLoss, LabelSet or int
        Whose predictions to score; an int means that many classes.

    Examples
    --------
    >>> from consistruct.structures import Full
    >>> space = Full(4)
    >>> space.embed([2])
    array([[0., 0., 1., 0.]])
    >>> space.effective_classes()
    4.0

    See Also
    --------
    Blocks : one score for several classes.
    Dense : fewer parameters than classes, by any listed F.
    """

    labels: LabelSet
    one_per_label: ClassVar[bool] = True
    contains_constant = True

    def __init__(self, labels: TaskLoss | LabelSet | int) -> None:
        # The class is checked, not the object: isinstance with a protocol would evaluate
        # properties that a family or a loss over too many labels does not have.
        if hasattr(type(labels), "score_space"):
            predictions: LabelSet = labels.score_space.predictions  # type: ignore[union-attr]
        elif hasattr(type(labels), "unindex"):
            predictions = labels  # type: ignore[assignment]
        else:
            predictions = Classes(check_count(labels, "labels"))
        if predictions.size is None:
            raise FamilyError(predictions, "have full scores")
        self._set(labels=predictions)

    @property
    def predictions(self) -> LabelSet:
        return self.labels

    @cached_property
    def width(self) -> int:
        """Count the labels."""
        assert self.labels.size is not None
        return self.labels.size

    @property
    def rank(self) -> int:
        return self.width

    def require_arrays(self, what: str) -> None:
        """Raise `TooManyLabelsError` unless arrays of one number per label are allowed."""
        if self.width > VECTOR_LIMIT:
            raise TooManyLabelsError(
                self.width,
                VECTOR_LIMIT,
                f"{what} of full scores",
                "use the loss's own score space (loss.score_space) for learning; "
                "calibration_function works through symmetry",
            )

    @classmethod
    def from_spec(cls, argument: str, loss: TaskLoss) -> Self | None:
        """Take all labels of the loss."""
        return None if argument else cls(loss)

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return unit vectors, (n, k)."""
        self.require_arrays("embed")
        index = self.labels.index(labels)
        rows = np.zeros((len(index), self.width))
        rows[np.arange(len(index)), index] = 1.0
        return rows

    def gram(self) -> Gram:
        """Return diag(μ)."""
        self.require_arrays("gram")
        return DiagonalGram(self.labels.weights(limit=VECTOR_LIMIT))

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the first label of largest score."""
        self.require_arrays("decoding")
        scores = check_theta(theta, self.width)
        best = scores.argmax(axis=1)
        refuse_all_forbidden(scores[np.arange(len(scores)), best])
        return self.labels.unindex(best)

    def mean_embedding(self) -> FloatArray:
        """Return μ."""
        self.require_arrays("mean_embedding")
        return self.labels.weights(limit=VECTOR_LIMIT)

    def predictable(self) -> Predictable:
        return Predictable(self.width)

    def diameter_squared(self) -> Fraction | float:
        """Return 1/μ_i + 1/μ_j for the two lightest labels: 2k if all are alike."""
        # (e_i−e_j)ᵀ diag(1/μ) (e_i−e_j) = 1/μ_i + 1/μ_j
        if self.width == 1:
            return Fraction(0)
        if self.measure == "uniform":
            return Fraction(2 * self.width)
        weights = np.sort(self.labels.weights(limit=VECTOR_LIMIT))
        return float(1 / weights[0] + 1 / weights[1])

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        """Return θ ↦ F'θ: a full score is the score itself."""
        self._check_same_predictions(other)
        if isinstance(other, Full):
            return identity_map()
        if not isinstance(other, Structure):
            raise CapabilityError(other, "matrix", "coordinates in full scores", "list F yourself")

        # Full scores express everything; only applying the map needs one number per label.
        def matrix() -> FloatArray:
            self.require_arrays("coordinates")
            return other.matrix(limit=VECTOR_LIMIT)

        return FunctionMap(lambda theta: theta @ matrix().T, lambda theta: theta @ matrix())


@dataclass(frozen=True, eq=False, repr=False)
class Blocks(Structure):
    """Score blocks of labels: F_c is the unit vector of the block of c; width = rank = n blocks.

    Labels of one block always tie, so only the first label of each block can be predicted. It is
    the structure of the block loss (a wrong block costs 1), with Ḡ = diag(μ(block)) and
    k_eff = (1/μ(b) + 1/μ(b'))/2 for the two lightest blocks: the number of blocks if all are alike.

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
    >>> from consistruct.structures import Blocks
    >>> Blocks((2, 3)).embed([0, 4])
    array([[1., 0.],
           [0., 1.]])
    >>> Blocks((2, 2, 2)).effective_classes()
    3.0
    """

    sizes: tuple[int, ...] | None = None
    assignment: ArrayField | None = None
    reference: ArrayField | None = None
    contains_constant = True

    def __post_init__(self) -> None:
        partition = Partition(self.sizes, self.assignment)
        reference = self.reference
        if reference is not None:
            reference = frozen_array(check_measure(reference, partition.n_labels))
        # kept as `Partition` checked them: exact ints and a read-only array
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

    @classmethod
    def from_spec(cls, argument: str, loss: TaskLoss) -> Self | None:
        """Read ``blocks:3,5,2`` or ``blocks:4x25``."""
        return cls(block_sizes(argument)) if argument else None

    @cached_property
    def _block_weights(self) -> FloatArray:
        """Return μ(block), (width,)."""
        if self.reference is not None:
            blocks = self.partition.block_of(np.arange(self.partition.n_labels))
            return np.asarray(np.bincount(blocks, weights=self.reference), np.float64)
        # ratios of exact integers, rounded once: sizes such as 2^200 overflow a float division
        total = self.partition.n_labels
        weights = np.array([float(Fraction(size, total)) for size in self.partition.block_sizes])
        if (weights < np.finfo(np.float64).tiny).any():
            raise ValueError(
                f"block {int(weights.argmin())} is too small a share of all labels for float64; "
                "arithmetic with the reference measure would divide by zero"
            )
        return weights

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return the unit vector of the block of each label, (n, n_blocks)."""
        blocks = self.partition.block_of(self.predictions.check(labels))
        rows = np.zeros((len(blocks), self.width))
        rows[np.arange(len(blocks)), blocks] = 1.0
        return rows

    def gram(self) -> Gram:
        """Return diag(μ(block))."""
        return DiagonalGram(self._block_weights)

    @cached_property
    def _by_first_label(self) -> IntArray:
        """Order blocks by their smallest label: ties go to that label, not to the block number."""
        first = self.partition.first_labels
        return np.asarray(sorted(range(self.width), key=first.__getitem__), dtype=np.int64)

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the smallest label of the best block."""
        scores = check_theta(theta, self.width)
        best = self._by_first_label[scores[:, self._by_first_label].argmax(axis=1)]
        refuse_all_forbidden(scores[np.arange(len(scores)), best])
        first = self.partition.first_labels
        # a label beyond 63 bits stays a Python int
        dtype = np.int64 if max(first) < INT64_LIMIT else object
        return np.array(first, dtype=dtype)[best]

    def mean_embedding(self) -> FloatArray:
        """Return μ(block)."""
        return self._block_weights

    def predictable(self) -> Predictable:
        """Return the first label of every block."""
        total = self.partition.n_labels
        if total == self.width:
            return Predictable(self.width)
        first = np.array(self.partition.first_labels, dtype=object)
        return Predictable(self.width, integer_array(np.sort(first), total), order_matters=True)

    def diameter_squared(self) -> Fraction | float:
        """Return 1/μ(b) + 1/μ(b') for the two lightest blocks, exact without a given measure."""
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
        """Map scores of coarser blocks to their parts, by gathering."""
        self._check_same_predictions(other)
        if not isinstance(other, Blocks):
            return super().coordinates(other)
        # every block here lies in one block there and takes over its score
        holder = self.partition.coarser_blocks(other.partition)
        if holder is None:
            raise NotInSpanError(
                f"{other!r} splits a block of {self!r}: its scores cannot be expressed there; "
                f"use the finer blocks"
            )
        n_there = other.width

        # the transpose of gathering is scattering: scores of all blocks within one are added up
        def backward(theta: FloatArray) -> FloatArray:
            result = np.zeros((n_there, len(theta)))
            np.add.at(result, holder, theta.T)
            return result.T

        return FunctionMap(lambda theta: theta[:, holder], backward)
