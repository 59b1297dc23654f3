"""True labels of every loss on the device: the scores that they request, and their offsets.

For each true label y the quadratic surrogate regresses scores on w_y = −u_y, minus the target of
the loss, so that L(c, y) = offset(y) − ⟨F_c, w_y⟩. Everything is computed from the labels with
tensor operations on their device; nothing of the size of the label set is built for sets, sequences
and rankings. Rankings are in `rankings`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np
import torch
from torch import Tensor, nn

from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.losses.algebra import Combination
from consistruct.losses.base import Loss, dense_target
from consistruct.losses.classes import Block, Mixed, ZeroOne
from consistruct.losses.costs.label_costs import LabelCosts
from consistruct.losses.fbeta import FBeta
from consistruct.losses.partial_labels import PartialLabels
from consistruct.structures import Full
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.torch.constants import Constants, can_check, ensure

__all__ = ["TrueLabels", "class_count", "no_true_labels", "one_hot", "true_labels_of"]

CLASS_LIMIT = 2**20  # classes whose blocks are looked up in a table
CHUNK = 2**24  # numbers at a time in a minimum over candidates


class TrueLabels(Constants):
    """Labels of one loss as tensors. Required: `wanted`.

    Shapes: B true labels, each of shape `shape`; `width` scores of the loss's own space.
    """

    takes_numbers = True  # whether labels may be floats, as costs and 0/1 vectors are
    by_item = False  # whether there is one score per item, and a `discount` of each position

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss
        self.text = repr(loss)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one true label."""
        return self.loss.true_labels.shape

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        """w_y = −target(y), (B, width)."""
        raise NotImplementedError

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        """offset(y), (B,)."""
        return torch.ones(len(true), dtype=dtype, device=true.device)

    def valid(self, true: Tensor) -> Tensor:
        """Whether each true label is one, (B,) Booleans."""
        raise NotImplementedError

    def check(self, true: Tensor, present: Tensor | None) -> None:
        """Refuse what is no true label, where an example is present."""
        if true.shape[1:] != self.shape:
            raise ValueError(
                f"target must have shape (B{''.join(f', {n}' for n in self.shape)}) for "
                f"{self.text}, got {tuple(true.shape)}"
            )
        if true.is_floating_point() and not self.takes_numbers:
            raise TypeError(f"target must contain integers, got {true.dtype}")
        if not can_check(true):
            return
        valid = self.valid(true)
        if present is not None:
            valid = valid | ~present
        ensure(valid.all(), f"target must contain true labels of {self.text}: {self._allowed()}")

    def _allowed(self) -> str:
        return "labels as `loss.true_labels` has them"


class _Classes(TrueLabels):
    """True labels that are class numbers."""

    takes_numbers = False

    def valid(self, true: Tensor) -> Tensor:
        return (true >= 0) & (true < class_count(self.loss))

    def _allowed(self) -> str:
        return f"classes 0..{class_count(self.loss) - 1}"


class Table(_Classes):
    """Listed classes of any loss: one row per class."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss)
        every = np.arange(class_count(loss, ENUMERATION_LIMIT))
        self.hold("rows", -dense_target(loss.target(every)))
        self.hold("offsets", loss.offset(every))

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return self.held("rows", dtype).index_select(0, true)

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return self.held("offsets", dtype).index_select(0, true)


class OneClass(_Classes):
    """0-1 loss: the true class alone."""

    def __init__(self, loss: ZeroOne) -> None:
        super().__init__(loss)
        loss.score_space.require_arrays("targets")
        self.k = loss.k

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return one_hot(true, self.k, dtype)


class InBlocks(_Classes):
    """The true block, and with a share of η the true class."""

    def __init__(self, loss: Block | Mixed) -> None:
        super().__init__(loss)
        partition, self.eta = loss.block_mixture
        self.n_blocks = partition.n_blocks
        every = np.arange(class_count(loss, CLASS_LIMIT))
        if self.eta > 0:
            Full(loss).require_arrays("targets")
        self.hold_index("blocks", partition.block_of(every))

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        blocks: Tensor = self.blocks  # type: ignore[assignment]
        own = blocks.index_select(0, true)
        if self.eta == 0:
            return one_hot(own, self.n_blocks, dtype)
        shared = (own[:, None] == blocks).to(dtype)
        return (1.0 - self.eta) * shared + self.eta * one_hot(true, len(blocks), dtype)


class Costs(TrueLabels):
    """The true label is the vector of costs itself."""

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return -true.to(dtype)

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.zeros(len(true), dtype=dtype, device=true.device)

    def valid(self, true: Tensor) -> Tensor:
        return (torch.isfinite(true) & (true >= 0)).all(1)

    def _allowed(self) -> str:
        return "finite costs that are not negative"


class States(TrueLabels):
    """Hamming loss: the true state of each part, each a share 1/T."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss)
        assert loss.hamming_shape is not None
        self.T, self.n_states = loss.hamming_shape

    @property
    def shape(self) -> tuple[int, ...]:
        assert self.T is not None
        return (self.T,)

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        assert self.T is not None
        return (one_hot(true, self.n_states, dtype) / self.T).flatten(1)

    def valid(self, true: Tensor) -> Tensor:
        return ((true >= 0) & (true < self.n_states)).all(1)

    def _allowed(self) -> str:
        return f"states 0..{self.n_states - 1}"


