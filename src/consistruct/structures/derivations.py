"""Derivations: any structure whose labels a dynamic program puts together, from its recursion.

A recursion lists nodes bottom-up, each with the ways to build it: an edge takes up to two earlier
nodes (its tails) and adds a part. Every derivation of the goal is one label, and a label scores the
sum of its parts, f(ŷ) = Σ_{p in ŷ} θ_p, so F has a column for each part. From the lists follow,
compiled (`_derivation_kernels`) and for batches of different sizes in one call,

* the exact number of labels: Σ_edges Π_tails, in Python ints;
* the best label and the k best, log Z, marginals P(p in ŷ), exact samples of p(ŷ) ∝ exp f(ŷ);
* decisions of least expected number of wrong parts (minimum Bayes risk), because that number is
  linear in the indicators of parts.

`Derivations` says what to write. Segments, projective dependency trees, labeled spans and
monotone alignments have a file each; `_recursions` holds the lists of a family.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct._members import describe_count
from consistruct._validation import (
    check_count,
    check_scores,
    check_theta,
    integer_labels,
    refuse_all_forbidden,
)
from consistruct.exceptions import FamilyError, LossSpecError
from consistruct.protocols import FloatArray, IntArray, LabelArray, TaskLoss
from consistruct.structures._derivation_kernels import (
    Packed,
    Used,
    best_edges,
    best_packed,
    k_best_packed,
    marginals_packed,
    sample_packed,
)
from consistruct.structures._recursions import Edge, Recursion, recursion_of
from consistruct.structures.base import (
    FiniteLabels,
    Predictable,
    Structure,
    integer_array,
)
from consistruct.structures.operators import SpectralGram, dense_limit
from consistruct.structures.ragged import Ragged

__all__ = ["Derivations", "DerivedLabels", "PartBatch"]

# Width up to which Ḡ is computed: one marginal per column, then a dense decomposition of seconds.
GRAM_WIDTH = 4096
# Eigenvalues of Ḡ below this share of the largest count as zero: a thousand times the rounding of
# a marginal, and far below the probability of a part in any Ḡ that can be decomposed.
GRAM_TOLERANCE = 1e-12


class PartBatch:
    """Run the dynamic programs on a batch of members of different sizes, in one compiled call.

    Scores are flat: those of example i are ``scores[offsets[i]:offsets[i + 1]]``, one for each row
    of ``structure.at(sizes[i]).parts``. Made by `Derivations.batch`.

    Parameters
    ----------
    structure : Derivations
    sizes : (n,) array of int
    """

    def __init__(self, structure: Derivations, sizes: ArrayLike) -> None:
        self.structure = structure.at(None)
        self.sizes = integer_labels(sizes, (), "sizes").astype(np.int64)
        if len(self.sizes) and self.sizes.min() < 0:
            raise ValueError(f"sizes must be at least 0, got {self.sizes.min()}")
        self.offsets = np.concatenate([[0], np.cumsum(self._widths())])

    def _widths(self) -> IntArray:
        """Prepare the programs of these sizes and return the number of parts of each, (n,)."""
        recursion = self._recursion = recursion_of(self.structure)
        recursion.grow(int(self.sizes.max(initial=0)))
        self._goals = np.array(recursion.goals, dtype=np.int64)[self.sizes]
        if (self._goals < 0).any():
            without = self.sizes[self._goals < 0][0]
            raise ValueError(
                f"{self.structure!r} has no label of size {without}: its recursion yields no node "
                "there; choose another size"
            )
        return np.array(recursion.n_parts, dtype=np.int64)[self.sizes]

    def _flat(self, scores: ArrayLike) -> FloatArray:
        """Return scores as the loops read them, (N,), or raise with one clear line."""
        flat = np.ascontiguousarray(scores, dtype=np.float64)
        if flat.shape != (self.offsets[-1],):
            raise ValueError(
                f"scores must have one number per part of every example, shape "
                f"({self.offsets[-1]},), got shape {flat.shape}"
            )
        check_scores(flat, "scores")
        return flat

    def _packed(self, scores: ArrayLike) -> Packed:
        return self._recursion.lists, self._goals, self.offsets, self._flat(scores)

    def marginals(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return log Z, (n,), and P(part in label) for every part, flat as the scores."""
        packed = self._packed(scores)
        expected, log_partition = np.empty(self.offsets[-1]), np.empty(len(self.sizes))
        marginals_packed(packed, expected, log_partition)
        refuse_all_forbidden(log_partition)
        return log_partition, expected

    def best(self, scores: ArrayLike) -> tuple[FloatArray, Used]:
        """Return the largest score of each example, −inf without a legal label, and its parts."""
        packed = self._packed(scores)
        used, best = np.zeros(self.offsets[-1], dtype=np.int8), np.empty(len(self.sizes))
        best_packed(packed, used, best)
        return best, used

    def k_best(self, scores: ArrayLike, k: int) -> tuple[FloatArray, Used]:
        """Return the k largest scores, (n, k), −inf where there are fewer, and parts (k, N)."""
        packed = self._packed(scores)
        used = np.zeros((check_count(k, "k"), self.offsets[-1]), dtype=np.int8)
        best = np.empty((len(self.sizes), k))
        k_best_packed(packed, used, best)
        refuse_all_forbidden(best[:, 0])
        return best, used

    def sample(self, scores: ArrayLike, draws: int, rng: np.random.Generator) -> Used:
        """Draw labels from p(ŷ) ∝ exp f(ŷ) for each example: their parts, (draws, N)."""
        packed = self._packed(scores)
        used = np.zeros((draws, self.offsets[-1]), dtype=np.int8)
        log_partition = np.empty(len(self.sizes))
        sample_packed(packed, rng, used, log_partition)
        refuse_all_forbidden(log_partition)
        return used

    def labels(self, used: Used) -> Ragged:
        """Return the labels that use the given parts, (N,) marks, packed."""
        rows: list[LabelArray] = [np.zeros(0)] * len(self.sizes)
        for size in np.unique(self.sizes):
            same = np.flatnonzero(self.sizes == size)
            marks = np.stack([used[self.offsets[i] : self.offsets[i + 1]] for i in same])
            for i, label in zip(same, self.structure.at(int(size)).labels_of(marks), strict=True):
                rows[i] = label
        return Ragged.pack(rows)


