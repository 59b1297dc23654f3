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
from consistruct.losses.base import Loss, Sizes, minus_one_hot
from consistruct.losses.spec import at_most, check_most, count_field
from consistruct.protocols import FloatArray, IntArray, LabelArray, Target
from consistruct.structures import Product, Ragged, Separable

__all__ = ["Hamming"]


@dataclass(frozen=True, eq=False, repr=False)
class Hamming(Loss):
    """Share of the parts that are wrong.

    Formula: L(ŷ, y) = (1/T) Σ_t [ŷ_t ≠ y_t]. Scores: one per part and state, rank 1 + T(s−1).
    Decoder: argmax per part, O(T·s).

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

    T: int | None
    n_states: int = 2

    def __post_init__(self) -> None:
        T = None if self.T is None else check_count(self.T, "T")
        self._set(T=T, n_states=check_count(self.n_states, "n_states", minimum=2))

    def at(self, size: int) -> Self:
        """The member of the family for labels of `size` parts."""
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
        columns = np.arange(self.T) * self.n_states + states
        return minus_one_hot(columns, self.T * self.n_states, 1.0 / self.T)

    def offset(self, true: ArrayLike) -> FloatArray:
        return np.ones(len(self.true_labels.check(true, "true")))

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        if isinstance(pred, Ragged) and isinstance(true, Ragged):
            return self._packed(pred, true)
        if isinstance(pred, Ragged) or isinstance(true, Ragged):
            raise TypeError(
                "pred and true must both be packed (Ragged) or both plain arrays; "
                "pack lists of sequences with Ragged.pack"
            )
        return super().__call__(pred, true)

    def _packed(self, pred: Ragged, true: Ragged) -> FloatArray:
        if not pred.same_lengths(true):
            raise ValueError("pred and true must contain sequences of the same lengths")
        if self.T is not None and (true.lengths != self.T).any():
            other = int(np.argmax(true.lengths != self.T))
            raise ValueError(
                f"{self!r} takes labels of {self.T} parts, sequence {other} has "
                f"{true.lengths[other]}; use the family Hamming(None, {self.n_states})"
            )
        if (true.lengths == 0).any():
            empty = int(np.argmax(true.lengths == 0))
            raise ValueError(f"sequence {empty} is empty; the Hamming loss needs at least one part")
        wrong = self.true_labels.check_parts(pred.values, "pred") != self.true_labels.check_parts(
            true.values, "true"
        )
        return np.bincount(true.rows, weights=wrong, minlength=len(true)) / true.lengths

    def worst_true_label(
        self, direction: FloatArray, offset_weight: float = 0.0
    ) -> tuple[FloatArray, LabelArray]:
        if self.T is None:
            raise FamilyError(self, "optimize over true labels")
        parts = direction.reshape(len(direction), self.T, self.n_states)
        best = parts.argmin(axis=2)
        lowest = np.take_along_axis(parts, best[:, :, None], axis=2)[:, :, 0]
        return offset_weight - lowest.mean(axis=1), best.astype(np.int64)

    def count_loss(self, shared: ArrayLike, predicted: ArrayLike, true: ArrayLike) -> FloatArray:
        wrong = np.asarray(predicted) + np.asarray(true) - 2.0 * np.asarray(shared)
        return np.asarray(wrong / self._two_states("be reported from counts of labels"))

    def label_probabilities(self, target: FloatArray) -> FloatArray:
        n_parts = self._two_states("have probabilities of labels")
        return np.clip(-n_parts * target[:, 1::2], 0.0, 1.0)

    def _two_states(self, action: str) -> int:
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
        if parts or states:
            width = n_parts * n_states
            check_most("hamming", width, "parts times states", SPECS.separable_width)
        return cls(n_parts, n_states)