class PricedLabels(TrueLabels):
    """Costs of missed and of false labels, a price of its own for every label."""

    loss: LabelCosts

    def __init__(self, loss: LabelCosts) -> None:
        super().__init__(loss)
        self.hold("prices", np.stack([loss.miss, loss.alarm], axis=1) / loss.n_parts)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.loss.n_parts,)

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        states = true.to(dtype)
        wrong = torch.stack([states, 1.0 - states], dim=2)  # predicted 0, predicted 1
        return -(wrong * self.held("prices", dtype)).flatten(1)

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.zeros(len(true), dtype=dtype, device=true.device)

    def valid(self, true: Tensor) -> Tensor:
        return ((true == 0) | (true == 1)).all(1)

    def _allowed(self) -> str:
        return "labels 0 and 1"


class SetsBySize(TrueLabels):
    """F-measure: the members of a set, in the block of its size."""

    loss: FBeta

    def __init__(self, loss: FBeta) -> None:
        super().__init__(loss)
        space, T = loss.score_space, loss.T
        self.n_blocks, self.has_full, self.has_empty = (
            len(space.block_sizes),
            space.has_full,
            space.has_empty,
        )
        block = np.full(T + 1, -1)
        block[list(space.block_sizes)] = np.arange(self.n_blocks)
        allowed = np.zeros(T + 1)
        allowed[list(loss.true_labels.allowed_sizes)] = 1
        self.hold_index("block", block)
        self.hold_index("allowed", allowed)

    def block_of(self, sizes: Tensor) -> Tensor:
        """Number of the block of each set size, −1 where it has none."""
        return self.block.index_select(0, sizes)  # type: ignore[operator]

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        counts = true.sum(1).long().clamp(0, self.loss.T)
        here = one_hot(self.block_of(counts), self.n_blocks, dtype)
        columns = [(here[:, :, None] * true.to(dtype)[:, None, :]).flatten(1)]
        if self.has_full:
            columns.append((counts == self.loss.T).to(dtype)[:, None])
        if self.has_empty:
            columns.append(self.loss.empty * (counts == 0).to(dtype)[:, None])
        columns.append(torch.zeros((len(true), 1), dtype=dtype, device=true.device))
        return torch.cat(columns, 1)

    def valid(self, true: Tensor) -> Tensor:
        binary = ((true == 0) | (true == 1)).all(1)
        counts = true.sum(1).long().clamp(0, self.loss.T)
        return binary & (self.allowed.index_select(0, counts) == 1)  # type: ignore[operator]

    def _allowed(self) -> str:
        return "0/1 vectors whose size is one of `sizes`"


