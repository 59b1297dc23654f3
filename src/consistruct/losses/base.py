"""What all losses share: checked calls, the dense matrix within limits, the algebra operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct.exceptions import CapabilityError, LossSpecError
from consistruct.protocols import FloatArray, IntArray, LabelArray, LabelSet, Target
from consistruct.structures import Ragged, Structure
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.structures.classes import Partition

if TYPE_CHECKING:
    from consistruct.losses.algebra import Combination
    from consistruct.structures import Oracle

__all__ = ["Loss", "Sizes", "as_loss", "dense_target", "minus_one_hot"]


@dataclass(frozen=True)
class Sizes:
    """What an estimator knows from y, to fill sizes that a loss spec leaves out."""

    n_classes: int | None = None
    n_parts: int | None = None
    n_states: int | None = None
    set_sizes: tuple[int, ...] | None = None  # sizes of the label sets that occur


class Loss(Member, ABC):
    """A task loss. Required: `score_space`, `true_labels`, `max_value`, `_value`, `target`.

    `_value` is the direct formula on checked labels; it must not be computed from `target`, so
    that the conformance checks compare two independent evaluations.
    """

    # How users write true labels: "classes", "parts" (a label per part), "sets" (rows of 0 and 1),
    # "orders" (of labels), "candidates" (sets that hold the true label), "relevance" (grades of
    # items) or "codes". None: as the label set of the true labels states.
    labels_as: ClassVar[str | None] = None
    # whether the order of the classes matters, so that names alone do not say what a mistake costs
    ordered_classes: ClassVar[bool] = False
    # whether every wrong prediction costs 1, whatever the true label
    is_zero_one: ClassVar[bool] = False
    # whether a true label is the cost of every prediction
    takes_cost_vectors: ClassVar[bool] = False
    # what the prediction beyond the classes is called, where there is one
    extra_prediction: ClassVar[str | None] = None

    @property
    @abstractmethod
    def score_space(self) -> Structure: ...

    @property
    @abstractmethod
    def true_labels(self) -> LabelSet: ...

    @property
    @abstractmethod
    def max_value(self) -> float: ...

    @abstractmethod
    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray: ...

    @abstractmethod
    def target(self, true: ArrayLike) -> Target: ...

    # --- with a default ---

    def _repr_html_(self) -> str:
        from consistruct.losses.card import loss_card  # in notebooks only

        return loss_card(self)

    @property
    def value_range(self) -> tuple[float, float]:
        """Least and largest value of the loss."""
        return 0.0, self.max_value

    def fit_sizes(self, true: LabelArray) -> Self:
        """The loss with what the true labels of a training set tell about it."""
        return self

    @property
    def decodes_fast(self) -> bool:
        """Whether learning may decode at will to compare settings; False where decoding means
        solving an optimization problem, so that settings are compared by squared error."""
        return True

    @property
    def block_mixture(self) -> tuple[Partition, float] | None:
        """(partition, η) where the loss is η·(0-1) + (1−η)·block; None where it is no such loss."""
        return None

    @property
    def partition(self) -> Partition | None:
        """The blocks of labels that the loss is about; None where there are none."""
        return None

    @property
    def hamming_shape(self) -> tuple[int | None, int] | None:
        """(T, s) where the loss is the share of T parts of s states each that are wrong.

        T is None in a family of lengths. None where it is no such loss.
        """
        return None

    @property
    def solver(self) -> Oracle | None:
        """The oracle that finds the lowest-cost decision, where predictions are its decisions."""
        return None

    @property
    def abstain_index(self) -> int | None:
        """The prediction that means "no answer", where there is one."""
        return None

    def offset(self, true: ArrayLike) -> FloatArray:
        return np.zeros(len(self.true_labels.check(true, "true")))

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        if isinstance(pred, Ragged) or isinstance(true, Ragged):
            raise TypeError(
                f"{self!r} takes plain arrays of labels, got a packed batch (Ragged); "
                f"only families of sizes, such as Hamming(None), take those"
            )
        checked_pred = self.predictions.check(pred, "pred")
        checked_true = self.true_labels.check(true, "true")
        if len(checked_pred) != len(checked_true):
            raise ValueError(
                f"pred and true must have the same length, "
                f"got {len(checked_pred)} and {len(checked_true)}"
            )
        return self._value(checked_pred, checked_true)

    @property
    def predictions(self) -> LabelSet:
        return self.score_space.predictions

    @property
    def n_labels(self) -> int | None:
        """Exact number of predictions."""
        return self.predictions.size

    def matrix(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """L as a dense array, rows are predictions, columns true labels, by the direct formula."""
        rows = self.predictions.enumerate(limit=limit)
        columns = self.true_labels.enumerate(limit=limit)
        n_rows, n_columns = len(rows), len(columns)
        values = self._value(
            np.repeat(rows, n_columns, axis=0), np.tile(columns, _tiles(columns, n_rows))
        )
        return values.reshape(n_rows, n_columns)

    @cached_property
    def _dense_targets(self) -> tuple[FloatArray, FloatArray]:
        """Target (m, width) and offset (m,) of every true label."""
        every = self.true_labels.enumerate()
        return dense_target(self.target(every)), self.offset(every)

    def worst_true_label(
        self, direction: FloatArray, offset_weight: float = 0.0
    ) -> tuple[FloatArray, LabelArray]:
        """max_y ⟨direction, u_y⟩ + offset_weight·o_y for each row: values (n,) and true labels."""
        target, offset = self._dense_targets
        values = direction @ target.T + offset_weight * offset
        best = values.argmax(axis=1)
        return values[np.arange(len(values)), best], self.true_labels.unindex(best)

    def true_label_as_prediction(self, true: ArrayLike) -> LabelArray:
        """The prediction that names the true label, where both are the same set."""
        if self.true_labels.size is None or self.true_labels.size != self.predictions.size:
            raise CapabilityError(
                self,
                "true_label_as_prediction",
                "a surrogate that scores the true label",
                "use the quadratic surrogate, which does not need it",
            )
        return self.true_labels.check(true, "true")

    def target_groups(self) -> tuple[IntArray, ...] | None:
        """Columns of the target by the question about the true label that decides them.

        A question has few answers (the state of a part, whether a label belongs to a set of this
        or that size), so that a classifier can predict it. Columns in no group are the same for
        every true label. None where the target does not come apart so.
        """
        return None

    @cached_property
    def part_targets(self) -> FloatArray | None:
        """Target of each part in each of its states, (T, predicted states, s); None where the
        target is no sum over parts that are scored on their own.

        >>> from consistruct.losses import LabelCosts
        >>> LabelCosts([4.0, 1.0], [1.0, 1.0]).part_targets[0]  # columns: label 0 is off, on
        array([[0. , 2. ],
               [0.5, 0. ]])
        """
        s, shape = self.score_space.separate_states, self.true_labels.shape
        if s is None or len(shape) != 1 or shape[0] is None:
            return None
        T, groups = shape[0], self.target_groups()
        if groups is None or not np.array_equal(np.array(groups), np.arange(T * s).reshape(T, s)):
            return None
        # one true label per state tells all: column t of it depends on part t alone
        every = np.repeat(np.arange(s)[:, None], T, axis=1)
        return dense_target(self.target(every)).reshape(s, T, s).transpose(1, 2, 0)

    @property
    def without_sizes(self) -> Loss:
        """The loss for true labels of every size, where this one is for sizes that occur."""
        return self

    @property
    def sized_columns(self) -> int | None:
        """Columns of P(label is not in the set), P(label is in a set of this size), … that
        `independent_target` takes in place of two states; None where sizes tell nothing."""
        return None

    def independent_target(self, marginals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[target(y)] (n, width) and E[offset(y)] (n,) from P(y_t = a), (n, T, s).

        Parts count as independent, which makes no difference where the target is a sum over parts.
        """
        if self.part_targets is None:
            raise CapabilityError(
                self,
                "an expected target from probabilities of its parts",
                "decisions from marginals",
                "pass samples of true labels (samples=), or the probabilities of all true labels "
                "in the order of loss.true_labels.enumerate()",
            )
        n, _, s = marginals.shape
        every = np.repeat(np.arange(s)[:, None], self.true_labels.shape[0], axis=1)
        target = np.einsum("tcy,nty->ntc", self.part_targets, marginals).reshape(n, -1)
        return target, np.full(n, self.offset(every)[0])

    def single_true_labels(
        self, true: ArrayLike | Ragged
    ) -> tuple[ArrayLike | Ragged, IntArray | None, FloatArray | None]:
        """True labels that stand for one label each, the example of each and its share.

        A true label that is a mean over several (candidate sets) is taken apart into them. Examples
        and shares are None where every true label is single already.
        """
        return true, None, None

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        """Build the loss from the fields of a spec string and what y tells."""
        raise LossSpecError(f"{cls.__name__} cannot be written as a spec; build it in Python")

    # --- algebra: a·loss, loss + loss ---

    def __mul__(self, factor: float) -> Combination:
        from consistruct.losses.algebra import Combination

        return Combination(((factor, self),))

    __rmul__ = __mul__

    def __add__(self, other: Loss) -> Combination:
        from consistruct.losses.algebra import Combination

        if not isinstance(other, Loss):
            return NotImplemented
        return Combination(((1.0, self), (1.0, other)))


