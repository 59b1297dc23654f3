"""Compiled forward-backward on one sequence: scaled linear space, with log space behind it.

Symbols: a sequence has T parts with s states, unary scores u_t(a), edge scores e_t(a, b) of the
edge that leaves part t. With U_t = exp(u_t − max u_t) and E_t = exp(e_t − max e_t) the recursions

    α_t(b) = U_t(b) Σ_a α_{t−1}(a) E_{t−1}(a, b) / c_t        c_t makes Σ_b α_t(b) = 1
    β_{t−1}(a) = Σ_b E_{t−1}(a, b) U_t(b) β_t(b) / c_t         so that Σ_a α_t(a) β_t(a) = 1

cost one multiplication and addition per pair of states and no exponential.

When is that safe? α, U, E ≤ 1, so an underflow loses at most 2⁻¹⁰²² per term. Lost in α_t it would
have contributed at most 2⁻¹⁰²² · s · max β_t to a total of one; lost in E or U it costs β_{t−1} at
most 2⁻¹⁰²² · s · max β_t / c_t. While every c_t ≥ 1e-100 and every β_t ≤ 1e100 both are below
s · 1e-107: nothing is lost that float64 could show. Otherwise (scores of ±1e4, chains of forbidden
transitions) the sequence is done again in log space, which is exact at any score and slower.
"""

from __future__ import annotations

import numpy as np

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "Workspace",
    "exponentiate_edges",
    "posteriors_packed",
    "sequence_posterior",
    "sequence_score",
    "workspace",
]

# α, U, c and one vector
Workspace = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

SMALLEST_SCALE = 1e-100
LARGEST_MESSAGE = 1e100


@compiled
def exponentiate_edges(
    edges: FloatArray,  # (m, s, s)
    exp_edges: FloatArray,  # (m, s, s) out
    exp_edges_t: FloatArray,  # (m, s, s) out: each matrix transposed, so that both passes stream
    shift: FloatArray,  # (m,) out: the largest finite entry of each matrix, 0 if there is none
) -> None:
    m, s, _ = edges.shape
    for t in range(m):
        largest = -np.inf
        for a in range(s):
            for b in range(s):
                largest = max(largest, edges[t, a, b])
        if not largest > -np.inf:
            largest = 0.0
        shift[t] = largest
        for a in range(s):
            for b in range(s):
                value = np.exp(edges[t, a, b] - largest)
                exp_edges[t, a, b] = value
                exp_edges_t[t, b, a] = value


@compiled
def _scaled_posterior(
    unary: FloatArray,  # (T, s)
    exp_edges: FloatArray,  # (1 or T, s, s)
    exp_edges_t: FloatArray,  # (1 or T, s, s)
    shift: FloatArray,  # (1 or T,)
    shared: bool,
    weight: float,
    alpha: FloatArray,  # (≥ T, s) work space
    message: FloatArray,  # (≥ T, s) work space: U, then U β / c
    scale: FloatArray,  # (≥ T,) work space: c
    beta: FloatArray,  # (s,) work space
    marginals: FloatArray,  # (T, s) out
    pairwise: FloatArray,  # (1 or T, s, s) out, see `sequence_posterior`
) -> float:
    """log Z, or NaN where this arithmetic is not safe (`pairwise` is untouched then)."""
    T, s = unary.shape
    log_partition = 0.0
    for t in range(T):
        largest = unary[t, 0]
        for a in range(1, s):
            largest = max(largest, unary[t, a])
        if not largest > -np.inf:
            return np.nan
        for a in range(s):
            message[t, a] = np.exp(unary[t, a] - largest)
        log_partition += largest
        if t == 0:
            for a in range(s):
                alpha[t, a] = message[t, a]
        else:
            edge = 0 if shared else t - 1
            log_partition += shift[edge]
            for b in range(s):
                alpha[t, b] = 0.0
            for a in range(s):
                before = alpha[t - 1, a]
                for b in range(s):
                    alpha[t, b] += before * exp_edges[edge, a, b]
            for b in range(s):
                alpha[t, b] *= message[t, b]
        total = 0.0
        for a in range(s):
            total += alpha[t, a]
        if not total >= SMALLEST_SCALE:
            return np.nan
        scale[t] = total
        log_partition += np.log(total)
        for a in range(s):
            alpha[t, a] /= total

    for a in range(s):
        beta[a] = 1.0
    for t in range(T - 1, -1, -1):
        largest = 0.0
        for a in range(s):
            largest = max(largest, beta[a])
            marginals[t, a] = alpha[t, a] * beta[a]
            message[t, a] *= beta[a] / scale[t]
            beta[a] = 0.0
        if not largest <= LARGEST_MESSAGE:
            return np.nan
        if t > 0:
            edge = 0 if shared else t - 1
            for b in range(s):
                factor = message[t, b]
                for a in range(s):
                    beta[a] += exp_edges_t[edge, b, a] * factor

    for t in range(T - 1):
        for a in range(s):
            before = weight * alpha[t, a]
            if shared:
                for b in range(s):
                    pairwise[0, a, b] += before * message[t + 1, b]
            else:
                for b in range(s):
                    pairwise[t, a, b] = before * exp_edges[t, a, b] * message[t + 1, b]
    return log_partition


@compiled
def _log_sum_exp(values: FloatArray) -> float:
    largest = -np.inf
    for a in range(len(values)):
        largest = max(largest, values[a])
    if not largest > -np.inf:
        return largest
    total = 0.0
    for a in range(len(values)):
        total += np.exp(values[a] - largest)
    return float(largest + np.log(total))