class Candidates(TrueLabels):
    """Sets of candidates, as masks over the true labels of a base loss."""

    loss: PartialLabels

    def __init__(self, loss: PartialLabels) -> None:
        super().__init__(loss)
        base = loss.loss
        # raises where masks are too long
        every = base.true_labels.enumerate(limit=loss.true_labels.n_items)
        if loss.reduce == "average":
            self.hold("rows", -dense_target(base.target(every)))
            self.hold("offsets", base.offset(every))
            return
        space = loss.score_space
        self.full = space.one_per_label
        self.hold("base", base.matrix())
        if not self.full:  # the span is orthonormal: u = E_c[F_c L(c, A)]
            self.hold("span", loss.predictions.weights()[:, None] * space.matrix())

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        if self.loss.reduce == "average":
            return self._shares(true, dtype) @ self.held("rows", dtype)
        columns = self._reduced(true.bool(), self.held("base", dtype))
        return -columns if self.full else -columns @ self.held("span", dtype)

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        if self.loss.reduce == "average":
            return self._shares(true, dtype) @ self.held("offsets", dtype)
        return torch.zeros(len(true), dtype=dtype, device=true.device)

    @staticmethod
    def _shares(true: Tensor, dtype: torch.dtype) -> Tensor:
        mask = true.to(dtype)
        return mask / mask.sum(1, keepdim=True).clamp(min=1)

    def _reduced(self, mask: Tensor, base: Tensor) -> Tensor:
        """min or max over the candidates of L(c, y), (B, k)."""
        least = self.loss.reduce == "infimum"
        outside = torch.inf if least else -torch.inf
        size = max(1, CHUNK // max(1, mask.numel()))
        parts = []
        for start in range(0, len(base), size):
            values = torch.where(mask[:, None, :], base[start : start + size], outside)
            parts.append(values.amin(2) if least else values.amax(2))
        return torch.cat(parts, 1)

    def valid(self, true: Tensor) -> Tensor:
        return ((true == 0) | (true == 1)).all(1) & (true != 0).any(1)

    def _allowed(self) -> str:
        return "0/1 masks with at least one candidate"


class Sum(TrueLabels):
    """A weighted sum of losses, written in their joint score space."""

    loss: Combination

    def __init__(self, loss: Combination) -> None:
        super().__init__(loss)
        space, maps, _ = loss._joint
        assert maps is not None
        self.terms = nn.ModuleList(true_labels_of(term) for _, term in loss.terms)
        self.weights = tuple(weight for weight, _ in loss.terms)
        self.mapped = []
        for number, ((_, term), into) in enumerate(zip(loss.terms, maps, strict=True)):
            self.mapped.append(term.score_space != space)
            if self.mapped[-1]:
                self.hold(f"map{number}", into(np.eye(term.score_space.width)))

    def wanted(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        total: Tensor | None = None
        for number, (term, weight) in enumerate(zip(self.terms, self.weights, strict=True)):
            part = weight * term.wanted(true, dtype)  # type: ignore[operator]
            if self.mapped[number]:
                part = part @ self.held(f"map{number}", dtype)
            total = part if total is None else total + part
        assert total is not None
        return total

    def offset(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        parts = [
            weight * term.offset(true, dtype)  # type: ignore[operator]
            for term, weight in zip(self.terms, self.weights, strict=True)
        ]
        return torch.stack(parts).sum(0)

    def valid(self, true: Tensor) -> Tensor:
        return torch.stack([term.valid(true) for term in self.terms]).all(0)  # type: ignore[operator]


@singledispatch
def true_labels_of(loss: Loss) -> TrueLabels:
    """True labels of a loss as a module, structured where its targets are; rankings add theirs."""
    if loss.hamming_shape is not None:
        return States(loss)
    if loss.takes_cost_vectors:
        return Costs(loss)
    if loss.true_labels.shape == ():
        return Table(loss)
    raise no_true_labels(loss)


true_labels_of.register(ZeroOne, OneClass)
true_labels_of.register(Block, InBlocks)
true_labels_of.register(Mixed, InBlocks)
true_labels_of.register(LabelCosts, PricedLabels)
true_labels_of.register(FBeta, SetsBySize)
true_labels_of.register(PartialLabels, Candidates)


@true_labels_of.register(Combination)
def _(loss: Combination) -> TrueLabels:
    listed: Callable[[Loss], TrueLabels] = true_labels_of.dispatch(Loss)
    return listed(loss) if loss._joint[1] is None else Sum(loss)


def no_true_labels(loss: Loss) -> CapabilityError:
    """What is raised for a loss whose targets have no tensor form."""
    return CapabilityError(
        loss,
        "targets on the device",
        "consistruct.torch.TaskLoss",
        "it has them for the registered losses and for any loss over listed classes",
    )


def class_count(loss: Loss, limit: int | None = None) -> int:
    """Number of true classes; refuses more than a table can hold."""
    size = loss.true_labels.size
    if size is None or size >= 2**62 or (limit is not None and size > limit):
        raise ConsistructError(
            f"a tensor of targets of {loss!r} needs at most {limit or 2**62} classes; "
            f"merge classes, or use a loss with structure such as Hamming"
        )
    return size


def one_hot(columns: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """[column = j] over a new last axis; a column outside 0..width−1 gives zeros."""
    return (columns[..., None] == torch.arange(width, device=columns.device)).to(dtype)
