"""The F-measure of label sets, example by example."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct._validation import check_count, check_number
from consistruct.losses.base import Loss, Sizes, WorstCase
from consistruct.losses.independent import joint_with_count
from consistruct.losses.spec import at_most, count_field, number_field
from consistruct.protocols import FloatArray, IntArray, LabelArray, Target
from consistruct.structures import Ragged, SetSizes, Subsets
from consistruct.structures.sets import check_set_sizes

__all__ = ["FBeta"]

LARGEST_BETA = 1e150  # its square is still a float


@dataclass(frozen=True, eq=False, repr=False)
class FBeta(Loss):
    """Charge 1 − F_β of the predicted and the true label set, for each example.

    Formula: L(ŷ, y) = 1 − (1+β²)|ŷ∩y| / (β²|y| + |ŷ|). Two empty sets: 1 − `empty`; one empty set:
    1. Scores: one per true size that occurs and label, rank T² − T + 2 with all sizes (see
    `SetSizes`). Decoder: the best items for each predicted size, O(T²·|sizes|).

    L depends on y through its size and its members, so that E[u_y | x] holds P(|y| = s, t ∈ y | x)
    for every size s and label t: marginals of the labels alone do not determine the best set.

    Choose it for multi-label problems judged by example-based F1; Hamming loss states nothing about
    rare labels.

    Parameters
    ----------
    T : int
        Number of labels.
    beta : float
        Recall counts β times as much as precision.
    sizes : sequence of int, optional
        Sizes of the true sets that occur (an estimator fills them from y); all of 0..T if not
        given. Only targets need them: the loss itself is defined for every set.
    empty : float
        F_β of two empty sets, in [0, 1]; scikit-learn's `zero_division`.

    Examples
    --------
    >>> from consistruct.losses import FBeta
    >>> FBeta(3)([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]).round(3)
    array([0.333, 0.   ])
    >>> FBeta(983, sizes=range(1, 26)).target([[1] + 982 * [0]]).nnz
    1

    References
    ----------
    Dembczyński, Waegeman, Cheng and Hüllermeier, *An exact algorithm for F-measure maximization*,
    2011.
    """

    labels_as: ClassVar[str] = "sets"
    constant_offset: ClassVar[float] = 1.0

    T: int
    beta: float = 1.0
    sizes: tuple[int, ...] | None = field(default=None, kw_only=True)
    empty: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        T = check_count(self.T, "T")
        beta = check_number(self.beta, "beta", low=0.0, high=LARGEST_BETA, open_low=True)
        empty = check_number(self.empty, "empty", low=0.0, high=1.0)
        sizes = self.sizes
        if sizes is not None:
            sizes = check_set_sizes(sizes, T)
            if sizes[-1] == 0:
                raise ValueError("sizes must contain a positive set size, got only 0")
        self._set(T=T, beta=beta, sizes=sizes, empty=empty)

    def fit_sizes(self, true: LabelArray) -> Self:
        """Return the loss with the sizes of the sets that occur: others have no examples."""
        if self.sizes is not None:
            return self
        sets = self.true_labels.check(true, "y")
        if not sets.any():
            raise ValueError("y contains only empty sets; F-beta needs some labels to learn from")
        return dataclasses.replace(self, sizes=tuple(np.unique(sets.sum(axis=1)).tolist()))

    @cached_property
    def score_space(self) -> SetSizes:
        if self.empty > 0:
            return SetSizes(self.T, self.beta, self.sizes)
        # empty = 0: an empty true set costs 1 whatever is predicted, so it needs no column
        positive = tuple(s for s in self.true_labels.allowed_sizes if s > 0)
        return SetSizes(self.T, self.beta, positive)

    @cached_property
    def true_labels(self) -> Subsets:
        return Subsets(self.T, self.sizes)

    @property
    def max_value(self) -> float:
        return 1.0

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        if self.sizes is not None:  # sizes restrict the targets only
            everything = FBeta(self.T, self.beta, empty=self.empty)
            return everything(pred, true)
        return super().__call__(pred, true)

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return self.count_loss((pred & true).sum(axis=1), pred.sum(axis=1), true.sum(axis=1))

    def count_loss(self, shared: ArrayLike, predicted: ArrayLike, true: ArrayLike) -> FloatArray:
        """Return the loss from |ŷ ∩ y|, |ŷ| and |y|."""
        total = self.beta**2 * np.asarray(true) + np.asarray(predicted)
        # two empty sets make 0/0, replaced by 0/1 here and by `empty` below
        measure = (1 + self.beta**2) * np.asarray(shared) / np.where(total > 0, total, 1.0)
        return np.where(total > 0, 1.0 - measure, 1.0 - self.empty)

    def label_probabilities(self, target: FloatArray) -> FloatArray:
        """Return P(label t is in y), (n, T), from an expected target: a sum over the sizes of y."""
        space = self.score_space
        n_blocks = len(space.block_sizes)
        # column (s, t) holds −P(t is one of s labels), then −P(all labels)
        blocks = target[:, : n_blocks * self.T].reshape(len(target), n_blocks, self.T)
        probabilities = -blocks.sum(axis=1)
        if space.has_full:
            probabilities = probabilities - target[:, [n_blocks * self.T]]
        return np.clip(probabilities, 0.0, 1.0)

    def target(self, true: ArrayLike) -> Target:
        sets = self.true_labels.check(true, "true")
        space, counts = self.score_space, sets.sum(axis=1)
        block = np.searchsorted(space.block_sizes, counts)  # of the size of each set
        rows, labels = np.nonzero(sets * (counts < self.T)[:, None])
        columns, values = block[rows] * self.T + labels, np.full(len(rows), -1.0)
        # the full and the empty set are one label each: one column holds what T columns would
        # repeat
        single = [(self.T, len(space.block_sizes) * self.T, 1.0)] if space.has_full else []
        single += [(0, space.width - 2, self.empty)] if space.has_empty else []
        for size, column, value in single:
            examples = np.flatnonzero(counts == size)
            rows = np.concatenate([rows, examples])
            columns = np.concatenate([columns, np.full(len(examples), column)])
            values = np.concatenate([values, np.full(len(examples), -value)])
        shape = (len(sets), space.width)
        return scipy.sparse.csr_array((values, (rows, columns)), shape=shape)

    @property
    def without_sizes(self) -> FBeta:
        return dataclasses.replace(self, sizes=None)

    @property
    def sized_columns(self) -> int:
        return 1 + sum(s > 0 for s in self.true_labels.allowed_sizes)

    def independent_target(self, marginals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[target(y)] and E[offset(y)] from P(y_t = a), (n, T, 2), of independent labels.

        From P(y_t = 0) and P(y_t = 1, |y| = s) for each positive size s that occurs,
        (n, T, 1 + sizes), they are exact, however labels depend on each other.
        """
        # two columns are P(y_t = 0), P(y_t = 1) only if all sizes are allowed; with one allowed
        # size s they are P(y_t = 0), P(y_t = 1, |y| = s), joint probabilities already
        two = marginals.shape[2] == 2 and self.sizes is None
        joint = joint_with_count(marginals[:, :, 1]) if two else marginals[:, :, 1:]
        positive = [s for s in self.true_labels.allowed_sizes if s > 0]
        space, n = self.score_space, len(joint)
        partial = joint[:, :, : len(space.block_sizes)]
        columns = [-partial.transpose(0, 2, 1).reshape(n, -1)]
        if space.has_full:  # every label states P(all T labels): the same number but for rounding
            columns.append(-joint[:, :, -1].mean(axis=1)[:, None])
        if space.has_empty:  # Σ_t P(y_t = 1, |y| = s) = s·P(|y| = s)
            empty = 1.0 - (joint.sum(axis=1) / positive).sum(axis=1)
            columns.append(-self.empty * np.clip(empty, 0.0, 1.0)[:, None])
        columns.append(np.zeros((n, 1)))
        return np.hstack(columns), np.ones(n)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        space, T = self.score_space, self.T
        n, sizes = len(direction), space.block_sizes
        blocks = direction[:, : len(sizes) * T].reshape(n, len(sizes), T)
        # given its size, the worst set takes the smallest entries of the block of that size: sort
        # once, and prefix sums give the value of every size
        order = np.argsort(blocks, axis=2, kind="stable")
        lowest = np.take_along_axis(blocks, order, axis=2).cumsum(axis=2)
        largest, true_labels = np.full(n, -np.inf), np.zeros((n, T), dtype=np.int64)

        def offer(value: FloatArray, members: LabelArray) -> None:
            better = value > largest
            true_labels[better], largest[better] = members[better], value[better]

        for number, s in enumerate(sizes):
            # a true label of size s collects minus the s smallest entries of its block
            members = np.zeros((n, T), dtype=np.int64)
            np.put_along_axis(members, order[:, number, :s], 1, axis=1)
            offer(-lowest[:, number, s - 1], members)
        if space.has_full:
            offer(-direction[:, len(sizes) * T], np.ones((n, T), dtype=np.int64))
        # ∅ has a column only where `empty` > 0; where it is a true label it competes in any case
        if self.true_labels.allowed_sizes[0] == 0:
            alone = -self.empty * direction[:, -2] if space.has_empty else np.zeros(n)
            offer(alone, np.zeros((n, T), dtype=np.int64))
        return largest + offset_weight, true_labels

    def true_label_as_prediction(self, true: ArrayLike) -> LabelArray:
        """Return the set itself; a set whose size no true label has is a prediction too."""
        return self.true_labels.check(true, "true")

    def target_groups(self) -> tuple[IntArray, ...] | None:
        """Return the columns of each label over all sizes, then of the full and the empty set."""
        space = self.score_space
        n_blocks = len(space.block_sizes)
        # for each label: not in the set, or in a set of this size
        members = np.arange(n_blocks * self.T).reshape(n_blocks, self.T).T
        ends = np.arange(n_blocks * self.T, space.width - 1)  # the full set, the empty set
        return (*(tuple(members) if n_blocks else ()), *((ends,) if len(ends) else ()))

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("fbeta", arguments, 2, "fbeta:14 or fbeta:14:2")
        T = count_field(
            "fbeta", arguments, 0, sizes.n_parts, "number of labels", most=SPECS.set_labels
        )
        beta = number_field("fbeta", arguments, 1, "beta") if len(arguments) > 1 else 1.0
        return cls(T, beta, sizes=sizes.set_sizes)
