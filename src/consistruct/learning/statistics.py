"""What a model averages: a statistic τ(y) of the true label, and what follows from E[τ(y) | x].

A decision needs the expected target ū(x) = E[target(y) | x] and nothing else of x. A model may fit
the target itself, or something finer (the class itself, one column per class), from which a linear
map leads to ū. The finer statistic has two merits: estimates that are no probabilities can be made
so before costs are applied, and the loss can be changed after fitting.

    τ(y)  --E[· | x]-->  expected  --project-->  in the hull  --target, offset-->  ū, ō  -->  decode
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct._validation import is_sparse
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import Structure
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.surrogates import QuadraticSurrogate

__all__ = [
    "ClassProbabilities",
    "Statistic",
    "TargetValues",
    "finest_statistic",
    "rounded_scores",
    "simplex_projection",
]


class Statistic(Member, ABC):
    """τ(y) and the linear map from its mean to ū. Required: the abstract methods.

    Shapes: n examples, `width` columns of τ, the loss's own score space for ū. Statistics of
    sequences and queries hold packed batches (`Ragged`) in place of (n, width) arrays.
    """

    loss: Loss
    # whether τ is the one-hot class, so that E[τ | x] are the probabilities of the classes
    of_classes: ClassVar[bool] = False

    @property
    @abstractmethod
    def width(self) -> int:
        """Columns of τ."""

    @abstractmethod
    def values(self, true: Any) -> Target:
        """τ of each true label, (n, width): array or CSR."""

    @abstractmethod
    def target(self, expected: FloatArray) -> FloatArray:
        """ū from E[τ], (n, width of the loss's own scores)."""

    @abstractmethod
    def offset(self, expected: FloatArray) -> FloatArray:
        """ō = E[offset(y) | x] from E[τ], (n,)."""

    @abstractmethod
    def with_loss(self, loss: Loss) -> Statistic:
        """The same statistic for another loss over the same labels; raises where it is too coarse.

        A class statistic serves every loss over the classes, the target of the Hamming loss every
        sum over parts; another target serves its own loss only.
        """

    # --- with a default ---

    @property
    def score_space(self) -> Structure | None:
        """The scores in whose coordinates τ is written; None for what is no target."""
        return None

    @property
    def open_offset(self) -> bool:
        """Whether the last column of τ is an offset that depends on the true label."""
        return False

    def project(self, expected: FloatArray) -> FloatArray:
        """Estimates brought into the hull of τ; as they are, unless the statistic knows its hull.

        Must keep shapes and leave points of the hull where they are.
        """
        return expected

    def decode(self, expected: FloatArray) -> LabelArray:
        """The prediction of least expected loss, (n, *label shape)."""
        return self.loss.score_space.decode(-self.target(self.project(expected)))

    def expected_loss(self, expected: FloatArray, pred: LabelArray) -> FloatArray:
        """E[L(ŷ, y) | x] of given predictions, (n,)."""
        expected = self.project(expected)
        embedded = self.loss.score_space.embed(pred)
        inner = np.einsum("nw,nw->n", embedded, self.target(expected))
        return np.asarray(inner + self.offset(expected))

    def expected_losses(self, expected: FloatArray) -> FloatArray:
        """E[L(c, y) | x] of every prediction c, (n, k), in the order of the label set."""
        expected = self.project(expected)
        listed = self.loss.score_space.matrix(limit=ENUMERATION_LIMIT)
        return np.asarray(self.target(expected) @ listed.T + self.offset(expected)[:, None])

    def part_scores(self, expected: FloatArray) -> FloatArray | None:
        """Score of state 1 over state 0 for each part, (n, T); None where parts do not stand alone.

        For scores that are a sum over two-state parts.
        """
        return None

    def squared_error(self, error: FloatArray) -> FloatArray:
        """Excess quadratic risk of an error in E[τ], (n,): ½ eᵀḠe with e in the loss's scores."""
        gap = self.target(error)
        return 0.5 * np.einsum("nw,nw->n", gap, self.loss.score_space.gram().apply(gap))


@dataclass(frozen=True, eq=False, repr=False)
class TargetValues(Statistic):
    """τ(y) = target(y), in the loss's own scores or in those of another score space.

    An offset that depends on the true label (precision, pairs) is one more column, so that expected
    losses can be reported and not only compared.

    Parameters
    ----------
    loss : Loss
    scores : ScoreSpace, optional
        Where the target is written: a larger space keeps the decisions, in a smaller one the
        target is projected and learning is in general inconsistent. The loss's own if None.

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> statistic = TargetValues(Hamming(2))
    >>> statistic.width, statistic.decode(statistic.values([[0, 1]]).toarray()).tolist()
    (4, [[0, 1]])
    """

    loss: Loss
    scores: Structure | None = None

    @cached_property
    def surrogate(self) -> QuadraticSurrogate:
        """The quadratic surrogate whose minimizer is minus the mean of this statistic."""
        return QuadraticSurrogate(self.loss, self.scores)

    @property
    def score_space(self) -> Structure:
        return self.surrogate.score_space

    @cached_property
    def constant_offset(self) -> float | None:
        """The offset where it is the same for every true label, else None."""
        if self.loss.true_labels.size is None:
            offsets = np.zeros(1)  # cost vectors have none
        else:
            true_labels = self.loss.true_labels.sample(256, np.random.default_rng(0))
            offsets = self.loss.offset(true_labels)
        # means over candidates differ by rounding
        same = np.ptp(offsets) <= 1e-12 * np.abs(offsets).max(initial=0.0)
        return float(offsets[0]) if same else None

    @property
    def open_offset(self) -> bool:
        return self.constant_offset is None

    @property
    def width(self) -> int:
        return self.score_space.width + self.open_offset

    def values(self, true: Any) -> Target:
        target = self.surrogate.target(true)
        if self.constant_offset is not None:
            return target
        offset = self.loss.offset(true)[:, None]
        if is_sparse(target):
            return sp.csr_array(sp.hstack([target, sp.csr_array(offset)]))
        return np.hstack([target, offset])

    def scores_part(self, expected: FloatArray) -> FloatArray:
        """The columns that are coordinates of the score space, (n, width of the space)."""
        return expected[:, : self.score_space.width]

    def target(self, expected: FloatArray) -> FloatArray:
        part = self.scores_part(expected)
        return part if self.scores is None else self.surrogate.expected_target(-part)

    def offset(self, expected: FloatArray) -> FloatArray:
        if self.loss.solver is not None:
            raise CapabilityError(
                self,
                "offset",
                "an expected regret",
                "it would need the best value of every training row; the expected cost of "
                "decisions z is (z * model.expected_target(X)).sum(axis=1)",
            )
        if self.constant_offset is None:
            return np.asarray(expected[:, -1])
        return np.full(len(expected), self.constant_offset)

    def decode(self, expected: FloatArray) -> LabelArray:
        return self.score_space.decode(-self.scores_part(expected))

    def part_scores(self, expected: FloatArray) -> FloatArray | None:
        if self.score_space.separate_states != 2:
            return None
        parts = -self.scores_part(expected).reshape(len(expected), -1, 2)
        return np.asarray(parts[:, :, 1] - parts[:, :, 0])

    def squared_error(self, error: FloatArray) -> FloatArray:
        gap = self.scores_part(error)
        return 0.5 * np.einsum("nw,nw->n", gap, self.score_space.gram().apply(gap))

    def with_loss(self, loss: Loss) -> Statistic:
        if loss == self.loss:
            return self
        from consistruct.learning.part_statistics import PartProbabilities, same_parts

        if self.scores is None and same_parts(self.loss, loss):
            return PartProbabilities(loss)
        raise CapabilityError(
            self,
            "a statistic of the true labels",
            f"changing the loss to {loss!r} after fitting",
            f"the model was fitted on the targets of {self.loss!r}; fit again with the new loss",
        )


@dataclass(frozen=True, eq=False, repr=False)
class ClassProbabilities(Statistic):
    """τ(y) = one-hot class: E[τ | x] are the probabilities of the classes.

    Parameters
    ----------
    loss : Loss
        Over listed true labels.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import CostMatrix
    >>> statistic = ClassProbabilities(CostMatrix([[0, 10], [1, 0]], rows="pred"))
    >>> statistic.decode(np.array([[0.8, 0.2]])), statistic.expected_losses(np.array([[0.8, 0.2]]))
    (array([1]), array([[2. , 0.8]]))
    """

    of_classes: ClassVar[bool] = True
    loss: Loss

    @cached_property
    def _maps(self) -> tuple[FloatArray, FloatArray]:
        """Target (m, width) and offset (m,) of every true label."""
        every = self.loss.true_labels.enumerate()
        return dense_target(self.loss.target(every)), self.loss.offset(every)

    @property
    def width(self) -> int:
        size = self.loss.true_labels.size
        assert size is not None
        return size

    def values(self, true: ArrayLike) -> Target:
        columns = np.asarray(self.loss.true_labels.index(true), dtype=np.int64)
        n = len(columns)
        return sp.csr_array((np.ones(n), columns, np.arange(n + 1)), shape=(n, self.width))

    def target(self, expected: FloatArray) -> FloatArray:
        return np.asarray(expected @ self._maps[0])

    def offset(self, expected: FloatArray) -> FloatArray:
        return np.asarray(expected @ self._maps[1])

    def project(self, expected: FloatArray) -> FloatArray:
        return simplex_projection(expected)

    def with_loss(self, loss: Loss) -> Self:
        if (
            loss.true_labels.size != self.width
            or loss.true_labels.shape != self.loss.true_labels.shape
        ):
            raise ConsistructError(
                f"{loss!r} is not over the {self.width} classes that the model was fitted on"
            )
        return type(self)(loss)


def finest_statistic(loss: Loss) -> Statistic:
    """The class itself where true labels are classes, else the target.

    >>> from consistruct.losses import Hamming, ZeroOne
    >>> finest_statistic(ZeroOne(3)), finest_statistic(Hamming(3))
    (ClassProbabilities(ZeroOne(3)), TargetValues(Hamming(3)))
    """
    size = loss.true_labels.size
    if loss.true_labels.shape == () and size is not None and size <= ENUMERATION_LIMIT:
        return ClassProbabilities(loss)
    return TargetValues(loss)


def simplex_projection(rows: FloatArray) -> FloatArray:
    """The nearest probability distribution of each row, (n, m).

    >>> simplex_projection(np.array([[1.2, -0.2, 0.0], [0.5, 0.3, 0.2]]))
    array([[1. , 0. , 0. ],
           [0.5, 0.3, 0.2]])
    """
    rows = np.asarray(rows, dtype=np.float64)
    summing = np.abs(rows @ np.ones(rows.shape[1]) - 1.0) <= 1e-12
    if summing.all() and rows.min(initial=0.0) >= 0.0:
        return rows
    inside = summing & (rows >= 0.0).all(axis=1)
    # max(v − t, 0) sums to one: t from the largest r entries (Held, Wolfe, Crowder 1974)
    ordered = -np.sort(-rows, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > excess).sum(axis=1) - 1
    shift = excess[np.arange(len(rows)), np.maximum(last, 0)]
    projected = np.maximum(rows - shift[:, None], 0.0)
    return np.where(inside[:, None], rows, projected)


TIE = 2.0**-20  # of the largest target: scores of rows left out that are closer tie


def rounded_scores(theta: FloatArray, y: FloatArray) -> FloatArray:
    """Scores of rows left out, (n, width), as multiples of `TIE` times the largest target.

    In symmetric data, or between copies of a row, several labels tie exactly, and rounding (that of
    another number of threads, say) would decide which is predicted, and with it which penalty,
    kernel and contrast win. Rounded scores tie on every machine, and decoders break ties alike.
    The step is a power of two, so that the rounded scores are exact.
    """
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0.0:
        return theta
    step = TIE * 2.0 ** np.ceil(np.log2(largest))
    return np.asarray(np.rint(theta / step) * step)
