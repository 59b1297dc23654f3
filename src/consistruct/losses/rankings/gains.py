"""Rankings judged by the gains of their items at their positions: decoded by sorting."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_choice, check_count, check_number
from consistruct.exceptions import CapabilityError
from consistruct.losses.base import Sizes, WorstCase
from consistruct.losses.independent import joint_with_count
from consistruct.losses.rankings.orders import RelevanceLoss
from consistruct.losses.spec import at_most, count_field, grades_field, items_field, number_field
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import Positions
from consistruct.structures.orders import linear_discount

__all__ = ["NDCG", "ExpectedRankUtility", "GainLoss", "PrecisionAt"]


class GainLoss(RelevanceLoss):
    """Charge what an order misses of the best gain: 1 − Σ_i gain(y_i) d(σ(i)) / normalizer(y).

    A query in which no item has a gain costs `empty`. With F_σ = (d(σ(i)))_i the target is
    u_y = −gain(y)/normalizer(y), one number per item: so the best order sorts the items by their
    expected *normalized* gain, which is not their expected gain where normalizers differ.

    **Must be written**

    * `_discount()`: the weight of each position, (n,), non-increasing;
    * `_gain(true)`: the gain of each item, (n_queries, n), not negative.

    **May be written**

    * `_normalizer(gain)`, or `fixed_normalizer` where it is one number: what gains are divided by.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated gain-based evaluation of IR techniques*, 2002; Ravikumar,
    Tewari and Yang, *On NDCG consistency of listwise ranking methods*, 2011.
    """

    @abstractmethod
    def _discount(self) -> FloatArray:
        """Return the weight of each position, (n,), non-increasing."""

    @abstractmethod
    def _gain(self, true: LabelArray) -> FloatArray:
        """Return the gain of each item, (n_queries, n)."""

    @property
    def fixed_normalizer(self) -> float | None:
        """Return what gains are divided by, where it is the same for every query."""
        return None

    def _normalizer(self, gain: FloatArray) -> FloatArray:
        """Return what the best order of each query attains, (n_queries,)."""
        # rearrangement: both falling, the largest gain meets the largest discount
        if self.fixed_normalizer is not None:
            return np.full(len(gain), self.fixed_normalizer)
        return np.asarray(np.sort(gain, axis=1)[:, ::-1] @ self._discount())

    def _without_order(self, true: LabelArray) -> np.ndarray:
        return np.asarray(~(self._gain(true) > 0).any(axis=1))

    @cached_property
    def score_space(self) -> Positions:
        return Positions(None if self.n is None else self._discount())

    @property
    def max_value(self) -> float:
        if self.n is None:
            return 1.0
        # one relevant item, which comes last: the ratio of any gains is a mean of such ratios
        discount = self._discount()
        return max(self.empty, 1.0 - float(discount[-1] / discount[0]))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return self._prefix_losses(pred, true)[:, -1]  # the list that shows every item

    def prefix_losses(self, pred: ArrayLike, true: ArrayLike) -> FloatArray:
        """Return the loss of a list cut behind its first 1, 2, …, n items, (n_queries, n)."""
        orders = self.predictions.check(pred, "pred")
        return self._prefix_losses(orders, self.true_labels.check(true, "true"))

    def _prefix_losses(self, orders: LabelArray, grades: LabelArray) -> FloatArray:
        """Return the loss of the first 1, 2, …, n items of each order, (n_queries, n).

        Gains and discounts are not negative, so that one more item never costs.
        """
        gain, empty = self._gain(grades), self._without_order(grades)
        ideal = np.where(empty, 1.0, self._normalizer(gain))
        attained = (np.take_along_axis(gain, orders, axis=1) * self._discount()).cumsum(axis=1)
        # rounding may put the best order above the sorted sum that it is divided by
        shown = np.maximum(1.0 - attained / ideal[:, None], 0.0)
        return np.where(empty[:, None], self.empty, shown)

    def target(self, true: ArrayLike) -> Target:
        checked = self.true_labels.check(true, "true")
        gain = self._gain(checked)
        ideal = np.where(self._without_order(checked), 1.0, self._normalizer(gain))
        return -gain / ideal[:, None]

    def independent_target(self, marginals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[target(y)] and E[offset(y)] from P(grade of item i), (n, items, grades).

        Two-dimensional `marginals` are expected gains, E[gain(y_i)/normalizer(y)], of queries that
        have a relevant item; where the normalizer is fixed, they are E[gain(y_i)].
        """
        if marginals.ndim == 2:
            return -marginals / (self.fixed_normalizer or 1.0), np.ones(len(marginals))
        grades = np.arange(marginals.shape[2])
        gain = self._gain(grades)
        nothing = (marginals * (gain <= 0)).sum(axis=2).prod(axis=1)
        offset = 1.0 - nothing * (1.0 - self.empty)
        if self.fixed_normalizer is not None:
            return -(marginals @ gain) / self.fixed_normalizer, offset
        if (gain[1:] > 0).sum() > 1:  # the normalizer depends on how many items have which grade
            raise CapabilityError(
                self,
                "an exact mean of normalized gains with more than two grades",
                "decisions from probabilities of grades",
                "pass expected normalized gains, (n, items), or samples of grades (samples=)",
            )
        # with r relevant items the best order attains gain·(d_1 + … + d_r)
        relevant = marginals @ (gain > 0)
        target = joint_with_count(relevant) @ (1.0 / np.cumsum(self._discount()))
        return -target, offset

    def offset(self, true: ArrayLike) -> FloatArray:
        return np.where(self._without_order(self.true_labels.check(true, "true")), self.empty, 1.0)

    def worst_true_label(self, direction: FloatArray, offset_weight: float = 0.0) -> WorstCase:
        n = self._items("optimize over true labels")
        # Sorted gains are mixtures of "the k best items are equally relevant", and a ratio of sums
        # is largest at one of them: k items of the highest grade, the k smallest directions.
        order = np.argsort(direction, axis=1, kind="stable")
        best_grade = self.n_grades - 1
        members = np.tril(np.ones((n, n)))
        # row k − 1: k items of the best grade
        gain = self._gain((best_grade * members).astype(np.int64))
        ideal = self._normalizer(gain)
        sums = np.take_along_axis(direction, order, axis=1).cumsum(axis=1)
        values = -sums * gain[:, 0] / ideal + offset_weight
        k = values.argmax(axis=1)
        largest = values[np.arange(len(values)), k]
        true_labels = np.zeros(direction.shape, dtype=np.int64)
        np.put_along_axis(true_labels, order, best_grade * members[k].astype(np.int64), axis=1)
        # the true label without any relevant item has target 0 and competes with its offset alone
        nothing = offset_weight * self.empty
        true_labels[largest < nothing] = 0
        return np.maximum(largest, nothing), true_labels


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionAt(GainLoss):
    """Charge the share of irrelevant items among the first q: 1 − precision at q.

    Formula: L(σ, y) = 1 − |{i : y_i > 0, σ(i) ≤ q}| / q. A query without relevant items costs
    `empty`, 1 by the formula. Scores: one per item, rank n (1 if q = n: every order is alike).
    Decoder: sorting, O(n log n).

    Choose it where only the first page is shown and its order does not matter.

    Parameters
    ----------
    n : int or None
        Number of items; None is the family of all query lengths.
    q : int
        Cut-off, at most n; `at` of a family cuts shorter queries at their length.
    n_grades : int
        Grades 0..n_grades−1 of the true label; every grade above 0 is relevant.
    empty : float
        Loss of a query without relevant items.

    Examples
    --------
    >>> from consistruct.losses import PrecisionAt
    >>> PrecisionAt(4, 2)([[2, 0, 1, 3]], [[0, 1, 1, 0]])  # items 2 and 0 come first
    array([0.5])
    """

    n: int | None
    q: int
    n_grades: int = field(default=2, kw_only=True)
    empty: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(q=_check_cutoff(self.q, self.n))

    def at(self, size: int) -> Self:
        return dataclasses.replace(self, n=size, q=min(self.q, check_count(size, "size")))

    def _discount(self) -> FloatArray:
        # 0 and 1 in place of a decay: order within the first q, and beyond, does not count
        return (np.arange(self.n or 0) < self.q).astype(np.float64)

    def _gain(self, true: LabelArray) -> FloatArray:
        return (true > 0).astype(np.float64)

    @property
    def fixed_normalizer(self) -> float:
        return float(self.q)

    @property
    def max_value(self) -> float:
        if self.n is None or self.q < self.n:
            return 1.0
        return max(self.empty, 1.0 - 1.0 / self.n)

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("precision-at", arguments, 3, "precision-at:10:3 or precision-at:10:3:5")
        n = items_field("precision-at", arguments, sizes.n_parts)
        q = count_field("precision-at", arguments, 1, None, "cut-off q")
        return cls(n, q, n_grades=grades_field("precision-at", arguments, 2, sizes.n_states))


