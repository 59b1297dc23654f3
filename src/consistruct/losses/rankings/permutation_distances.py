"""Distances between permutations: Spearman's footrule and rho, wrong partners in a matching."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct.exceptions import FamilyError
from consistruct.losses.base import Sizes, minus_one_hot
from consistruct.losses.rankings.orders import OrderLoss
from consistruct.losses.spec import at_most, items_field
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import Matchings, Permutations, Positions
from consistruct.structures.orders import linear_discount, positions_of

__all__ = ["Matching", "SpearmanFootrule", "SpearmanRho"]


class _PermutationDistance(OrderLoss):
    """Predictions and true labels are permutations of n items; zero for one item."""

    @cached_property
    def true_labels(self) -> Permutations:
        return Permutations(self.n)

    @property
    def max_value(self) -> float:
        return 0.0 if self.n == 1 else 1.0

    def _items(self, action: str) -> int:
        if self.n is None:
            raise FamilyError(self, action)
        return self.n


@dataclass(frozen=True, eq=False, repr=False)
class SpearmanFootrule(_PermutationDistance):
    """Spearman's footrule: how far items are from their true positions, as a share of the most.

    Formula: L(σ, π) = Σ_i |σ(i) − π(i)| / ⌊n²/2⌋, 0 for one item. Scores: one per position and
    item, rank (n−1)² + 1. Decoder: linear assignment, O(n³).

    Choose it for label ranking where a small displacement should cost little.

    Parameters
    ----------
    n : int or None
        Number of items; None is the family of all lengths. Labels are orders, best item first.

    Examples
    --------
    >>> from consistruct.losses import SpearmanFootrule
    >>> SpearmanFootrule(4)([[0, 1, 2, 3]], [[1, 0, 2, 3]])
    array([0.25])
    """

    labels_as: ClassVar[str] = "orders"

    n: int | None

    @cached_property
    def score_space(self) -> Matchings:
        return Matchings(self._items("have a score space"))

    @property
    def _scale(self) -> float:
        return float(max((self.n or 2) ** 2 // 2, 1))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        apart = np.abs(positions_of(pred) - positions_of(true))
        return np.asarray(apart.sum(axis=1) / self._scale)

    def target(self, true: ArrayLike) -> Target:
        positions = positions_of(self.true_labels.check(true, "true"))
        n = self._items("give the targets of a plain array")
        apart = np.abs(np.arange(n)[:, None] - positions[:, None, :])  # (n_examples, place, item)
        return apart.reshape(len(positions), n * n) / self._scale

    def worst_true_label(
        self, direction: FloatArray, offset_weight: float = 0.0
    ) -> tuple[FloatArray, LabelArray]:
        n = self._items("optimize over true labels")
        wishes = direction.reshape(len(direction), n, n)  # place, item
        distance = np.abs(np.arange(n)[:, None] - np.arange(n)) / self._scale
        gains = distance @ wishes  # true place, item
        true_labels = Matchings(n).decode(gains.reshape(len(direction), n * n))
        values = np.take_along_axis(gains, true_labels[:, :, None], axis=2)[:, :, 0].sum(axis=1)
        return values, true_labels

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("footrule", arguments, 1, "footrule:6")
        return cls(items_field("footrule", arguments, sizes.n_parts, most=SPECS.paired_items))


@dataclass(frozen=True, eq=False, repr=False)
class SpearmanRho(_PermutationDistance):
    """Spearman's rho as a loss: squared displacements, (1 − ρ)/2.

    Formula: L(σ, π) = Σ_i (σ(i) − π(i))² / (n(n²−1)/3), 0 for one item. Scores: one per item,
    linear in its position, rank n. Decoder: sorting, O(n log n).

    Choose it for label ranking where far displacements should count most; it is the easiest of the
    three distances, because the mean true label positions are all that matters.

    Parameters
    ----------
    n : int or None
        Number of items; None is the family of all lengths. Labels are orders, best item first.

    Examples
    --------
    >>> from consistruct.losses import SpearmanRho
    >>> SpearmanRho(3)([[0, 1, 2]], [[2, 1, 0]])
    array([1.])
    """

    labels_as: ClassVar[str] = "orders"

    n: int | None

    @cached_property
    def score_space(self) -> Positions:
        return Positions(None if self.n is None else linear_discount(self.n))

    @property
    def _scale(self) -> float:
        n = self.n or 2
        return max(n * (n**2 - 1) / 3, 1.0)

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        apart = positions_of(pred) - positions_of(true)
        return np.asarray((apart**2).sum(axis=1) / self._scale)

    def target(self, true: ArrayLike) -> Target:
        positions = positions_of(self.true_labels.check(true, "true"))
        # (σ−π)² = (d_σ−d_π)² with d = n + 1 − position: only −2 d_σ d_π depends on both
        return -2.0 * (positions.shape[1] - positions) / self._scale

    def offset(self, true: ArrayLike) -> FloatArray:
        orders = self.true_labels.check(true, "true")
        squares = float((linear_discount(orders.shape[1]) ** 2).sum())
        return np.full(len(orders), 2.0 * squares / self._scale)

    def worst_true_label(
        self, direction: FloatArray, offset_weight: float = 0.0
    ) -> tuple[FloatArray, LabelArray]:
        n = self._items("optimize over true labels")
        true_labels = np.argsort(direction, axis=1, kind="stable").astype(np.int64)
        values = -2.0 * np.take_along_axis(direction, true_labels, axis=1) @ linear_discount(n)
        return values / self._scale + offset_weight * self.offset(true_labels[:1])[:1], true_labels

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("spearman-rho", arguments, 1, "spearman-rho:6")
        return cls(items_field("spearman-rho", arguments, sizes.n_parts))


@dataclass(frozen=True, eq=False, repr=False)
class Matching(_PermutationDistance):
    """Share of the wrong partners in a perfect matching: Hamming loss on permutations.

    Formula: L(p, r) = |{i : p(i) ≠ r(i)}| / n. Scores: one per possible pair, rank (n−1)² + 1.
    Decoder: linear assignment, O(n³).

    Choose it for alignment and pairing problems, where every item has exactly one partner.

    Parameters
    ----------
    n : int or None
        Number of items on each side; None is the family of all sizes. ``label[i]`` is the partner
        of i.

    Examples
    --------
    >>> from consistruct.losses import Matching
    >>> Matching(4)([[0, 1, 2, 3]], [[0, 1, 3, 2]])
    array([0.5])
    """

    n: int | None

    @cached_property
    def score_space(self) -> Matchings:
        return Matchings(self._items("have a score space"))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return np.asarray((pred != true).mean(axis=1), dtype=np.float64)

    def target(self, true: ArrayLike) -> Target:
        partners = self.true_labels.check(true, "true")
        n = self._items("give the targets of a plain array")
        return minus_one_hot(np.arange(n) * n + partners, n * n, 1.0 / n)

    def offset(self, true: ArrayLike) -> FloatArray:
        return np.ones(len(self.true_labels.check(true, "true")))

    def worst_true_label(
        self, direction: FloatArray, offset_weight: float = 0.0
    ) -> tuple[FloatArray, LabelArray]:
        n = self._items("optimize over true labels")
        true_labels = Matchings(n).decode(-direction)
        columns = np.arange(n) * n + true_labels
        return offset_weight - np.take_along_axis(direction, columns, axis=1).sum(
            axis=1
        ) / n, true_labels

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("matching", arguments, 1, "matching:5")
        return cls(items_field("matching", arguments, sizes.n_parts, most=SPECS.paired_items))
