"""Token features of many sequences, packed: whatever the user holds, one matrix and offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, pairwise
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from consistruct._validation import check_count, is_sparse
from consistruct.protocols import IntArray
from consistruct.structures import Ragged

__all__ = [
    "FeatureHash",
    "FeatureIndex",
    "NamedTokens",
    "PackedTokens",
    "group_offsets",
    "is_symbolic",
    "pack_tokens",
    "read_tokens",
]


@dataclass(frozen=True, eq=False)
class PackedTokens:
    """Features of all tokens, sequence after sequence.

    Parameters
    ----------
    features : (N, d) array or CSR matrix
        One row per token; float32 and float64 are kept as they are, without a copy.
    offsets : (n + 1,) int array
        Sequence i holds the rows ``offsets[i]:offsets[i + 1]``.
    flat : bool
        Whether predictions are one array for all tokens (sequences given by groups) rather than a
        list.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.learning.encoding.tokens import PackedTokens
    >>> tokens = PackedTokens(np.eye(3), np.array([0, 2, 3]))
    >>> len(tokens), tokens.n_tokens, tokens.n_features
    (2, 3, 3)
    """

    features: Any
    offsets: IntArray
    flat: bool = False

    def __post_init__(self) -> None:
        features = self.features
        if is_sparse(features):
            features = sp.csr_array(features)
            if features.dtype not in (np.float32, np.float64):
                features = features.astype(np.float32)
        else:
            features = np.asarray(features)
            if features.dtype.kind not in "biuf":
                raise TypeError(
                    f"token features must be numbers, got dtype {features.dtype}; pass strings as "
                    "a list of sequences of lists of strings (or dicts), one per token"
                )
            if features.dtype not in (np.float32, np.float64):
                features = features.astype(np.float32)
        if features.ndim != 2:
            raise ValueError(
                f"token features must have shape (tokens, features), got {features.shape}"
            )
        packed = Ragged(np.empty(features.shape[0], dtype=np.bool_), self.offsets)
        empty = packed.lengths == 0
        if empty.any():
            raise ValueError(
                f"sequence {int(np.argmax(empty))} is empty; leave out sequences without tokens"
            )
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "offsets", packed.offsets)
        self._refuse_not_finite()

    def _refuse_not_finite(self) -> None:
        values = self.features.data if self.is_sparse else self.features
        with np.errstate(invalid="ignore", over="ignore"):
            if values.size == 0 or np.isfinite(values.sum(dtype=np.float64)):
                return
        position = int(np.argmax(~np.isfinite(values).reshape(len(values), -1).all(axis=1)))
        if self.is_sparse:
            position = int(np.searchsorted(self.features.indptr, position, side="right")) - 1
        row = int(np.searchsorted(self.offsets, position, side="right")) - 1
        if np.isfinite(values).all():  # only the sum overflowed
            return
        raise ValueError(
            f"sequence {row} contains NaN or an infinite feature at token "
            f"{position - int(self.offsets[row])}; fill missing values first, for example with "
            "sklearn.impute.SimpleImputer"
        )

    @property
    def is_sparse(self) -> bool:
        return is_sparse(self.features)

    @property
    def n_tokens(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def runs(self, n_tokens: int = 65536) -> Iterator[tuple[int, int]]:
        """First and last + 1 of consecutive sequences with about `n_tokens` tokens together."""
        marks = np.arange(0, self.n_tokens, n_tokens)
        starts = np.unique(np.searchsorted(self.offsets[:-1], marks)).tolist()
        return pairwise([*starts, len(self)])

    def take(self, rows: IntArray) -> PackedTokens:
        """The sequences `rows`, copied."""
        parts = [np.arange(self.offsets[row], self.offsets[row + 1]) for row in rows]
        lengths = np.diff(self.offsets)[rows]
        positions = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return PackedTokens(self.features[positions], ends, self.flat)


@dataclass(frozen=True, eq=False)
class NamedTokens:
    """Tokens given by feature names, as the user holds them: columns are the model's to choose.

    Parameters
    ----------
    sequences : list of sequences of lists of strings, or of dicts, one per token

    Examples
    --------
    >>> from consistruct.learning.encoding.tokens import NamedTokens
    >>> tokens = NamedTokens([[["w=the"], ["w=cat"]], [["w=a"]]])
    >>> len(tokens), tokens.offsets.tolist()
    (2, [0, 2, 3])
    """

    sequences: Sequence[Sequence[Any]]
    flat: ClassVar[bool] = False

    def __post_init__(self) -> None:
        lengths = np.array([len(sequence) for sequence in self.sequences], dtype=np.int64)
        if (lengths == 0).any():
            raise ValueError(
                f"sequence {int(np.argmin(lengths))} is empty; leave out sequences without tokens"
            )

    @cached_property
    def offsets(self) -> IntArray:
        lengths = [len(sequence) for sequence in self.sequences]
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, rows: IntArray) -> NamedTokens:
        """The sequences `rows`."""
        return NamedTokens([self.sequences[row] for row in rows])


class FeatureIndex:
    """Columns for feature names, in order of first appearance; unknown names are dropped later.

    Tokens are lists of strings, each a feature of value 1, or dicts: ``{"word": "cat"}`` is the
    feature ``word=cat``, ``{"length": 3}`` the feature ``length`` of value 3, True counts 1.

    Examples
    --------
    >>> from consistruct.learning.encoding.tokens import FeatureIndex
    >>> index = FeatureIndex()
    >>> tokens = index.fit_transform([[["w=the", "bias"], ["w=cat", "bias"]]])
    >>> tokens.features.toarray().tolist()
    [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    >>> index.transform([[{"w": "cat", "new": True}]]).features.toarray().tolist()
    [[0.0, 0.0, 1.0]]
    """

    def __init__(self) -> None:
        self.columns: dict[str, int] = {}

    @property
    def n_features(self) -> int:
        return len(self.columns)

    def fit_transform(self, sequences: Sequence[Sequence[Any]]) -> PackedTokens:
        growing: defaultdict[str, int] = defaultdict(count().__next__)
        offsets, lengths, names, values = _flatten(sequences)
        indices = np.fromiter(map(growing.__getitem__, names), dtype=np.int32)
        self.columns = dict(growing)
        return _packed_csr(offsets, lengths, indices, values, self.n_features)

    def transform(self, sequences: Sequence[Sequence[Any]]) -> PackedTokens:
        offsets, lengths, names, values = _flatten(sequences)
        get = self.columns.get
        indices = np.fromiter((get(name, -1) for name in names), dtype=np.int32)
        known = indices >= 0
        token = np.repeat(np.arange(len(lengths)), lengths)[known]
        return _packed_csr(
            offsets,
            np.bincount(token, minlength=len(lengths)),
            indices[known],
            None if values is None else values[known],
            self.n_features,
        )


class FeatureHash:
    """Columns by hashing: 2^bits of them, no table kept, the same on every machine and every day.

    Two names may share a column; with 2^20 columns and 10^5 names one name in ten does.
    """

    def __init__(self, bits: int = 20) -> None:
        self.bits = check_count(bits, "bits")
        if self.bits > 30:
            raise ValueError(f"bits must be at most 30, got {bits}")

    @property
    def n_features(self) -> int:
        return int(1 << self.bits)

    def fit_transform(self, sequences: Sequence[Sequence[Any]]) -> PackedTokens:
        return self.transform(sequences)

    def transform(self, sequences: Sequence[Sequence[Any]]) -> PackedTokens:
        offsets, lengths, names, values = _flatten(sequences)
        # the high bits of a CRC are its best mixed ones
        shift = 32 - self.bits
        indices = np.fromiter((crc32(name.encode()) >> shift for name in names), dtype=np.int32)
        return _packed_csr(offsets, lengths, indices, values, self.n_features)


def _flatten(
    sequences: Sequence[Sequence[Any]],
) -> tuple[IntArray, IntArray, Iterable[str], NDArray[np.float32] | None]:
    """Offsets, features per token, all feature names, and their values (None: all are 1)."""
    tokens = list(chain.from_iterable(sequences))
    offsets = np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])
    kinds = set(map(type, tokens))
    if kinds <= {list, tuple, set, frozenset}:
        lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
        names: Any = list(chain.from_iterable(tokens))
        wrong = set(map(type, names)) - {str, np.str_}
        if wrong:
            raise TypeError(
                "a token must be a list of strings or a dict, got a list that contains "
                f"{next(iter(wrong)).__name__}; write numbers as a dict {{name: number}}"
            )
        return offsets.astype(np.int64), lengths, names, None
    if not all(issubclass(kind, Mapping) for kind in kinds):
        bad = next(kind for kind in kinds if not issubclass(kind, Mapping))
        raise TypeError(
            f"all tokens must be lists of strings, or all dicts, got one of type {bad.__name__}"
        )
    pairs = [_named_value(name, value) for token in tokens for name, value in token.items()]
    lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
    values = np.array([value for _, value in pairs], dtype=np.float32)
    return offsets.astype(np.int64), lengths, [name for name, _ in pairs], values


def _named_value(name: str, value: Any) -> tuple[str, float]:
    if isinstance(value, str):
        return f"{name}={value}", 1.0
    try:
        return name, float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"the value of feature {name!r} must be a string, a number or a bool, got {value!r}"
        ) from None


def _packed_csr(
    offsets: IntArray,  # (n + 1,)
    lengths: IntArray,  # (N,) features per token
    indices: NDArray[np.int32],  # (nnz,)
    values: NDArray[np.float32] | None,
    n_features: int,
) -> PackedTokens:
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indptr = indptr.astype(np.int32 if indptr[-1] < 2**31 else np.int64)
    data = np.ones(len(indices), dtype=np.float32) if values is None else values
    matrix = sp.csr_array(
        (data, indices.astype(indptr.dtype, copy=False), indptr), shape=(len(lengths), n_features)
    )
    return PackedTokens(matrix, offsets)


# --- whatever form the user holds them in ---


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
