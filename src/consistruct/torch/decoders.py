"""argmax over predictions on the device, for every score space; ties as on the host."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import torch
from torch import Tensor

from consistruct.exceptions import CapabilityError
from consistruct.structures import (
    Blocks,
    Chain,
    Dense,
    Full,
    Matchings,
    PairDiscount,
    PairOrder,
    Positions,
    Separable,
    SetSizes,
    Structure,
)
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.structures.pair_orders import EXACT_ITEMS
from consistruct.structures.sets import full_set_weights, member_weights
from consistruct.torch.assignment import best_partners
from consistruct.torch.chain import chain_viterbi
from consistruct.torch.constants import Constants

__all__ = ["ScoreDecoder", "decoder_of"]

CHUNK = 2**24  # numbers at a time


class ScoreDecoder(Constants):
    """Scores θ, (B, width) -> predictions, (B, *shape) of int64."""

    def forward(self, theta: Tensor) -> Tensor:
        raise NotImplementedError


class Listed(ScoreDecoder):
    """The highest of listed scores Fθ; equal rows of F are scored once, the first label wins."""

    def __init__(self, space: Structure) -> None:
        super().__init__()
        labels = space.predictions
        assert labels.size is not None
        self.full = space.one_per_label
        first = np.arange(labels.size)
        if not self.full:
            F = space.matrix(limit=ENUMERATION_LIMIT)
            _, first = np.unique(F, axis=0, return_index=True)
            first.sort()
            self.hold("F", F[first])
        self.plain = labels.shape == () and len(first) == labels.size
        if not self.plain:
            self.hold_index("labels", labels.unindex(first))

    def forward(self, theta: Tensor) -> Tensor:
        best = (theta if self.full else theta @ self.held("F", theta.dtype).T).argmax(1)
        return best if self.plain else self.labels.index_select(0, best)  # type: ignore[operator]


class FirstOfBlock(ScoreDecoder):
    """The first label of the best block; ties go to the smallest label."""

    def __init__(self, space: Blocks) -> None:
        super().__init__()
        first = np.array(space.partition.first_labels, dtype=np.int64)
        self.hold_index("order", np.argsort(first))
        self.hold_index("labels", np.sort(first))

    def forward(self, theta: Tensor) -> Tensor:
        best = theta.index_select(1, self.order).argmax(1)  # type: ignore[arg-type]
        return self.labels.index_select(0, best)  # type: ignore[operator]


class EachPart(ScoreDecoder):
    """The best state of every part."""

    def __init__(self, space: Separable) -> None:
        super().__init__()
        self.n_states = space.n_states

    def forward(self, theta: Tensor) -> Tensor:
        return theta.unflatten(1, (-1, self.n_states)).argmax(2)


class Sets(ScoreDecoder):
    """The best set of every size, and of these the best: fewest labels, then the latest ones."""

    def __init__(self, space: SetSizes) -> None:
        super().__init__()
        self.T, self.n_blocks = space.T, len(space.block_sizes)
        self.has_full, self.has_empty = space.has_full, space.has_empty
        self.hold("weights", member_weights(space.T, space.beta, space.block_sizes))
        self.hold("full", full_set_weights(space.T, space.beta))

    def forward(self, theta: Tensor) -> Tensor:
        size = max(1, CHUNK // self.T**2)
        if len(theta) <= size:
            return self._decode(theta)
        return torch.cat([self._decode(part) for part in theta.split(size)])

    def _decode(self, theta: Tensor) -> Tensor:
        T, n_own = self.T, self.n_blocks * self.T
        blocks = theta[:, :n_own].unflatten(1, (self.n_blocks, T)) if n_own else None
        if blocks is None:
            items = torch.zeros((len(theta), T, T), dtype=theta.dtype, device=theta.device)
        else:
            items = self.held("weights", theta.dtype) @ blocks  # (B, m, T)
        # stable and ascending, read from behind: of equal items the latest
        found = torch.sort(items, dim=2, stable=True)
        sums = found.values.flip(2).cumsum(2).diagonal(dim1=1, dim2=2)  # the m best items, (B, m)
        if self.has_full:
            sums = sums + theta[:, n_own, None] * self.held("full", theta.dtype)
        nothing = theta[:, -2:-1] if self.has_empty else torch.zeros_like(theta[:, :1])
        size = torch.cat([nothing, sums], 1).argmax(1)  # of equal scores the smallest set
        row = (size - 1).clamp(min=0)[:, None, None].expand(-1, 1, T)
        order = found.indices.gather(1, row)[:, 0].flip(1)
        chosen = torch.arange(T, device=theta.device) < size[:, None]
        return torch.zeros_like(order).scatter(1, order, chosen.to(order.dtype))


class Sorted(ScoreDecoder):
    """Items by falling scores; items on positions that count alike are listed by number."""

    def __init__(self, space: Positions) -> None:
        super().__init__()
        assert space.discount is not None
        self.runs = tuple((run.start, run.stop) for run in space.plateaus)

    def forward(self, theta: Tensor) -> Tensor:
        order = torch.sort(theta, dim=1, descending=True, stable=True).indices
        for start, stop in self.runs:
            alike = torch.sort(order[:, start:stop], 1).values
            order = torch.cat([order[:, :start], alike, order[:, stop:]], 1)
        return order


class BestPath(ScoreDecoder):
    """The best sequence under unary and edge scores."""

    def __init__(self, space: Chain) -> None:
        super().__init__()
        assert space.T is not None
        self.T, self.s = space.T, space.n_states

    def forward(self, theta: Tensor) -> Tensor:
        T, s = self.T, self.s
        unary = theta[:, : T * s].unflatten(1, (T, s))
        edges = theta[:, T * s :].reshape(len(theta), T - 1, s, s)
        return chain_viterbi(unary, edges)


class Partners(ScoreDecoder):
    """The best perfect matching; ties as the augmenting paths find them."""

    def __init__(self, space: Matchings) -> None:
        super().__init__()
        self.n = space.n

    def forward(self, theta: Tensor) -> Tensor:
        return best_partners(theta.unflatten(1, (self.n, self.n)))


class Ordered(ScoreDecoder):
    """Orders scored by pairs: the best completion of every set of first items, 2^n sets."""

    discounted = False  # whether the pairs of later places count less

    def __init__(self, space: PairOrder | PairDiscount) -> None:
        super().__init__()
        n = self.n = space.n
        if n > EXACT_ITEMS:
            raise CapabilityError(
                space,
                "decoding on the device",
                f"the best order of {n} items",
                f"it is exact up to {EXACT_ITEMS} items; decode on the host with "
                "loss.score_space.decode",
            )
        first, second = np.triu_indices(n, 0 if self.discounted else 1)
        # where each (item, item before it) stands in θ, and with which factor
        source, factor = np.zeros((n, n), dtype=np.int64), np.zeros((n, n))
        shift = 0 if self.discounted else 1
        source[first, second] = source[second, first] = np.arange(len(first)) + shift
        if self.discounted:
            factor[:] = 1.0
        else:  # [i, j]: what j standing before i adds
            factor[second, first], factor[first, second] = 0.5, -0.5
        self.hold_index("source", source)
        self.hold("factor", factor)
        sets = np.arange(2**n)
        members = (sets[:, None] >> np.arange(n)) & 1
        self.hold("members", members)
        sizes = members.sum(1)
        self.layers = tuple(range(n - 1, -1, -1))
        for size in self.layers:
            self.hold_index(f"layer{size}", np.flatnonzero(sizes == size))
        self.hold("weight", 1.0 / np.arange(1, n + 1) if self.discounted else np.ones(n))

    def forward(self, theta: Tensor) -> Tensor:
        size = max(1, CHUNK // (self.n * 2**self.n))
        if len(theta) <= size:
            return self._decode(theta)
        return torch.cat([self._decode(part) for part in theta.split(size)])

    def _decode(self, theta: Tensor) -> Tensor:
        n, rows = self.n, len(theta)
        pair = theta.index_select(1, self.source.flatten()).unflatten(1, (n, n))  # type: ignore[operator]
        pair = pair * self.held("factor", theta.dtype)
        own = pair.diagonal(dim1=1, dim2=2)
        pair = pair - torch.diag_embed(own)
        members = self.held("members", theta.dtype)  # (2^n, n)
        gain = members @ pair.transpose(1, 2) + own[:, None, :]  # (B, set before, item)
        weight = self.held("weight", theta.dtype)
        items = torch.arange(n, device=theta.device)
        value = torch.zeros((rows, 2**n), dtype=theta.dtype, device=theta.device)
        choice = torch.zeros((rows, 2**n), dtype=torch.int64, device=theta.device)
        for size in self.layers:
            layer: Tensor = getattr(self, f"layer{size}")
            after = layer[:, None] | (1 << items)
            inside = members.index_select(0, layer) > 0
            total = weight[size] * gain.index_select(1, layer) + value[:, after]
            total = torch.where(inside, -torch.inf, total)
            best = total.max(2)
            value = value.index_copy(1, layer, best.values)
            choice = choice.index_copy(1, layer, best.indices)
        before = torch.zeros((rows, 1), dtype=torch.int64, device=theta.device)
        order = []
        for _ in range(n):
            item = choice.gather(1, before)
            order.append(item)
            before = before | (1 << item)
        return torch.cat(order, 1)


class OrderedByPrecision(Ordered):
    """The same, where an item adds the precision at its place."""

    discounted = True


@singledispatch
def decoder_of(space: Structure) -> ScoreDecoder:
    """The decoder of a score space as a module, the same results as `space.decode`."""
    if (space.n_labels or 2**62) <= ENUMERATION_LIMIT:
        return Listed(space)
    raise CapabilityError(
        space,
        "decoding on the device",
        "consistruct.torch.Decoder",
        "decode on the host with loss.score_space.decode",
    )


decoder_of.register(Blocks, FirstOfBlock)
decoder_of.register(Separable, EachPart)
decoder_of.register(SetSizes, Sets)
decoder_of.register(Positions, Sorted)
decoder_of.register(Chain, BestPath)
decoder_of.register(Matchings, Partners)
decoder_of.register(PairOrder, Ordered)
decoder_of.register(PairDiscount, OrderedByPrecision)
decoder_of.register(Dense, Listed)


@decoder_of.register(Full)
def _(space: Full) -> ScoreDecoder:
    space.require_arrays("decoding")
    return Listed(space)
