"""Which transitions between tags are allowed, as scores: 0, or −inf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from consistruct.learning.encoding.tags import scheme_transitions
from consistruct.learning.models.chain.chain_weights import ChainWeights
from consistruct.protocols import IntArray

__all__ = ["refuse_broken_constraints", "refuse_too_many_weights", "transition_mask"]

MAX_EDGE_WEIGHTS = 2**28  # 1 GiB in single precision; the average and a trial take as much again


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
    for before, after in forbidden or ():
        for tag in (before, after):
            if tag not in state:
                raise ValueError(
                    f"forbidden_transitions names the tag {tag!r}, which does not occur in training"
                )
        mask.edges[state[before], state[after]] = -np.inf
    return mask


def refuse_broken_constraints(
    mask: ChainWeights,
    states: IntArray,  # (N,)
    offsets: IntArray,  # (n + 1,)
    tags: Sequence[Any],
) -> None:
    """Raise if a true sequence uses what is forbidden: its score would be −inf for ever."""
    inner = np.ones(len(states), dtype=np.bool_)
    inner[offsets[:-1]] = False
    positions = np.flatnonzero(inner)
    broken = np.isneginf(mask.edges[states[positions - 1], states[positions]])
    if broken.any():
        position = int(positions[np.argmax(broken)])
        row = int(np.searchsorted(offsets, position, side="right")) - 1
        raise ValueError(
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
            raise ValueError(
                f"sequence {row} must not {name} with the tag {tags[states[ends[row]]]!r}; omit "
                "tag_scheme, or correct the tags"
            )