@compiled
def _log_posterior(
    unary: FloatArray,  # (T, s)
    edges: FloatArray,  # (1 or T, s, s)
    shared: bool,
    weight: float,
    alpha: FloatArray,  # (≥ T, s) work space, in logarithms
    beta: FloatArray,  # (≥ T, s) work space, in logarithms
    terms: FloatArray,  # (s,) work space
    marginals: FloatArray,  # (T, s) out
    pairwise: FloatArray,  # (1 or T, s, s) out: probabilities, added (shared) or set (per edge)
) -> float:
    """log Z at any scores; −inf where every sequence of states is forbidden."""
    T, s = unary.shape
    for t in range(T):
        for b in range(s):
            if t == 0:
                alpha[t, b] = unary[t, b]
            else:
                for a in range(s):
                    terms[a] = alpha[t - 1, a] + edges[0 if shared else t - 1, a, b]
                alpha[t, b] = _log_sum_exp(terms) + unary[t, b]
    log_partition = _log_sum_exp(alpha[T - 1])
    if not log_partition > -np.inf:
        return log_partition
    for a in range(s):
        beta[T - 1, a] = 0.0
    for t in range(T - 2, -1, -1):
        for a in range(s):
            for b in range(s):
                terms[b] = edges[0 if shared else t, a, b] + unary[t + 1, b] + beta[t + 1, b]
            beta[t, a] = _log_sum_exp(terms)
    for t in range(T):
        for a in range(s):
            marginals[t, a] = np.exp(alpha[t, a] + beta[t, a] - log_partition)
    for t in range(T - 1):
        edge = 0 if shared else t
        for a in range(s):
            for b in range(s):
                log_probability = (
                    alpha[t, a] + edges[edge, a, b] + unary[t + 1, b] + beta[t + 1, b]
                ) - log_partition
                if not shared:
                    pairwise[t, a, b] = 0.0
                pairwise[edge, a, b] += weight * np.exp(log_probability)
    return log_partition


@compiled
def sequence_posterior(
    unary: FloatArray,  # (T, s), T ≥ 1
    edges: FloatArray,  # (1 or T, s, s); entry T − 1 of per-edge scores is not read
    exp_edges: FloatArray,  # (1 or T, s, s), from `exponentiate_edges`
    exp_edges_t: FloatArray,  # (1 or T, s, s)
    shift: FloatArray,  # (1 or T,)
    shared: bool,
    weight: float,
    work: Workspace,
    marginals: FloatArray,  # (T, s) out
    outer: FloatArray,  # (1, s, s) out: what shared edges add, still to be multiplied by E
    pairwise: FloatArray,  # (1 or T, s, s) out: weight · P(y_t = a, y_{t+1} = b)
) -> float:
    """log Z with the marginals of one sequence; −inf (nothing written) if all is forbidden.

    Shared edges: the scaled pass adds weight · Σ_t α_t ⊗ (Uβ/c)_{t+1} to `outer`, the log-space
    pass adds probabilities to `pairwise`; the caller ends with pairwise += outer · E, once per
    batch. Per-edge scores set ``pairwise[t]`` and do not use `outer`.
    """
    alpha, message, scale, vector = work
    log_partition = _scaled_posterior(
        unary,
        exp_edges,
        exp_edges_t,
        shift,
        shared,
        weight,
        alpha,
        message,
        scale,
        vector,
        marginals,
        outer if shared else pairwise,
    )
    if np.isnan(log_partition):
        log_partition = _log_posterior(
            unary, edges, shared, weight, alpha, message, vector, marginals, pairwise
        )
    return log_partition


@compiled
def sequence_score(
    unary: FloatArray,  # (T, s)
    edges: FloatArray,  # (1 or T, s, s)
    shared: bool,
    states: IntArray,  # (T,)
) -> float:
    """Score of one sequence of states."""
    total = 0.0
    for t in range(len(states)):
        total += unary[t, states[t]]
        if t > 0:
            total += edges[0 if shared else t - 1, states[t - 1], states[t]]
    return total


@compiled
def workspace(longest: int, s: int) -> Workspace:
    """Memory for sequences of at most `longest` parts."""
    return np.empty((longest, s)), np.empty((longest, s)), np.empty(longest), np.empty(s)


@compiled
def posteriors_packed(
    unary: FloatArray,  # (N, s)
    edges: FloatArray,  # (1 or N, s, s)
    shared: bool,
    offsets: IntArray,  # (n + 1,)
    weights: FloatArray,  # (n,)
    log_partition: FloatArray,  # (n,) out
    marginals: FloatArray,  # (N, s) out
    pairwise: FloatArray,  # (1 or N, s, s) out, zero on entry
) -> None:
    """log Z, unary marginals and weighted edge marginals of packed sequences."""
    s = unary.shape[1]
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    work = workspace(longest, s)
    outer = np.zeros((1, s, s))
    # per-edge matrices are exponentiated sequence by sequence, to bound the memory
    size = 1 if shared else longest
    exp_edges = np.empty((size, s, s))
    exp_edges_t = np.empty((size, s, s))
    shift = np.empty(size)
    if shared:
        exponentiate_edges(edges, exp_edges, exp_edges_t, shift)
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        if stop == start:
            log_partition[row] = 0.0
            continue
        own = edges if shared else edges[start:stop]
        out = pairwise if shared else pairwise[start:stop]
        if not shared:
            exponentiate_edges(edges[start : stop - 1], exp_edges, exp_edges_t, shift)
        log_partition[row] = sequence_posterior(
            unary[start:stop],
            own,
            exp_edges,
            exp_edges_t,
            shift,
            shared,
            weights[row],
            work,
            marginals[start:stop],
            outer,
            out,
        )
    if shared:
        for a in range(s):
            for b in range(s):
                pairwise[0, a, b] += outer[0, a, b] * exp_edges[0, a, b]
