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
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.losses import Hamming
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import Ragged, Structure
from consistruct.structures.base import ENUMERATION_LIMIT

__all__ = ["ClassProbabilities", "Statistic", "TokenStates", "simplex_projection"]


class Statistic(Member, ABC):
    """Describe what a model averages, τ(y), and the linear map from its mean to ū.

    A subclass writes the abstract methods; `ClassProbabilities` is the shortest. It may write
    `project`, where it knows the convex hull of τ, and what follows from that.

    Shapes: n examples, `width` columns of τ, the loss's own score space for ū. Statistics of
    sequences and queries hold packed batches (`Ragged`) in place of (n, width) arrays.
    """

    loss: Loss
    # whether τ is the one-hot class, so that E[τ | x] are the probabilities of the classes
    of_classes: ClassVar[bool] = False

    @property
    @abstractmethod
    def width(self) -> int:
        """Return the number of columns of τ."""

    @abstractmethod
    def values(self, true: Any) -> Target:
        """Return τ of each true label, (n, width): array or CSR."""

    @abstractmethod
    def target(self, expected: FloatArray) -> FloatArray:
        """Return ū from E[τ], (n, width of the loss's own scores)."""

    @abstractmethod
    def offset(self, expected: FloatArray) -> FloatArray:
        """Return ō = E[offset(y) | x] from E[τ], (n,)."""

    @abstractmethod
    def with_loss(self, loss: Loss) -> Statistic:
        """Return the statistic for another loss over the same labels, or raise if it is too coarse.

        A class statistic serves every loss over the classes, the target of the Hamming loss every
        sum over parts; another target serves its own loss only.
        """

    # --- with a default ---

    @property
    def score_space(self) -> Structure | None:
        """Return the scores in whose coordinates τ is written; None for what is no target."""
        return None

    @property
    def open_offset(self) -> bool:
        """Return whether the last column of τ is an offset that depends on the true label."""
        return False

    def project(self, expected: FloatArray) -> FloatArray:
        """Return estimates brought into the hull of τ: as they are, unless the hull is known.

        Must keep shapes and leave points of the hull where they are.
        """
        return expected

    def decode(self, expected: FloatArray) -> LabelArray:
        """Return argmin_c ⟨embed(c), ū⟩, of least expected loss, (n, *label shape)."""
        return self.loss.score_space.decode(-self.target(self.project(expected)))

    def expected_loss(self, expected: FloatArray, pred: LabelArray) -> FloatArray:
        """Return ō + ⟨embed(ŷ), ū⟩, the expected loss of given predictions, (n,)."""
        expected = self.project(expected)
        embedded = self.loss.score_space.embed(pred)
        inner = np.einsum("nw,nw->n", embedded, self.target(expected))
        return np.asarray(inner + self.offset(expected))

    def expected_losses(self, expected: FloatArray) -> FloatArray:
        """Return E[L(c, y) | x] of every prediction c, (n, k), in the order of the label set."""
        expected = self.project(expected)
        listed = self.loss.score_space.matrix(limit=ENUMERATION_LIMIT)
        return np.asarray(self.target(expected) @ listed.T + self.offset(expected)[:, None])

    def part_scores(self, expected: FloatArray) -> FloatArray | None:
        """Return the score of state 1 over state 0 for each part, (n, T); None if parts interact.

        For scores that are a sum over two-state parts.
        """
        return None

    def squared_error(self, error: FloatArray) -> FloatArray:
        """Return ½ eᵀḠe, the excess quadratic risk of an error e in the loss's scores, (n,)."""
        # ū is linear in E[τ], so that an error of one is mapped like the other
        gap = self.target(error)
        return 0.5 * np.einsum("nw,nw->n", gap, self.loss.score_space.gram().apply(gap))