@dataclass(frozen=True, eq=False, repr=False)
class DerivedLabels(FiniteLabels):
    """List the labels of a recursion in the order of its edges, the first edge of the goal first.

    Parameters
    ----------
    structure : Derivations
        Its `n` None is the family of all sizes.

    Examples
    --------
    >>> from consistruct.structures import DependencyTrees
    >>> trees = DependencyTrees(3).predictions  # the head of each word, 0 for the root
    >>> trees.size, trees.index([[2, 0, 2]]).tolist(), trees.unindex([0]).tolist()
    (7, [3], [[0, 1, 2]])
    """

    structure: Derivations

    def at(self, size: int) -> Self:
        """Return the labels of one size."""
        return replace(self, structure=self.structure.at(size))

    @property
    def size(self) -> int | None:
        """Count the derivations of the goal, exactly; None for the family."""
        return None if self.structure.n is None else self.structure.n_derivations

    @property
    def shape(self) -> tuple[int, ...]:
        return self.structure.label_shape

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        """Return labels that have a derivation, (n, *shape), or raise naming the first without."""
        self._finite_size(f"check {name}")
        array = integer_labels(labels, self.shape, name)
        self._marks(array, name)
        return array.astype(np.int64)

    def _marks(self, labels: LabelArray, name: str = "labels") -> Used:
        """Return the parts of labels, (n, width), each checked to have a derivation."""
        # numbers beyond any part would overflow in int64: they are replaced, then reported
        outside = (labels < 0) | (labels >= 2**31)
        small = ~outside.any(axis=tuple(range(1, labels.ndim))).astype(np.bool_)
        numbers = np.where(outside, 0, labels).astype(np.int64)
        used = self.structure.parts_of(numbers)
        # a label is legal if the dynamic program finds one that uses its parts and no others
        legal = small & ((used == 0) | (used == 1)).all(axis=1)
        flat = np.where(used == 1, 1.0, -np.inf).ravel()
        best, _ = self.structure.batch(np.full(len(used), self.structure.n)).best(flat)
        legal &= best == used.sum(axis=1, dtype=np.int64)
        # and only if `labels_of` writes these parts as this very label: `parts_of` may ignore
        # entries (the partner of an unpaired base, say), and wrong ones would pass
        kept = np.flatnonzero(legal)
        same = self.structure.labels_of(used[kept]) == numbers[kept]
        legal[kept] = same.all(axis=tuple(range(1, labels.ndim)))
        if not legal.all():
            row = int(np.argmin(legal))
            raise ValueError(
                f"{name}[{row}] = {labels[row].tolist()} is no label of {self.structure!r}: "
                f"{self.structure.contract}"
            )
        return used

    def index(self, labels: ArrayLike) -> LabelArray:
        """Return the numbers of derivations, exact, (n,)."""
        size = self._finite_size("be indexed")
        used = self._marks(integer_labels(labels, self.shape, "labels"))
        return integer_array(np.array(self.structure.ranks(used), dtype=object), size)

    def unindex(self, indices: ArrayLike) -> LabelArray:
        """Return the labels of derivations by their numbers, (n, *shape)."""
        return self.structure.labels_at([int(number) for number in self._check_indices(indices)])

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        """Draw n labels uniformly, each edge by its share of the derivations, (n, *shape)."""
        self._finite_size("be sampled")
        batch = self.structure.batch(np.full(1, self.structure.n))
        return self.structure.labels_of(batch.sample(np.zeros(batch.offsets[-1]), n, rng))


