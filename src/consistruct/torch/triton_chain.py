"""Forward-backward of chains in Triton: one program per sequence, messages in registers.

Log space throughout, so that scores of ±1e4 and −inf are exact; messages are shifted to have
maximum 0 at every step, so that float32 loses nothing in long sequences (the shifts add up in
float64), and marginals are normalized where they stand.
"""

from __future__ import annotations

try:
    import triton
    import triton.language as tl

    kernel = triton.jit
except ImportError:  # no GPU to run them on: nothing below is called

    def kernel(function):
        """The function itself."""
        return function


__all__ = ["backwards", "forwards"]


@kernel
def _finite(value):
    """The value, or 0 in place of −inf."""
    return tl.where(value > float("-inf"), value, 0.0)


@kernel
def forwards(
    unary,  # (B, T, s)
    edges,  # (s, s) or (B, T − 1, s, s)
    present,  # (B, T) of int8
    first,  # (B,) first part that is present
    alpha,  # (B, T, s) out: messages, each less its maximum
    log_partition,  # (B,) out
    T,
    S,
    SHARED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Messages from the first part to each one, and log Z."""
    row = tl.program_id(0).to(tl.int64)
    a = tl.arange(0, BLOCK)
    real = a < S
    square = real[:, None] & real[None, :]
    place = a[:, None] * S + a[None, :]
    start = tl.load(first + row)
    if SHARED:
        step = tl.load(edges + place, mask=square, other=float("-inf"))
    message = tl.zeros((BLOCK,), dtype=unary.dtype.element_ty)
    total = tl.zeros((), dtype=tl.float64)
    ahead = tl.load(unary + row * T * S + a, mask=real, other=float("-inf"))
    for t in range(T):
        own = ahead
        here = row * T + t
        ahead = tl.load(unary + (here + 1) * S + a, mask=real & (t + 1 < T), other=float("-inf"))
        kept = tl.load(present + here) != 0
        if not SHARED:
            step = tl.load(
                edges + (row * (T - 1) + t - 1) * S * S + place,
                mask=square & (t > 0),
                other=float("-inf"),
            )
        terms = message[:, None] + step
        top = _finite(tl.max(terms, axis=0))
        reached = tl.log(tl.sum(tl.exp(terms - top[None, :]), axis=0)) + top
        now = own + tl.where(t > start, reached, 0.0)
        shift = tl.where(kept, _finite(tl.max(now, axis=0)), 0.0)
        message = tl.where(kept, now - shift, message)
        total += shift.to(tl.float64)
        tl.store(alpha + here * S + a, message, mask=real)
    message = tl.where(real, message, float("-inf"))
    top = _finite(tl.max(message, axis=0))
    value = tl.log(tl.sum(tl.exp(message - top), axis=0)) + top
    value = tl.where(start < T, value.to(tl.float64) + total, 0.0)
    tl.store(log_partition + row, value.to(unary.dtype.element_ty))


@kernel
def backwards(
    unary,  # (B, T, s)
    edges,  # (s, s) or (B, T − 1, s, s), each transposed: [b, a], so that sums stay in a thread
    present,  # (B, T) of int8
    first,  # (B,)
    alpha,  # (B, T, s) from `forwards`
    states,  # (B, T, s) out: P(y_t = a)
    pairs,  # (B, s, s) out, transposed: summed over the edges; or (B, T − 1, s, s)
    T,
    S,
    SHARED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Messages from the last part to each one, and with them the marginals."""
    row = tl.program_id(0).to(tl.int64)
    a = tl.arange(0, BLOCK)
    real = a < S
    square = real[:, None] & real[None, :]
    place = a[:, None] * S + a[None, :]
    start = tl.load(first + row)
    if SHARED:
        step = tl.load(edges + place, mask=square, other=float("-inf"))
        summed = tl.zeros((BLOCK, BLOCK), dtype=unary.dtype.element_ty)
    behind = tl.zeros((BLOCK,), dtype=unary.dtype.element_ty)
    before = tl.load(alpha + (row * T + T - 1) * S + a, mask=real, other=float("-inf"))
    for i in range(T):
        t = T - 1 - i
        here = row * T + t
        forward = before
        before = tl.load(alpha + (here - 1) * S + a, mask=real & (t > 0), other=float("-inf"))
        own = tl.load(unary + here * S + a, mask=real, other=float("-inf"))
        kept = tl.load(present + here) != 0
        both = forward + behind
        weight = tl.exp(both - _finite(tl.max(both, axis=0)))
        mass = tl.sum(weight, axis=0)
        weight = weight / tl.where(mass > 0, mass, 1.0)
        tl.store(states + here * S + a, tl.where(kept, weight, 0.0), mask=real)
        arrives = kept & (t > start)
        if not SHARED:
            step = tl.load(
                edges + (row * (T - 1) + t - 1) * S * S + place,
                mask=square & (t > 0),
                other=float("-inf"),
            )
        terms = step + (own + behind)[:, None]
        top = _finite(tl.max(terms, axis=0))
        grown = tl.exp(terms - top[None, :])
        reached = tl.sum(grown, axis=0)
        now = tl.log(reached) + top
        # P(y_{t−1} = a, y_t = b) ∝ exp(α_{t−1}(a) + e(a, b) + u_t(b) + β_t(b))
        level = before + top
        level = tl.exp(level - _finite(tl.max(level, axis=0)))
        mass = tl.sum(level * reached, axis=0)
        level = level * tl.where(arrives & (mass > 0), 1.0 / tl.where(mass > 0, mass, 1.0), 0.0)
        joint = grown * level[None, :]
        if SHARED:
            summed += joint
        else:
            tl.store(pairs + (row * (T - 1) + t - 1) * S * S + place, joint, mask=square & (t > 0))
        now = now - _finite(tl.max(now, axis=0))
        behind = tl.where(arrives, now, behind)
    if SHARED:
        tl.store(pairs + row * S * S + place, summed, mask=square)
