"""Hamming loss over parts: multi-label vectors, sequences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct._validation import check_count
from consistruct.exceptions import CapabilityError, FamilyError, LossSpecError
from consistruct.losses.base import Loss, Sizes, WorstCase, check_packed, minus_one_hot
from consistruct.losses.spec import at_most, check_most, count_field
from consistruct.protocols import FloatArray, IntArray, LabelArray, Target
from consistruct.structures import Product, Ragged, Separable

__all__ = ["Hamming"]


@dataclass(frozen=True, eq=False, repr=False)
class Hamming(Loss):
    """Charge the share of the parts that are wrong.

    Formula: L(ŷ, y) = (1/T) Σ_t [ŷ_t ≠ y_t]. Scores: one per part and state, rank 1 + T(s−1).
    Decoder: argmax per part, O(T·s).

    Its target is u_y = −(1/T) Σ_t e_{t, y_t}, with offset 1: so E[u_y | x] holds the marginals
    P(y_t = a | x), and the best decision takes the most probable state of each part. Choose it for
    label sets and tag sequences whose parts count alike; `ZeroOne` asks for the whole label.

    Parameters
    ----------
    T : int or None
        Number of parts; None is the family of all lengths, which takes packed batches (`Ragged`).
    n_states : int
        States per part.

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> Hamming(4)([[0, 1, 1, 0]], [[0, 1, 0, 1]])
    array([0.5])
    >>> Hamming(1000).n_labels == 2**1000
    True
    """

    labels_as: ClassVar[str] = "parts"
    constant_offset: ClassVar[float] = 1.0

    T: int | None
    n_states: int = 2

    def __post_init__(self) -> None:
        T = None if self.T is None else check_count(self.T, "T")
        self._set(T=T, n_states=check_count(self.n_states, "n_states", minimum=2))

    def at(self, size: int) -> Self:
        """Return the member of the family for labels of `size` parts."""
        return type(self)(size, self.n_states)

    @cached_property
    def score_space(self) -> Separable:
        return Separable(self.T, self.n_states)

    @cached_property
    def true_labels(self) -> Product:
        return Product(self.T, self.n_states)

    @property
    def max_value(self) -> float:
        return 1.0

    @property
    def hamming_shape(self) -> tuple[int | None, int]:
        return self.T, self.n_states

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return np.asarray((pred != true).mean(axis=1), dtype=np.float64)

    def target(self, true: ArrayLike) -> Target:
        if self.T is None:
            raise FamilyError(self, "give the targets of a plain array")
        states = self.true_labels.check(true, "true")
        # part t owns the s columns from t·s on, and its true state is one of them
        columns = np.arange(self.T) * self.n_states + states
        return minus_one_hot(columns, self.T * self.n_states, 1.0 / self.T)

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        packed = check_packed(self, pred, true, self.T, ("sequence", "sequences", "parts"))
        if packed is None:
            return super().__call__(pred, true)
        one, other = packed
        check = self.true_labels.check_parts
        wrong = check(one.values, "pred") != check(other.values, "true")
        # the share within each sequence, then all sequences count alike: a long one no more
        return np.bincount(other.rows, weights=wrong, minlength=len(other)) / other.lengths

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        if self.T is None:
            raise FamilyError(self, "optimize over true labels")
        # ⟨d, u_y⟩ = −(1/T) Σ_t d_{t, y_t}: largest at the smallest entry of every part on its own
        parts = direction.reshape(len(direction), self.T, self.n_states)
        best = parts.argmin(axis=2)
        lowest = np.take_along_axis(parts, best[:, :, None], axis=2)[:, :, 0]
        return offset_weight - lowest.mean(axis=1), best.astype(np.int64)

    def count_loss(self, shared: ArrayLike, predicted: ArrayLike, true: ArrayLike) -> FloatArray:
        """Return the loss from |ŷ ∩ y|, |ŷ| and |y|: (|ŷ| + |y| − 2·|ŷ ∩ y|) / T."""
        wrong = np.asarray(predicted) + np.asarray(true) - 2.0 * np.asarray(shared)
        return np.asarray(wrong / self._two_states("be reported from counts of labels"))

    def label_probabilities(self, target: FloatArray) -> FloatArray:
        """Return P(label t is in y), (n, T), from an expected target (n, 2T)."""
        n_parts = self._two_states("have probabilities of labels")
        # column 2t + 1 of E[u_y] is −P(y_t = 1)/T; estimates may leave [0, 1]
        return np.clip(-n_parts * target[:, 1::2], 0.0, 1.0)

    def _two_states(self, action: str) -> int:
        """Return T where parts are labels, on or off; other parts are no sets and are refused."""
        if self.T is None:
            raise FamilyError(self, action)
        if self.n_states != 2:
            raise CapabilityError(
                self,
                "two states per part",
                "a set of labels",
                "parts with more than two states are not sets",
            )
        return self.T

    def target_groups(self) -> tuple[IntArray, ...] | None:
        """Return the s columns of each part: which state it is in decides them."""
        if self.T is None:
            return None
        return tuple(np.arange(self.T * self.n_states).reshape(self.T, self.n_states))  # the parts

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("hamming", arguments, 1, "hamming:10 or hamming:10x26")
        parts, cross, states = (arguments[0] if arguments else "").partition("x")
        if cross and not (parts and states):
            raise LossSpecError(
                "the spec of hamming must be written as hamming:10 or hamming:10x26"
            )
        n_states = count_field("hamming", (states,), 0, sizes.n_states or 2, "number of states")
        n_parts = count_field("hamming", (parts,), 0, sizes.n_parts, "number of parts")
        # limits are for sizes that somebody wrote; what data have was held in memory already
        if parts or states:
            width = n_parts * n_states
            check_most("hamming", width, "parts times states", SPECS.separable_width)
        return cls(n_parts, n_states)
