"""Score families to choose from: own span, full, truncations of the loss, merged labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import NDArray

from consistruct.losses.base import Loss, as_loss
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Blocks, Dense, Full, Structure
from consistruct.structures.base import ENUMERATION_LIMIT

__all__ = ["Family", "block_merges", "low_rank_truncations", "score_families"]

EQUAL = 1e-9  # relative difference below which singular values, heights or rows are the same
MAX_PER_KIND = 5  # truncations, and merges, that are looked at


@dataclass(frozen=True)
class Family:
    """A score space and where it comes from."""

    name: str
    scores: Structure


def score_families(loss: Loss, candidates: Iterable[Structure] = ()) -> tuple[Family, ...]:
    """All families worth comparing, equal ones once; listed losses only have the searched ones."""
    own = "full scores (own span)" if loss.score_space.one_per_label else "own span"
    found = [Family(own, loss.score_space), Family("full scores", Full(loss))]
    sizes = (loss.n_labels, loss.true_labels.size)
    if all(size is not None and size <= ENUMERATION_LIMIT for size in sizes):
        found += block_merges(loss) + low_rank_truncations(loss)
    found += [Family(f"candidate {n}", space) for n, space in enumerate(candidates)]
    unique: dict[Structure, Family] = {}
    for family in found:
        unique.setdefault(family.scores, family)
    return tuple(unique.values())


def low_rank_truncations(loss: Loss, *, limit: int | None = MAX_PER_KIND) -> list[Family]:
    """The constant and the leading left singular vectors of the centered loss.

    Cuts are made only where singular values differ (within a group of equal ones the vectors are
    arbitrary), at the `limit` largest relative gaps. Rows that coincide are made equal, and if
    there are as many distinct rows as dimensions the space is one of blocks.

    Examples
    --------
    >>> from consistruct.losses import Mixed
    >>> [family.scores for family in low_rank_truncations(Mixed((3, 3), 0.2))]
    [Blocks(sizes=(3, 3))]
    """
    loss = as_loss(loss)
    L = loss.matrix()
    weights = loss.predictions.weights()
    root = np.sqrt(weights)[:, None]
    left, singular, _ = np.linalg.svd(root * (L - weights @ L), full_matrices=False)
    rank = int((singular > EQUAL * singular[0]).sum()) if singular[0] > 0 else 0
    cuts = [m for m in range(1, rank) if singular[m] < singular[m - 1] * (1 - EQUAL)]
    cuts.sort(key=lambda m: singular[m] / singular[m - 1])
    basis = left[:, :rank] / root
    return [Family(f"rank {m + 1}", _space(loss, basis[:, :m])) for m in sorted(cuts[:limit])]


def _space(loss: Loss, contrasts: FloatArray) -> Structure:
    """Scores [1, contrasts], with rows equal up to rounding made exactly equal."""
    tree = scipy.cluster.hierarchy.linkage(
        scipy.spatial.distance.pdist(contrasts), method="complete"
    )
    scale = float(np.abs(contrasts).max())
    groups = _in_order(scipy.cluster.hierarchy.fcluster(tree, EQUAL * scale, criterion="distance"))
    first = np.unique(groups, return_index=True)[1]
    if len(first) == contrasts.shape[1] + 1:
        return _blocks(groups)
    F = np.column_stack([np.ones(len(contrasts)), contrasts[first][groups]])
    return Dense(F, over=loss.predictions)


def block_merges(loss: Loss) -> list[Family]:
    """Labels merged by average-linkage clustering of the rows of the loss.

    The tree is cut at the largest relative jumps between merge heights, never within equal heights.
    Only the first label of each block can be predicted.
    """
    L = loss.matrix()
    if len(L) < 3:
        return []
    tree = scipy.cluster.hierarchy.linkage(scipy.spatial.distance.pdist(L), method="average")
    heights = tree[:, 2]
    n = len(L)
    # after m merges there are n − m blocks; the next merge must be higher
    cuts = [
        m
        for m in range(1, n - 1)
        if heights[m] > heights[m - 1] * (1 + EQUAL) + EQUAL * heights[-1]
    ]
    cuts.sort(key=lambda m: -(heights[m] - heights[m - 1]))
    found = []
    for m in sorted(cuts[:MAX_PER_KIND]):
        groups = _in_order(scipy.cluster.hierarchy.fcluster(tree, n - m, criterion="maxclust"))
        found.append(Family(f"{groups.max() + 1} blocks", _blocks(groups)))
    return found


def _in_order(groups: NDArray[np.int32]) -> IntArray:
    """Renumber groups by their first member."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    position = np.argsort(np.argsort(first))
    return np.asarray(position[inverse.reshape(-1)], dtype=np.int64)


def _blocks(groups: IntArray) -> Blocks:
    """Consecutive blocks are written by their sizes, which closed forms recognize."""
    if (np.diff(groups) >= 0).all():
        return Blocks(tuple(np.bincount(groups).tolist()))
    return Blocks(None, groups)
