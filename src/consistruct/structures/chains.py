"""Chains: sequences scored by the state of each part and by neighboring pairs of states.

A sequence y of T parts with s states scores Σ_t u_t(y_t) + Σ_t e_t(y_t, y_{t+1}). Three things are
computed, each in O(T s²) and compiled (`_chain_kernels`), for whole batches of different lengths:

* the best sequence (`viterbi`): max-sum dynamic programming, ties to the smallest sequence;
* log Z = log Σ_y exp score(y) and the marginals P(y_t = a), P(y_t = a, y_{t+1} = b) of the
  distribution p(y) ∝ exp score(y) (`chain_marginals`): forward-backward;
* from the marginals, exact samples and decisions: argmax_a P(y_t = a) is the decision of least
  expected Hamming loss, because E[Hamming(ŷ, y)] = Σ_t (1 − P(y_t = ŷ_t)) / T is a sum over parts.

`Chain` is the structure for one length: θ holds T·s unary scores, then (T−1)·s² edge scores.
`ChainScores` holds packed sequences, whose edge scores may be shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_rows, check_scores, check_theta, refuse_all_forbidden
from consistruct.protocols import FloatArray, IntArray, LabelArray, LinearMap, ScoreSpace
from consistruct.structures._chain_kernels import (
    posteriors_packed,
    viterbi_packed,
    viterbi_rows,
)
from consistruct.structures.base import Predictable
from consistruct.structures.parts import PartScores, ProductGram, Separable, padding_map
from consistruct.structures.ragged import Ragged

__all__ = [
    "Chain",
    "ChainMarginals",
    "ChainScores",
    "augmented_scores",
    "boundary_scores",
    "chain_marginals",
    "viterbi",
]


# Bytes of θ that are checked and decoded together, so that the second pass reads from the cache:
# a quarter of the second-level cache of current processors. Any power of two near it does.
CACHE_BYTES = 2**19


@dataclass(frozen=True, eq=False)
class ChainScores:
    """Hold the scores of sequences of different lengths, packed end to end.

    Parameters
    ----------
    unary : (N, s) array
        Scores of the states of all N parts, sequence after sequence.
    edges : (s, s) or (N, s, s) array
        ``edges[a, b]`` scores state a followed by state b, shared by all edges; or
        ``edges[t, a, b]`` scores the edge that leaves part t (the entry of the last part of a
        sequence is not read).
    offsets : (n + 1,) int array
        As in `Ragged`.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures.chains import ChainScores
    >>> two = ChainScores(np.zeros((3, 2)), np.zeros((2, 2)), np.array([0, 2, 3]))
    >>> len(two.offsets) - 1, two.unary.shape
    (2, (3, 2))
    """

    unary: FloatArray
    edges: FloatArray
    offsets: IntArray

    def __post_init__(self) -> None:
        packed = Ragged(np.asarray(self.unary), self.offsets)  # checks the offsets
        unary = packed.values
        edges = np.asarray(self.edges)
        if unary.ndim != 2 or unary.dtype.kind not in "biuf":
            raise ValueError(
                f"unary must contain numbers of shape (N, s), got dtype {unary.dtype} "
                f"and shape {unary.shape}"
            )
        n_parts, n_states = unary.shape
        allowed = ((n_states, n_states), (n_parts, n_states, n_states))
        if edges.shape not in allowed or edges.dtype.kind not in "biuf":
            raise ValueError(
                f"edges must contain numbers of shape {allowed[0]} (shared) or {allowed[1]} "
                f"(one matrix per part), got dtype {edges.dtype} and shape {edges.shape}"
            )
        # the compiled loops read rows of contiguous doubles
        unary = np.ascontiguousarray(unary, dtype=np.float64)
        edges = np.ascontiguousarray(edges, dtype=np.float64)
        check_scores(unary, "unary")
        # the entries behind last parts are not read and may hold anything, NaN included
        if edges.ndim == 3:
            read = np.ones(n_parts, dtype=np.bool_)
            read[packed.offsets[1:][packed.lengths > 0] - 1] = False
            check_scores(edges[read], "edges")
        else:
            check_scores(edges, "edges")
        object.__setattr__(self, "unary", unary)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "offsets", packed.offsets)


def viterbi(scores: ChainScores) -> Ragged:
    """Return the best states of packed sequences, argmax_y Σ_t u_t(y_t) + Σ_t e_t(y_t, y_{t+1}).

    The recursion runs from the last part to the first and states are chosen forwards, so that ties
    go to the lexicographically smallest sequence. O(N s²) for N parts in all.

    Parameters
    ----------
    scores : ChainScores
        −inf forbids a state or a transition.

    Returns
    -------
    Ragged
        States (N,), with the offsets of the scores; an empty sequence has none.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures.chains import ChainScores, viterbi
    >>> unary = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 2.0]])
    >>> stay = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> viterbi(ChainScores(unary, stay, np.array([0, 2, 3]))).values
    array([0, 0, 1])
    """
    states = np.empty(len(scores.unary), dtype=np.int64)
    best = np.zeros(len(scores.offsets) - 1)
    shared = scores.edges.ndim == 2
    edges = scores.edges[None] if shared else scores.edges
    viterbi_packed(scores.unary, edges, shared, scores.offsets, states, best)
    refuse_all_forbidden(best)
    return Ragged(states, scores.offsets)


@dataclass(frozen=True, eq=False)
class ChainMarginals:
    """Hold log Z and the marginals of p(y) ∝ exp(Σ_t u_t(y_t) + Σ_t e_t(y_t, y_{t+1})).

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
    """Return log-partition and marginals of packed sequences by forward-backward, O(N s²).

    The recursions run in linear space, scaled at every part, with the exponentials of shared edges
    taken once for the batch. A sequence whose scores are too far apart for that (a test decides,
    soundly, see `_chain_kernels`) is computed in log space, so that scores of
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
    >>> from consistruct.structures.chains import ChainScores, chain_marginals
    >>> stay = np.log(np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> p = chain_marginals(ChainScores(np.zeros((2, 2)), stay, np.array([0, 2])))
    >>> np.exp(p.log_partition).round(12), p.edges.round(12).tolist()
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
    # compiled code takes three axes either way; `shared` states whether the first one means
    # anything
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
    """Raise `ValueError` if some sequence has no allowed sequence of states."""
    impossible = np.isneginf(values)
    if impossible.any():
        raise ValueError(
            f"every sequence of states is forbidden (score −inf) for sequence "
            f"{int(np.argmax(impossible))}; allow at least one transition out of each allowed state"
        )


def augmented_scores(scores: ChainScores, part_costs: ArrayLike) -> ChainScores:
    """Add a cost to every state of every part, so that `viterbi` decodes loss-augmented scores.

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
    """Add start scores to first parts and end scores to last parts of unary scores, (N, s).

    A start or end score is a unary score of one part, so inference needs to know nothing else; a
    gradient in the unary scores gives the gradient in `start` by summing over first parts.
    """
    if start is None and end is None:
        return unary
    # a copy: callers keep their unary scores; empty sequences have no part to add to
    with_boundaries = np.array(unary, dtype=np.float64)
    filled = np.flatnonzero(np.diff(offsets))
    if start is not None:
        with_boundaries[offsets[filled]] += start
    if end is not None:
        with_boundaries[offsets[filled + 1] - 1] += end
    return with_boundaries


