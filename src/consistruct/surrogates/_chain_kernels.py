"""Compiled surrogates on one sequence: value, and gradient in the unary and edge scores.

Each is written for true states y and the cost κ of a wrong part; f(c) is the score of the states c
and m(c) = κ · #{t : c_t ≠ y_t}.

    log             log Σ_c exp f(c) − f(y)
    hinge           max_c [f(c) + m(c)] − f(y)
    softmax-margin  log Σ_c exp[f(c) + m(c)] − f(y)
    quadratic       (s/2) Var_c[f(c) + m(c)], c uniform
"""

from __future__ import annotations

import numpy as np

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures._chain_kernels import (
    Workspace,
    best_sequence,
    exponentiate_edges,
    sequence_posterior,
    sequence_score,
    workspace,
)

__all__ = [
    "HINGE",
    "LOG",
    "QUADRATIC",
    "SOFTMAX_MARGIN",
    "DecodingSpace",
    "decoding_space",
    "gradients_packed",
    "sequence_gradient",
]

LOG, HINGE, SOFTMAX_MARGIN, QUADRATIC = 0, 1, 2, 3

# unary scores with costs, the values of Viterbi, its answer
DecodingSpace = tuple[FloatArray, FloatArray, IntArray]


@compiled
def decoding_space(longest: int, s: int) -> DecodingSpace:
    """Return memory for sequences of at most `longest` parts."""
    return (
        np.empty((longest, s)),
        np.empty((longest, s)),
        np.empty(longest, dtype=np.int64),
    )


@compiled
def _quadratic(
    unary: FloatArray,  # (T, s), costs included
    edges: FloatArray,  # (1 or T, s, s)
    shared: bool,
    weight: float,
    gradient: FloatArray,  # (T, s) out
    pairwise: FloatArray,  # (1 or T, s, s) out: added
) -> float:
    """Return (s/2)·Var_c f by orthogonal terms, and add its gradients.

    f(c) = const + Σ_t g_t(c_t) + Σ_t h_t(c_t, c_{t+1}) with g and h centered in every argument (an
    analysis of variance). Under uniform c all terms are uncorrelated, so that
    Var_c f = Σ_t mean g_t² + Σ_t mean h_t², O(T·s²) in place of s^T sequences.
    """
    T, s = unary.shape
    for t in range(T):  # g_t, kept in `gradient`
        mean = 0.0
        for a in range(s):
            mean += unary[t, a]
        mean /= s
        for a in range(s):
            gradient[t, a] = unary[t, a] - mean
    value = 0.0
    rows = np.empty(s)
    columns = np.empty(s)
    for t in range(T - 1):
        edge = 0 if shared else t
        if t == 0 or not shared:
            rows[:] = 0.0
            columns[:] = 0.0
            mean = 0.0
            # edges that all parts share have the same row and column means: computed at the first
            # edge only
            for a in range(s):
                for b in range(s):
                    rows[a] += edges[edge, a, b] / s
                    columns[b] += edges[edge, a, b] / s
                mean += rows[a] / s
        # what an edge says of one end alone belongs to that part: its row mean to t, its column
        # mean to t + 1, and only the rest is an interaction
        for a in range(s):
            gradient[t, a] += rows[a] - mean
            gradient[t + 1, a] += columns[a] - mean
        for a in range(s):  # h_t; (s/2) · mean h² = Σ h² / 2s
            for b in range(s):
                interaction = edges[edge, a, b] - rows[a] - columns[b] + mean
                value += interaction * interaction / (2 * s)
                pairwise[edge, a, b] += weight * interaction / s
    for t in range(T):
        for a in range(s):
            value += gradient[t, a] * gradient[t, a] / 2
        if t < T - 1:  # the gradient in e_t(a, b) is (g_t(a) + g_{t+1}(b) + h_t(a, b)) / s
            edge = 0 if shared else t
            for a in range(s):
                for b in range(s):
                    pairwise[edge, a, b] += weight * (gradient[t, a] + gradient[t + 1, b]) / s
    for t in range(T):
        for a in range(s):
            gradient[t, a] *= weight
    return value


