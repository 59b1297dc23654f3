"""Sums, scales and convex mixtures of losses over the same labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct._validation import check_number
from consistruct.exceptions import (
    CapabilityError,
    ConsistructError,
    NotInSpanError,
    TooManyLabelsError,
)
from consistruct.losses.base import Loss, WorstCase, dense_target
from consistruct.losses.matrix import span_of
from consistruct.protocols import FloatArray, IntArray, LabelArray, LabelSet, LinearMap, Target
from consistruct.structures import Ragged, Structure

__all__ = ["Combination", "mixture"]


@dataclass(frozen=True, eq=False, repr=False)
class Combination(Loss):
    """Add up losses over the same labels: Σ_m w_m L_m with w_m ≥ 0, written with + and *.

    Targets add up, u_y = Σ_m w_m B_m u_y^m, once B_m maps every term into one score space: that of
    a term which spans the others' (blocks within full scores, say); otherwise, for few enough
    labels, the span of the summed matrix.

    Parameters
    ----------
    terms : tuple of (float, Loss)
        Weights, not negative, and losses; nested combinations are flattened.

    Examples
    --------
    >>> from consistruct.losses import Block, ZeroOne
    >>> loss = 0.4 * ZeroOne(4) + 0.6 * Block((2, 2))
    >>> loss([0, 0, 0], [0, 1, 2])
    array([0. , 0.4, 1. ])
    >>> loss
    0.4 * ZeroOne(4) + 0.6 * Block(sizes=(2, 2))
    """

    terms: tuple[tuple[float, Loss], ...]

    def __post_init__(self) -> None:
        flat: dict[Loss, float] = {}  # equal losses are one term
        for weight, loss in self.terms:
            if not isinstance(loss, Loss):
                raise TypeError(f"only losses can be combined, got {type(loss).__name__}")
            factor = check_number(weight, "weight of a loss", low=0.0)
            inner = loss.terms if isinstance(loss, Combination) else ((1.0, loss),)
            for inner_weight, term in inner:
                flat[term] = flat.get(term, 0.0) + factor * inner_weight
        if not flat:
            raise ValueError("a combination needs at least one loss")
        first, *others = flat
        for loss in others:
            for role in ("predictions", "true_labels"):
                if not _same_labels(getattr(first, role), getattr(loss, role)):
                    raise ValueError(
                        f"losses can be combined only over the same {role.replace('_', ' ')}, got "
                        f"{first!r} and {loss!r}"
                    )
        self._set(terms=tuple((weight, loss) for loss, weight in flat.items()))

    def at(self, size: int) -> Combination:
        """Return the member of a family for labels of `size` parts."""
        return Combination(tuple((weight, _member(loss, size)) for weight, loss in self.terms))

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        if isinstance(pred, Ragged) or isinstance(true, Ragged):  # families check their batches
            return np.sum([weight * loss(pred, true) for weight, loss in self.terms], axis=0)
        return super().__call__(pred, true)

    def __repr__(self) -> str:
        return " + ".join(f"{weight!r} * {loss!r}" for weight, loss in self.terms)

    @cached_property
    def _joint(self) -> tuple[Structure, list[LinearMap] | None, FloatArray | None]:
        """Return the common space, and the maps of all terms into it or all targets."""
        # spaces of the terms first: they keep closed forms, and with them any number of labels. The
        # span of the summed matrix may be smaller where columns cancel, but has to be listed
        for candidate in dict.fromkeys(loss.score_space for _, loss in self.terms):
            try:
                maps = [candidate.coordinates(loss.score_space) for _, loss in self.terms]
            except NotInSpanError:
                continue
            return candidate, maps, None
        try:
            space, targets, _ = span_of(self.matrix(), self.terms[0][1].predictions)
        except TooManyLabelsError as error:
            raise ConsistructError(
                f"no score space of the terms of {self!r} expresses all of them, and there are "
                f"too many labels to build one ({error}); add the terms' predictors instead"
            ) from None
        return space, None, targets

    @property
    def score_space(self) -> Structure:
        return self._joint[0]

    @property
    def predictions(self) -> LabelSet:
        return self.terms[0][1].predictions

    @property
    def true_labels(self) -> LabelSet:
        return self.terms[0][1].true_labels

    @cached_property
    def max_value(self) -> float:
        """Return the largest value, or the sum of the terms' largest where it cannot be listed.

        The terms need not attain theirs at one pair of labels, so that the sum is only a bound.
        """
        if len(self.terms) == 1:
            return self.terms[0][0] * self.terms[0][1].max_value
        try:
            return float(self.matrix().max())
        except TooManyLabelsError:
            return float(sum(weight * loss.max_value for weight, loss in self.terms))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return np.asarray(sum(weight * loss._value(pred, true) for weight, loss in self.terms))

    def target(self, true: ArrayLike) -> Target:
        space, maps, targets = self._joint
        if maps is None:
            assert targets is not None
            return targets[self.true_labels.index(true)]
        total: Target = None
        for (weight, loss), into in zip(self.terms, maps, strict=True):
            term = loss.target(true)
            if loss.score_space != space:
                term = into(dense_target(term))
            scaled = weight * term
            # sparse + dense gives numpy.matrix, which the rest of the package does not take
            if total is not None and scipy.sparse.issparse(total) != scipy.sparse.issparse(scaled):
                total, scaled = dense_target(total), dense_target(scaled)
            total = scaled if total is None else total + scaled
        return total

    def offset(self, true: ArrayLike) -> FloatArray:
        if self._joint[1] is None:
            return super().offset(true)
        return np.asarray(sum(weight * loss.offset(true) for weight, loss in self.terms))

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        if len(self.terms) == 1:
            weight, loss = self.terms[0]
            return loss.worst_true_label(weight * direction, weight * offset_weight)
        return super().worst_true_label(direction, offset_weight)

    def true_label_as_prediction(self, true: ArrayLike) -> LabelArray:
        return self.terms[0][1].true_label_as_prediction(true)

    def target_groups(self) -> tuple[IntArray, ...] | None:
        # terms that share their score space and their questions; others are mapped, which mixes
        if any(loss.score_space != self.score_space for _, loss in self.terms):
            return None
        first, *others = (loss.target_groups() for _, loss in self.terms)
        if first is None or any(groups is None or not _equal(first, groups) for groups in others):
            return None
        return first

    def single_true_labels(
        self, true: ArrayLike | Ragged
    ) -> tuple[ArrayLike | Ragged, IntArray | None, FloatArray | None]:
        return self.terms[0][1].single_true_labels(true)


def _equal(one: tuple[IntArray, ...], other: tuple[IntArray, ...]) -> bool:
    """Tell whether two losses put the same questions to the true label."""
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def _same_labels(one: LabelSet, other: LabelSet) -> bool:
    """Tell whether two label sets can stand for each other: equal, or alike with no other names."""
    if one == other:
        return True
    # only infinite sets and families have size None, and those are alike when equal
    if one.size is None or one.size != other.size or one.shape != other.shape:
        return False
    names = [getattr(labels, "names", None) for labels in (one, other)]
    return None in names or names[0] == names[1]


def _member(loss: Loss, size: int) -> Loss:
    """Return the member of a family at a size; a loss that has its size already is refused."""
    at = getattr(loss, "at", None)
    if at is None:
        raise CapabilityError(loss, "at", "choosing a size", "it already has its size")
    return at(size)


def mixture(losses: Sequence[Loss], weights: Sequence[float]) -> Combination:
    """Return the convex mixture Σ w_m L_m; weights are non-negative and sum to one.

    >>> from consistruct.losses import Block, ZeroOne, mixture
    >>> mixture([ZeroOne(4), Block((2, 2))], [0.4, 0.6])
    0.4 * ZeroOne(4) + 0.6 * Block(sizes=(2, 2))
    """
    if len(losses) != len(weights):
        raise ValueError(
            f"pass one weight per loss, got {len(losses)} losses and {len(weights)} weights"
        )
    # weights such as 0.1 + 0.2 + 0.7 miss 1 by a few units in the last place
    if abs(sum(weights) - 1.0) > 1e-12:
        raise ValueError(f"weights must sum to 1, got {sum(weights)}")
    return Combination(tuple(zip(weights, losses, strict=True)))
