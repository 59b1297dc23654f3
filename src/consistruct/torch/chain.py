"""Chains on the device: log-partition, marginals, best path, samples, for padded batches.

The distribution is p(y) ∝ exp(Σ_t unary_t(y_t) + Σ_t edges_t(y_t, y_{t+1})). Parts that the mask
leaves out are stepped over, wherever they stand, so a batch may be padded at either end.

How it is computed. On a GPU with Triton one fused kernel runs each sequence from end to end in its
registers (`fused`). On the host the recursions run over time with one small matrix product for the
whole batch (`steps`). Both give log Z and marginals at once, so that a first derivative costs
nothing more. Derivatives of the marginals, and so second derivatives of log Z, come from a parallel
scan over time (`scan`), which autograd can differentiate any number of times.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from consistruct.torch import fused, scan, steps
from consistruct.torch.constants import autocast_off, working

__all__ = [
    "chain_log_partition",
    "chain_marginals",
    "chain_sample",
    "chain_score",
    "chain_viterbi",
]


@torch.library.custom_op("consistruct::chain_posterior", mutates_args=())
def _posterior(unary: Tensor, edges: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log Z (B,), P(y_t = a) (B, T, s) and P(y_t = a, y_t+1 = b).

    Shared edges: the latter are summed over the edges of each sequence, (B, s, s).
    """
    if fused.available(unary):
        return fused.posterior(unary, edges, mask)
    return steps.posterior(unary, edges, mask)


@_posterior.register_fake
def _(unary: Tensor, edges: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    batch, _, s = unary.shape
    pairs = (batch, s, s) if edges.ndim == 2 else edges.shape
    return unary.new_empty(batch), torch.empty_like(unary), unary.new_empty(pairs)


def _remember(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    unary, edges, mask = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(unary, edges, mask, output[1], output[2])


def _derivative(ctx: Any, by_value: Any, by_states: Any, by_pairs: Any) -> tuple[Any, ...]:
    unary, edges, mask, states, pairs = ctx.saved_tensors
    shared = edges.ndim == 2
    total_unary: Any = None
    total_edges: Any = None
    if by_value is not None:  # ∂ log Z = marginals
        total_unary = by_value[:, None, None] * states
        total_edges = (
            torch.einsum("b,bij->ij", by_value, pairs)
            if shared
            else by_value[:, None, None, None] * pairs
        )
    if by_states is not None or by_pairs is not None:
        through = scan.marginal_product(unary, edges, mask, by_states, by_pairs)
        total_unary = through[0] if total_unary is None else total_unary + through[0]
        total_edges = through[1] if total_edges is None else total_edges + through[1]
    return total_unary, total_edges, None


_posterior.register_autograd(_derivative, setup_context=_remember)


def _checked(unary: Tensor, edges: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    if unary.ndim != 3:
        raise ValueError(f"unary must have shape (B, T, s), got {tuple(unary.shape)}")
    batch, T, s = unary.shape
    allowed = ((s, s), (batch, T - 1, s, s))
    if tuple(edges.shape) not in allowed:
        raise ValueError(
            f"edges must have shape {allowed[0]} (shared) or {allowed[1]} (one matrix per edge), "
            f"got {tuple(edges.shape)}"
        )
    unary = working(unary)
    if mask is None:
        mask = torch.ones((batch, T), dtype=torch.bool, device=unary.device)
    elif tuple(mask.shape) != (batch, T) or mask.dtype != torch.bool:
        raise ValueError(
            f"mask must contain Booleans of shape {(batch, T)}, got {mask.dtype} of shape "
            f"{tuple(mask.shape)}"
        )
    return unary, edges.to(unary.dtype), mask


def chain_log_partition(unary: Tensor, edges: Tensor, mask: Tensor | None = None) -> Tensor:
    """log Σ_y exp score(y) of each sequence, (B,); 0 where nothing is present.

    Parameters
    ----------
    unary : (B, T, s) tensor
        Scores of the states of each part; −inf forbids one.
    edges : (s, s) tensor, or (B, T − 1, s, s)
        ``edges[a, b]`` scores state a followed by b; or one matrix for each edge, which belongs to
        the part that it enters.
    mask : (B, T) tensor of Booleans, optional
        Parts that are present.

    Examples
    --------
    >>> import torch
    >>> chain_log_partition(torch.zeros(1, 3, 2), torch.zeros(2, 2)).exp().round()
    tensor([8.])
    """
    unary, edges, mask = _checked(unary, edges, mask)
    with autocast_off(unary):
        found: tuple[Tensor, Tensor, Tensor] = _posterior(unary, edges, mask)
    return found[0]


def chain_marginals(
    unary: Tensor, edges: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """P(y_t = a), (B, T, s), zero where absent, and P(y_t = a, y_{t+1} = b) of the edges.

    Shared edges: the latter are summed over the edges of each sequence, (B, s, s); else one by one,
    (B, T − 1, s, s). Parameters as in `chain_log_partition`; differentiable.
    """
    unary, edges, mask = _checked(unary, edges, mask)
    with autocast_off(unary):
        _, states, pairs = _posterior(unary, edges, mask)
    return states, pairs


def chain_viterbi(unary: Tensor, edges: Tensor, mask: Tensor | None = None) -> Tensor:
    """The best states of each sequence, (B, T) of int64; −1 where absent.

    Ties go to the sequence that comes first in lexicographic order. Parameters as in
    `chain_log_partition`.
    """
    unary, edges, mask = _checked(unary.detach(), edges.detach(), mask)
    with autocast_off(unary):
        return steps.best_states(unary, edges, mask)


def chain_sample(
    unary: Tensor,
    edges: Tensor,
    mask: Tensor | None = None,
    *,
    n_samples: int = 1,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Sequences drawn from the distribution, (n_samples, B, T) of int64; −1 where absent.

    Parameters as in `chain_log_partition`; `generator` is one of the device of the scores.
    """
    unary, edges, mask = _checked(unary.detach(), edges.detach(), mask)
    with autocast_off(unary):
        return steps.sampled_states(unary, edges, mask, n_samples, generator)


def chain_score(unary: Tensor, edges: Tensor, states: Tensor, mask: Tensor | None = None) -> Tensor:
    """Score of given states of each sequence, (B,); what stands at absent parts is not read."""
    unary, edges, mask = _checked(unary, edges, mask)
    return steps.score(unary, edges, mask, states)
