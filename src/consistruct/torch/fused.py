"""Whether the fused kernel serves, and the call of it."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

__all__ = ["LARGEST", "available", "posterior"]

LARGEST = 128  # states: the edge scores of a sequence stay in registers


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def available(unary: Tensor) -> bool:
    """Whether these scores are on a GPU with Triton and a sequence fits one block."""
    return unary.device.type == "cuda" and unary.shape[2] <= LARGEST and _has_triton()


def posterior(unary: Tensor, edges: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log Z, marginals of states and of edges; see `consistruct.torch.chain`."""
    from consistruct.torch import triton_chain

    batch, T, s = unary.shape
    shared = edges.ndim == 2
    unary, edges, mask = unary.contiguous(), edges.contiguous(), mask.contiguous()
    alpha = torch.empty_like(unary)
    log_partition = unary.new_empty(batch)
    states = torch.empty_like(unary)
    pairs = unary.new_zeros((batch, s, s) if shared else edges.shape)
    if batch == 0:
        return log_partition, states, pairs
    block = max(16, 1 << (s - 1).bit_length())
    warps = {16: 1, 32: 1, 64: 4, 128: 8}[block]
    first = torch.where(mask.any(1), mask.to(torch.int32).argmax(1), T).to(torch.int32)
    present = mask.to(torch.int8)
    triton_chain.forwards[(batch,)](
        unary, edges, present, first, alpha, log_partition, T, s, shared, block, num_warps=warps
    )
    turned = edges.mT.contiguous()
    triton_chain.backwards[(batch,)](
        unary, turned, present, first, alpha, states, pairs, T, s, shared, block, num_warps=warps
    )
    return log_partition, states, pairs.mT.contiguous()
