"""The weights of a linear chain: θ_t = Wᵀx_t + bias, transitions, start and end scores.

Which transitions are allowed is written as weights too: 0, or −inf.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from consistruct.learning.encoding.tags import scheme_transitions
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures.chains import ChainScores, boundary_scores

__all__ = [
    "ChainWeights",
    "broken_constraint",
    "mask_of_training",
    "refuse_too_many_weights",
    "transition_mask",
]

MAX_EDGE_WEIGHTS = 2**28  # 1 GiB in single precision; the average and a trial take as much again


@dataclass
class ChainWeights:
    """Parameters tied along the sequence; −inf in transitions, start or end forbids.

    Parameters
    ----------
    weights : (d, s) array
    bias : (s,) array
    edges : (s, s) array
        ``edges[a, b]`` scores state a followed by state b.
    start, end : (s,) array
        Scores of the first and of the last state.
    edge_weights : (d, s²) array, or (0, s²) where transitions are shared
        V: the edge into token t scores ``edges[a, b]`` + ⟨V[:, s·a + b], x_t⟩.
    """

    weights: NDArray[Any]
    bias: FloatArray
    edges: FloatArray
    start: FloatArray
    end: FloatArray
    edge_weights: NDArray[Any]

    @classmethod
    def zeros(
        cls,
        n_features: int,
        n_states: int,
        *,
        per_edge: bool = False,
        dtype: Any = np.float32,
    ) -> Self:
        """Scores nothing; `per_edge` gives transitions weights of their own on the features."""
        s = n_states
        return cls(
            np.zeros((n_features, s), dtype=dtype),
            np.zeros(s),
            np.zeros((s, s)),
            np.zeros(s),
            np.zeros(s),
            np.zeros((n_features if per_edge else 0, s * s), dtype=dtype),
        )

    @property
    def n_states(self) -> int:
        return len(self.bias)

    @property
    def per_edge(self) -> bool:
        """Whether each edge has a matrix of its own, that looks at the features."""
        return len(self.edge_weights) > 0

    @property
    def tokens_at_once(self) -> int:
        """How many tokens to score together, so that their matrices of transitions stay small."""
        return max(1, 2**24 // self.n_states**2) if self.per_edge else 2**16

    def arrays(self) -> list[NDArray[Any]]:
        return [getattr(self, field.name) for field in fields(self)]

    def named(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """The arrays by name, as checkpoints keep them."""
        return {f"{prefix}{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_named(cls, arrays: dict[str, NDArray[Any]], prefix: str = "") -> Self:
        """The inverse of `named`."""
        return cls(*(np.array(arrays[f"{prefix}{field.name}"]) for field in fields(cls)))

    def copy(self) -> Self:
        return type(self)(*(array.copy() for array in self.arrays()))

    def forbid(self, edges: FloatArray, start: FloatArray, end: FloatArray) -> Self:
        """The same with −inf wherever the masks hold it (0 elsewhere); weights are not copied."""
        return replace(self, edges=self.edges + edges, start=self.start + start, end=self.end + end)

    @property
    def square_norm(self) -> float:
        """‖(W, V)‖², what the penalty counts: bias, transitions and boundaries are free."""
        return float((self.weights**2).sum() + (self.edge_weights**2).sum())

    def scores(self, features: Any, offsets: IntArray) -> ChainScores:
        """θ of packed sequences with features (N, d), array or CSR."""
        unary = np.asarray(features @ self.weights, dtype=np.float64)
        unary += self.bias
        unary = boundary_scores(unary, offsets, self.start, self.end)
        return ChainScores(unary, self.edge_scores(features), offsets)

    def edge_scores(self, features: Any) -> FloatArray:
        """(s, s), or (N, s, s) where transitions look at the features: entry t leaves token t."""
        if not self.per_edge:
            return self.edges
        n_tokens, s = features.shape[0], self.n_states
        scores = np.zeros((n_tokens, s, s))
        # the edge that leaves t looks at t + 1; entries of last tokens belong to no edge
        scores[:-1] = np.asarray(features[1:] @ self.edge_weights).reshape(-1, s, s)
        scores += self.edges
        return scores

    def move_toward(self, other: ChainWeights, share: float) -> None:
        """self += share · (other − self); forbidden entries (−inf in both) stay as they are."""
        _mix(self.weights, other.weights, share)
        _mix(self.edge_weights, other.edge_weights, share)
        for mine, theirs in zip(self.arrays()[1:-1], other.arrays()[1:-1], strict=True):
            finite = np.isfinite(theirs)
            mine[finite] += share * (theirs[finite] - mine[finite])


def _mix(mine: NDArray[Any], theirs: NDArray[Any], share: float) -> None:
    """mine = (1 − share) · mine + share · theirs, block by block: one pass through memory."""
    rows = max(1, 2**15 // mine.shape[1])
    for first in range(0, len(mine), rows):
        block = mine[first : first + rows]
        block *= 1.0 - share
        block += mine.dtype.type(share) * theirs[first : first + rows]


def refuse_too_many_weights(n_features: int, n_states: int, transitions: str) -> None:
    """Raise if transitions that look at the features would need more than a few GiB."""
    size = n_features * n_states**2
    if transitions == "features" and size > MAX_EDGE_WEIGHTS:
        raise ValueError(
            f"transitions='features' needs {n_features} features · {n_states}² tags = {size} "
            f"weights, more than {MAX_EDGE_WEIGHTS}; use transitions='shared' or fewer features "
            f"(hash_bits)"
        )


def transition_mask(
    tags: Sequence[Any], scheme: str | None, forbidden: Iterable[tuple[Any, Any]] | None
) -> ChainWeights:
    """Weights without features whose transitions, start and end are 0 or −inf."""
    mask = ChainWeights.zeros(0, len(tags))
    state = {tag: number for number, tag in enumerate(tags)}
    if scheme is not None:
        mask.edges, mask.start, mask.end = scheme_transitions(tags, scheme)
    for pair in forbidden if isinstance(forbidden, Iterable) else filter(None, [forbidden]):
        try:
            before, after = (None,) if isinstance(pair, str) else pair  # "ab" is no pair of tags
        except (TypeError, ValueError):
            raise ValueError(
                "forbidden_transitions must be pairs of tags such as ('B-NP', 'I-VP'), got "
                f"{pair!r}"
            ) from None
        for tag in (before, after):
            if tag not in state:
                raise ValueError(
                    f"forbidden_transitions names the tag {tag!r}, which does not occur in training"
                )
        mask.edges[state[before], state[after]] = -np.inf
    return mask


def mask_of_training(
    tags: Sequence[Any],
    scheme: str | None,
    forbidden: Iterable[tuple[Any, Any]] | None,
    states: IntArray,  # (N,)
    offsets: IntArray,  # (n + 1,)
) -> ChainWeights:
    """The mask of a scheme, which the true sequences must keep: others have scores −inf for ever.

    "bio" is either of its variants. Where there is a chunk at all, no sequence follows both: its
    first tag is B-X in the one and I-X in the other.
    """
    mask = transition_mask(tags, scheme, forbidden)
    fault = broken_constraint(mask, states, offsets, tags)
    if fault is not None and scheme == "bio":
        variant = transition_mask(tags, "iob1", forbidden)
        if broken_constraint(variant, states, offsets, tags) is None:
            return variant
    if fault is not None:
        raise ValueError(fault)
    return mask


def broken_constraint(
    mask: ChainWeights,
    states: IntArray,  # (N,)
    offsets: IntArray,  # (n + 1,)
    tags: Sequence[Any],
) -> str | None:
    """What a true sequence uses although it is forbidden; None if nothing."""
    inner = np.ones(len(states), dtype=np.bool_)
    inner[offsets[:-1]] = False
    positions = np.flatnonzero(inner)
    broken = np.isneginf(mask.edges[states[positions - 1], states[positions]])
    if broken.any():
        position = int(positions[np.argmax(broken)])
        row = int(np.searchsorted(offsets, position, side="right")) - 1
        return (
            f"sequence {row} contains the forbidden transition {tags[states[position - 1]]!r} -> "
            f"{tags[states[position]]!r}; allow it or correct the tags"
        )
    for values, ends, name in (
        (mask.start, offsets[:-1], "start"),
        (mask.end, offsets[1:] - 1, "end"),
    ):
        broken = np.isneginf(values[states[ends]])
        if broken.any():
            row = int(np.argmax(broken))
            return (
                f"sequence {row} must not {name} with the tag {tags[states[ends[row]]]!r}; omit "
                "tag_scheme, or correct the tags"
            )
    return None