@dataclass(frozen=True, eq=False, repr=False)
class Derivations(Structure):
    """Score labels by their parts, f(ŷ) = Σ_{p in ŷ} θ_p, where a recursion lists the labels.

    **Must be written**

    * `columns`: the names of the integers that make a part, such as ``("head", "modifier")``;
    * `nodes(end)`: yield the nodes whose right end is `end`, as ``key, edges``. An edge is
      ``(tails, part)``: a tuple of up to two keys yielded before, and a tuple of integers or None.
      `AXIOM` is the list of edges of a node that needs nothing; a node without edges cannot be
      built. The last node is the goal of size `end`: its derivations are the labels of that size.

    **May be written**

    * `label_shape`, `labels_of`, `parts_of`, `sizes_of`: labels in a compact form, instead of a 0
      or 1 for every part;
    * `counted`, `max_errors`: which parts `losses.PartErrors` counts, and the most it counts;
    * fields beyond `n` (decorate with ``@dataclass(frozen=True, eq=False, repr=False)``).

    Two derivations must not have the same parts: recursions are listed at their smallest sizes and
    refused if they do.

    Parameters
    ----------
    n : int or None
        The size; None is the family of all sizes, whose batches `batch` takes.

    Examples
    --------
    Cut a rope of length n into pieces of length 1 to 3, each scored on its own:

    >>> from consistruct.structures import Derivations
    >>> class Pieces(Derivations):
    ...     columns = ("start", "end")
    ...
    ...     def nodes(self, end):
    ...         cuts = range(max(0, end - 3), end)
    ...         yield end, [((cut,), (cut, end)) for cut in cuts] if end else self.AXIOM
    >>> rope = Pieces(4)
    >>> rope.n_labels, Pieces(500).n_labels.bit_length(), rope.parts.shape
    (7, 439, (9, 2))
    >>> import numpy as np
    >>> scores = np.where(rope.parts @ [-1, 1] == 2, 1.0, 0.0)  # pieces of length 2 are worth 1
    >>> rope.parts[rope.decode([scores])[0] == 1].tolist()
    [[0, 2], [2, 4]]

    References
    ----------
    Huang and Chiang, *Better k-best parsing*, 2005, for derivations as hyperpaths; Goodman,
    *Semiring parsing*, 1999.
    """

    n: int | None
    columns: ClassVar[tuple[str, ...]] = ()
    contract: ClassVar[str] = "its parts must be those of one derivation"
    # how strings give the fields, as groups of a pattern, and an example
    spec: ClassVar[str] = r"(?P<n>\d+)"
    written: ClassVar[str] = "its size"
    # the edges of a node that is there from the start: one way to build it, from nothing
    AXIOM: ClassVar[tuple[Edge, ...]] = (((), None),)

    def __post_init__(self) -> None:
        self._set(n=None if self.n is None else check_count(self.n, "n", minimum=0))

    @abstractmethod
    def nodes(self, end: int) -> Iterator[tuple[Hashable, Iterable[Edge]]]:
        """Yield nodes with right end `end` and their edges, tails first, the goal last."""

    def at(self, size: int | None) -> Self:
        """Return the member of one size, or with None the family of all sizes."""
        return replace(self, n=size)

    def batch(self, sizes: ArrayLike) -> PartBatch:
        """Return the programs of a batch of members of the given sizes, (n,)."""
        return PartBatch(self, sizes)

    # --- labels and their parts ---

    def _size(self, action: str) -> int:
        """Return n, or raise `FamilyError` naming what cannot be done without it."""
        if self.n is None:
            raise FamilyError(self, action)
        return self.n

    @cached_property
    def program(self) -> tuple[Recursion, int]:
        """Return the lists and the goal of this size."""
        size = self._size("be listed")
        recursion = recursion_of(self.at(None))
        recursion.grow(size)
        goal = recursion.goals[size]
        if goal < 0 or recursion.count(goal) == 0:
            raise ValueError(
                f"{self!r} has no label: no derivation reaches its goal; change its size"
            )
        return recursion, goal

    @cached_property
    def n_derivations(self) -> int:
        """Count the derivations, which are the labels."""
        recursion, goal = self.program
        return recursion.count(goal)

    def ranks(self, used: Used) -> list[int]:
        """Return the numbers of the derivations that use the given parts, (n, width), exactly."""
        recursion, goal = self.program
        alpha, back = np.empty(goal + 1), np.empty(goal + 1, dtype=np.int32)
        numbers = []
        for marks in used:
            best_edges(recursion.lists, goal, np.where(marks == 1, 1.0, -np.inf), alpha, back)
            numbers.append(recursion.rank(goal, back))
        return numbers

    def labels_at(self, numbers: Sequence[int]) -> LabelArray:
        """Return the labels of derivations by their numbers, (n, *label_shape)."""
        recursion, goal = self.program
        used = np.zeros((len(numbers), self.width), dtype=np.int8)
        for row, number in enumerate(numbers):
            used[row, recursion.unrank(goal, number)] = 1
        return self.labels_of(used)

    @cached_property
    def parts(self) -> IntArray:
        """List the parts, (width, columns): row p says what θ_p scores."""
        size = self._size("list its parts")
        return self.program[0].parts[: self.program[0].n_parts[size]]

    @property
    def label_shape(self) -> tuple[int, ...]:
        """Return the shape of a label: a 0 or 1 for every part unless written otherwise."""
        return (self.width,)

    def sizes_of(self, lengths: IntArray) -> IntArray:
        """Return the sizes of packed labels by their lengths, (n,)."""
        return self._sizes_of_widths(lengths)

    def labels_of(self, used: Used) -> LabelArray:
        """Return the labels that use the given parts, (n, width) -> (n, *label_shape)."""
        return used.astype(np.int64)

    def parts_of(self, labels: LabelArray) -> Used:
        """Return the parts of labels, (n, *label_shape) -> (n, width); −1 where there is none."""
        return np.where(labels > 1, -1, labels).astype(np.int8)

    @cached_property
    def _codes(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return lowest and count of each column, and parts as sorted numbers with their order."""
        low = self.parts.min(axis=0, initial=0)
        span = self.parts.max(axis=0, initial=0) - low + 1
        codes = np.ravel_multi_index(tuple((self.parts - low).T), tuple(span))
        order = np.argsort(codes)
        return low, span, codes[order], order

    def _marks(self, n: int, rows: IntArray, *columns: ArrayLike) -> Used:
        """Mark parts given by their columns, (M,) each, in the label `rows` of n, (n, width)."""
        low, span, codes, order = self._codes
        wanted = np.column_stack(np.broadcast_arrays(rows, *columns))[:, 1:] - low
        inside = np.asarray(((wanted >= 0) & (wanted < span)).all(axis=1))
        numbers = np.ravel_multi_index(tuple(np.where(inside[:, None], wanted, 0).T), tuple(span))
        place = np.minimum(np.searchsorted(codes, numbers), len(codes) - 1)
        known = inside & (codes[place] == numbers)
        used = np.zeros((n, self.width), dtype=np.int8)
        np.add.at(used, (rows[known], order[place[known]]), 1)
        used[rows[~known]] = -1  # no such part: no label
        return used

    @property
    def predictions(self) -> DerivedLabels:
        return DerivedLabels(self)

    @property
    def width(self) -> int:
        """Count the parts."""
        return len(self.parts)

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return which parts a label uses, (n, *label_shape) -> (n, width) of 0 and 1."""
        used = self.parts_of(self.predictions.check(labels))
        return used.astype(np.float64)

    # --- which parts losses count ---

    @property
    def counted(self) -> IntArray:
        """Return 1 for every part whose errors count, 0 for others, (width,)."""
        return np.ones(self.width, dtype=np.int64)

    @property
    def own_scores(self) -> Derivations:
        """Return the smallest structure on the same labels that has the counted parts."""
        return self

    @property
    def max_errors(self) -> float:
        """Return the largest ½|ŷ Δ y| over counted parts; lists the labels unless written."""
        F = self.matrix() * self.counted
        sizes = F.sum(axis=1)
        return float((0.5 * (sizes[:, None] + sizes) - F @ F.T).max())

    # --- decode, sum, sample ---

    def widths_until(self, most: int) -> ArrayLike:
        """Return the widths of sizes 0, 1, … in order, at least until one has `most` parts."""
        recursion = recursion_of(self.at(None))
        # up to a size of twice the width, should a family have no more parts at all
        while (size := len(recursion.n_parts)) <= 2 * most + 8:
            if size and recursion.n_parts[-1] >= most:
                break
            recursion.grow(2 * size + 1)
        return recursion.n_parts

    def _sizes_of_widths(self, widths: IntArray) -> IntArray:
        """Return the sizes whose members have so many parts, (n,)."""
        members = np.asarray(self.widths_until(int(widths.max(initial=0))))
        # widths grow with the size; of equal ones the first is the smallest size
        sizes = np.searchsorted(members, widths)
        wrong = np.flatnonzero(np.append(members, -1)[sizes] != widths)
        if len(wrong):
            raise ValueError(
                f"example {wrong[0]} has {widths[wrong[0]]} scores, which no size of "
                f"{self.at(None)!r} has; give one score for each row of .at(size).parts"
            )
        return sizes

    def _flat(self, theta: ArrayLike) -> tuple[FloatArray, PartBatch]:
        scores = check_theta(theta, self.width)
        return scores.ravel(), self.batch(np.full(len(scores), self._size("score labels")))

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the label of largest score for each row of θ, (n, width) -> (n, *label_shape).

        Ties go to the smallest index: the edge that the recursion lists first.
        """
        flat, batch = self._flat(theta)
        best, used = batch.best(flat)
        refuse_all_forbidden(best)
        return self.labels_of(used.reshape(len(best), self.width))

    def decode_packed(self, theta: Ragged) -> Ragged:
        """Return the best labels of a packed batch of scores; sizes follow from their lengths."""
        sizes = self._sizes_of_widths(theta.lengths)
        batch = self.batch(sizes)
        best, used = batch.best(theta.values)
        refuse_all_forbidden(best)
        return batch.labels(used)

    def k_best(self, theta: ArrayLike, k: int) -> tuple[list[LabelArray], list[FloatArray]]:
        """Return the k best labels of each row of θ, best first, and their scores.

        Parameters
        ----------
        theta : (n, width) array
        k : int
            Rows with fewer legal labels get fewer.

        Returns
        -------
        list of (k, *label_shape) arrays, list of (k,) arrays
        """
        flat, batch = self._flat(theta)
        scores, used = batch.k_best(flat, k)
        marks = used.reshape(k, len(scores), self.width)
        kept = (scores > -np.inf).sum(axis=1)
        labels = [self.labels_of(marks[: kept[row], row]) for row in range(len(kept))]
        return labels, [scores[row, : kept[row]] for row in range(len(kept))]

    def minimum_risk(self, theta: ArrayLike) -> LabelArray:
        """Return argmin_ŷ E_p[½|ŷ Δ y|] over labels that θ allows, (n, *label_shape).

        The expected number of wrong parts is linear, Σ_{p in ŷ} (½ − P(p)) up to a constant, so
        the decision is `decode` with P(p) − ½ as scores. A part with θ = −inf has P(p) = 0 and
        could enter a compromise of legal labels, so it is forbidden again.
        """
        scores = check_theta(theta, self.width)
        gains = self.counted * (self.marginals(scores) - 0.5)
        return self.decode(np.where(np.isneginf(scores), -np.inf, gains))

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        """Return log Z of each row of θ by the inside pass, (n,)."""
        flat, batch = self._flat(theta)
        return batch.marginals(flat)[0]

    def marginals(self, theta: ArrayLike) -> FloatArray:
        """Return P(part in ŷ) for each row of θ, inside and outside, (n, width)."""
        flat, batch = self._flat(theta)
        return batch.marginals(flat)[1].reshape(len(batch.sizes), self.width)

    def sample(self, theta: ArrayLike, rng: np.random.Generator) -> LabelArray:
        """Draw one label per row of θ from the goal down, exactly, (n, *label_shape)."""
        flat, batch = self._flat(theta)
        return self.labels_of(batch.sample(flat, 1, rng).reshape(len(batch.sizes), self.width))

    # --- the uniform measure ---

    def mean_embedding(self) -> FloatArray:
        """Return the share of labels that use each part."""
        return self.marginals(np.zeros((1, self.width)))[0]

    @cached_property
    def _spectrum(self) -> SpectralGram:
        # E[F_p F_q] = P(q) − P(not p) P(q | not p), and forbidding p gives both factors: its log Z
        # and its marginals. One pass per part; parts that every label has are never forbidden.
        dense_limit(self.width, GRAM_WIDTH, f"the Gram operator of {self!r}")
        zero = np.zeros((1, self.width))
        log_size, mean = self.log_partition(zero)[0], self.mean_embedding()
        second = np.tile(mean, (self.width, 1))
        optional = np.flatnonzero(mean < 1.0 - 1e-12)
        forbidden = np.zeros((len(optional), self.width))
        forbidden[np.arange(len(optional)), optional] = -np.inf
        flat, batch = self._flat(forbidden)
        log_without, without = batch.marginals(flat)
        without *= np.repeat(np.exp(log_without - log_size), self.width)
        second[optional] -= without.reshape(len(optional), self.width)
        values, vectors = np.linalg.eigh((second + second.T) / 2)
        kept = values > GRAM_TOLERANCE * values.max(initial=0.0)
        return SpectralGram(values[kept], vectors[:, kept])

    def gram(self) -> SpectralGram:
        """Return Ḡ = E[F Fᵀ] under uniform labels, one marginal per part, up to 4,096 parts."""
        return self._spectrum

    @property
    def rank(self) -> int:
        """Return the rank of F, which is that of Ḡ."""
        return len(self._spectrum.factor)

    def predictable(self) -> Predictable:
        """Return every label: θ = 2F_ŷ − 1 makes the 0/1 row of ŷ the only winner."""
        return Predictable(self.n_derivations)

    # --- strings ---

    @classmethod
    def parse(cls, argument: str) -> Self:
        """Build a member from the text behind the colon of a spec, with small numbers only."""
        match = re.fullmatch(cls.spec, argument)
        if match is None:
            raise LossSpecError(
                f"{cls.__name__} is written as {cls.written}, not {argument[:40]!r}"
            )
        # nine digits are enough to see that a number is too large
        sizes = {name: int(digits[:9]) for name, digits in match.groupdict().items() if digits}
        if max(sizes.values()) > SPECS.derived_size:
            raise LossSpecError(
                f"sizes of {cls.__name__} in a string may be at most {SPECS.derived_size}, got "
                f"{argument[:40]!r}; build larger ones in Python"
            )
        return cls(**sizes)

    @classmethod
    def from_spec(cls, argument: str, loss: TaskLoss) -> Self | None:
        """Build the member that a string names, which must have the predictions of the loss."""
        structure, size = cls.parse(argument), loss.score_space.predictions.size
        if structure.n_labels != size:
            raise LossSpecError(
                f"{structure!r} has {describe_count(structure.n_labels)} labels, the loss "
                f"{describe_count(size)}; give both the same size"
            )
        return structure