@compiled
def sequence_gradient(
    kind: int,
    cost: float,
    weight: float,
    unary: FloatArray,  # (T, s), T ≥ 1
    edges: FloatArray,  # (1 or T, s, s)
    exp_edges: FloatArray,  # (1 or T, s, s), from `exponentiate_edges`; log and softmax-margin
    exp_edges_t: FloatArray,  # (1 or T, s, s)
    shift: FloatArray,  # (1 or T,)
    shared: bool,
    states: IntArray,  # (T,) the true label
    work: Workspace,
    space: DecodingSpace,
    gradient: FloatArray,  # (T, s) out: weight · gradient in the unary scores
    outer: FloatArray,  # (1, s, s) out, see `sequence_posterior`
    pairwise: FloatArray,  # (1 or T, s, s) out: weight · gradient in the edges, added
) -> float:
    """Return the value of one sequence, not weighted; infinite if scores forbid all or y."""
    T, s = unary.shape
    augmented, values, chosen = space
    scores = unary
    if kind != LOG:
        scores = augmented[:T]
        for t in range(T):
            for a in range(s):
                scores[t, a] = unary[t, a] + cost
            scores[t, states[t]] = unary[t, states[t]]

    if kind == QUADRATIC:
        return _quadratic(scores, edges, shared, weight, gradient, pairwise)

    # max and log-sum-exp of f + m: costs are added to the unary scores of all states but the true
    # one, after which Viterbi and forward–backward need no change
    if kind == HINGE:
        top = best_sequence(scores, edges, shared, values, chosen[:T])
        if not top > -np.inf:
            return top
        for t in range(T):
            for a in range(s):
                gradient[t, a] = 0.0
            gradient[t, chosen[t]] = weight
            if t > 0:
                pairwise[0 if shared else t - 1, chosen[t - 1], chosen[t]] += weight
    else:
        top = sequence_posterior(
            scores,
            edges,
            exp_edges,
            exp_edges_t,
            shift,
            shared,
            weight,
            work,
            gradient,
            outer,
            pairwise,
        )
        if not top > -np.inf:
            return top
        for t in range(T):
            for a in range(s):
                gradient[t, a] *= weight
    # both have the gradient E[features of c] − features of y, under the best sequence or the
    # marginals
    for t in range(T):
        gradient[t, states[t]] -= weight
        if t > 0:
            pairwise[0 if shared else t - 1, states[t - 1], states[t]] -= weight
    return top - sequence_score(unary, edges, shared, states)


@compiled
def gradients_packed(
    kind: int,
    cost: float,
    unary: FloatArray,  # (N, s)
    edges: FloatArray,  # (1 or N, s, s)
    shared: bool,
    offsets: IntArray,  # (n + 1,)
    states: IntArray,  # (N,)
    weights: FloatArray,  # (n,)
    values: FloatArray,  # (n,) out
    gradient: FloatArray,  # (N, s) out
    pairwise: FloatArray,  # (1 or N, s, s) out, zero on entry
) -> None:
    """Compute values and weighted gradients of packed sequences."""
    s = unary.shape[1]
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    # one workspace for the longest sequence: allocating per sequence costs more than short
    # sequences do
    work = workspace(longest, s)
    space = decoding_space(longest, s)
    outer = np.zeros((1, s, s))
    size = 1 if shared else longest
    exp_edges = np.empty((size, s, s))
    exp_edges_t = np.empty((size, s, s))
    shift = np.empty(size)
    exponentials = kind in (LOG, SOFTMAX_MARGIN)
    if shared and exponentials:
        exponentiate_edges(edges, exp_edges, exp_edges_t, shift)
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        if stop == start:
            values[row] = 0.0
            continue
        if exponentials and not shared:
            exponentiate_edges(edges[start : stop - 1], exp_edges, exp_edges_t, shift)
        values[row] = sequence_gradient(
            kind,
            cost,
            weights[row],
            unary[start:stop],
            edges if shared else edges[start:stop],
            exp_edges,
            exp_edges_t,
            shift,
            shared,
            states[start:stop],
            work,
            space,
            gradient[start:stop],
            outer,
            pairwise if shared else pairwise[start:stop],
        )
    # marginals of shared edges are outer(a, b)·exp(edge): the sum over all parts of all sequences
    # is collected without the factor, which is multiplied once
    if shared and exponentials:
        for a in range(s):
            for b in range(s):
                pairwise[0, a, b] += outer[0, a, b] * exp_edges[0, a, b]
