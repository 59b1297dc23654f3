"""Permutations of the labels that do not change a loss matrix."""

from __future__ import annotations

import numpy as np

from consistruct.protocols import FloatArray

__all__ = ["Permutation", "pair_symmetries"]

Pair = tuple[int, int]
Permutation = list[int]  # the image of every label


def pair_symmetries(L: FloatArray) -> tuple[dict[Pair, Pair], list[Permutation]]:
    """The first pair of the orbit of every pair, and permutations that generate the orbits.

    >>> import numpy as np
    >>> first, found = pair_symmetries(np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    >>> first[2, 0], first[1, 2], found
    ((0, 2), (1, 0), [[2, 1, 0]])
    """
    k = len(L)
    pairs = [(i, j) for i in range(k) for j in range(k) if i != j]
    first = {pair: pair for pair in pairs}
    found: list[Permutation] = []
    kinds = [tuple(np.sort(np.concatenate([L[c], L[:, c]])).tolist()) for c in range(k)]
    for pair in pairs:
        if first[pair] != pair:
            continue
        for other in pairs:
            if other <= pair or first[other] != other:
                continue
            order = _extended(L, kinds, dict(zip(pair, other, strict=True)))
            if order is not None:
                found.append(order)
                _merge(first, order)
    return first, found


def _merge(first: dict[Pair, Pair], order: Permutation) -> None:
    """Join the orbits that a permutation joins."""
    for i, j in list(first):
        one, two = first[i, j], first[order[i], order[j]]
        if one != two:
            low, high = min(one, two), max(one, two)
            for pair, known in first.items():
                if known == high:
                    first[pair] = low


def _extended(
    L: FloatArray, kinds: list[tuple[float, ...]], known: dict[int, int]
) -> Permutation | None:
    """A permutation with these images that leaves L unchanged, by backtracking."""
    k = len(L)
    images: dict[int, int] = {}
    for c, image in known.items():
        if not _fits(L, kinds, images, c, image):
            return None
        images[c] = image
    free = [c for c in range(k) if c not in images]

    def extend(depth: int) -> bool:
        if depth == len(free):
            return True
        c = free[depth]
        taken = set(images.values())
        for image in range(k):
            if image not in taken and _fits(L, kinds, images, c, image):
                images[c] = image
                if extend(depth + 1):
                    return True
                del images[c]
        return False

    return [images[c] for c in range(k)] if extend(0) else None


def _fits(
    L: FloatArray, kinds: list[tuple[float, ...]], images: dict[int, int], c: int, image: int
) -> bool:
    if kinds[c] != kinds[image] or L[c, c] != L[image, image]:
        return False
    return all(
        L[c, d] == L[image, other] and L[d, c] == L[other, image] for d, other in images.items()
    )
