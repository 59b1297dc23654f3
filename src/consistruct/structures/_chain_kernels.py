"""Compiled dynamic programs on one sequence: Viterbi, and forward-backward in two arithmetics.

Symbols: a sequence has T parts with s states, unary scores u_t(a), edge scores e_t(a, b) of the
edge that leaves part t. Viterbi runs V_t(a) = u_t(a) + max_b (e_t(a, b) + V_{t+1}(b)) backwards.

Forward-backward runs in scaled linear space, with log space behind it. With
U_t = exp(u_t − max u_t) and E_t = exp(e_t − max e_t) the recursions

    α_t(b) = U_t(b) Σ_a α_{t−1}(a) E_{t−1}(a, b) / c_t        c_t makes Σ_b α_t(b) = 1
    β_{t−1}(a) = Σ_b E_{t−1}(a, b) U_t(b) β_t(b) / c_t         so that Σ_a α_t(a) β_t(a) = 1

cost one multiplication and addition per pair of states and no exponential.

When is that safe? α, U, E ≤ 1, so an underflow loses at most 2⁻¹⁰²² per term. Lost in α_t it would
have contributed at most 2⁻¹⁰²² · s · max β_t to a total of one; lost in E or U it costs β_{t−1} at
most 2⁻¹⁰²² · s · max β_t / c_t. While every c_t ≥ 1e-100 and every β_t ≤ 1e100 both are below
s · 1e-107: nothing is lost that float64 could show. Otherwise (scores of ±1e4, chains of forbidden
transitions) the sequence is done again in log space, which is exact at any score and slower.

References: Viterbi 1967; Rabiner, *A tutorial on hidden Markov models*, 1989, for the scaling.
"""

from __future__ import annotations

import numpy as np

from consistruct._compile import compiled
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "Workspace",
    "best_sequence",
    "exponentiate_edges",
    "posteriors_packed",
    "sequence_posterior",
    "sequence_score",
    "workspace",
]


# α, U, c and one vector
Workspace = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

# Smallest c_t and largest β_t at which linear space is provably exact to rounding, see above. The
# two leave a hundred decades on either side, so ordinary scores never come near them.
SMALLEST_SCALE = 1e-100
LARGEST_MESSAGE = 1e100


