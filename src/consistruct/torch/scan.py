"""Chains by a parallel scan: log T rounds of products of matrices in the (log Σ exp, +) semiring.

Every part t that is entered by an edge is the matrix M_t(a, b) = e(a, b) + u_t(b); the first part
is a matrix with equal rows u(b), an absent one the unit matrix. log Z is the log Σ exp of one row
of their product. Plain tensor operations: autograd differentiates them as often as needed.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["log_partition", "marginal_product"]

CHUNK = 2**26  # numbers of one product; larger batches are done in parts


def log_partition(unary: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
    """log Z of each sequence, (B,)."""
    batch, T, s = unary.shape
    size = max(1, CHUNK // (T * s**3))
    if batch <= size:
        return _log_partition(unary, edges, mask)
    parts = []
    for start in range(0, batch, size):
        some = slice(start, start + size)
        own = edges if edges.ndim == 2 else edges[some]
        parts.append(_log_partition(unary[some], own, mask[some]))
    return torch.cat(parts)


def _log_partition(unary: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
    batch, T, s = unary.shape
    arrives = mask & (mask.cumsum(1) > 1)
    unit = torch.full((s, s), -torch.inf, dtype=unary.dtype, device=unary.device)
    unit.fill_diagonal_(0.0)
    if edges.ndim == 2:
        into = edges.expand(batch, T, s, s)
    else:
        into = torch.cat([edges.new_zeros((batch, 1, s, s)), edges], 1)
    into = torch.where(arrives[:, :, None, None], into, 0.0)
    own = torch.where(mask[:, :, None], unary, 0.0)
    matrices = torch.where(mask[:, :, None, None], into + own[:, :, None, :], unit)
    while matrices.shape[1] > 1:
        odd = matrices[:, -1:] if matrices.shape[1] % 2 else None
        left, right = matrices[:, :-1:2], matrices[:, 1::2]
        left = left[:, : right.shape[1]]
        matrices = _log_sum_exp(left[..., :, :, None] + right[..., None, :, :])
        if odd is not None:
            matrices = torch.cat([matrices, odd], 1)
    # rows of the first part are equal: any one of them; all are the unit's if nothing is present
    whole = torch.logsumexp(matrices[:, 0, 0], 1)
    return torch.where(mask.any(1), whole, 0.0)


def _log_sum_exp(terms: Tensor) -> Tensor:
    """log Σ exp over the last axis but one, with derivative 0 (not NaN) where all is forbidden."""
    top = terms.amax(-2, keepdim=True).detach()
    top = torch.where(torch.isfinite(top), top, 0.0)
    total = (terms - top).exp().sum(-2)
    nothing = total == 0
    value = torch.where(nothing, 1.0, total).log() + top.squeeze(-2)
    return torch.where(nothing, -torch.inf, value)


def marginal_product(
    unary: Tensor,
    edges: Tensor,
    mask: Tensor,
    by_states: Tensor | None,
    by_pairs: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Derivative of ⟨by_states, states⟩ + ⟨by_pairs, pairs⟩ in (unary, edges).

    The marginals are the gradient of log Z, so this is a Hessian-vector product; it can be
    differentiated again where autograd is recording.
    """
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # views, so that derivatives go on to whatever the scores were computed from
        unary = unary.view_as(unary) if again and unary.requires_grad else unary.detach()
        edges = edges.view_as(edges) if again and edges.requires_grad else edges.detach()
        unary = unary if unary.requires_grad else unary.requires_grad_()
        edges = edges if edges.requires_grad else edges.requires_grad_()
        batch = len(unary)
        shared = edges.ndim == 2
        # one copy of shared edges per sequence, for the marginals of each
        own = edges.expand(batch, unary.shape[1] - 1, *edges.shape) if shared else edges
        value = log_partition(unary, own, mask).sum()
        states, pairs = torch.autograd.grad(value, (unary, own), create_graph=True)
        total = unary.new_zeros(())
        if by_states is not None:
            total = total + (by_states * states).sum()
        if by_pairs is not None:
            summed = pairs.sum(1) if shared else pairs
            total = total + (by_pairs * summed).sum()
        through = torch.autograd.grad(
            total, (unary, edges), create_graph=again, materialize_grads=True
        )
    return through[0], through[1]
