"""Chains step by step over time, the whole batch at once: for the host, and where no kernel serves.

Scaled linear space, as in `consistruct.structures._chain_kernels`: U_t = exp(u_t − max u_t) and
E = exp(e − max e),

    α_t = (α_{t−1} E) ∘ U_t / c_t,        β_{t−1} = E (U_t ∘ β_t) / c_t,

one small matrix product per step for shared edges. It is safe while no c_t and no β_t leaves what
the format holds; a batch where one does is done again in log space, which is exact at any score.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["best_states", "posterior", "sampled_states", "score"]


def posterior(unary: Tensor, edges: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log Z, marginals of states and of edges; see `consistruct.torch.chain`."""
    linear = _linear_posterior(unary, edges, mask)
    if linear is not None:
        return linear
    # logarithms of long sequences are large numbers: float32 would lose their last digits
    found = _log_posterior(unary.double(), edges.double(), mask)
    return found[0].to(unary.dtype), found[1].to(unary.dtype), found[2].to(unary.dtype)


def _linear_posterior(
    unary: Tensor, edges: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor] | None:
    batch, T, s = unary.shape
    shared = edges.ndim == 2
    present = mask.T[:, :, None].contiguous()  # (T, B, 1)
    top = unary.amax(2)
    shift = edges.amax() if shared else edges.amax((2, 3))  # (B, T − 1)
    if not bool(torch.isfinite(top[mask]).all()) or not bool(torch.isfinite(shift).all()):
        return None
    state = torch.where(mask[:, :, None], (unary - top[:, :, None]).exp(), 1.0)
    state = state.transpose(0, 1).contiguous()  # (T, B, s)
    step = (edges - (shift if shared else shift[:, :, None, None])).exp()
    entered = mask.cumsum(1) > 1  # an edge leads here from an earlier part
    alpha = torch.empty_like(state)
    scale = torch.ones((T, batch, 1), dtype=unary.dtype, device=unary.device)
    arrives = (mask & entered).T[:, :, None]  # (T, B, 1)
    ragged = not bool(mask.all())
    before = torch.ones((batch, s), dtype=unary.dtype, device=unary.device)
    for t in range(T):
        if t == 0:
            now = state[0]
        else:
            if shared:
                now = before @ step
            else:
                now = torch.bmm(before[:, None], step[:, t - 1])[:, 0]
            now = (torch.where(arrives[t], now, 1.0) if ragged else now) * state[t]
        total = now.sum(1, keepdim=True)
        now = now / total
        if ragged:
            total = torch.where(present[t], total, 1.0)
            now = torch.where(present[t], now, before)
        scale[t] = total
        alpha[t] = before = now
    tiny = torch.finfo(unary.dtype).tiny
    smallest = tiny**0.3
    if not bool((scale >= smallest).all()):
        return None
    shifts = shift * arrives.sum(0)[:, 0] if shared else (shift * arrives[1:, :, 0].T).sum(1)
    top = torch.where(mask, top, 0.0)
    log_partition = top.sum(1) + shifts + scale[:, :, 0].log().sum(0)
    states = torch.empty_like(state)
    messages = torch.zeros_like(state)  # U β / c of each part that an edge enters
    beta = torch.ones((batch, s), dtype=unary.dtype, device=unary.device)
    largest = torch.ones((), dtype=unary.dtype, device=unary.device)
    back = step.T.contiguous() if shared else step.transpose(2, 3)
    for t in range(T - 1, -1, -1):
        states[t] = alpha[t] * beta
        if t == 0:
            break
        message = state[t] * beta / scale[t]
        messages[t] = torch.where(arrives[t], message, 0.0) if ragged else message
        if shared:
            now = message @ back
        else:
            now = torch.bmm(message[:, None], back[:, t - 1])[:, 0]
        beta = torch.where(arrives[t], now, beta) if ragged else now
        largest = torch.maximum(largest, beta.amax())
    if not bool(largest <= 1.0 / smallest):
        return None
    if ragged:
        states = torch.where(present, states, 0.0)
    if T == 1:
        pairs = torch.zeros((batch, s, s) if shared else edges.shape).to(unary)
    elif shared:
        pairs = torch.einsum("tbi,tbj->bij", alpha[:-1], messages[1:]) * step
    else:
        pairs = torch.einsum("tbi,tbj->btij", alpha[:-1], messages[1:]) * step
    return log_partition, states.transpose(0, 1).contiguous(), pairs


