"""Sequences of tokens in whatever form the user holds them -> packed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from consistruct.labels import Ragged
from consistruct.learning.encoding.tokens import NamedTokens, PackedTokens, is_sparse
from consistruct.protocols import IntArray

__all__ = ["group_offsets", "is_symbolic", "pack_tokens", "read_tokens"]


def group_offsets(groups: ArrayLike, n_tokens: int) -> IntArray:
    """Offsets of sequences whose tokens stand together and share a group.

    >>> group_offsets(["a", "a", "b"], 3)
    array([0, 2, 3])
    """
    array = np.asarray(groups)
    if array.shape != (n_tokens,):
        raise ValueError(
            f"groups must contain one entry per token, shape ({n_tokens},), got {array.shape}"
        )
    change = np.flatnonzero(array[1:] != array[:-1]) + 1
    offsets = np.concatenate([[0], change, [n_tokens]]).astype(np.int64)
    names = array[offsets[:-1]].tolist()
    if len(set(names)) != len(names):
        seen: set[Hashable] = set()
        for name in names:
            if name in seen:
                raise ValueError(
                    f"the tokens of group {name!r} are not adjacent; sort the rows by group"
                )
            seen.add(name)
    return offsets


def is_symbolic(X: Any) -> bool:
    """Whether X is a list of sequences of tokens given by feature names, not by numbers."""
    if isinstance(X, PackedTokens | Ragged | np.ndarray) or is_sparse(X) or len(X) == 0:
        return False
    first = X[0]
    return (
        isinstance(first, list | tuple)
        and len(first) > 0
        and (
            isinstance(first[0], str | Mapping | set | frozenset)
            or (isinstance(first[0], list | tuple) and all(isinstance(f, str) for f in first[0]))
        )
    )


def _named(sequence: Sequence[Any]) -> Sequence[Any]:
    """Tokens by feature names; a plain word is its own and only feature."""
    if not any(isinstance(token, str) for token in sequence):
        return sequence
    return [[token] if isinstance(token, str) else token for token in sequence]


def pack_tokens(X: Any, groups: ArrayLike | None = None) -> PackedTokens:
    """Numeric token features in any accepted form -> packed.

    Parameters
    ----------
    X : PackedTokens, Ragged, list of (T_i, d) arrays, or with `groups` an (N, d) array or CSR
    groups : (N,) array, optional
        Sequence of each row of X; rows of a sequence stand together.
    """
    if isinstance(X, PackedTokens):
        return X
    if isinstance(X, Ragged):
        return PackedTokens(X.values, X.offsets)
    if groups is not None:
        features = X if is_sparse(X) else np.asarray(X)
        return PackedTokens(features, group_offsets(groups, features.shape[0]), flat=True)
    if is_sparse(X) or isinstance(X, np.ndarray):
        if isinstance(X, np.ndarray) and X.ndim == 3:  # sequences of one length
            n, T, d = X.shape
            return PackedTokens(X.reshape(n * T, d), np.arange(n + 1) * T)
        if not (isinstance(X, np.ndarray) and X.dtype == object):
            raise ValueError(
                f"X of shape {X.shape} contains rows without sequences; pass groups= (the "
                "sequence of each row), a list of (T_i, d) arrays, or PackedTokens(features, "
                "offsets)"
            )
    return _pack_list(X)


def _pack_list(X: Sequence[Any]) -> PackedTokens:
    if isinstance(X, str) or not hasattr(X, "__len__") or not hasattr(X, "__getitem__"):
        raise TypeError(f"X must be a list of (T_i, d) arrays, got {type(X).__name__}")
    if len(X) == 0:
        raise ValueError("X must contain at least one sequence, got none")
    width: int | None = None
    for row, sequence in enumerate(X):
        shape = np.shape(sequence) if not is_sparse(sequence) else sequence.shape
        if len(shape) >= 1 and shape[0] == 0:
            raise ValueError(f"sequence {row} is empty; leave out sequences without tokens")
        if len(shape) != 2:
            raise ValueError(f"sequence {row} must have shape (tokens, features), got {shape}")
        if width is None:
            width = shape[1]
        elif shape[1] != width:
            raise ValueError(
                f"sequence {row} has {shape[1]} features per token, sequence 0 has {width}"
            )
    assert width is not None
    lengths = [sequence.shape[0] if hasattr(sequence, "shape") else len(sequence) for sequence in X]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if is_sparse(X[0]):
        return PackedTokens(sp.vstack(list(X), format="csr"), offsets)
    # float32: half the memory of the usual float64 list, and more than the data are worth
    features = np.empty((int(offsets[-1]), width), dtype=np.float32)
    for row, sequence in enumerate(X):
        array = np.asarray(sequence)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"sequence {row} must contain numbers, got dtype {array.dtype}")
        features[offsets[row] : offsets[row + 1]] = array
    return PackedTokens(features, offsets)


def read_tokens(X: Any, groups: Any = None) -> PackedTokens | NamedTokens:
    """Tokens by numbers, packed, or by feature names, as they are."""
    if is_symbolic(X):
        if groups is not None:
            raise ValueError("groups= is for an array or CSR matrix, not for lists of features")
        return NamedTokens([_named(sequence) for sequence in X])
    tokens = pack_tokens(X, groups)
    if len(tokens) == 0:
        raise ValueError("X must contain at least one sequence, got none")
    return tokens