@dataclass(frozen=True, eq=False, repr=False)
class ClassProbabilities(Statistic):
    """Average the one-hot class: E[τ | x] are the probabilities of the classes.

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
        """Return target (m, width) and offset (m,) of every true label."""
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


def simplex_projection(rows: FloatArray) -> FloatArray:
    """Return the nearest probability distribution of each row, argmin_{p ∈ Δ} ‖p − row‖, (n, m).

    >>> simplex_projection(np.array([[1.2, -0.2, 0.0], [0.5, 0.3, 0.2]]))
    array([[1. , 0. , 0. ],
           [0.5, 0.3, 0.2]])
    """
    rows = np.asarray(rows, dtype=np.float64)
    summing = np.abs(rows @ np.ones(rows.shape[1]) - 1.0) <= 1e-12
    if summing.all() and rows.min(initial=0.0) >= 0.0:
        return rows
    # rows that are distributions stay bit for bit, so that a decision does not depend on the others
    inside = summing & (rows >= 0.0).all(axis=1)
    # max(v − t, 0) sums to one: t from the largest r entries (Held, Wolfe, Crowder 1974)
    ordered = -np.sort(-rows, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > excess).sum(axis=1) - 1
    shift = excess[np.arange(len(rows)), np.maximum(last, 0)]
    projected = np.maximum(rows - shift[:, None], 0.0)
    return np.where(inside[:, None], rows, projected)


@dataclass(frozen=True, eq=False, repr=False)
class TokenStates(Statistic):
    """Average the one-hot state of every token: E[τ | x] are marginal probabilities, packed.

    Parameters
    ----------
    loss : Hamming
        Of the family ``Hamming(None, s)``.
    tags : tuple, optional
        What the states are called: a model that forbids transitions knows them by these names.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import Ragged
    >>> from consistruct.losses import Hamming
    >>> statistic = TokenStates(Hamming(None, 2))
    >>> marginals = Ragged(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 2]))
    >>> pred = statistic.decode(marginals)
    >>> pred.values.tolist(), statistic.expected_loss(marginals, pred)
    ([0, 1], array([0.25]))
    """

    loss: Hamming
    tags: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Hamming) or self.loss.T is not None:
            raise TypeError(f"sequences need a family Hamming(None, n_states), got {self.loss!r}")

    @property
    def width(self) -> int:
        """Return the number of states: columns of the packed values."""
        return self.loss.n_states

    @property
    def names(self) -> tuple[Any, ...]:
        """Return the names of the states, the numbers themselves where none were given."""
        return tuple(range(self.width)) if self.tags is None else self.tags

    def values(self, true: Ragged) -> Any:
        return true.with_values(np.eye(self.width)[true.values])

    def target(self, expected: Any) -> Any:
        """Return −P(y_t = a)/T for the tokens of a sequence of length T, packed (N, s)."""
        lengths = expected.lengths[expected.rows]
        return expected.with_values(-expected.values / lengths[:, None])

    def offset(self, expected: Any) -> FloatArray:
        # L = 1 − share of right tokens: the offset of each sequence is 1
        return np.ones(len(expected))

    def project(self, expected: Any) -> Any:
        return expected.with_values(simplex_projection(expected.values))

    def decode(self, expected: Any) -> Any:
        # the loss is a mean over tokens, so that each is decided by itself, whatever connects them
        return expected.with_values(expected.values.argmax(axis=1).astype(np.int64))

    def expected_loss(self, expected: Any, pred: Any) -> FloatArray:
        """Return the share of tokens that are wrong in expectation, 1 − Σ_t P(ŷ_t)/T, (n,)."""
        distribution = self.project(expected).values
        right = distribution[np.arange(len(distribution)), pred.values]
        wrong = np.bincount(expected.rows, weights=1.0 - right, minlength=len(expected))
        return np.asarray(wrong / expected.lengths)

    def expected_losses(self, expected: Any) -> FloatArray:
        raise CapabilityError(
            self,
            "a list of all predictions",
            "the expected loss of every prediction",
            "there are too many sequences of tags to list; predict_expected_loss gives the "
            "expected loss of the prediction",
        )

    def squared_error(self, error: Any) -> FloatArray:
        squares = np.bincount(
            error.rows, weights=(error.values**2).sum(axis=1), minlength=len(error)
        )
        return np.asarray(0.5 * squares / error.lengths)

    def with_loss(self, loss: Loss) -> Self:
        if loss.hamming_shape == (None, self.width):
            return type(self)(Hamming(None, self.width), self.tags)
        raise ConsistructError(
            f"states of tokens are for {self.loss!r}, the share of wrong tokens, not for {loss!r}"
        )
