"""A random sample of rows that does not depend on their order, on batches, or on machines.

Every row has a key, a hash of its content (or of its place in a file) and of a seed; the rows with
the smallest keys are the sample. The smallest of all are the smallest of the smallest of each part,
so samples merge; and rows that are taken out again leave it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct._validation import is_sparse
from consistruct.protocols import FloatArray

__all__ = ["RowSample", "content_keys", "mixed"]

Keys = NDArray[np.uint64]
HALF = np.uint64(32)


@dataclass(frozen=True, eq=False)
class RowSample:
    """The rows with the smallest keys, copies of a row counted once with their weights added.

    Attributes
    ----------
    size : int
        At most so many rows.
    keys : (k,) uint64 array, increasing
    X : (k, d) array or CSR
    y : (k, …) array
    weight : (k,) array
    """

    size: int
    keys: Keys
    X: Any
    y: Any
    weight: FloatArray

    @classmethod
    def of(cls, X: Any, y: Any, weight: FloatArray, keys: Keys, size: int) -> RowSample:
        """The sample of some rows."""
        chosen = np.arange(len(keys))
        if len(keys) > 2 * size:  # copies share a key, so that a few more must be looked at
            limit = np.partition(keys, size)[size]
            chosen = np.flatnonzero(keys <= limit)
        distinct, first, place = np.unique(keys[chosen], return_index=True, return_inverse=True)
        total: Any = np.bincount(place, weights=weight[chosen], minlength=len(distinct))
        rows = chosen[first[:size]]
        return cls(size, distinct[:size], X[rows], y[rows], total[:size])

    def __len__(self) -> int:
        return len(self.keys)

    def with_rows(self, X: Any, y: Any, weight: FloatArray, keys: Keys) -> RowSample:
        """The sample of these rows and the ones before."""
        if len(self) == self.size:  # most rows of a long pass are too late
            chosen = np.flatnonzero(keys <= self.keys[-1])
            if not len(chosen):
                return self
            X, y, weight, keys = X[chosen], y[chosen], weight[chosen], keys[chosen]
        return self + RowSample.of(X, y, weight, keys, self.size)

    def __add__(self, other: RowSample) -> RowSample:
        if not len(self) or not len(other):
            return self if len(self) else other
        return RowSample.of(
            _stacked(self.X, other.X),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.keys, other.keys]),
            self.size,
        )

    def __sub__(self, other: RowSample) -> RowSample:
        """Without rows that were part of it: a smaller sample of those that remain."""
        place = np.searchsorted(other.keys, self.keys)
        place = np.minimum(place, max(len(other) - 1, 0))
        shared = (other.keys[place] == self.keys) if len(other) else np.zeros(len(self), bool)
        weight = self.weight.copy()
        weight[shared] -= other.weight[place[shared]]
        left = np.flatnonzero(weight > 1e-9 * self.weight)
        return RowSample(self.size, self.keys[left], self.X[left], self.y[left], weight[left])


def _stacked(first: Any, second: Any) -> Any:
    if is_sparse(first):
        return sp.csr_array(sp.vstack([first, second]))
    return np.concatenate([first, second])


def mixed(keys: Keys) -> Keys:
    """A bijection that spreads every bit over all (the finalizer of splitmix64)."""
    keys = keys ^ (keys >> np.uint64(30))
    keys = keys * np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(27)
    keys *= np.uint64(0x94D049BB133111EB)
    keys ^= keys >> np.uint64(31)
    return keys


def content_keys(X: Any, y: Any, seed: int) -> Keys:
    """A key of each row, (n,), from its entries, its label and the seed.

    Equal rows have equal keys, float32 or float64, dense or not.
    """
    d = X.shape[1]
    factors = np.random.default_rng([seed, 20]).integers(2**63, size=d + 1, dtype=np.uint64)
    factors = factors * np.uint64(2) + np.uint64(1)
    keys = _label_bits(y) * factors[d]
    if is_sparse(X):
        rows = sp.csr_array(X)
        entries = _bits(rows.data) * factors[rows.indices]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
        keys += sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    else:
        for column in range(d):
            keys += _bits(X[:, column]) * factors[column]
    return mixed(keys)


def _bits(values: Any) -> Keys:
    """float64 patterns, folded: round numbers have zeros in their lower half. Zero is 0."""
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    bits ^= bits >> HALF
    return bits


def _label_bits(y: Any) -> Keys:
    labels = np.asarray(y)
    flat = labels.reshape(len(labels), -1)
    if flat.dtype.kind in "biuf":
        keys = np.zeros(len(flat), np.uint64)
        for column in range(flat.shape[1]):
            keys += mixed(_bits(flat[:, column]) + np.uint64(column))
        return keys
    names, place = np.unique(flat.astype(str), return_inverse=True)
    digests = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names.tolist()]
    each = np.frombuffer(b"".join(digests), dtype=np.uint64)[place].reshape(flat.shape)
    columns = np.arange(flat.shape[1], dtype=np.uint64)
    summed: Keys = mixed(each + columns).sum(axis=1, dtype=np.uint64)
    return summed