@dataclass(frozen=True, eq=False, repr=False)
class Chain(PartScores):
    """Score parts and neighboring pairs: f(y) = Σ_t u_t(y_t) + Σ_t e_t(y_t, y_{t+1}).

    θ holds the unary scores (T, s), then the edge scores (T−1, s, s): width T·s + (T−1)·s². Unary
    scores and constants are functions of edges too, so the rank is 1 + T(s−1) + (T−1)(s−1)².
    Decoded by Viterbi, O(T s²). Choose it where neighboring labels depend on each other; for the
    Hamming loss alone, `Separable` is enough and easier to learn.

    Parameters
    ----------
    T : int or None
        Length; None is the family of all lengths, `at` gives a member.
    n_states : int
        s, at least 2.

    Examples
    --------
    >>> from consistruct.structures import Chain
    >>> space = Chain(200, 10)
    >>> space.width, space.rank
    (21900, 17920)
    >>> small = Chain(2, 2)
    >>> small.log_partition([[0.0] * small.width]).round(6)  # log of four sequences
    array([1.386294])

    References
    ----------
    Lafferty, McCallum and Pereira, *Conditional random fields*, 2001.
    """

    contains_constant = True

    @property
    def linked_states(self) -> int:
        return self.n_states

    @property
    def width(self) -> int:
        """Count T·s unary and (T−1)·s² edge scores."""
        T, s = self._length("have a width"), self.n_states
        return T * s + (T - 1) * s * s

    @property
    def rank(self) -> int:
        """Count the degrees of freedom of constant, parts and edges, see `ProductGram`."""
        T, s = self._length("have a rank"), self.n_states
        return 1 + T * (s - 1) + (T - 1) * (s - 1) ** 2

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return one-hot states and one-hot pairs of neighbors, (n, T) -> (n, width)."""
        T, s = self._length("embed"), self.n_states
        states = self.predictions.check(labels)
        n = len(states)
        rows = np.zeros((n, self.width))
        part = np.arange(T) * s
        edge = T * s + np.arange(T - 1) * s * s
        example = np.arange(n)[:, None]
        rows[example, part + states] = 1.0
        rows[example, edge + states[:, :-1] * s + states[:, 1:]] = 1.0
        return rows

    def gram(self) -> ProductGram:
        """Return the operator on ANOVA terms, O(width) per product."""
        return ProductGram(self._length("have a Gram operator"), self.n_states, edges=True)

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the best sequence for each row of θ, (n, T·s + (T−1)·s²) -> (n, T)."""
        T, s = self._length("decode a plain array (decode_packed takes ChainScores)"), self.n_states
        scores = np.ascontiguousarray(check_rows(theta, self.width))
        states = np.empty((len(scores), T), dtype=np.int64)
        best = np.empty(len(scores))
        # Wide scores are bound by memory: each chunk is checked and decoded while in the cache.
        chunk = max(1, CACHE_BYTES // (8 * scores.shape[1]))
        for start in range(0, len(scores), chunk):
            part = slice(start, start + chunk)
            check_scores(scores[part], "theta", first_row=start)
            viterbi_rows(scores[part], T, s, states[part], best[part])
        refuse_all_forbidden(best)
        return states

    def decode_packed(self, theta: ChainScores) -> Ragged:  # type: ignore[override]
        """Return the best states of packed sequences of any length."""
        if theta.unary.shape[1] != self.n_states:
            raise ValueError(
                f"unary must have {self.n_states} columns, one per state, "
                f"got {theta.unary.shape[1]}"
            )
        return viterbi(theta)

    def _distribution(self, theta: ArrayLike) -> ChainMarginals:
        """Return the marginals of every row of θ, as packed sequences of equal length."""
        T, s = self._length("have a distribution"), self.n_states
        scores = check_theta(theta, self.width)
        n = len(scores)
        # packed edges have an entry behind the last part, which nobody reads
        edges = np.zeros((n, T, s, s))
        edges[:, :-1] = scores[:, T * s :].reshape(n, T - 1, s, s)
        unary = scores[:, : T * s].reshape(n * T, s)
        offsets = np.arange(n + 1, dtype=np.int64) * T
        return chain_marginals(ChainScores(unary, edges.reshape(n * T, s, s), offsets))

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        """Return log Z of each row of θ by forward-backward, (n,)."""
        return self._distribution(theta).log_partition

    def marginals(self, theta: ArrayLike) -> FloatArray:
        """Return P(y_t = a), then P(y_t = a, y_{t+1} = b), laid out as θ, (n, width)."""
        T, s = self._length("have marginals"), self.n_states
        p = self._distribution(theta)
        n = len(p.log_partition)
        edges = p.edges.reshape(n, T, s * s)[:, :-1]
        return np.concatenate(
            [p.unary.reshape(n, T * s), edges.reshape(n, (T - 1) * s * s)], axis=1
        )

    def sample(self, theta: ArrayLike, rng: np.random.Generator) -> LabelArray:
        """Draw one sequence per row of θ, exactly: y_1, then each y_{t+1} given y_t, (n, T)."""
        T, s = self._length("be sampled"), self.n_states
        p = self._distribution(theta)
        n = len(p.log_partition)
        unary, edges = p.unary.reshape(n, T, s), p.edges.reshape(n, T, s, s)
        states = np.empty((n, T), dtype=np.int64)
        for t in range(T):
            # P(y_t = a, y_{t+1} = ·) is the next state's distribution up to its sum, so nothing is
            # exponentiated again and rows of any scale are drawn alike
            weights = unary[:, 0] if t == 0 else edges[np.arange(n), t - 1, states[:, t - 1]]
            below = weights.cumsum(axis=1)
            states[:, t] = (below <= rng.random((n, 1)) * below[:, -1:]).sum(axis=1)
        return states

    def mean_embedding(self) -> FloatArray:
        """Return 1/s for every state of a part and 1/s² for every pair."""
        T, s = self._length("have a mean embedding"), self.n_states
        return np.concatenate([np.full(T * s, 1 / s), np.full((T - 1) * s * s, 1 / s**2)])

    def predictable(self) -> Predictable:
        """Return every sequence: its own one-hot θ makes it the only winner."""
        return Predictable(self.n_states ** self._length("list predictable labels"))

    def diameter_squared(self) -> Fraction:
        """Return the farthest pair of sequences by dynamic programming over agreements."""
        # F_iᵀḠ⁺F_j = 1 + Σ_t x_t + Σ_t x_t x_{t+1} with x_t = s·[i_t = j_t] − 1; at i = j it is the
        # rank. The farthest pair minimizes it over x_t ∈ {s−1, −1}: two states, T steps.
        T, s = self._length("have a diameter"), self.n_states
        levels = (s - 1, -1)
        best = {x: x for x in levels}
        for _ in range(T - 1):
            best = {x: min(best[before] + before * x for before in levels) + x for x in levels}
        return Fraction(2 * (self.rank - 1 - min(best.values())))

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        """Pad separable scores by zero edges; list labels otherwise."""
        self._check_same_predictions(other)
        if isinstance(other, Separable) and other.n_states == self.n_states:
            return padding_map(other.width, self.width)
        return super().coordinates(other)