def _log_posterior(unary: Tensor, edges: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    batch, T, s = unary.shape
    shared = edges.ndim == 2
    arrives = mask & (mask.cumsum(1) > 1)
    alpha = torch.zeros_like(unary)
    before = torch.zeros((batch, s), dtype=unary.dtype, device=unary.device)
    for t in range(T):
        now = unary[:, t]
        if t > 0:
            step = edges if shared else edges[:, t - 1]
            reached = torch.logsumexp(before[:, :, None] + step, 1)
            now = now + torch.where(arrives[:, t, None], reached, 0.0)
        before = torch.where(mask[:, t, None], now, before)
        alpha[:, t] = before
    anything = mask.any(1)
    log_partition = torch.where(anything, torch.logsumexp(before, 1), 0.0)
    beta = _later(unary, edges, mask)
    states = torch.where(mask[:, :, None], _shares(alpha + beta), 0.0)
    pairs = torch.zeros((batch, s, s) if shared else edges.shape, dtype=unary.dtype)
    pairs = pairs.to(unary.device)
    for t in range(1, T):
        step = edges if shared else edges[:, t - 1]
        into = (unary[:, t] + beta[:, t])[:, None, :]
        joint = _shares((alpha[:, t - 1, :, None] + step + into).flatten(1)).unflatten(1, (s, s))
        joint = torch.where(arrives[:, t, None, None], joint, 0.0)
        if shared:
            pairs += joint
        else:
            pairs[:, t - 1] = joint
    return log_partition, states, pairs


def _shares(scores: Tensor) -> Tensor:
    """Softmax over the last axis; zeros where everything is forbidden."""
    return torch.nan_to_num(torch.softmax(scores, -1), nan=0.0)


def _later(unary: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
    """log Σ exp of the scores behind each part, given its state, (B, T, s), up to a constant."""
    batch, T, s = unary.shape
    shared = edges.ndim == 2
    arrives = mask & (mask.cumsum(1) > 1)
    beta = torch.zeros_like(unary)
    behind = torch.zeros((batch, s), dtype=unary.dtype, device=unary.device)
    for t in range(T - 1, 0, -1):
        beta[:, t] = behind
        step = edges if shared else edges[:, t - 1]
        now = torch.logsumexp(step + (unary[:, t] + behind)[:, None, :], 2)
        top = now.amax(1, keepdim=True)
        now = now - torch.where(torch.isfinite(top), top, 0.0)
        behind = torch.where(arrives[:, t, None], now, behind)
    beta[:, 0] = behind
    return beta


def best_states(unary: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
    """Viterbi: values from the last part to the first, then states chosen forwards."""
    batch, T, s = unary.shape
    shared = edges.ndim == 2
    arrives = mask & (mask.cumsum(1) > 1)
    behind = torch.zeros((batch, s), dtype=unary.dtype, device=unary.device)
    choices = []
    for t in range(T - 1, 0, -1):
        step = edges if shared else edges[:, t - 1]
        best = (step + (unary[:, t] + behind)[:, None, :]).max(2)
        behind = torch.where(arrives[:, t, None], best.values, behind)
        choices.append(best.indices)  # of equal states the smallest
    choices.reverse()
    # the first part that is present; until then the choice at part 0 waits
    first = mask & (mask.cumsum(1) == 1)
    opening = torch.where(first[:, :, None], unary, 0.0).sum(1) + behind
    opening = torch.where(mask.any(1)[:, None], opening, 0.0)
    state = opening.argmax(1)
    states = [torch.where(mask[:, 0], state, -1)]
    for t in range(1, T):
        following = choices[t - 1].gather(1, state[:, None])[:, 0]
        state = torch.where(arrives[:, t], following, state)
        states.append(torch.where(mask[:, t], state, -1))
    return torch.stack(states, 1)


def sampled_states(
    unary: Tensor,
    edges: Tensor,
    mask: Tensor,
    n_samples: int,
    generator: torch.Generator | None,
) -> Tensor:
    """States drawn forwards, each given the one before, by the largest of perturbed scores."""
    batch, T, s = unary.shape
    shared = edges.ndim == 2
    arrives = mask & (mask.cumsum(1) > 1)
    beta = _later(unary, edges, mask)
    first = (mask & (mask.cumsum(1) == 1))[:, :, None]
    opening = torch.where(first, unary + beta, 0.0).sum(1)

    def drawn(scores: Tensor) -> Tensor:
        uniform = torch.rand(
            scores.shape, dtype=scores.dtype, device=scores.device, generator=generator
        )
        gumbel = -torch.log(-torch.log(uniform.clamp(min=torch.finfo(scores.dtype).tiny)))
        return (scores + gumbel).argmax(-1)

    state = drawn(opening.expand(n_samples, batch, s))
    states = [torch.where(mask[:, 0], state, -1)]
    rows = torch.arange(batch, device=unary.device)
    for t in range(1, T):
        step = edges[state] if shared else edges[:, t - 1][rows, state]
        following = drawn(step + unary[:, t] + beta[:, t])
        state = torch.where(arrives[:, t], following, state)
        states.append(torch.where(mask[:, t], state, -1))
    return torch.stack(states, 2)


def score(unary: Tensor, edges: Tensor, mask: Tensor, states: Tensor) -> Tensor:
    """Σ of the unary and edge scores of given states, (B,)."""
    batch, T, _ = unary.shape
    known = torch.where(mask, states, 0)
    own = unary.gather(2, known[:, :, None])[:, :, 0]
    total = torch.where(mask, own, 0.0).sum(1)
    if T == 1:
        return total
    # the last part present before each one
    steps = torch.arange(T, device=unary.device)
    latest = torch.where(mask, steps, -1).cummax(1).values[:, :-1].clamp(min=0)
    before = known.gather(1, latest)
    if edges.ndim == 2:
        crossed = edges[before, known[:, 1:]]
    else:
        rows = torch.arange(batch, device=unary.device)[:, None]
        crossed = edges[rows, steps[:-1], before, known[:, 1:]]
    arrives = (mask & (mask.cumsum(1) > 1))[:, 1:]
    return total + torch.where(arrives, crossed, 0.0).sum(1)