@compiled
def exponentiate_edges(
    edges: FloatArray,  # (m, s, s)
    exp_edges: FloatArray,  # (m, s, s) out
    exp_edges_t: FloatArray,  # (m, s, s) out: each matrix transposed, so that both passes stream
    shift: FloatArray,  # (m,) out: the largest finite entry of each matrix, 0 if there is none
) -> None:
    """Fill E_t = exp(e_t − max e_t), its transpose, and the maxima."""
    m, s, _ = edges.shape
    for t in range(m):
        largest = -np.inf
        for a in range(s):
            for b in range(s):
                largest = max(largest, edges[t, a, b])
        # all transitions forbidden: exp(−inf − 0) = 0, where −inf − (−inf) would be NaN
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
    """Return log Z, or NaN where linear space is not safe (`pairwise` is untouched then)."""
    # forward: log Z is the sum of the maxima that were taken out and of log c_t
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
            # states of the part before in the outer loop: the inner one runs along a row of E and
            # becomes vector instructions
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

    # backward: α_t β_t is the marginal; U_t is overwritten by U_t β_t / c_t, which both the next β
    # and the pair marginals need
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

    # P(y_t = a, y_{t+1} = b) = α_t(a) E_t(a, b) (U β / c)_{t+1}(b); shared edges add up the outer
    # products and multiply by E once per batch
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
    """Return log Σ exp values; −inf where all are −inf."""
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
    """Return log Z at any scores; −inf where every sequence of states is forbidden."""
    # the same recursions on logarithms: an exponential per pair of states, but no scale to fail
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
    """Compute log Z and the marginals of one sequence; −inf (nothing written) if all is forbidden.

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
    """Return the score of one sequence of states."""
    total = 0.0
    for t in range(len(states)):
        total += unary[t, states[t]]
        if t > 0:
            total += edges[0 if shared else t - 1, states[t - 1], states[t]]
    return total


@compiled
def workspace(longest: int, s: int) -> Workspace:
    """Allocate memory for sequences of at most `longest` parts, used again for each of them."""
    return np.empty((longest, s)), np.empty((longest, s)), np.empty(longest), np.empty(s)


@compiled
def posteriors_packed(
    unary: FloatArray,  # (N, s)
    edges: FloatArray,  # (1 or N, s, s)
    shared: bool,
    offsets: IntArray,  # (n + 1,)
    weights: FloatArray,  # (n,)
    log_partition: FloatArray,  # (n,) sequence_pairs
    marginals: FloatArray,  # (N, s) sequence_pairs
    pairwise: FloatArray,  # (1 or N, s, s) sequence_pairs, zero on entry
) -> None:
    """Compute log Z, unary marginals and weighted edge marginals of packed sequences.

    The exponentials of shared edges are taken once for the batch; those of per-edge scores sequence
    by sequence, into one work space of the longest one.
    """
    s = unary.shape[1]
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    work = workspace(longest, s)
    outer = np.zeros((1, s, s))
    size = 1 if shared else longest
    exp_edges = np.empty((size, s, s))
    exp_edges_t = np.empty((size, s, s))
    shift = np.empty(size)
    if shared:
        exponentiate_edges(edges, exp_edges, exp_edges_t, shift)
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        # the empty sequence is one sequence of score 0
        if stop == start:
            log_partition[row] = 0.0
            continue
        sequence_edges = edges if shared else edges[start:stop]
        sequence_pairs = pairwise if shared else pairwise[start:stop]
        if not shared:
            exponentiate_edges(edges[start : stop - 1], exp_edges, exp_edges_t, shift)
        log_partition[row] = sequence_posterior(
            unary[start:stop],
            sequence_edges,
            exp_edges,
            exp_edges_t,
            shift,
            shared,
            weights[row],
            work,
            marginals[start:stop],
            outer,
            sequence_pairs,
        )
    if shared:
        for a in range(s):
            for b in range(s):
                pairwise[0, a, b] += outer[0, a, b] * exp_edges[0, a, b]


@compiled
def best_sequence(
    unary: FloatArray,  # (T, s)
    edges: FloatArray,  # (1 or T, s, s)
    shared: bool,
    best: FloatArray,  # (T, s) work space: best score of the parts from t on, given the state at t
    states: IntArray,  # (T,) out
) -> float:
    """Write the best states of one sequence to `states` and return their score."""
    # The pass from the last part to the first keeps values only: a maximum without a branch costs
    # a third of one that remembers where it was. The forward pass looks again at one row per part.
    T, s = unary.shape
    for a in range(s):
        best[T - 1, a] = unary[T - 1, a]
    for t in range(T - 2, -1, -1):
        matrix = edges[0] if shared else edges[t]
        for a in range(s):
            largest = matrix[a, 0] + best[t + 1, 0]
            for b in range(1, s):
                largest = max(largest, matrix[a, b] + best[t + 1, b])
            best[t, a] = unary[t, a] + largest
    state = 0
    for a in range(1, s):
        if best[0, a] > best[0, state]:
            state = a
    states[0] = state
    for t in range(T - 1):
        matrix = edges[0] if shared else edges[t]
        choice = 0
        largest = matrix[state, 0] + best[t + 1, 0]
        for b in range(1, s):
            value = matrix[state, b] + best[t + 1, b]
            if value > largest:
                largest = value
                choice = b
        state = choice
        states[t + 1] = state
    return best[0, states[0]]


@compiled
def viterbi_packed(
    unary: FloatArray,  # (N, s)
    edges: FloatArray,  # (1 or N, s, s)
    shared: bool,
    offsets: IntArray,  # (n + 1,)
    states: IntArray,  # (N,) out
    best: FloatArray,  # (n,) out
) -> None:
    """Find the best states of packed sequences, one after the other."""
    s = unary.shape[1]
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    work = np.empty((longest, s))
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        if stop > start:
            sequence_edges = edges if shared else edges[start:stop]
            best[row] = best_sequence(
                unary[start:stop], sequence_edges, shared, work, states[start:stop]
            )


@compiled
def viterbi_rows(
    theta: FloatArray,  # (n, T·s + (T−1)·s²)
    T: int,
    s: int,
    states: IntArray,  # (n, T) out
    best: FloatArray,  # (n,) out
) -> None:
    """Find the best states for each row of θ, all of one length."""
    work = np.empty((T, s))
    for row in range(len(theta)):
        unary = theta[row, : T * s].reshape(T, s)
        edges = theta[row, T * s :].reshape(T - 1, s, s)
        best[row] = best_sequence(unary, edges, False, work, states[row])
