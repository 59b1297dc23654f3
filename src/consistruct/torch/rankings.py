"""True labels of rankings on the device: grades of items, orders, matchings.

Losses judged by gains (NDCG, precision, expected rank utility), by binary pairs and by Spearman's
rho have one score per item, and their families (``n=None``) take padded batches with a mask.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from consistruct.losses.rankings.average_precision import MeanAveragePrecision
from consistruct.losses.rankings.gains import NDCG, ExpectedRankUtility, GainLoss, PrecisionAt
from consistruct.losses.rankings.orders import OrderLoss
from consistruct.losses.rankings.pairwise import Kendall, PairwiseDisagreement
from consistruct.losses.rankings.permutation_distances import (
    Matching,
    SpearmanFootrule,
    SpearmanRho,
)
from consistruct.torch.true_labels import TrueLabels, no_true_labels, one_hot, true_labels_of

__all__ = ["Gains", "PairTrueLabels", "positions_of"]


def positions_of(orders: Tensor) -> Tensor:
    """Place of each item, (B, n), of orders with the best item first."""
    return torch.argsort(orders, 1)


class _Grades(TrueLabels):
    """Relevance grades of items as true labels."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.loss.n,)  # type: ignore[attr-defined]

    def valid(self, true: Tensor, present: Tensor | None = None) -> Tensor:
        fine = (true >= 0) & (true < self.loss.n_grades)  # type: ignore[attr-defined]
        return (fine if present is None else fine | ~present).all(1)

    def _allowed(self) -> str:
        return f"grades 0..{self.loss.n_grades - 1}"  # type: ignore[attr-defined]


