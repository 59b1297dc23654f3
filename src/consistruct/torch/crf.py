"""Chains as a layer: transition scores that are learned, a criterion, and inference."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from consistruct._validation import check_count, check_number
from consistruct.exceptions import CapabilityError
from consistruct.torch.chain import (
    chain_log_partition,
    chain_marginals,
    chain_sample,
    chain_score,
    chain_viterbi,
)
from consistruct.torch.constants import autocast_off, can_check, ensure, working
from consistruct.torch.criteria import REDUCTIONS
from consistruct.torch.true_labels import one_hot

__all__ = ["ChainCRF"]

SURROGATES = ("log", "hinge", "softmax-margin", "quadratic")


class ChainCRF(nn.Module):
    """A linear chain over the scores of a network: ``crf(unary, tags, mask)`` is the loss.

    Scores of a sequence are Σ_t unary_t(y_t) + Σ_t edges(y_t, y_{t+1}) + start(y_1) + end(y_T). The
    surrogates are those of `consistruct.surrogates.chains`, for the Hamming loss counted in wrong
    parts.

    Parameters
    ----------
    n_states : int
        Tags.
    surrogate : {"log", "hinge", "softmax-margin", "quadratic"}
        "log" is the conditional random field; decode it by marginals for the Hamming loss.
    part_cost : float
        Cost κ of one wrong part, for all but "log".
    reduction : {"mean", "sum", "none"}
        Over sequences; "mean" is weighted by `weight`.

    Attributes
    ----------
    edges, start, end : parameters
        (s, s), (s,) and (s,), zero at first.

    Examples
    --------
    >>> import torch
    >>> crf = ChainCRF(3)
    >>> unary, tags = torch.zeros(2, 4, 3), torch.tensor([[0, 1, 2, 0], [1, 1, 0, 0]])
    >>> mask = torch.tensor([[True] * 4, [True, True, False, False]])
    >>> crf(unary, tags, mask)      # 81 and 9 sequences, equally probable
    tensor(3.2958, grad_fn=<MeanBackward0>)
    >>> crf.decode(unary, mask).tolist()
    [[0, 0, 0, 0], [0, 0, -1, -1]]
    """

    def __init__(
        self,
        n_states: int,
        surrogate: str = "log",
        *,
        part_cost: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        name = surrogate.replace("_", "-") if isinstance(surrogate, str) else surrogate
        if name not in SURROGATES:
            raise ValueError(f"surrogate must be one of {', '.join(SURROGATES)}, got {surrogate!r}")
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"reduction must be one of {', '.join(map(repr, REDUCTIONS))}, got {reduction!r}"
            )
        self.n_states = check_count(n_states, "n_states")
        self.surrogate, self.reduction = name, reduction
        self.part_cost = check_number(part_cost, "part_cost", low=0.0, open_low=True)
        self.edges = nn.Parameter(torch.zeros(n_states, n_states))
        self.start = nn.Parameter(torch.zeros(n_states))
        self.end = nn.Parameter(torch.zeros(n_states))

    def extra_repr(self) -> str:
        """What a network prints of it."""
        return f"{self.n_states}, {self.surrogate!r}, reduction={self.reduction!r}"

    def scores(self, unary: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Unary scores with those of the ends, edge scores, mask; computed in float32 at least."""
        if unary.ndim != 3 or unary.shape[2] != self.n_states:
            raise ValueError(
                f"unary must have shape (B, T, {self.n_states}), got {tuple(unary.shape)}"
            )
        unary = working(unary)
        if mask is None:
            mask = torch.ones(unary.shape[:2], dtype=torch.bool, device=unary.device)
        elif mask.dtype != torch.bool or mask.shape != unary.shape[:2]:
            raise ValueError(
                f"mask must contain Booleans of shape {tuple(unary.shape[:2])}, got {mask.dtype} "
                f"of shape {tuple(mask.shape)}"
            )
        place = mask.cumsum(1)
        first = (mask & (place == 1))[:, :, None]
        last = (mask & (place == place[:, -1:]))[:, :, None]
        unary = torch.where(mask[:, :, None], unary, 0.0)
        unary = unary + torch.where(first, self.start.to(unary.dtype), 0.0)
        unary = unary + torch.where(last, self.end.to(unary.dtype), 0.0)
        return unary, self.edges.to(unary.dtype), mask

    def forward(
        self,
        input: Tensor,  # noqa: A002 - the name that criteria have
        target: Tensor,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """The surrogate of unary scores (B, T, s) at tags (B, T); what is masked is not read."""
        with autocast_off(input):
            unary, edges, mask = self.scores(input, mask)
            if target.shape != mask.shape:
                raise ValueError(
                    f"target must have shape {tuple(mask.shape)}, got {tuple(target.shape)}"
                )
            if can_check(target):
                fine = (target >= 0) & (target < self.n_states) | ~mask
                allowed = f"tags 0..{self.n_states - 1}"
                ensure(fine.all(), f"target must contain {allowed} where the mask is set")
            tags = torch.where(mask, target, 0)
            values = self._values(unary, edges, tags, mask)
            if weight is not None:
                values = values * weight.to(values.dtype)
            if self.reduction == "none":
                return values
            if self.reduction == "sum":
                return values.sum()
            if weight is None:
                return values.mean()
            least = torch.finfo(values.dtype).tiny
            return values.sum() / weight.to(values.dtype).sum().clamp(min=least)

    def _values(self, unary: Tensor, edges: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        if self.surrogate == "quadratic":
            return self._spread(unary, edges, tags, mask)
        own = chain_score(unary, edges, tags, mask)
        if self.surrogate == "log":
            return chain_log_partition(unary, edges, mask) - own
        wrong = (1.0 - one_hot(tags, self.n_states, unary.dtype)) * mask[:, :, None]
        raised = unary + self.part_cost * wrong
        if self.surrogate == "softmax-margin":
            return chain_log_partition(raised, edges, mask) - own
        worst = chain_viterbi(raised, edges, mask)
        return chain_score(raised, edges, worst, mask) - own

    def _spread(self, unary: Tensor, edges: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """(s/2)·Var_c[f(c) + κ·#wrong(c)] over uniform c: main effects of parts, and of edges."""
        s = self.n_states
        right = one_hot(tags, s, unary.dtype)
        raised = unary + self.part_cost * (1.0 - right)
        main = raised - raised.mean(2, keepdim=True)
        arrives = (mask & (mask.cumsum(1) > 1))[:, :, None].to(unary.dtype)
        # an edge leaves each part that another one follows
        place = mask.cumsum(1)
        leaves = (mask & (place < place[:, -1:]))[:, :, None].to(unary.dtype)
        middle = edges.mean()
        main = main + leaves * (edges.mean(1) - middle) + arrives * (edges.mean(0) - middle)
        main = main * mask[:, :, None]
        pair = edges - edges.mean(1, keepdim=True) - edges.mean(0, keepdim=True) + middle
        n_edges = arrives.sum((1, 2))
        spread = main.square().sum((1, 2)) / s + n_edges * pair.square().sum() / s**2
        return 0.5 * s * spread

    # --- inference ---

    def log_partition(self, unary: Tensor, mask: Tensor | None = None) -> Tensor:
        """log Σ_y exp score(y), (B,)."""
        return chain_log_partition(*self.scores(unary, mask))

    def marginals(self, unary: Tensor, mask: Tensor | None = None) -> Tensor:
        """P(y_t = a), (B, T, s)."""
        return chain_marginals(*self.scores(unary, mask))[0]

    def decode(self, unary: Tensor, mask: Tensor | None = None, how: str = "viterbi") -> Tensor:
        """States, (B, T); −1 where the mask is not set.

        `how`: "viterbi" is the best sequence, "marginals" the most probable state of each part,
        which is best for the Hamming loss under the log loss.
        """
        unary, edges, mask = self.scores(unary.detach(), mask)
        if how == "viterbi":
            return chain_viterbi(unary, edges, mask)
        if how != "marginals":
            raise ValueError(f"how must be 'viterbi' or 'marginals', got {how!r}")
        if self.surrogate != "log":
            raise CapabilityError(
                self, "marginals", "decoding by them", "only the log loss has them; use 'viterbi'"
            )
        states = chain_marginals(unary, edges, mask)[0].argmax(2)
        return torch.where(mask, states, -1)

    def sample(
        self,
        unary: Tensor,
        mask: Tensor | None = None,
        *,
        n_samples: int = 1,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Sequences drawn from the distribution, (n_samples, B, T)."""
        found = self.scores(unary.detach(), mask)
        return chain_sample(*found, n_samples=n_samples, generator=generator)
