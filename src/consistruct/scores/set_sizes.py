"""Label sets scored by their members, discounted by set and truth size: the F-measure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count
from consistruct.decoding import SetBySize
from consistruct.decoding.sets import full_set_weights, member_weights
from consistruct.labels import Subsets
from consistruct.protocols import FloatArray, Gram
from consistruct.scores.base import BaseScoreSpace, Predictable
from consistruct.scores.item_gram import ItemGram

__all__ = ["SetSizes"]


@dataclass(frozen=True, eq=False, repr=False)
class SetSizes(BaseScoreSpace):
    """F_ŷ = (ŷ_t (1+β²)/(β²s + |ŷ|) for truth sizes s and labels t; [ŷ=∅]; 1).

    The one truth of size T has one column, the sum over its labels; so with S sizes in 1..T−1 the
    width is S·T + 1, and one more for each of 0 and T among the sizes. With S' = S, or S + 1 if T
    is among the sizes, the rank is (T−1)·S + 1 + S' without [ŷ=∅] and (T−1)·S + 1 + min(S'+1, T)
    with it: T² − T + 2 with all sizes, where scores are free in every (predicted size, label).

    Parameters
    ----------
    T : int
        Number of labels.
    beta : float
    sizes : sequence of int, optional
        Truth sizes; all of 0..T if not given.

    Notes
    -----
    The reference measure is uniform over sizes, then over sets. The columns of many neighbouring
    sizes are nearly dependent (a Cauchy matrix): with more than about ten sizes the Gram operator
    treats directions below rounding as zero, though `rank` is exact.

    Examples
    --------
    >>> from consistruct.scores import SetSizes
    >>> SetSizes(3).rank, SetSizes(8).effective_classes()
    (8, 126.0)
    >>> SetSizes(983, sizes=range(1, 26)).width
    24576
    """

    T: int
    beta: float = 1.0
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        T = check_count(self.T, "T")
        sizes = _all_sizes(T) if self.sizes is None else self.sizes
        decoder = SetBySize(T, self.beta, sizes)
        kept = None if self.sizes is None else decoder.sizes
        self._set(T=decoder.n_items, beta=decoder.beta, sizes=kept)

    @cached_property
    def _decoder(self) -> SetBySize:
        sizes = _all_sizes(self.T) if self.sizes is None else self.sizes
        return SetBySize(self.T, self.beta, sizes)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Truth sizes in 1..T−1: one column per label each."""
        return self._decoder.block_sizes

    @property
    def has_full(self) -> bool:
        """Whether the full set has a column, the first after the blocks."""
        return self._decoder.has_full

    @property
    def has_empty(self) -> bool:
        """Whether [ŷ=∅] is a column, the last but one."""
        return self._decoder.has_empty

    @cached_property
    def predictions(self) -> Subsets:
        return Subsets(self.T)

    @property
    def width(self) -> int:
        return self._decoder.width

    @cached_property
    def _ranks(self) -> tuple[int, int]:
        """Exact ranks of the part of one contrast of labels and of the part they share."""
        # contrasts: Σ_s a_s/(β²s+m) on m = 1..T−1; common: 1, [m=0] and m/(β²s+m) on m = 0..T
        n_blocks = len(self.block_sizes)
        n_sizes = n_blocks + self.has_full
        common = 1 + (min(n_sizes + 1, self.T) if self.has_empty else n_sizes)
        return n_blocks, common

    @property
    def rank(self) -> int:
        contrast, common = self._ranks
        return (self.T - 1) * contrast + common

    @cached_property
    def _weights(self) -> FloatArray:
        """(1+β²)/(β²s+m), m = 0..T in rows (row 0 is never used: 0), sizes in columns."""
        weights = member_weights(self.T, self.beta, self.block_sizes)
        return np.vstack([np.zeros((1, weights.shape[1])), weights])

    @cached_property
    def _extra(self) -> FloatArray:
        """Columns behind the blocks, which depend on the size m = 0..T only, (T + 1, extra)."""
        columns = []
        if self.has_full:
            columns.append(np.append(0.0, full_set_weights(self.T, self.beta)))
        if self.has_empty:
            columns.append((np.arange(self.T + 1) == 0).astype(np.float64))
        return np.column_stack([*columns, np.ones(self.T + 1)])

    def embed(self, labels: ArrayLike) -> FloatArray:
        sets = self.predictions.check(labels)
        n, (_, n_sizes) = len(sets), self._weights.shape
        counts = sets.sum(axis=1)
        rows = np.zeros((n, self.width))
        members = self._weights[counts][:, :, None] * sets[:, None, :]
        rows[:, : n_sizes * self.T] = members.reshape(n, n_sizes * self.T)
        rows[:, n_sizes * self.T :] = self._extra[counts]
        return rows

    @cached_property
    def _common(self) -> FloatArray:
        """Common coordinates of a set of each size m = 0..T, (T + 1, n_sizes + extra)."""
        m = np.arange(self.T + 1)[:, None]
        # the item mean of ŷ is m/T, times √T
        return np.hstack([m * self._weights / math.sqrt(self.T), self._extra])

    @cached_property
    def _gram(self) -> ItemGram:
        T = self.T
        m = np.arange(T + 1)
        # given |ŷ| = m: Var ŷ_t + 1/(T−1)·Var ŷ_t on contrasts, m(T−m)/(T(T−1))
        spread = m * (T - m) / (T * max(T - 1, 1))
        contrast = np.sqrt(spread / (T + 1))[:, None] * self._weights
        return ItemGram(T, contrast, self._common / math.sqrt(T + 1))

    def gram(self) -> Gram:
        return self._gram

    def decoder(self) -> SetBySize:
        return self._decoder

    def mean_embedding(self) -> FloatArray:
        T = self.T
        member = (np.arange(T + 1)[:, None] / T * self._weights).mean(axis=0)  # P(ŷ_t | m) = m/T
        return np.concatenate([np.repeat(member, T), self._extra.mean(axis=0)])

    @property
    def contains_constant(self) -> bool:
        return True

    def constant_coordinates(self) -> FloatArray:
        coordinates = np.zeros(self.width)
        coordinates[-1] = 1.0
        return coordinates

    def predictable(self) -> Predictable:
        if not self.block_sizes:
            return super().predictable()  # labels are not told apart
        # +1 on the members of ŷ and very negative elsewhere: more members are better, and ŷ wins
        return Predictable(2**self.T)

    @cached_property
    def _diameter(self) -> tuple[Fraction | float, bool]:
        if not self.block_sizes:
            return super().diameter_squared(), True
        if self._ranks == (self.T - 1, self.T + 1):
            return _free_diameter(self.T), True
        if self._gram.ranks != self._ranks:
            # some directions are below rounding; a larger space has the larger diameter
            return _free_diameter(self.T), False
        T = self.T
        m = np.arange(T + 1)
        own, common = self._gram.kernel_parts(self._weights, self._common)
        # K(ŷ, ŷ') = (|ŷ∩ŷ'| − mm'/T)·own + common, linear in the overlap: its ends are enough
        leverage = (m - m**2 / T) * np.diag(own) + np.diag(common)
        low = np.maximum(m[:, None] + m - T, 0)
        high = np.minimum(m[:, None], m)
        np.fill_diagonal(high, np.maximum(m - 1, np.diag(low)))  # two different sets
        largest = 0.0
        for overlap in (low, high):
            kernel = (overlap - m[:, None] * m / T) * own + common
            squared = leverage[:, None] + leverage - 2 * kernel
            largest = max(largest, float(squared.max()))
        return largest, True

    @property
    def diameter_is_exact(self) -> bool:
        return self._diameter[1]

    def diameter_squared(self) -> Fraction | float:
        return self._diameter[0]


def _all_sizes(T: int) -> tuple[int, ...]:
    return tuple(range(T + 1))


def _free_diameter(T: int) -> Fraction:
    """diam² where scores are free in every (size, label): sizes are independent layers.

    A layer of measure 1/(T+1) and dimension T (1 for ∅ and the full set) has leverage (T+1)·dim.
    Sets of different sizes add their leverages; two sets of size m with the least overlap are
    2(T²−1)T/(T−m) apart for m ≤ T/2.
    """
    dimensions = sorted(T if 0 < m < T else 1 for m in range(T + 1))[-2:]
    apart = Fraction((T + 1) * sum(dimensions))
    if T < 2:
        return apart
    return max(apart, Fraction(2 * (T**2 - 1) * T, T - T // 2))