class Gains(_Grades):
    """L = 1 − Σ_i gain(y_i) d(σ(i)) / normalizer: an item is wanted by its share of the gains."""

    loss: GainLoss
    by_item = True

    def _weight(self, place: Tensor, n: Tensor) -> Tensor:
        """Weight of the positions 0, 1, … in queries of n items, n as a column."""
        raise NotImplementedError

    def gain(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        """Gain of each item, (B, n)."""
        raise NotImplementedError

    def discount(self, n_items: Tensor, size: int, dtype: torch.dtype) -> Tensor:
        """Weight of each position in queries of so many items, (B, size); 0 beyond the last."""
        place = torch.arange(size, device=n_items.device, dtype=dtype)
        n = n_items[:, None].to(dtype)
        return torch.where(place < n, self._weight(place, n), 0.0)

    def _ideal(self, gain: Tensor, counts: Tensor) -> Tensor:
        """What the best order attains, (B,)."""
        best = torch.sort(gain, 1, descending=True).values
        return (best * self.discount(counts, gain.shape[1], gain.dtype)).sum(1)

    def wanted(self, true: Tensor, dtype: torch.dtype, present: Tensor | None = None) -> Tensor:
        gain = self.gain(true, dtype)
        if present is not None:
            gain = torch.where(present, gain, 0.0)
        ideal = self._ideal(gain, n_present(true, present))
        nothing = ~(gain > 0).any(1)
        return gain / torch.where(nothing, 1.0, ideal)[:, None]

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        nothing = ~(self.gain(true, dtype) > 0).any(1)
        return torch.where(nothing, self.loss.empty, 1.0).to(dtype)


class PrecisionGains(Gains):
    loss: PrecisionAt

    def _weight(self, place: Tensor, n: Tensor) -> Tensor:
        return (place < self.loss.q).to(place.dtype)

    def gain(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return (true > 0).to(dtype)

    def _ideal(self, gain: Tensor, counts: Tensor) -> Tensor:
        # the first q, or all where there are fewer
        return counts.clamp(max=self.loss.q).to(gain.dtype)


class UtilityGains(Gains):
    loss: ExpectedRankUtility

    def _weight(self, place: Tensor, n: Tensor) -> Tensor:
        return torch.exp2(-place / (self.loss.half_life - 1.0))

    def gain(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return (true.to(dtype) - self.loss.neutral).clamp(min=0.0)


class DiscountedGains(Gains):
    loss: NDCG

    def _weight(self, place: Tensor, n: Tensor) -> Tensor:
        if self.loss.discount == "log2":
            weight = 1.0 / torch.log2(2.0 + place)
        elif self.loss.discount == "reciprocal":
            weight = 1.0 / (1.0 + place)
        else:
            weight = (n - place) / n
        return weight if self.loss.q is None else torch.where(place < self.loss.q, weight, 0.0)

    def gain(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        grades = true.to(dtype)
        return torch.exp2(grades) - 1.0 if self.loss.gain == "exponential" else grades


class BinaryPairs(_Grades):
    """Pairs of relevant and irrelevant items: an item is wanted where it is relevant."""

    loss: PairwiseDisagreement
    by_item = True

    def discount(self, n_items: Tensor, size: int, dtype: torch.dtype) -> Tensor:
        return _linear_discount(n_items, size, dtype)

    def _scale(self, true: Tensor, dtype: torch.dtype, present: Tensor | None) -> Tensor:
        """1/number of pairs that differ, 0 where there are none."""
        relevant = true.sum(1).to(dtype)
        pairs = relevant * (n_present(true, present).to(dtype) - relevant)
        return torch.where(pairs > 0, 1.0 / pairs.clamp(min=1.0), 0.0)

    def wanted(self, true: Tensor, dtype: torch.dtype, present: Tensor | None = None) -> Tensor:
        if present is not None:
            true = torch.where(present, true, 0)
        return true.to(dtype) * self._scale(true, dtype, present)[:, None]

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        scale = self._scale(true, dtype, None)
        half = 0.5 + true.sum(1).to(dtype) * (true.shape[1] + 1) / 2 * scale
        return torch.where(scale > 0, half, self.loss.empty)


class _Orders(TrueLabels):
    """Orders of items, or partners, as true labels."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.loss.n,)  # type: ignore[attr-defined]

    def valid(self, true: Tensor) -> Tensor:
        every = torch.arange(true.shape[1], device=true.device)
        return (torch.sort(true, 1).values == every).all(1)

    def _allowed(self) -> str:
        return f"permutations of 0..{self.loss.n - 1}"  # type: ignore[attr-defined]

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.zeros(len(true), dtype=dtype, device=true.device)


class Rho(_Orders):
    """Spearman's rho: items are wanted by their true places, linearly."""

    loss: SpearmanRho
    by_item = True

    def discount(self, n_items: Tensor, size: int, dtype: torch.dtype) -> Tensor:
        return _linear_discount(n_items, size, dtype)

    def valid(self, true: Tensor, present: Tensor | None = None) -> Tensor:
        if present is None:
            return super().valid(true)
        every = torch.arange(true.shape[1], device=true.device)
        sought = torch.where(every < n_present(true, present)[:, None], every, true.shape[1])
        return (torch.sort(torch.where(present, true, true.shape[1]), 1).values == sought).all(1)

    def wanted(self, true: Tensor, dtype: torch.dtype, present: Tensor | None = None) -> Tensor:
        n = n_present(true, present).to(dtype)[:, None]
        if present is not None:  # what is absent stands behind everything
            true = torch.where(present, true, torch.arange(true.shape[1], device=true.device))
        scale = (n * (n**2 - 1) / 3).clamp(min=1.0)
        wanted = 2.0 * (n - positions_of(true).to(dtype)) / scale
        return wanted if present is None else torch.where(present, wanted, 0.0)

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        n = true.shape[1]
        squares = n * (n + 1) * (2 * n + 1) / 6
        value = 2.0 * squares / max(n * (n**2 - 1) / 3, 1.0)
        return torch.full((len(true),), value, dtype=dtype, device=true.device)


class Footrule(_Orders):
    """Spearman's footrule: the distance of every place from the true one."""

    loss: SpearmanFootrule

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        places = torch.arange(true.shape[1], device=true.device)
        apart = (places[:, None] - positions_of(true)[:, None, :]).abs()  # (B, place, item)
        return -apart.flatten(1).to(dtype) / self.loss._scale


class Partners(_Orders):
    """Matchings: the true partner of each item, each a share 1/n."""

    loss: Matching

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        n = true.shape[1]
        return one_hot(true, n, dtype).flatten(1) / n

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.ones(len(true), dtype=dtype, device=true.device)


class PairTrueLabels(TrueLabels):
    """Orders and grades compared pair by pair: which item of each pair should come first."""

    nothing = 0.0  # the loss where no pair counts

    def __init__(self, loss: Kendall | PairwiseDisagreement) -> None:
        super().__init__(loss)
        first, second = np.triu_indices(loss.n or 0, 1)
        self.hold_index("first", first)
        self.hold_index("second", second)

    def _worth(self, true: Tensor) -> Tensor:
        """Larger for better items, (B, n)."""
        return true

    def _signs(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        """sign(worth_i − worth_j) for i < j, (B, pairs)."""
        worth = self._worth(true)
        apart = worth.index_select(1, self.first) - worth.index_select(1, self.second)  # type: ignore[arg-type]
        return torch.sign(apart).to(dtype)

    def _counted(self, signs: Tensor) -> Tensor:
        """Number of pairs that count, (B,)."""
        return signs.abs().sum(1)

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        signs = self._signs(true, dtype)
        scaled = signs / self._counted(signs).clamp(min=1.0)[:, None]
        constant = torch.zeros((len(true), 1), dtype=dtype, device=true.device)
        return torch.cat([constant, scaled], 1)

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        counted = self._counted(self._signs(true, dtype))
        return torch.where(counted > 0, 0.5, self.nothing).to(dtype)


class GradedPairs(PairTrueLabels, _Grades):
    """Grades: pairs that differ in them count."""

    def __init__(self, loss: PairwiseDisagreement) -> None:
        super().__init__(loss)
        self.nothing = loss.empty


class RankedPairs(PairTrueLabels, _Orders):
    """Orders, or ranks with ties: all pairs count, unless ties are excluded."""

    loss: Kendall

    def _worth(self, true: Tensor) -> Tensor:
        return -(positions_of(true) if self.loss.ties == "refuse" else true)

    def _counted(self, signs: Tensor) -> Tensor:
        if self.loss.ties == "exclude":
            return super()._counted(signs)
        return torch.full_like(signs[:, :1].sum(1), signs.shape[1])

    def valid(self, true: Tensor) -> Tensor:
        if self.loss.ties == "refuse":
            return super().valid(true)
        return ((true >= 0) & (true < max(true.shape[1], 2))).all(1)

    def _allowed(self) -> str:
        return super()._allowed() if self.loss.ties == "refuse" else "ranks of the items, 0 best"


class RelevantPairs(_Grades):
    """Average precision: pairs of relevant items."""

    loss: MeanAveragePrecision

    def __init__(self, loss: MeanAveragePrecision) -> None:
        super().__init__(loss)
        first, second = np.triu_indices(loss.n or 0)
        self.hold_index("first", first)
        self.hold_index("second", second)

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        relevant = true.to(dtype)
        both = relevant.index_select(1, self.first) * relevant.index_select(1, self.second)  # type: ignore[arg-type]
        return both / relevant.sum(1, keepdim=True).clamp(min=1.0)

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.where((true > 0).any(1), 1.0, self.loss.empty).to(dtype)


@true_labels_of.register(OrderLoss)
def _(loss: OrderLoss) -> TrueLabels:
    raise no_true_labels(loss)


@true_labels_of.register(PairwiseDisagreement)
def _(loss: PairwiseDisagreement) -> TrueLabels:
    return BinaryPairs(loss) if loss.n_grades == 2 else GradedPairs(loss)


true_labels_of.register(PrecisionAt, PrecisionGains)
true_labels_of.register(ExpectedRankUtility, UtilityGains)
true_labels_of.register(NDCG, DiscountedGains)
true_labels_of.register(Kendall, RankedPairs)
true_labels_of.register(SpearmanRho, Rho)
true_labels_of.register(SpearmanFootrule, Footrule)
true_labels_of.register(Matching, Partners)
true_labels_of.register(MeanAveragePrecision, RelevantPairs)


def n_present(true: Tensor, present: Tensor | None) -> Tensor:
    """Number of items of each query, (B,)."""
    if present is not None:
        return present.sum(1)
    return torch.full((len(true),), true.shape[1], device=true.device)


def _linear_discount(n_items: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    place = torch.arange(size, device=n_items.device, dtype=dtype)
    return (n_items[:, None].to(dtype) - place).clamp(min=0.0)
