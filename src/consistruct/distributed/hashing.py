"""Columns of any number and kind as 2^bits hashed ones: no list of names or words is needed.

A number adds itself, a word adds one, at the place that a hash of the column (and of the word)
states, with a sign that the hash states too: so that what shares a place cancels on average. Empty
cells add nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct.learning.streams.sample import mixed

__all__ = [
    "BITS",
    "Entries",
    "hashed_numbers",
    "hashed_places",
    "hashed_rows",
    "hashed_words",
    "text_key",
]

BITS = range(1, 31)  # places are 32-bit integers in sparse rows
Entries = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float64]]  # row, key, value


def text_key(text: str) -> np.uint64:
    """64 bits that depend on the text alone, on every machine."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def hashed_numbers(name: str, values: NDArray[Any]) -> Entries:
    """Entries of a column of numbers, (n,); NaN and 0 have none."""
    values = np.asarray(values, dtype=np.float64)
    rows = np.flatnonzero((values != 0) & ~np.isnan(values))
    return rows, np.full(len(rows), text_key(name)), values[rows]


def hashed_words(name: str, words: list[str], places: NDArray[Any]) -> Entries:
    """Entries of a column of words: row i has words[places[i]], or none if that is negative."""
    own = text_key(name)
    if not words:
        return np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0)
    keys = mixed(np.array([text_key(word) for word in words], dtype=np.uint64) ^ own)
    rows = np.flatnonzero(places >= 0)
    return rows, keys[places[rows]], np.ones(len(rows))


def hashed_rows(entries: Iterator[Entries] | list[Entries], n: int, bits: int) -> sp.csr_array:
    """(n, 2^bits) from the entries of all columns."""
    parts = list(entries)
    rows = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0, np.int64)
    keys = np.concatenate([part[1] for part in parts]) if parts else np.zeros(0, np.uint64)
    values = np.concatenate([part[2] for part in parts]) if parts else np.zeros(0)
    return _placed(rows, keys, values, n, bits)


def hashed_places(X: Any, bits: int) -> sp.csr_array:
    """Sparse rows (n, any width) with hashed column numbers."""
    found = sp.coo_array(X)
    rows, columns = found.coords
    return _placed(
        rows, mixed(columns.astype(np.uint64) + np.uint64(1)), found.data, X.shape[0], bits
    )


def _placed(rows: Any, keys: Any, values: Any, n: int, bits: int) -> sp.csr_array:
    places = (keys & np.uint64(2**bits - 1)).astype(np.int32)
    signs = np.where(keys >> np.uint64(63), -1.0, 1.0)
    X = sp.csr_array((signs * values, (rows, places)), shape=(n, 2**bits))
    X.sum_duplicates()
    return X
