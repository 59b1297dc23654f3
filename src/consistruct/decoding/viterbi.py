"""Chains: dynamic programming over sequences, batched over different lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from consistruct._compile import compiled
from consistruct._validation import check_count, check_rows, check_scores, refuse_all_forbidden
from consistruct.decoding.base import BaseDecoder
from consistruct.exceptions import FamilyError
from consistruct.labels.ragged import Ragged
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = ["ChainScores", "Viterbi", "best_sequence"]

CACHE_BYTES = 2**19


@dataclass(frozen=True, eq=False)
class ChainScores:
    """Packed scores of sequences of different lengths.

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
        unary = np.ascontiguousarray(unary, dtype=np.float64)
        edges = np.ascontiguousarray(edges, dtype=np.float64)
        check_scores(unary, "unary")
        if edges.ndim == 3:  # the unread entries may hold anything
            read = np.ones(n_parts, dtype=np.bool_)
            read[packed.offsets[1:][packed.lengths > 0] - 1] = False
            check_scores(edges[read], "edges")
        else:
            check_scores(edges, "edges")
        object.__setattr__(self, "unary", unary)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "offsets", packed.offsets)


@dataclass(frozen=True, eq=False, repr=False)
class Viterbi(BaseDecoder):
    """Best state sequence under unary and edge scores, O(T s²) per sequence.

    Parameters
    ----------
    n_parts : int or None
        Length of the sequences; None decodes packed sequences of any length (`decode_packed`).
    n_states : int

    Notes
    -----
    θ of a fixed length is (n, T·s + (T−1)·s²): the unary scores part after part, then the edge
    matrices. The recursion runs from the last part to the first and states are chosen forwards,
    so that ties go to the lexicographically smallest sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.decoding import ChainScores, Viterbi
    >>> unary = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 2.0]])
    >>> stay = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> Viterbi(None, 2).decode_packed(ChainScores(unary, stay, np.array([0, 2, 3]))).values
    array([0, 0, 1])
    """

    n_parts: int | None
    n_states: int

    def __post_init__(self) -> None:
        n_parts = None if self.n_parts is None else check_count(self.n_parts, "n_parts")
        self._set(n_parts=n_parts, n_states=check_count(self.n_states, "n_states"))

    def __call__(self, theta: ArrayLike) -> LabelArray:
        if self.n_parts is None:
            raise FamilyError(self, "decode a plain array (decode_packed takes ChainScores)")
        T, s = self.n_parts, self.n_states
        scores = np.ascontiguousarray(check_rows(theta, T * s + (T - 1) * s * s))
        states = np.empty((len(scores), T), dtype=np.int64)
        best = np.empty(len(scores))
        # Wide scores are bound by memory: each chunk is checked and decoded while in the cache.
        chunk = max(1, CACHE_BYTES // (8 * scores.shape[1]))
        for start in range(0, len(scores), chunk):
            part = slice(start, start + chunk)
            check_scores(scores[part], "theta", first_row=start)
            _viterbi_rows(scores[part], T, s, states[part], best[part])
        refuse_all_forbidden(best)
        return states

    def decode_packed(self, scores: ChainScores) -> Ragged:
        """Best states of packed sequences."""
        if scores.unary.shape[1] != self.n_states:
            raise ValueError(
                f"unary must have {self.n_states} columns, one per state, "
                f"got {scores.unary.shape[1]}"
            )
        states = np.empty(len(scores.unary), dtype=np.int64)
        best = np.zeros(len(scores.offsets) - 1)
        shared = scores.edges.ndim == 2
        edges = scores.edges[None] if shared else scores.edges
        _viterbi_packed(scores.unary, edges, shared, scores.offsets, states, best)
        refuse_all_forbidden(best)
        return Ragged(states, scores.offsets)


@compiled
def best_sequence(
    unary: FloatArray,  # (T, s)
    edges: FloatArray,  # (1 or T, s, s)
    shared: bool,
    best: FloatArray,  # (T, s) work space: best score of the parts from t on, given the state at t
    states: IntArray,  # (T,) out
) -> float:
    """Score of the best sequence of states of one sequence, which is written to `states`."""
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
def _viterbi_packed(
    unary: FloatArray,  # (N, s)
    edges: FloatArray,  # (1 or N, s, s)
    shared: bool,
    offsets: IntArray,  # (n + 1,)
    states: IntArray,  # (N,) out
    best: FloatArray,  # (n,) out
) -> None:
    s = unary.shape[1]
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    work = np.empty((longest, s))
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        if stop > start:
            own = edges if shared else edges[start:stop]
            best[row] = best_sequence(unary[start:stop], own, shared, work, states[start:stop])


@compiled
def _viterbi_rows(
    theta: FloatArray,  # (n, T·s + (T−1)·s²)
    T: int,
    s: int,
    states: IntArray,  # (n, T) out
    best: FloatArray,  # (n,) out
) -> None:
    work = np.empty((T, s))
    for row in range(len(theta)):
        unary = theta[row, : T * s].reshape(T, s)
        edges = theta[row, T * s :].reshape(T - 1, s, s)
        best[row] = best_sequence(unary, edges, False, work, states[row])