def _tiles(labels: LabelArray, n: int) -> tuple[int, ...]:
    return (n,) + (1,) * (labels.ndim - 1)


def as_loss(loss: Loss | str) -> Loss:
    """The loss itself, or what a spec such as ``zero-one:3`` stands for.

    >>> as_loss("zero-one:3")
    ZeroOne(3)
    """
    if isinstance(loss, str):
        from consistruct.losses.registry import parse_loss  # it knows every loss, and they this

        return parse_loss(loss)
    if not isinstance(loss, Loss):
        raise TypeError(
            f"loss must be a consistruct loss or a spec such as 'zero-one:3', got "
            f"{type(loss).__name__}; wrap a matrix in losses.CostMatrix(M, rows='pred' or 'true')"
        )
    return loss


def dense_target(target: Target) -> FloatArray:
    """A target as a plain array, whichever way the loss gives it."""
    if isinstance(target, scipy.sparse.csr_array):
        return np.asarray(target.toarray(), dtype=np.float64)
    return np.asarray(target, dtype=np.float64)


def minus_one_hot(columns: LabelArray, width: int, scale: float = 1.0) -> scipy.sparse.csr_array:
    """CSR rows with −scale at the given columns: (n,) or (n, m) column numbers."""
    columns = columns[:, None] if columns.ndim == 1 else columns
    n, per_row = columns.shape
    return scipy.sparse.csr_array(
        (np.full(n * per_row, -scale), columns.ravel(), np.arange(n + 1) * per_row),
        shape=(n, width),
    )
