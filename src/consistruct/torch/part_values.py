"""Surrogates that come apart into the parts of a label.

Logits      Hamming loss: quadratic, log, hinge and softmax-margin, one score per two-state part
Separate    Hamming loss: log, hinge and softmax-margin, one score per part and state
Linked      the same three with chain scores
MemberLog   F-measure: log loss of each label, present in a set of some size or absent
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, logsigmoid

from consistruct.losses.base import Loss
from consistruct.losses.fbeta import FBeta
from consistruct.structures import Structure
from consistruct.torch.chain import chain_log_partition, chain_marginals, chain_score, chain_viterbi
from consistruct.torch.true_labels import SetsBySize, one_hot
from consistruct.torch.values import Values, half_mean_square

__all__ = ["Linked", "Logits", "MemberLog", "Separate"]


class Logits(Values):
    """Hamming loss of two-state parts from one score z_t for state 1 over state 0 of each.

    θ = (−z/2, z/2) has every function of the parts up to a constant, so nothing is lost.
    """

    def __init__(self, loss: Loss, surrogate: str) -> None:
        super().__init__(loss, loss.score_space)
        (self.T, _), self.surrogate = _sizes(loss), surrogate
        self.hold("lowest", -1.0 / self.T)
        self.hold("least", 0.125)

    @property
    def width(self) -> int:
        return self.T

    def _signs(self, true: Tensor, dtype: torch.dtype) -> Tensor:
        return 2.0 * true.to(dtype) - 1.0

    def values(self, theta: Tensor, true: Tensor) -> Tensor:
        signs = self._signs(true, theta.dtype)
        if self.surrogate == "quadratic":
            return 0.125 * ((theta - signs / self.T).square().sum(1) + 1.0)
        margin = signs * theta
        if self.surrogate == "log":
            return -logsigmoid(margin).sum(1)
        if self.surrogate == "hinge":
            return (1.0 / self.T - margin).clamp(min=0.0).sum(1)
        return torch.nn.functional.softplus(1.0 / self.T - margin).sum(1)

    def mean(self, theta: Tensor, true: Tensor) -> Tensor | None:
        dtype = theta.dtype
        if self.surrogate != "quadratic":
            return None
        # sums with a factor: one kernel for what would be two
        wanted = torch.add(self.held("lowest", dtype), true.to(dtype), alpha=2.0 / self.T)
        half = half_mean_square(theta, wanted)
        return torch.add(self.held("least", dtype), half, alpha=0.25 * self.T)

    @property
    def has_link(self) -> bool:
        return self.surrogate in ("quadratic", "log")

    @property
    def probabilistic(self) -> bool:
        return self.surrogate == "log"

    def expand(self, theta: Tensor) -> Tensor:
        return torch.stack([-0.5 * theta, 0.5 * theta], 2).flatten(1)

    def expected_target(self, theta: Tensor) -> Tensor:
        if self.surrogate == "log":
            share = torch.sigmoid(theta)
            return -torch.stack([1.0 - share, share], 2).flatten(1) / self.T
        # minus the scores, with the mean over the states of each part that every true label has
        return -self.expand(theta) - 0.5 / self.T


class Separate(Values):
    """Log loss, hinge and softmax-margin of the Hamming loss with one score per part and state."""

    def __init__(self, loss: Loss, surrogate: str) -> None:
        super().__init__(loss, loss.score_space)
        (self.T, self.s), self.surrogate = _sizes(loss), surrogate

    @property
    def has_link(self) -> bool:
        return self.surrogate == "log"

    @property
    def probabilistic(self) -> bool:
        return self.surrogate == "log"

    def values(self, theta: Tensor, true: Tensor) -> Tensor:
        parts = theta.unflatten(1, (self.T, self.s))
        right = one_hot(true, self.s, theta.dtype)
        own = (parts * right).sum((1, 2))
        if self.surrogate == "log":
            return torch.logsumexp(parts, 2).sum(1) - own
        raised = parts + (1.0 - right) / self.T
        if self.surrogate == "hinge":
            return raised.max(2).values.sum(1) - own
        return torch.logsumexp(raised, 2).sum(1) - own

    def expected_target(self, theta: Tensor) -> Tensor:
        return -torch.softmax(theta.unflatten(1, (self.T, self.s)), 2).flatten(1) / self.T


class Linked(Separate):
    """The same three with chain scores: unary scores of the parts, then one matrix per edge."""

    def __init__(self, loss: Loss, space: Structure, surrogate: str) -> None:
        super().__init__(loss, surrogate)
        self.space = space

    def split(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Unary (B, T, s) and edge (B, T − 1, s, s) scores."""
        n_unary = self.T * self.s
        edges = theta[:, n_unary:].reshape(len(theta), self.T - 1, self.s, self.s)
        return theta[:, :n_unary].unflatten(1, (self.T, self.s)), edges

    def values(self, theta: Tensor, true: Tensor) -> Tensor:
        unary, edges = self.split(theta)
        own = chain_score(unary, edges, true)
        if self.surrogate != "log":
            unary = unary + (1.0 - one_hot(true, self.s, theta.dtype)) / self.T
        if self.surrogate == "hinge":
            return chain_score(unary, edges, chain_viterbi(unary, edges)) - own
        return chain_log_partition(unary, edges) - own

    def expected_target(self, theta: Tensor) -> Tensor:
        return -chain_marginals(*self.split(theta))[0].flatten(1) / self.T