@dataclass(frozen=True, eq=False, repr=False)
class NDCG(GainLoss):
    """Charge 1 − normalized discounted cumulative gain, optionally at a cut-off.

    Formula: L(σ, y) = 1 − Σ_i gain(y_i) d(σ(i)) / max_τ Σ_i gain(y_i) d(τ(i)), where d is 0 beyond
    the cut-off q. A query without relevant items costs `empty`, 0 unless stated: nothing is lost.
    Scores: one per item, rank n. Decoder: sorting, O(n log n).

    Choose it for graded relevance where the top of the list matters most.

    Parameters
    ----------
    n : int or None
        Number of items; None is the family of all query lengths.
    q : int, optional
        Cut-off, at most n; `at` of a family cuts shorter queries at their length.
    n_grades : int
        Grades 0..n_grades−1 of the true label.
    gain : "exponential" or "linear"
        2^y − 1, or y.
    discount : "log2", "reciprocal" or "linear"
        1/log2(1 + p), 1/p or (n + 1 − p)/n at position p = 1, 2, …
    empty : float
        Loss of a query without relevant items.

    Examples
    --------
    >>> from consistruct.losses import NDCG
    >>> NDCG(3)([[0, 1, 2], [1, 0, 2]], [[1, 0, 0], [1, 0, 0]]).round(3)
    array([0.   , 0.369])
    """

    n: int | None
    q: int | None = None
    n_grades: int = field(default=2, kw_only=True)
    gain: Literal["exponential", "linear"] = field(default="exponential", kw_only=True)
    discount: Literal["log2", "reciprocal", "linear"] = field(default="log2", kw_only=True)
    empty: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.gain, "gain", ("exponential", "linear"))
        check_choice(self.discount, "discount", ("log2", "reciprocal", "linear"))
        if self.q is not None:
            self._set(q=_check_cutoff(self.q, self.n))

    def at(self, size: int) -> Self:
        q = None if self.q is None else min(self.q, check_count(size, "size"))
        return dataclasses.replace(self, n=size, q=q)

    def _discount(self) -> FloatArray:
        n = self.n or 0
        position = np.arange(1, n + 1)
        if self.discount == "log2":
            weights = 1.0 / np.log2(1.0 + position)
        elif self.discount == "reciprocal":
            weights = 1.0 / position
        else:
            weights = linear_discount(n) / n
        return np.where(position <= (self.q or n), weights, 0.0)

    def _gain(self, true: LabelArray) -> FloatArray:
        grades = true.astype(np.float64)
        return np.exp2(grades) - 1.0 if self.gain == "exponential" else grades

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("ndcg", arguments, 3, "ndcg:10, ndcg:10:5 or ndcg:10:5:3")
        n = items_field("ndcg", arguments, sizes.n_parts)
        cut = len(arguments) > 1 and bool(arguments[1])
        q = count_field("ndcg", arguments, 1, None, "cut-off q") if cut else None
        return cls(n, q, n_grades=grades_field("ndcg", arguments, 2, sizes.n_states))


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedRankUtility(GainLoss):
    """Charge lost expected rank utility: the chance to be read halves every few positions.

    Formula: L(σ, y) = 1 − U(σ)/max U, U(σ) = Σ_i (y_i − neutral)₊ 2^((1−σ(i))/(half_life−1)). A
    query without items above `neutral` costs `empty`, 0 unless stated. Scores: one per item,
    rank n. Decoder: sorting, O(n log n).

    Choose it for recommendations, where users stop reading at a known depth.

    Parameters
    ----------
    n : int or None
        Number of items; None is the family of all query lengths.
    half_life : float
        Position that is looked at half as often as the first; above 1.
    neutral : float
        Grade that is worth nothing; below the highest grade.
    n_grades : int
        Grades 0..n_grades−1 of the true label.
    empty : float
        Loss of a query without items above `neutral`.

    Examples
    --------
    >>> from consistruct.losses import ExpectedRankUtility
    >>> ExpectedRankUtility(3, 2.0)([[1, 0, 2]], [[1, 0, 0]])  # position 2: half as useful
    array([0.5])
    """

    n: int | None
    half_life: float = 5.0
    neutral: float = field(default=0.0, kw_only=True)
    n_grades: int = field(default=2, kw_only=True)
    empty: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        half_life = check_number(self.half_life, "half_life", low=1.0, open_low=True)
        neutral = check_number(self.neutral, "neutral", low=0.0)
        # no grade would then have a gain, and every query cost `empty`
        if neutral >= self.n_grades - 1:
            raise ValueError(
                f"neutral must be below the highest grade {self.n_grades - 1}, got {neutral}"
            )
        self._set(half_life=half_life, neutral=neutral)

    def _discount(self) -> FloatArray:
        # position 1 has weight 1 and position half_life ½, hence half_life − 1 steps for one
        # halving
        return np.asarray(np.exp2(-np.arange(self.n or 0) / (self.half_life - 1.0)))

    def _gain(self, true: LabelArray) -> FloatArray:
        return np.maximum(true - self.neutral, 0.0)

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        at_most("eru", arguments, 3, "eru:10, eru:10:5 or eru:10:5:3")
        n = items_field("eru", arguments, sizes.n_parts)
        given = len(arguments) > 1 and bool(arguments[1])
        half_life = number_field("eru", arguments, 1, "half-life") if given else 5.0
        return cls(n, half_life, n_grades=grades_field("eru", arguments, 2, sizes.n_states))


def _check_cutoff(q: object, n: int | None) -> int:
    """Return the cut-off q as a number of at least 1, at most n where the length is known."""
    cutoff = check_count(q, "q")
    if n is not None and cutoff > n:
        raise ValueError(f"q must be at most n = {n}, the number of items, got {cutoff}")
    return cutoff
