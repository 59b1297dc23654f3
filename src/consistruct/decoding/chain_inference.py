"""Chains: log-partition, marginals and decoding from marginals, batched over different lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct._validation import check_count
from consistruct.decoding._chain_kernels import posteriors_packed
from consistruct.decoding.viterbi import ChainScores
from consistruct.labels.ragged import Ragged
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "ChainMarginals",
    "MarginalArgmax",
    "augmented_scores",
    "boundary_scores",
    "chain_marginals",
]


@dataclass(frozen=True, eq=False)
class ChainMarginals:
    """p(y) ∝ exp(Σ_t unary_t(y_t) + Σ_t edges_t(y_t, y_{t+1})) of packed sequences.

    Parameters
    ----------
    log_partition : (n,) array
        log Z of each sequence (0 for an empty one).
    unary : (N, s) array
        P(y_t = a).
    edges : (s, s) or (N, s, s) array
        Shared edges: the sum over all edges of P(y_t = a, y_{t+1} = b), each times the weight of
        its sequence. Per-edge scores: those terms one by one; the entry of the last part of a
        sequence is zero.
    offsets : (n + 1,) int array
    """

    log_partition: FloatArray
    unary: FloatArray
    edges: FloatArray
    offsets: IntArray


def chain_marginals(scores: ChainScores, weights: ArrayLike | None = None) -> ChainMarginals:
    """Forward-backward: log-partition and marginals, O(N s²).

    The recursions run in linear space, scaled at every part, with the exponentials of shared edges
    taken once for the batch. A sequence whose scores are too far apart for that (a test decides,
    soundly, see `consistruct.decoding._chain_kernels`) is computed in log space, so that scores of
    ±1e4 and −inf are safe.

    Parameters
    ----------
    scores : ChainScores
        −inf forbids a state or a transition.
    weights : (n,) array, optional
        Weight of each sequence in the accumulated edge marginals; one if not given.

    Examples
    --------
    Two states, two parts, a reward for staying:

    >>> import numpy as np
    >>> from consistruct.decoding import ChainScores, chain_marginals
    >>> stay = np.log(np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> law = chain_marginals(ChainScores(np.zeros((2, 2)), stay, np.array([0, 2])))
    >>> np.exp(law.log_partition).round(12), law.edges.round(12).tolist()
    (array([8.]), [[0.375, 0.125], [0.125, 0.375]])
    """
    n, n_states = len(scores.offsets) - 1, scores.unary.shape[1]
    if weights is None:
        weights_array = np.ones(n)
    else:
        weights_array = np.ascontiguousarray(weights, dtype=np.float64)
        if weights_array.shape != (n,) or not np.isfinite(weights_array).all():
            raise ValueError(
                f"weights must contain one finite number per sequence, shape ({n},), "
                f"got shape {weights_array.shape}"
            )
    shared = scores.edges.ndim == 2
    edges = scores.edges[None] if shared else scores.edges
    log_partition = np.empty(n)
    marginals = np.zeros_like(scores.unary)
    pairwise = np.zeros((1, n_states, n_states) if shared else scores.edges.shape)
    posteriors_packed(
        scores.unary,
        edges,
        shared,
        scores.offsets,
        weights_array,
        log_partition,
        marginals,
        pairwise,
    )
    refuse_impossible(log_partition)
    return ChainMarginals(
        log_partition, marginals, pairwise[0] if shared else pairwise, scores.offsets
    )


def refuse_impossible(values: FloatArray) -> None:
    """Raise if some sequence has no allowed sequence of states."""
    impossible = np.isneginf(values)
    if impossible.any():
        raise ValueError(
            f"every sequence of states is forbidden (score −inf) for sequence "
            f"{int(np.argmax(impossible))}; allow at least one transition out of each allowed state"
        )


@dataclass(frozen=True, eq=False, repr=False)
class MarginalArgmax(Member):
    """The most probable state of every part: the decision of least expected Hamming loss.

    E[Hamming(ŷ, y)] = Σ_t (1 − P(y_t = ŷ_t)) / T falls apart into parts, so the best ŷ takes the
    largest marginal of each part (ties go to the smallest state). The answer as a whole may be
    improbable, even forbidden: where it must be an allowed sequence, use `Viterbi`.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.decoding import ChainScores, MarginalArgmax, Viterbi
    >>> with np.errstate(divide="ignore"):
    ...     edges = np.log(np.array([[0.4, 0.0, 0.0], [0.0, 0.3, 0.3], [0.0, 0.0, 0.0]]))
    >>> scores = ChainScores(np.zeros((2, 3)), edges, np.array([0, 2]))
    >>> Viterbi(None, 3).decode_packed(scores).values  # probability .4, half of the parts right
    array([0, 0])
    >>> MarginalArgmax(3).decode_packed(scores).values  # forbidden as a whole
    array([1, 0])
    """

    n_states: int

    def __post_init__(self) -> None:
        self._set(n_states=check_count(self.n_states, "n_states"))

    def decode_packed(self, scores: ChainScores) -> Ragged:
        """Packed chain scores -> packed states."""
        if scores.unary.shape[1] != self.n_states:
            raise ValueError(
                f"unary must have {self.n_states} columns, one per state, "
                f"got {scores.unary.shape[1]}"
            )
        states = chain_marginals(scores).unary.argmax(axis=1)
        return Ragged(states.astype(np.int64), scores.offsets)


def augmented_scores(scores: ChainScores, part_costs: ArrayLike) -> ChainScores:
    """Add a cost to every state of every part: Viterbi on the result is loss-augmented decoding.

    argmax_ŷ score(ŷ) + Σ_t cost_t(ŷ_t); with the Hamming loss cost_t(a) = [a ≠ y_t].

    Parameters
    ----------
    scores : ChainScores
    part_costs : (N, s) array
    """
    costs = np.asarray(part_costs, dtype=np.float64)
    if costs.shape != scores.unary.shape:
        raise ValueError(
            f"part_costs must have the shape of the unary scores {scores.unary.shape}, "
            f"got {costs.shape}"
        )
    return ChainScores(scores.unary + costs, scores.edges, scores.offsets)


def boundary_scores(
    unary: FloatArray,  # (N, s)
    offsets: IntArray,  # (n + 1,)
    start: FloatArray | None,  # (s,)
    end: FloatArray | None,  # (s,)
) -> FloatArray:
    """Unary scores with start scores added to first parts and end scores to last parts, (N, s).

    A start or end score is a unary score of one part, so inference needs to know nothing else; a
    gradient in the unary scores gives the gradient in `start` by summing over first parts.
    """
    if start is None and end is None:
        return unary
    with_boundaries = np.array(unary, dtype=np.float64)
    filled = np.flatnonzero(np.diff(offsets))
    if start is not None:
        with_boundaries[offsets[filled]] += start
    if end is not None:
        with_boundaries[offsets[filled + 1] - 1] += end
    return with_boundaries