class MemberLog(Values):
    """Log loss of what the F-measure needs of a set y: for each label t, (y_t, |y|).

    Every label has one outcome "absent" and one "present, in a set of s" for each size s that
    occurs; a score of its own tells the empty set. The best scores are logarithms of P(y_t = 1,
    |y| = s | x), of which the expected target consists, so decisions are consistent.
    """

    loss: FBeta
    true_labels: SetsBySize

    def __init__(self, loss: FBeta) -> None:
        super().__init__(loss, loss.score_space)
        space = loss.score_space
        self.T, self.n_blocks = loss.T, len(space.block_sizes)
        self.has_full, self.has_empty = space.has_full, space.has_empty
        self.n_outcomes = 1 + self.n_blocks + self.has_full

    @property
    def width(self) -> int:
        return self.T * self.n_outcomes + self.has_empty

    @property
    def probabilistic(self) -> bool:
        return True

    def _labels(self, theta: Tensor) -> Tensor:
        """Scores of the outcomes of each label, (B, T, outcomes)."""
        return theta[:, : self.T * self.n_outcomes].unflatten(1, (self.T, self.n_outcomes))

    def values(self, theta: Tensor, true: Tensor) -> Tensor:
        size = true.sum(1).long().clamp(0, self.T)
        block = self.true_labels.block_of(size)
        if self.has_full:
            block = torch.where(size == self.T, self.n_blocks, block)
        outcome = torch.where(true != 0, block[:, None] + 1, 0)
        scores = self._labels(theta).transpose(1, 2)
        total = cross_entropy(scores, outcome, reduction="none").sum(1)
        if self.has_empty:
            empty = (size == 0).to(theta.dtype)
            total = total + binary_cross_entropy_with_logits(theta[:, -1], empty, reduction="none")
        return total / self.T

    def expected_target(self, theta: Tensor) -> Tensor:
        share = torch.softmax(self._labels(theta), 2)
        columns = [share[:, :, 1 : 1 + self.n_blocks].transpose(1, 2).flatten(1)]
        if self.has_full:  # every label has it: their mean
            columns.append(share[:, :, -1].mean(1, keepdim=True))
        if self.has_empty:
            columns.append(self.loss.empty * torch.sigmoid(theta[:, -1:]))
        columns.append(torch.zeros_like(theta[:, :1]))
        return -torch.cat(columns, 1)


def _sizes(loss: Loss) -> tuple[int, int]:
    """Number of parts, and of states of each."""
    assert loss.hamming_shape is not None
    T, n_states = loss.hamming_shape
    assert T is not None
    return T, n_states
