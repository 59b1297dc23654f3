"""Charge distances between permutations: Spearman's footrule and rho, wrong partners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._budgets import SPECS
from consistruct.losses.base import Sizes, WorstCase, minus_one_hot
from consistruct.losses.rankings.orders import OrderLoss
from consistruct.losses.spec import at_most, items_field
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import Matchings, Permutations, Positions
from consistruct.structures.orders import linear_discount, positions_of

__all__ = ["Matching", "SpearmanFootrule", "SpearmanRho"]


@dataclass(frozen=True, eq=False, repr=False)
class _PermutationDistance(OrderLoss):
    """Judge a permutation of n items against another one; one item leaves nothing to judge."""

    labels_as: ClassVar[str] = "orders"
    spec: ClassVar[str]  # such as footrule:6
    most_items: ClassVar[int] = SPECS.paired_items  # in a spec; in Python there is no limit

    n: int | None

    @cached_property
    def true_labels(self) -> Permutations:
        return Permutations(self.n)

    @property
    def max_value(self) -> float:
        return 0.0 if self.n == 1 else 1.0

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        name = cls.spec.partition(":")[0]
        at_most(name, arguments, 1, cls.spec)
        return cls(items_field(name, arguments, sizes.n_parts, most=cls.most_items))


@dataclass(frozen=True, eq=False, repr=False)
class SpearmanFootrule(_PermutationDistance):
    """Charge how far items are from their true positions, as a share of the most: the footrule.

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

    spec: ClassVar[str] = "footrule:6"

    @cached_property
    def score_space(self) -> Matchings:
        return Matchings(self._items("have a score space"))

    @property
    def _scale(self) -> float:
        # the reversed order is the farthest: Σ |n + 1 − 2p| = ⌊n²/2⌋ (Diaconis and Graham, 1977)
        return float(max((self.n or 2) ** 2 // 2, 1))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        apart = np.abs(positions_of(pred) - positions_of(true))
        return np.asarray(apart.sum(axis=1) / self._scale)

    def target(self, true: ArrayLike) -> Target:
        positions = positions_of(self.true_labels.check(true, "true"))
        n = self._items("give the targets of a plain array")
        apart = np.abs(np.arange(n)[:, None] - positions[:, None, :])  # (n_examples, place, item)
        return apart.reshape(len(positions), n * n) / self._scale

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        n = self._items("optimize over true labels")
        wishes = direction.reshape(len(direction), n, n)  # place, item
        # an item that truly stands at q pays |p − q| for every predicted position p: Σ_p |p − q|
        # d_{p, i}, the profit of giving position q to item i. The worst true order is an assignment
        distance = np.abs(np.arange(n)[:, None] - np.arange(n)) / self._scale
        gains = distance @ wishes  # true place, item
        true_labels = Matchings(n).decode(gains.reshape(len(direction), n * n))
        values = np.take_along_axis(gains, true_labels[:, :, None], axis=2)[:, :, 0].sum(axis=1)
        return values, true_labels


@dataclass(frozen=True, eq=False, repr=False)
class SpearmanRho(_PermutationDistance):
    """Charge squared displacements: Spearman's rho as a loss, (1 − ρ)/2.

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

    spec: ClassVar[str] = "spearman-rho:6"
    most_items: ClassVar[int] = SPECS.items  # width n, where the others have n²

    @cached_property
    def score_space(self) -> Positions:
        return Positions(None if self.n is None else linear_discount(self.n))

    @property
    def _scale(self) -> float:
        n = self.n or 2
        # again the reversed order: Σ (n + 1 − 2p)² = n(n² − 1)/3
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
        # Σ_i d_σ² + Σ_i d_π² is the same for all permutations, twice the sum of squares of 1…n
        squares = float((linear_discount(orders.shape[1]) ** 2).sum())
        return np.full(len(orders), 2.0 * squares / self._scale)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        n = self._items("optimize over true labels")
        # rearrangement again: −2 Σ d_i π_i is largest where the smallest direction gets the most
        # weight
        true_labels = np.argsort(direction, axis=1, kind="stable").astype(np.int64)
        values = -2.0 * np.take_along_axis(direction, true_labels, axis=1) @ linear_discount(n)
        return values / self._scale + offset_weight * self.offset(true_labels[:1])[:1], true_labels


@dataclass(frozen=True, eq=False, repr=False)
class Matching(_PermutationDistance):
    """Charge the share of wrong partners in a perfect matching: Hamming loss on permutations.

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

    spec: ClassVar[str] = "matching:5"
    labels_as: ClassVar[str] = "codes"
    constant_offset: ClassVar[float] = 1.0

    @cached_property
    def score_space(self) -> Matchings:
        return Matchings(self._items("have a score space"))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return np.asarray((pred != true).mean(axis=1), dtype=np.float64)

    def target(self, true: ArrayLike) -> Target:
        partners = self.true_labels.check(true, "true")
        n = self._items("give the targets of a plain array")
        return minus_one_hot(np.arange(n) * n + partners, n * n, 1.0 / n)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        n = self._items("optimize over true labels")
        # u_r is minus a one-hot row: the worst matching is the one of least direction, an
        # assignment
        true_labels = Matchings(n).decode(-direction)
        columns = np.arange(n) * n + true_labels
        return offset_weight - np.take_along_axis(direction, columns, axis=1).sum(
            axis=1
        ) / n, true_labels
