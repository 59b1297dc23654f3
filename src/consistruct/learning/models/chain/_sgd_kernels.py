"""Compiled stochastic gradient steps over sequences: sparse features whole, dense ones around BLAS.

θ of a token is Wᵀx plus a bias, transitions, start and end scores are shared by all sequences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures._chain_kernels import exponentiate_edges, workspace
from consistruct.surrogates._chain_kernels import (
    LOG,
    SOFTMAX_MARGIN,
    decoding_space,
    sequence_gradient,
)

__all__ = ["gather_batch", "sparse_steps"]


@compiled
def gather_batch(
    features: NDArray[Any],  # (N, d)
    offsets: IntArray,  # (n + 1,)
    states: IntArray,  # (N,)
    weights: FloatArray,  # (n,)
    rows: IntArray,  # (b,)
    out_features: NDArray[Any],  # (≥ tokens of the batch, d) out
    out_offsets: IntArray,  # (b + 1,) out
    out_states: IntArray,  # (≥ tokens,) out
    out_weights: FloatArray,  # (b,) out
) -> int:
    """Copy the sequences `rows` into buffers; their number of tokens."""
    position = 0
    out_offsets[0] = 0
    for i in range(len(rows)):
        row = rows[i]
        for t in range(offsets[row], offsets[row + 1]):
            for j in range(features.shape[1]):
                out_features[position, j] = features[t, j]
            out_states[position] = states[t]
            position += 1
        out_offsets[i + 1] = position
        out_weights[i] = weights[row]
    return position


@compiled
def sparse_steps(
    kind: int,
    cost: float,
    step: float,
    transition_step: float,
    batch_size: int,
    order: IntArray,  # (m,) sequences to visit
    offsets: IntArray,  # (n + 1,)
    indptr: NDArray[Any],  # (N + 1,)
    indices: NDArray[Any],  # (nnz,)
    values: NDArray[np.float32],  # (nnz,), or (0,) where all are one
    states: IntArray,  # (N,)
    weights: FloatArray,  # (n,)
    W: NDArray[np.float32],  # (d, s) in and out
    bias: FloatArray,  # (s,) in and out
    edges: FloatArray,  # (1, s, s) in and out
    start: FloatArray,  # (s,) in and out
    end: FloatArray,  # (s,) in and out
    boundaries: bool,
) -> float:
    """One pass over `order`; Σ weight · value, each before its own step."""
    s = W.shape[1]
    longest = 0
    largest = 0
    for first in range(0, len(order), batch_size):
        tokens = 0
        for i in range(first, min(first + batch_size, len(order))):
            length = offsets[order[i] + 1] - offsets[order[i]]
            longest = max(longest, length)
            tokens += length
        largest = max(largest, tokens)
    work = workspace(longest, s)
    space = decoding_space(longest, s)
    unary = np.empty((longest, s))
    gradient = np.empty((largest, s))
    change = np.empty(s, dtype=np.float32)
    outer = np.empty((1, s, s))
    pairwise = np.empty((1, s, s))
    exp_edges = np.empty((1, s, s))
    exp_edges_t = np.empty((1, s, s))
    shift = np.empty(1)
    unit = len(values) == 0
    exponentials = kind in (LOG, SOFTMAX_MARGIN)
    total = 0.0
    for first in range(0, len(order), batch_size):
        stop = min(first + batch_size, len(order))
        if exponentials:
            exponentiate_edges(edges, exp_edges, exp_edges_t, shift)
        outer[:] = 0.0
        pairwise[:] = 0.0
        position = 0
        for i in range(first, stop):
            row = order[i]
            begin, length = offsets[row], offsets[row + 1] - offsets[row]
            for t in range(length):
                for a in range(s):
                    unary[t, a] = bias[a]
                for k in range(indptr[begin + t], indptr[begin + t + 1]):
                    feature = indices[k]
                    if unit:
                        for a in range(s):
                            unary[t, a] += W[feature, a]
                    else:
                        for a in range(s):
                            unary[t, a] += values[k] * W[feature, a]
            if boundaries:
                for a in range(s):
                    unary[0, a] += start[a]
                    unary[length - 1, a] += end[a]
            total += weights[row] * sequence_gradient(
                kind,
                cost,
                weights[row],
                unary[:length],
                edges,
                exp_edges,
                exp_edges_t,
                shift,
                True,
                states[begin : begin + length],
                work,
                space,
                gradient[position : position + length],
                outer,
                pairwise,
            )
            position += length
        position = 0
        for i in range(first, stop):
            row = order[i]
            begin, length = offsets[row], offsets[row + 1] - offsets[row]
            for t in range(length):
                for a in range(s):
                    change[a] = step * gradient[position + t, a]
                    bias[a] -= transition_step * gradient[position + t, a]
                for k in range(indptr[begin + t], indptr[begin + t + 1]):
                    feature = indices[k]
                    if unit:
                        for a in range(s):
                            W[feature, a] -= change[a]
                    else:
                        for a in range(s):
                            W[feature, a] -= values[k] * change[a]
            if boundaries:
                for a in range(s):
                    start[a] -= transition_step * gradient[position, a]
                    end[a] -= transition_step * gradient[position + length - 1, a]
            position += length
        for a in range(s):
            for b in range(s):
                if exponentials:
                    pairwise[0, a, b] += outer[0, a, b] * exp_edges[0, a, b]
                edges[0, a, b] -= transition_step * pairwise[0, a, b]
    return total
