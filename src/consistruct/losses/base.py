"""Losses as offset + ⟨embed(prediction), target(true label)⟩, and by their direct formula."""

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

__all__ = [
    "Loss",
    "Sizes",
    "WorstCase",
    "as_loss",
    "check_packed",
    "dense_target",
    "minus_one_hot",
]

# value of the worst case of each row, (n,), and the true labels that attain it, (n, *shape)
WorstCase = tuple[FloatArray, LabelArray]


@dataclass(frozen=True)
class Sizes:
    """Collect what an estimator knows from y, to fill sizes that a loss spec leaves out."""

    n_classes: int | None = None
    n_parts: int | None = None
    n_states: int | None = None
    set_sizes: tuple[int, ...] | None = None  # sizes of the label sets that occur


class Loss(Member, ABC):
    """Say what predicting ŷ costs when y is true: L(ŷ, y) = o_y + ⟨F_ŷ, u_y⟩.

    F_ŷ embeds the prediction, u_y is the target of the true label and o_y its offset. Of x, the
    decision of least expected loss needs E[u_y | x] alone: it is argmax_ŷ ⟨F_ŷ, −E[u_y | x]⟩, which
    the decoder of the structure finds without a list of labels.

    A loss is a frozen value: a dataclass with ``frozen=True, eq=False, repr=False``.

    **Must be written**

    * `score_space`: the smallest structure whose span holds the constant and the columns of L; it
      has the predictions;
    * `true_labels`: the label set of y, which may be another than that of the predictions;
    * `max_value`: the largest loss;
    * `_value(pred, true)`: the direct formula on checked labels, (n,). It must not be computed from
      `target`, because the conformance checks compare the two as independent evaluations;
    * `target(true)`: u_y, an array (n, width), or CSR where most entries are zero.

    **May be written**

    * `constant_offset`, or `offset(true)` where o_y depends on the true label;
    * `worst_true_label`: max_y ⟨d, u_y⟩ in closed form, where true labels are too many to list;
    * `true_label_as_prediction`: which prediction a true label names, for margins and log loss;
    * `target_groups`, `single_true_labels`: the questions that a classifier can answer instead;
    * `hamming_shape`, `block_mixture`, `partition`, `is_zero_one`, `takes_cost_vectors`, `solver`,
      `abstain_index`: that the loss has a known form, for which there are closed formulas;
    * `labels_as`, `ordered_classes`, `extra_prediction`, `fit_sizes`: how users write y;
    * `from_spec`: how a string such as ``hamming:10x26`` names it, see `registry`.

    What is written is checked against all pairs of labels by `consistruct.testing.check_loss`; a
    loss over listed labels is shorter still, see `MatrixLoss`.

    Examples
    --------
    The shortest loss with a structure of its own: wrong digits of a number, most significant first.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from consistruct.losses import Loss
    >>> from consistruct.structures import Product, Separable
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class WrongDigits(Loss):
    ...     n: int = 3
    ...     constant_offset = 1.0
    ...     max_value = 1.0
    ...
    ...     @property
    ...     def weights(self):
    ...         return 0.5 ** np.arange(self.n) / (2.0 - 2.0 * 0.5**self.n)
    ...
    ...     @property
    ...     def score_space(self):
    ...         return Separable(self.n, 10)
    ...
    ...     @property
    ...     def true_labels(self):
    ...         return Product(self.n, 10)
    ...
    ...     def _value(self, pred, true):
    ...         return (pred != true) @ self.weights
    ...
    ...     def target(self, true):
    ...         one_hot = np.eye(10)[self.true_labels.check(true)]
    ...         return -(one_hot * self.weights[:, None]).reshape(len(true), -1)
    >>> WrongDigits()([[1, 2, 3]], [[1, 5, 3]]).round(3)
    array([0.286])

    References
    ----------
    Ciliberto, Rosasco and Rudi, *A consistent regularization approach for structured prediction*,
    2016, who learn E[u_y | x] by least squares.
    """

    # How users write true labels: "classes", "parts" (a label per part), "sets" (rows of 0 and 1),
    # "orders" (of labels), "candidates" (sets that hold the true label), "relevance" (grades of
    # items) or "codes". None: as the label set of the true labels states.
    labels_as: ClassVar[str | None] = None
    # whether the order of the classes matters, so that names alone do not say what a mistake costs
    ordered_classes: ClassVar[bool] = False
    # o_y, where it is one number for all true labels
    constant_offset: ClassVar[float] = 0.0
    # whether every wrong prediction costs 1, whatever the true label
    is_zero_one: ClassVar[bool] = False
    # whether a true label is the cost of every prediction
    takes_cost_vectors: ClassVar[bool] = False
    # name of a prediction that is no class, such as to abstain; None if every prediction is one
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
        from consistruct._cards import loss_card  # in notebooks only

        return loss_card(self)

    @property
    def value_range(self) -> tuple[float, float]:
        """Return the least and the largest value of the loss."""
        return 0.0, self.max_value

    def fit_sizes(self, true: LabelArray) -> Self:
        """Return the loss with what the true labels of a training set tell about it."""
        return self

    @property
    def block_mixture(self) -> tuple[Partition, float] | None:
        """Return (partition, η) where the loss is η·(0-1) + (1−η)·block, else None."""
        return None

    @property
    def partition(self) -> Partition | None:
        """Return the blocks of labels that the loss is about; None where there are none."""
        return None

    @property
    def hamming_shape(self) -> tuple[int | None, int] | None:
        """Return (T, s) where the loss is the share of T parts of s states each that are wrong.

        T is None in a family of lengths. None where it is no such loss.
        """
        return None

    @property
    def solver(self) -> Oracle | None:
        """Return the oracle that finds the lowest-cost decision, where predictions are decisions.

        Each decoding then is an optimization problem, so that learning compares settings by
        squared error and not by the task loss.
        """
        return None

    @property
    def abstain_index(self) -> int | None:
        """Return the prediction that means "no answer", where there is one."""
        return None

    def offset(self, true: ArrayLike) -> FloatArray:
        """Return o_y of each true label, (n,): `constant_offset`, unless a loss overrides it."""
        return np.full(len(self.true_labels.check(true, "true")), self.constant_offset)

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        """Return L(ŷ_i, y_i) of each pair, (n,), by the direct formula."""
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
        """Return the labels that can be predicted."""
        return self.score_space.predictions

    @property
    def n_labels(self) -> int | None:
        """Return the exact number of predictions, however large; None in a family."""
        return self.predictions.size

    def matrix(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """List L by the direct formula: rows are predictions, columns true labels."""
        rows = self.predictions.enumerate(limit=limit)
        columns = self.true_labels.enumerate(limit=limit)
        n_rows, n_columns = len(rows), len(columns)
        repeats = (n_rows,) + (1,) * (columns.ndim - 1)  # of whole labels, not of their parts
        values = self._value(np.repeat(rows, n_columns, axis=0), np.tile(columns, repeats))
        return values.reshape(n_rows, n_columns)

    @cached_property
    def _dense_targets(self) -> tuple[FloatArray, FloatArray]:
        """Return target (m, width) and offset (m,) of every true label."""
        labels = self.true_labels.enumerate()
        return dense_target(self.target(labels)), self.offset(labels)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        """Return max_y ⟨direction, u_y⟩ + offset_weight·o_y of each row, and who attains it.

        It is the inner problem of the calibration function: H is a minimum over distributions of
        y, and by duality those are found one worst true label at a time. Listing costs O(m·width)
        a row; losses with a structure override it with a decoder of their own.
        """
        target, offset = self._dense_targets
        values = direction @ target.T + offset_weight * offset
        best = values.argmax(axis=1)
        return values[np.arange(len(values)), best], self.true_labels.unindex(best)

    def true_label_as_prediction(self, true: ArrayLike) -> LabelArray:
        """Return the prediction that names the true label, where both are the same set."""
        # sets of equal size are taken for one set: a loss whose two sets only happen to be of one
        # size overrides this (`CostMatrix` looks at names, `PartialLabels` refuses)
        if self.true_labels.size is None or self.true_labels.size != self.predictions.size:
            raise CapabilityError(
                self,
                "true_label_as_prediction",
                "a surrogate that scores the true label",
                "use the quadratic surrogate, which does not need it",
            )
        return self.true_labels.check(true, "true")

    def target_groups(self) -> tuple[IntArray, ...] | None:
        """Return the columns of the target by the question about y that decides them.

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
        """Return true labels that stand for one label each, the example of each and its share.

        A true label that is a mean over several (candidate sets) is taken apart into them. Examples
        and shares are None where every true label is single already.
        """
        return true, None, None

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        """Build the loss from the fields of a spec string, and from y where it leaves them out."""
        raise LossSpecError(f"{cls.__name__} cannot be written as a spec; build it in Python")

    # --- algebra: a·loss, loss + loss; imported on use, because a combination is itself a loss ---

    def __mul__(self, factor: float) -> Combination:
        from consistruct.losses.algebra import Combination

        return Combination(((factor, self),))

    __rmul__ = __mul__

    def __add__(self, other: Loss) -> Combination:
        from consistruct.losses.algebra import Combination

        if not isinstance(other, Loss):
            return NotImplemented
        return Combination(((1.0, self), (1.0, other)))


def check_packed(
    loss: Loss, pred: object, true: object, size: int | None, words: tuple[str, str, str]
) -> tuple[Ragged, Ragged] | None:
    """Return packed batches whose members match in length; None where both are plain arrays.

    Parameters
    ----------
    size : int or None
        The one length that the loss takes; None in a family.
    words : tuple of str
        What a member, several of them and their parts are called, as in query, queries, items.
    """
    if not isinstance(pred, Ragged) and not isinstance(true, Ragged):
        return None
    one, several, parts = words
    if not isinstance(pred, Ragged) or not isinstance(true, Ragged):
        raise TypeError(
            "pred and true must both be packed (Ragged) or both plain arrays; "
            f"pack lists of {several} with Ragged.pack"
        )
    if not pred.same_lengths(true):
        raise ValueError(f"pred and true must contain {several} of the same lengths")
    if (true.lengths == 0).any():
        empty = int(np.argmax(true.lengths == 0))
        raise ValueError(f"{one} {empty} is empty; leave out {several} without {parts}")
    if size is not None and (true.lengths != size).any():
        other = int(np.argmax(true.lengths != size))
        raise ValueError(
            f"{loss!r} takes {several} of {size} {parts}, {one} {other} has "
            f"{true.lengths[other]}; use the family, with None in place of {size}"
        )
    return pred, true


def as_loss(loss: Loss | str) -> Loss:
    """Return the loss itself, or what a spec such as ``zero-one:3`` stands for.

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
    """Return a target as a plain array, whichever way the loss gives it."""
    if isinstance(target, scipy.sparse.csr_array):
        return np.asarray(target.toarray(), dtype=np.float64)
    return np.asarray(target, dtype=np.float64)


def minus_one_hot(columns: LabelArray, width: int, scale: float = 1.0) -> scipy.sparse.csr_array:
    """Return CSR rows with −scale at the given columns: (n,) or (n, m) column numbers.

    Right parts *lower* the loss, so that its target is minus a one-hot row, with offset 1.
    """
    columns = columns[:, None] if columns.ndim == 1 else columns
    n, per_row = columns.shape
    return scipy.sparse.csr_array(
        (np.full(n * per_row, -scale), columns.ravel(), np.arange(n + 1) * per_row),
        shape=(n, width),
    )
